"""Verification of a store: its file, then its runs and sessions, a few in each transaction."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from itertools import islice
from typing import Any, Literal, NamedTuple

from ..engine import journal
from ..errors import StoreError
from ..records import Finding
from . import request_keys, runs, session_rows, sql
from .checks import MAX_INT
from .damage import is_damage
from .sql import MAX_SEQ, Tx, place

Read = Callable[[Callable[[Tx], Any]], Awaitable[Any]]
"""Runs work in a transaction that sees one state of the store."""

BATCH = 20
"""Runs or sessions checked in one transaction."""

SHOWN_FAULTS = 20


class _Kind(NamedTuple):
    """What is checked one by one: runs with their lines, or sessions with their thoughts."""

    name: Literal["run", "session"]
    parts: str
    look: Callable[[Tx, int], Finding]
    next_key: str
    stray: str


async def verify(name: str, read: Read) -> AsyncGenerator[Finding]:
    """Verify everything; see `Store`.

    Args:
        name: The name of the store.
    """
    yield await read(lambda tx: _check_file(tx, name))
    for kind in _KINDS:
        after: int | None = 0
        while after is not None:
            findings, after = await read(lambda tx, kind=kind, after=after: _check_batch(tx, kind, after))
            for finding in findings:
                yield finding


def _check_file(tx: Tx, name: str) -> Finding:
    try:
        faults = [fault for (fault,) in tx.execute(f"PRAGMA integrity_check({SHOWN_FAULTS})")]
        faults = [fault for fault in faults if fault != "ok"]
        faults += islice(request_keys.describe_damage(tx), SHOWN_FAULTS - len(faults))
        faults += tx.texts.describe_damage(tx)
        entries = sum(tx.rows(count)[0][0] for count in (sql.COUNT_RUNS, sql.COUNT_SESSIONS))
    except Exception as error:
        if is_damage(error):
            return Finding("file", name, "damaged", message=str(error))
        raise
    if not faults:
        return Finding("file", name, entries=entries)
    return Finding("file", name, "damaged", entries, "; ".join(faults))


def _check_batch(tx: Tx, kind: _Kind, after: int) -> tuple[list[Finding], int | None]:
    """Check the next few of a kind; return the key of the last one, None after the very last."""
    findings, key = list[Finding](), after
    for _ in range(BATCH):
        try:
            (following,) = tx.rows(kind.next_key, (key,))[0]
            end = MAX_INT if following is None else place(following, 0)
            stray = tx.execute(kind.stray, (place(key, MAX_SEQ), end)).fetchone()
        except Exception as error:
            if not is_damage(error):
                raise
            message = f"its list of {kind.name}s cannot be read any further"
            return [*findings, Finding("file", "", "damaged", message=message)], None
        if stray is not None:
            message = f"{kind.parts} of a {kind.name} that does not exist"
            findings.append(Finding(kind.name, "", "damaged", message=message))
        if following is None:
            return findings, None
        findings.append(_check_one(tx, kind, following))
        key = following
    return findings, key


def _check_one(tx: Tx, kind: _Kind, key: int) -> Finding:
    try:
        return kind.look(tx, key)
    except StoreError as error:
        owner = error.details.get("run_id", error.details.get("session_id", ""))
        return Finding(kind.name, owner, "damaged", message=error.message)
    except Exception as error:
        if is_damage(error):
            return Finding(kind.name, "", "damaged", message=str(error))
        raise


def _check_run(tx: Tx, key: int) -> Finding:
    run_id, lines = runs.journal_of(tx, key)
    entries, _ = journal.read(run_id, lines)
    return Finding("run", run_id, entries=len(entries))


def _check_session(tx: Tx, key: int) -> Finding:
    session_id, count, checked = session_rows.walk(tx, key)
    if checked:
        return Finding("session", session_id, entries=count)
    message = "its thoughts are from a version that kept no checksums; they get theirs when the next thought is added"
    return Finding("session", session_id, "unchecked", count, message)


_KINDS = (
    _Kind("run", "lines", _check_run, sql.NEXT_RUN, sql.STRAY_LINE),
    _Kind("session", "thoughts", _check_session, sql.NEXT_SESSION, sql.STRAY_THOUGHT),
)
