"""Verification of a store: its file, then its runs and sessions, a few in each transaction."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from ..engine import journal
from ..errors import StoreError
from ..records import Damaged, Finding, Whole, WholeKind, WholeRun
from . import sql, whole_rows
from .sql import Tx

Read = Callable[[Callable[[Tx], Any]], Awaitable[Any]]
"""Runs work in a transaction that sees one state of the store."""


async def verify(name: str, read: Read, find_faults: Callable[[Tx], list[str]]) -> AsyncGenerator[Finding]:
    """Verify everything; see `Store`.

    Args:
        name: The name of the store.
        find_faults: Returns what the database itself finds wrong with its file.
    """
    try:
        yield await read(lambda tx: _check_file(tx, name, find_faults))
        for kind in whole_rows.KINDS:
            after: int | None = 0
            while after is not None:
                findings, after = await read(lambda tx, kind=kind, after=after: _check_page(tx, kind, after))
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


def _check_page(tx: Tx, kind: WholeKind, after: int) -> tuple[list[Finding], int | None]:
    """Check the next few of a kind; return the key of the last one, None after the very last."""
    page = whole_rows.read(tx, kind, after)
    if page:
        return [_check(kind, whole) for _, whole in page], page[-1][0]
    part = {"run": "line", "session": "thought"}[kind]
    strays = tx.rows(sql.STRAY.format(part=part, kind=kind))
    message = f"{part}s of a {kind} that does not exist"
    return [Finding(kind, "", "damaged", message=message) for _ in strays], None


def _check(kind: WholeKind, whole: Whole | Damaged) -> Finding:
    if isinstance(whole, Damaged):
        return Finding(kind, whole.id, "damaged", message=whole.message)
    if not isinstance(whole, WholeRun):
        return Finding(kind, whole.row.session_id, entries=len(whole.thoughts))
    run_id = whole.row.run_id
    try:
        entries, _ = journal.read(run_id, whole.lines)
    except StoreError as error:
        return Finding(kind, run_id, "damaged", message=error.message)
    return Finding(kind, run_id, entries=len(entries))
