"""Rule 4 of the contract of the surfaces: the same filter shows the same rows in the same order, whole or in pages."""

from datetime import datetime
from typing import Any

import pytest

from .surface import Document, Given, Reply, Surface
from .uses import (
    AGENTS,
    CANCELLED,
    NAMES,
    OPERATORS,
    PUZZLE,
    SECOND,
    SOLVE,
    STOPPED,
    SUM,
    THINK,
    THOUGHT,
    VAIN,
    alike,
    begun,
    placed,
)

HERONS, CRANES, TALLY = THOUGHT["thought"], "how many cranes", "What is 6 * 7?"
LIMITED, SEARCHED = STOPPED[1]["problem"], VAIN["problem"]
FILLED: dict[str, tuple[tuple[str, Given], ...]] = {
    HERONS: (THINK,),
    PUZZLE: (SOLVE,),
    SUM: CANCELLED,
    LIMITED: (STOPPED,),
    SEARCHED: (("solve", VAIN),),
    CRANES: (
        ("think", {**THOUGHT, "thought": CRANES, "strategy": "react"}),
        ("think", {**SECOND, "thought": "seven cranes", "branch_from_thought": 1, "branch_id": "b"}),
        ("think", {**SECOND, "thought": "eight cranes", "branch_id": "main"}),
        ("think", {**SECOND, "thought": "none", "thought_number": 3, "next_thought_needed": False}),
    ),
    TALLY: (("start", {"problem": TALLY, "strategy": "self_consistency"}),),
}
"""What is done in the store of each surface, by problem or first thought; the run that still asks comes last."""
FOUND = {"list": ("runs", "problem"), "sessions": ("sessions", "purpose")}
"""The member of a list that has its rows, and that of a row which is a key of `FILLED`."""
RUNS = (TALLY, SEARCHED, LIMITED, SUM, PUZZLE)
SESSIONS = (TALLY, CRANES, SEARCHED, LIMITED, SUM, PUZZLE, HERONS)
PUZZLES = (SEARCHED, LIMITED, PUZZLE)


@pytest.fixture(scope="module")
def filled(surfaces: dict[str, Surface]) -> dict[str, dict[str, Reply]]:
    """The last replies of what is done in the stores, by surface."""
    return {
        name: {text: begun(surface, *uses) for text, uses in FILLED.items()}
        for name, surface in surfaces.items()
    }


