"""Lists in a terminal and elsewhere: nothing is wider than the screen, no word is broken, no value is lost unsaid."""

import contextlib
import io
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from reasonry.guided.session_documents import instant
from reasonry.records import may_be_short, new_id, now_ms, short_id
from reasonry.surfaces.cli import runs, sessions
from reasonry.surfaces.cli.draw import draw_session
from reasonry.surfaces.cli.output import Column, local_time, print_table
from reasonry.text import escape_unseen
from tests.in_process import Screen

COLUMNS = (
    Column("ID", itemgetter(0)),
    Column("STATUS", itemgetter(1)),
    Column("PROBLEM", itemgetter(2), narrowest=20),
    Column("BEGUN", itemgetter(3)),
    Column("STRATEGY", itemgetter(4)),
)
WRAPPED = (
    Column("NAME", itemgetter(0)),
    Column("SOURCE", itemgetter(1)),
    Column("WHAT IT DOES", itemgetter(2), narrowest=8, wraps=True),
)


def drawn(columns: Sequence[Column], rows: Sequence[Any], width: int) -> list[str]:
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(Screen()) as screen:
        patch.setenv("COLUMNS", str(width))
        patch.setenv("TERM", "dumb")
        print_table(columns, rows)
    return screen.getvalue().splitlines()


texts = st.text(st.characters(codec="utf-8"), max_size=200) | st.sampled_from(
    ["", "東京タワーと東京スカイツリー " * 5, "a\x1b[31mred\x1b[0m", "tab\tnew\nline", "e\u0301" * 60]
)
fixed = st.sampled_from(["01a2018c-767e", "done", "tree_of_thoughts", ""])
rows = st.lists(st.tuples(fixed, fixed, texts, fixed, fixed), min_size=1, max_size=5)


@given(rows=rows, width=st.integers(24, 200))
@example(rows=[("", "", "", "", "")], width=24)
def test_no_line_of_a_table_is_wider_than_the_terminal(rows: list[tuple[str, ...]], width: int) -> None:
    lines = drawn(COLUMNS, rows, width)
    assert all(cell_len(line) <= width for line in lines)
    assert all(line == escape_unseen(line) for line in lines)
    assert len(lines) == len(rows) + 1


def test_in_a_narrow_terminal_the_last_columns_go_first() -> None:
    row = ("01a2018c", "done", "Which way is the shortest? " * 8, "2026-11-22 10:00", "tree_of_thoughts")
    headings = {width: drawn(COLUMNS, [row], width)[0].split() for width in (100, 60, 42, 34)}
    assert headings[100] == ["ID", "STATUS", "PROBLEM", "BEGUN", "STRATEGY"]
    assert headings[60] == ["ID", "STATUS", "PROBLEM", "BEGUN"]
    assert headings[42] == ["ID", "STATUS", "PROBLEM"]
    assert headings[34] == ["ID", "STATUS"]
    assert drawn(COLUMNS, [row], 42)[1].endswith("…")


@given(words=st.lists(st.text("abcdefgh", min_size=1, max_size=14), min_size=1), width=st.integers(30, 120))
def test_the_last_column_wraps_between_words_and_loses_none(words: list[str], width: int) -> None:
    lines = drawn(WRAPPED, [("linear", "1", " ".join(words))], width)
    assert all(cell_len(line) <= width for line in lines)
    assert " ".join(lines[1:]).split()[-len(words) :] == words


@given(rows=rows)
def test_where_nobody_looks_on_values_are_whole_between_tabs(rows: list[tuple[str, ...]]) -> None:
    with contextlib.redirect_stdout(io.StringIO()) as written:
        print_table([Column("ID", itemgetter(0), lambda value: "short"), *COLUMNS[1:]], rows)
    lines = written.getvalue().split("\n")[:-1]
    assert [line.split("\t") for line in lines] == [
        [escape_unseen(" ".join(cell.split())) for cell in row] for row in rows
    ]


def test_a_table_without_rows_prints_nothing() -> None:
    assert drawn(COLUMNS, [], 80) == []


def test_a_short_id_stands_for_its_own_id_and_no_other() -> None:
    ids = [new_id() for _ in range(500)]
    assert len({short_id(whole) for whole in ids}) == len(ids)
    assert all(may_be_short(short_id(whole)) and whole.startswith(short_id(whole)) for whole in ids)
    for other in ("", "last", "my-session", f"comparison-{ids[0]}", "no-uuid-but-a-name-of-36-characters"):
        assert short_id(other) == other


@pytest.mark.parametrize(("columns", "shown"), [(runs._COLUMNS, "PROBLEM"), (sessions._COLUMNS, "PURPOSE")])
def test_eighty_columns_have_room_for_the_strategy_beside_a_short_id(
    columns: Sequence[Column], shown: str
) -> None:
    texts = dict.fromkeys(("problem", "purpose", "answer"), "Which way is the shortest? " * 8)
    ids = dict.fromkeys(("run_id", "session_id"), new_id())
    state = {"status": "active", "outcome": "answered", "strategy": "tree_of_thoughts"}
    row = {**texts, **ids, **state, "created_at_ms": now_ms(), "used_at": instant(now_ms())}
    heading, line = drawn(columns, [row], 80)
    assert {"ID", "STRATEGY", shown} <= set(heading.split())
    assert line.startswith(f"{short_id(row['run_id'])}  ")


def test_instants_are_short_and_clear() -> None:
    now = datetime.now(UTC).astimezone()
    assert local_time(now.isoformat()) == f"{now:%d %b %H:%M}"
    assert (
        local_time((now - timedelta(days=800)).isoformat()) == (now - timedelta(days=800)).date().isoformat()
    )
    assert local_time("0001-01-01T00:00:00.000Z") == "0001-01-01"
    assert local_time("") == ""


def test_the_lines_of_a_thought_hang_beside_its_number(capsys: pytest.CaptureFixture[str]) -> None:
    branch = {"branch_id": "b", "branch_from_thought": 1, "branch_from_seq": 1}
    thoughts = [
        {"seq": 1, "thought_number": 1, "thought": "one\ntwo"},
        {"seq": 2, "thought_number": 2, "thought": "word " * 20, **branch},
    ]
    draw_session({"session_id": "s", "thoughts": thoughts})
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:4] == ["  1 one", "    two", "  ⎇ b"]
    assert lines[4].startswith("      2 word")
    assert all(line.startswith("        word") for line in lines[5:])
    assert len(lines) > 5
