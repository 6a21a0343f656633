"""Verification of a store: its file, then its runs and sessions, a few in each transaction."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Literal, NamedTuple

from ..engine import journal
from ..errors import StoreError
from ..records import Finding
from . import runs, session_rows, sql
from .checks import MAX_INT
from .sql import MAX_SEQ, Tx, place

Read = Callable[[Callable[[Tx], Any]], Awaitable[Any]]
"""Runs work in a transaction that sees one state of the store."""

BATCH = 20
"""Runs or sessions checked in one transaction."""


class _Kind(NamedTuple):
    """What is checked one by one: runs with their lines, or sessions with their thoughts."""

    name: Literal["run", "session"]
    parts: str
    look: Callable[[Tx, int], Finding]
    next_key: str
    stray: str


async def verify(name: str, read: Read, find_faults: Callable[[Tx], list[str]]) -> AsyncGenerator[Finding]:
    """Verify everything; see `Store`.

    Args:
        name: The name of the store.
        find_faults: Returns what the database itself finds wrong with its file.
    """
    try:
        yield await read(lambda tx: _check_file(tx, name, find_faults))
        for kind in _KINDS:
            after: int | None = 0
            while after is not None:
                findings, after = await read(lambda tx, kind=kind, after=after: _check_batch(tx, kind, after))
                for finding in findings:
                    yield finding
    except StoreError as error:
        if error.code != "store_corrupt":
            raise
        yield Finding("file", name, "damaged", message=error.message)


def _check_file(tx: Tx, name: str, find_faults: Callable[[Tx], list[str]]) -> Finding:
    faults = find_faults(tx)
    if faults:
        return Finding("file", name, "damaged", message="; ".join(faults))
    entries = sum(tx.rows(count)[0][0] for count in (sql.COUNT_RUNS, sql.COUNT_SESSIONS))
    return Finding("file", name, entries=entries)


def _check_batch(tx: Tx, kind: _Kind, after: int) -> tuple[list[Finding], int | None]:
    """Check the next few of a kind; return the key of the last one, None after the very last."""
    findings, key = list[Finding](), after
    for _ in range(BATCH):
        (following,) = tx.rows(kind.next_key, (key,))[0]
        end = MAX_INT if following is None else place(following, 0)
        if tx.execute(kind.stray, (place(key, MAX_SEQ), end)).fetchone() is not None:
            message = f"{kind.parts} of a {kind.name} that does not exist"
            findings.append(Finding(kind.name, "", "damaged", message=message))
        if following is None:
            return findings, None
        if following <= key:
            message = f"its list of {kind.name}s is out of order"
            return [*findings, Finding("file", "", "damaged", message=message)], None
        findings.append(_check_one(tx, kind, following))
        key = following
    return findings, key


def _check_one(tx: Tx, kind: _Kind, key: int) -> Finding:
    try:
        return kind.look(tx, key)
    except StoreError as error:
        name = error.details.get("run_id", error.details.get("session_id", ""))
        return Finding(kind.name, name, "damaged", message=error.message)


def _check_run(tx: Tx, key: int) -> Finding:
    run_id, lines = runs.journal_of(tx, key)
    entries, _ = journal.read(run_id, lines)
    return Finding("run", run_id, entries=len(entries))


def _check_session(tx: Tx, key: int) -> Finding:
    session_id, count = session_rows.walk(tx, key)
    return Finding("session", session_id, entries=count)


_KINDS = (
    _Kind("run", "lines", _check_run, sql.NEXT_RUN, sql.STRAY_LINE),
    _Kind("session", "thoughts", _check_session, sql.NEXT_SESSION, sql.STRAY_THOUGHT),
)
