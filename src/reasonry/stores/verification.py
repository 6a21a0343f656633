"""Looking at all that a store keeps: its file, then each run and session, each in a transaction of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from ..errors import NotFoundError, StoreError
from ..runtime import journal
from ..runtime.ports import Finding
from . import runs, sessions, sql
from .sql import Tx

Read = Callable[[Callable[[Tx], Any]], Awaitable[Any]]
"""Runs work in a transaction that sees one state of the store."""

BATCH = 200
"""Runs or sessions whose names are read at once."""

SHOWN_FAULTS = 20


async def verify(name: str, read: Read) -> AsyncGenerator[Finding]:
    """Look at everything; see the port.

    Args:
        name: What the store is called.
    """
    yield await read(lambda tx: _file(tx, name))
    for names, look in ((sql.RUN_NAMES, _run), (sql.SESSION_NAMES, _session)):
        after = 0
        while batch := await read(lambda tx, names=names, after=after: _names(tx, names, after)):
            for _, owner in batch:
                finding = await _look(read, look, owner)
                if finding is not None:
                    yield finding
            after = batch[-1][0]


def _file(tx: Tx, name: str) -> Finding:
    counts = (sql.COUNT_RUNS, sql.COUNT_SESSIONS)
    entries = sum(count for statement in counts for (count,) in tx.execute(statement))
    faults = [fault for (fault,) in tx.execute(f"PRAGMA integrity_check({SHOWN_FAULTS})")]
    if faults == ["ok"]:
        return Finding("file", name, entries=entries)
    return Finding("file", name, "damaged", entries, "; ".join(faults))


def _names(tx: Tx, statement: str, after: int) -> list[tuple[int, str]]:
    return [(key, name) for key, name in tx.execute(statement, (after, BATCH))]


async def _look(read: Read, look: Callable[[Tx, str], Finding], owner: str) -> Finding | None:
    try:
        return await read(lambda tx: look(tx, owner))
    except NotFoundError:
        # It was deleted meanwhile.
        return None
    except StoreError as error:
        if error.code not in ("store_corrupt", "store_newer"):
            raise
        return Finding("run" if look is _run else "session", owner, "damaged", message=error.message)


def _run(tx: Tx, run_id: str) -> Finding:
    runs.run(tx, run_id)
    entries, _ = journal.read(run_id, runs.lines(tx, run_id))
    return Finding("run", run_id, entries=len(entries))


def _session(tx: Tx, session_id: str) -> Finding:
    row = sessions.session(tx, session_id)
    return Finding("session", session_id, entries=row.thoughts)
