"""Lists in a terminal and elsewhere: nothing is wider than the screen, no word is broken, no value is lost unsaid."""

from __future__ import annotations

import asyncio
import contextlib
import io
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import itemgetter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from reasonry.records import find_id, new_id, shorten_ids
from reasonry.surfaces.cli.draw import draw_session
from reasonry.surfaces.cli.output import Column, local_time, print_table
from reasonry.text import inert
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


def drawn(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
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
    assert all(line == inert(line) for line in lines)
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
        [inert(" ".join(cell.split())) for cell in row] for row in rows
    ]


def test_a_table_without_rows_prints_nothing() -> None:
    assert drawn(COLUMNS, [], 80) == []


@given(
    count=st.integers(1, 12),
    spread_ms=st.sampled_from([0, 1, 70_000, 10**9]),
    others=st.sets(st.text(max_size=9)),
)
def test_a_short_id_stands_for_its_own_id_and_no_other(count: int, spread_ms: int, others: set[str]) -> None:
    base = uuid.UUID(new_id()).int
    ids = [str(uuid.UUID(int=base + ((place * spread_ms) << 80) + place)) for place in range(count)]
    everything = sorted([*ids, *others])

    async def begins_with(prefix: str, limit: int = 10) -> list[str]:
        return [whole for whole in everything if whole.startswith(prefix)][:limit]

    async def last() -> str | None:
        return None

    async def shorten() -> dict[str, str]:
        short = await shorten_ids(everything, begins_with)
        for whole, shown in short.items():
            if whole in ids:
                assert await find_id(shown, "run", begins_with, last) == whole
        return short

    short = asyncio.run(shorten())
    assert all(short[other] == other for other in others)
    assert {len(short[whole]) for whole in ids} <= {8, 13, 18, 23, 36}
    if spread_ms > 65_536:
        assert {len(short[whole]) for whole in ids} == {8}


def test_instants_are_short_and_clear() -> None:
    there = datetime(2026, 11, 22, 14, 2).astimezone()
    assert local_time(there.astimezone(UTC).isoformat()) == "2026-11-22 14:02"
    assert local_time("0001-01-01T00:00:00.000Z")[:10] == "0001-01-01"
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
