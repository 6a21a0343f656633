"""The box around a thought on standard error."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reasonry.surfaces.mcp.thought_log import draw_thought, heading, inert, width, wrap

PLACE = {"thoughtNumber": 1, "totalThoughts": 3}
TEXTS = st.text(alphabet="ab  \n日本é\u0301\U0001f469\u200d\ufe0f-\t\x1b\x07\u202e", max_size=80)


@given(TEXTS, st.integers(2, 30))
def test_wrapping_keeps_all_but_blanks_within_the_columns(text: str, columns: int) -> None:
    lines = wrap(inert(text), columns)
    assert all(width(line) <= columns for line in lines)
    assert "".join(lines).replace(" ", "") == inert(text).replace("\n", "").replace(" ", "")


@given(TEXTS)
def test_every_row_of_a_box_is_as_wide_as_the_others(text: str) -> None:
    rows = draw_thought({"thought": text}, PLACE, colour=False, columns=40).strip("\n").split("\n")
    assert len({width(row) for row in rows}) == 1
    assert width(rows[0]) <= 40


@given(st.text(max_size=60))
def test_no_text_steers_the_terminal(text: str) -> None:
    shown = inert(text)
    steering = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F))}
    assert not steering & set(shown)


def test_wide_and_joined_characters_count_as_the_terminal_counts_them() -> None:
    assert width("abc") == 3
    assert width("日本") == 4
    assert width("e\u0301") == 1
    assert width("\U0001f469\u200d\U0001f467") == 2


def test_a_huge_thought_is_cut_short_in_the_draw_thought() -> None:
    drawn = draw_thought({"thought": "x" * 50_000}, PLACE, colour=False, columns=80)
    assert "50,000 characters in all" in drawn
    assert len(drawn) < 40_000


def test_colours_are_put_on_only_where_they_are_wanted() -> None:
    assert "\x1b[34m" in draw_thought({"thought": "x"}, PLACE, colour=True, columns=80)
    assert "\x1b" not in draw_thought({"thought": "x"}, PLACE, colour=False, columns=80)


def test_the_heading_tells_the_stage_only_where_one_was_named_and_the_branch_that_was_begun() -> None:
    assert heading({}, PLACE) == ("💭 Thought", "💭 Thought 1/3")
    assert heading({}, {**PLACE, "stage": "think"})[1] == "💭 Thought 1/3 · think"
    begun = heading({"branchFromThought": 1}, {**PLACE, "branches": ["a", "branch-1"]})
    assert begun == ("🌿 Branch", "🌿 Branch 1/3 (from thought 1, ID: branch-1)")
    assert heading({"revisesThought": 1}, PLACE)[1] == "🔄 Revision 1/3 (revising thought 1)"