@pytest.mark.parametrize(
    ("use", "given", "wanted", "on"),
    [
        ("list", {}, RUNS, AGENTS),
        ("list", {"limit": 2}, RUNS[:2], AGENTS),
        ("list", {"limit": 500}, RUNS, OPERATORS),
        ("list", {"status": "active"}, (TALLY,), OPERATORS),
        ("list", {"status": "cancelled"}, (SUM,), OPERATORS),
        ("list", {"status": "done"}, (LIMITED, PUZZLE), OPERATORS),
        ("list", {"status": "failed"}, (SEARCHED,), OPERATORS),
        ("list", {"outcome": "waiting"}, (TALLY,), OPERATORS),
        ("list", {"outcome": "stopped"}, (LIMITED, SUM), OPERATORS),
        ("list", {"outcome": "solved"}, (PUZZLE,), OPERATORS),
        ("list", {"outcome": "unsolved"}, (SEARCHED,), OPERATORS),
        ("list", {"strategy": "TREE-OF-THOUGHTS"}, PUZZLES, OPERATORS),
        ("list", {"strategy": "react"}, (), OPERATORS),
        ("list", {"model": "offline"}, PUZZLES, OPERATORS),
        ("list", {"model": "caller"}, (TALLY, SUM), OPERATORS),
        ("list", {"model": "openai:other"}, (), OPERATORS),
        ("list", {"query": "to MAKE 24"}, PUZZLES, OPERATORS),
        ("list", {"query": "cranes"}, (), OPERATORS),
        ("list", {"query": "x" * 10_000, "model": "x" * 10_000}, (), OPERATORS),
        ("list", {"since_ms": LIMITED}, RUNS[:3], OPERATORS),
        ("list", {"until_ms": LIMITED}, RUNS[3:], OPERATORS),
        ("list", {"since_ms": SUM, "until_ms": TALLY, "outcome": "stopped"}, (LIMITED, SUM), OPERATORS),
        ("list", {"min_usd": 9_000}, (), ("http",)),
        ("sessions", {"limit": 2}, SESSIONS[:2], AGENTS),
        ("sessions", {"status": "all"}, SESSIONS, NAMES),
        ("sessions", {"status": "active"}, (TALLY, CRANES, HERONS), NAMES),
        ("sessions", {"status": "archived"}, (), NAMES),
        ("sessions", {"status": "unfinished"}, (HERONS,), NAMES),
        ("sessions", {"strategy": "TREE-OF-THOUGHTS"}, PUZZLES, OPERATORS),
        ("sessions", {"query": "Eight CRANES"}, (CRANES,), OPERATORS),
        ("sessions", {"since_ms": SUM}, SESSIONS[:5], OPERATORS),
        ("sessions", {"until_ms": SUM}, SESSIONS[5:], OPERATORS),
        ("sessions", {"guided": True}, (CRANES, HERONS), ("http",)),
    ],
    ids=lambda value: str(value)[:60],
)
@pytest.mark.usefixtures("filled")
def test_the_same_filter_shows_the_same_rows_in_the_same_order(
    surfaces: dict[str, Surface], use: str, given: Given, wanted: tuple[str, ...], on: tuple[str, ...]
) -> None:
    rows, key = FOUND[use]
    shown = list[Any]()
    for name in on:
        bounds = [bound for bound in given if bound.endswith("_ms")]
        every = {row[key]: row for row in surfaces[name].call(use, {}).document[rows]} if bounds else {}
        instants = {bound: instant_of(every[given[bound]]) for bound in bounds}
        found = surfaces[name].call(use, {**given, **instants}).document[rows]
        assert tuple(row[key] for row in found) == wanted, name
        shown.append(alike(found))
    assert shown == shown[:1] * len(on)


def instant_of(row: Document) -> int:
    """Return when a run was begun, or a session used."""
    return row.get("created_at_ms") or round(datetime.fromisoformat(row["used_at"]).timestamp() * 1_000)


@pytest.mark.parametrize(
    ("use", "given", "rows", "of", "on"),
    [
        ("list", {}, "runs", PUZZLE, AGENTS),
        ("sessions", {}, "sessions", PUZZLE, AGENTS),
        ("search", {"query": "CRANES"}, "matches", CRANES, AGENTS),
        ("search", {"query": "e", "session": "$"}, "matches", CRANES, AGENTS),
        ("session", {"session": "$"}, "thoughts", CRANES, AGENTS),
        ("session", {"session": "$", "from": 2, "to": 2}, "thoughts", CRANES, AGENTS),
        ("session", {"session": "$", "branch_id": "b"}, "thoughts", CRANES, AGENTS),
        ("session", {"session": "$", "branch_id": "main"}, "thoughts", CRANES, AGENTS),
    ],
    ids=str,
)
def test_pages_are_the_whole_list_in_its_order(
    surfaces: dict[str, Surface], filled: Any, use: str, given: Given, rows: str, of: str, on: tuple[str, ...]
) -> None:
    shown = list[Any]()
    for name in on:
        asked = {**placed(given, filled[name][of]), "limit": 100}
        whole, paged, more = surfaces[name].call(use, asked).document, list[Any](), dict[str, Any]()
        while not paged or more["cursor"] is not None:
            page = surfaces[name].call(use, {**asked, "limit": 1, **more}).document
            paged, more = [*paged, *page[rows]], {"cursor": page["next_cursor"]}
            assert len(page[rows]) == 1, name
        assert (paged, whole["next_cursor"]) == (whole[rows], None), name
        shown.append(alike(whole[rows]))
    assert shown == shown[:1] * len(on)
