"""Reads and writes whole runs and sessions within a transaction, and counts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import StoreError
from ..records import Damaged, StoreStats, Tally, Whole, WholeKind, WholeRun, Written
from . import runs, session_rows, sql
from .sql import Tx

LARGE_BYTES = 8 * 1024 * 1024
"""After so much, no further one is read in the same transaction."""


_READ: dict[WholeKind, Callable[[Tx, int], Whole]] = {
    "run": runs.whole_run,
    "session": session_rows.whole_session,
}
_NEXT: dict[WholeKind, str] = {"run": sql.NEXT_RUN, "session": sql.NEXT_SESSION}
_NEXT_OF: dict[WholeKind, str] = {"run": sql.NEXT_RUN_OF, "session": sql.NEXT_SESSION_OF}


def read(
    tx: Tx, kind: WholeKind, after: int, limit: int, owner: str | None = None
) -> list[tuple[int, Whole | Damaged]]:
    """Return the next runs or sessions; see `Store`."""
    found, size, key = list[tuple[int, Whole | Damaged]](), 0, after
    while len(found) < limit and size < LARGE_BYTES:
        statement, values = (_NEXT[kind], (key,)) if owner is None else (_NEXT_OF[kind], (key, owner))
        (following,) = tx.rows(statement, values)[0]
        if following is None:
            break
        if following <= key:
            raise StoreError(f"the list of {kind}s is damaged: it is out of order", code="store_corrupt")
        key = following
        whole = _read_one(tx, kind, key)
        found.append((key, whole))
        size += _size(whole)
    return found


def _read_one(tx: Tx, kind: WholeKind, key: int) -> Whole | Damaged:
    try:
        return _READ[kind](tx, key)
    except StoreError as error:
        return Damaged(error.message)


def _size(whole: Whole | Damaged) -> int:
    if isinstance(whole, Damaged):
        return 0
    if isinstance(whole, WholeRun):
        return sum(len(line.body) for line in whole.lines)
    return sum(len(thought.text) + len(thought.body) for thought in whole.thoughts)


def write(tx: Tx, whole: Whole) -> Written:
    """Write a run or session of another store; see `Store`."""
    if isinstance(whole, WholeRun):
        return runs.write_whole(tx, whole)
    return session_rows.write_whole(tx, whole)


def stats(tx: Tx, size: int, free: int | None) -> StoreStats:
    """Return how much is kept, in a store that is so large."""
    tallies, totals = list[Tally](), dict[str, int]()
    statements: dict[WholeKind, str] = {"run": sql.TALLY_RUNS, "session": sql.TALLY_SESSIONS}
    for kind, statement in statements.items():
        found: list[Any] = tx.rows(statement)
        tallies += [Tally(kind, owner, status, count) for owner, status, count, _ in found]
        totals[kind] = sum(parts for *_, parts in found)
    return StoreStats(tuple(tallies), totals["run"], totals["session"], size, free)
