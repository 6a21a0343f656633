"""A thought as the log on standard error shows it."""

from hypothesis import given
from hypothesis import strategies as st

from reasonry.surfaces.mcp.serve import heading, show_thought

PLACE = {"thoughtNumber": 1, "totalThoughts": 3}


@given(st.text(max_size=60))
def test_no_text_steers_the_terminal(text: str) -> None:
    shown = show_thought({"thought": text, "branchFromThought": 1, "branchId": text}, PLACE, colour=False)
    steering = {chr(code) for code in (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F))}
    assert not steering & set(shown)


def test_the_text_stands_below_its_heading_and_a_huge_one_is_cut_short() -> None:
    assert show_thought({"thought": "a\r\nb"}, PLACE, colour=False) == "\n💭 Thought 1/3\n  a\n  b\n"
    shown = show_thought({"thought": "x" * 50_000}, PLACE, colour=False)
    assert "50,000 characters in all" in shown
    assert len(shown) < 40_000


def test_colours_are_put_on_only_where_they_are_wanted() -> None:
    assert "\x1b[34m" in show_thought({"thought": "x"}, PLACE, colour=True)
    assert "\x1b" not in show_thought({"thought": "x"}, PLACE, colour=False)


def test_the_heading_tells_the_stage_only_where_one_was_named_and_the_branch_that_was_begun() -> None:
    assert heading({}, PLACE) == ("💭 Thought", "💭 Thought 1/3")
    assert heading({}, {**PLACE, "stage": "think"})[1] == "💭 Thought 1/3 · think"
    begun = heading({"branchFromThought": 1}, {**PLACE, "branches": ["a", "branch-1"]})
    assert begun == ("🌿 Branch", "🌿 Branch 1/3 (from thought 1, ID: branch-1)")
    assert heading({"revisesThought": 1}, PLACE)[1] == "🔄 Revision 1/3 (revising thought 1)"
