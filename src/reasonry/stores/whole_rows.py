"""Whole runs and sessions, as one store hands them to another: read, written, counted and verified."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Any

from msgspec.structs import replace

from ..engine import journal
from ..errors import NotFoundError, StoreError
from ..records import Damaged, Finding, StoreStats, Tally, Whole, WholeKind, WholeRun, WholeSession, Written
from . import run_rows, session_rows, sql
from .sql import Tx

PARTS: dict[WholeKind, str] = {"run": "line", "session": "thought"}
KINDS = tuple(PARTS)
"""Runs first, so that no session of a run is there without its run."""

LARGE_BYTES = 8 * 1024 * 1024
"""After so much, no further one is read in the same transaction."""


def read(
    tx: Tx, kind: WholeKind, after: int = 0, limit: int = 20, owner: str | None = None
) -> list[tuple[int, Whole | Damaged]]:
    """Return the next runs or sessions in the order they were created, each with its position.

    Each is read in one transaction. There may be fewer than `limit` where they are large; none: there are no more.

    Args:
        after: The position of the last one read before; 0: begin with the first.
        owner: Whose; None: everybody's.
    """
    sql.check_operator(tx.owner)
    found, size, key = list[tuple[int, Whole | Damaged]](), 0, after
    tests, values = sql.tests_of(tx, sql.OWNER_FILTER, {"owner": owner}, 2)
    statement = sql.NEXT_KEY.format(kind=kind, tests=tests)
    while len(found) < sql.page_size(limit) and size < LARGE_BYTES:
        (following, name) = tx.execute(statement, (key, *values)).fetchone() or (None, "")
        if following is None:
            break
        key = following
        try:
            read_kind = run_rows.whole_run if kind == "run" else session_rows.whole_session
            whole = read_kind(tx, name)
            size += _size(whole)
        except (NotFoundError, StoreError) as error:
            # Of a damaged index, one part may know what the other does not.
            whole = Damaged(error.message, name)
        found.append((key, whole))
    return found


def _size(whole: Whole) -> int:
    if isinstance(whole, WholeRun):
        return sum(len(line.body) for line in whole.lines)
    return sum(len(thought.text) + len(thought.body) for thought in whole.thoughts)


def write(tx: Tx, wholes: Sequence[Whole]) -> list[Written]:
    """Write runs and sessions that another store has kept, in one transaction and in their order.

    What is there under the same id stays, but an earlier state of the same run or session is continued.
    The caller checks the digests of lines.

    Raises:
        StoreError: `store_corrupt`: what is there under one of the ids is damaged; nothing was written.
    """
    sql.check_operator(tx.owner)
    return [
        _write_run(tx, whole) if isinstance(whole, WholeRun) else _write_session(tx, whole)
        for whole in wholes
    ]


def _write_run(tx: Tx, run: WholeRun) -> Written:
    """Write a run; of one whose id is there, checkpoints and keys do not count."""
    try:
        there = run_rows.whole_run(tx, run.row.run_id)
    except NotFoundError:
        run_rows.add_whole(tx, run)
        return "new"
    if (there.row, there.lines) == (run.row, run.lines):
        return "same"
    began = [(row.session_id, row.owner, row.created_at_ms) for row in (there.row, run.row)]
    is_later = run.row.updated_at_ms > there.row.updated_at_ms
    if began[0] != began[1] or not _continues(run.lines, there.lines, is_later=is_later):
        return "differs"
    run_rows.continue_whole(tx, run, len(there.lines))
    return "continued"


def _write_session(tx: Tx, session: WholeSession) -> Written:
    """Write a session; of one whose id is there, being archived or pinned makes no difference, for it is no use."""
    new = session.row
    try:
        there = session_rows.whole_session(tx, new.session_id, lock=True)
    except NotFoundError:
        session_rows.import_session(tx, new, session.thoughts)
        return "new"
    if (replace(there.row, status=new.status, pinned=new.pinned), there.thoughts) == (new, session.thoughts):
        return "same"
    began = [(row.run_id, row.owner, row.created_at_ms) for row in (there.row, new)]
    is_later = new.used_at_ms > there.row.used_at_ms
    if began[0] != began[1] or not _continues(session.thoughts, there.thoughts, is_later=is_later):
        return "differs"
    session_rows.continue_whole(tx, session, len(there.thoughts))
    return "continued"


def _continues(parts: Sequence[Any], there: Sequence[Any], *, is_later: bool) -> bool:
    """Whether parts are a later state of those that are there."""
    return (is_later or len(parts) > len(there)) and parts[: len(there)] == there


def stats(tx: Tx, size: int, free: int | None) -> StoreStats:
    """Return how much is kept, in a store that is so large."""
    sql.check_operator(tx.owner)
    tallies, totals = list[Tally](), dict[str, int]()
    for kind in KINDS:
        found: list[Any] = tx.rows(sql.TALLY.format(kind=kind, part=PARTS[kind]))
        tallies += [Tally(kind, owner, status, count) for owner, status, count, _ in found]
        totals[kind] = sum(parts for *_, parts in found)
    return StoreStats(tuple(tallies), totals["run"], totals["session"], size, free)


# -- verification

Look = Callable[[Callable[[Tx], Any]], Awaitable[Any]]


async def verify(name: str, look: Look, find_faults: Callable[[Tx], list[str]]) -> AsyncGenerator[Finding]:
    """Verify everything; see `Store`.

    Args:
        name: The name of the store.
        look: Runs work in a transaction that sees one state of it.
        find_faults: Returns what the database itself finds wrong with its file.
    """
    try:
        yield await look(lambda tx: _check_file(tx, name, find_faults))
        for kind in KINDS:
            after: int | None = 0
            while after is not None:
                findings, after = await look(lambda tx, kind=kind, after=after: _check_page(tx, kind, after))
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
    entries = sum(tx.rows(sql.COUNT.format(kind=kind))[0][0] for kind in KINDS)
    return Finding("file", name, entries=entries)


def _check_page(tx: Tx, kind: WholeKind, after: int) -> tuple[list[Finding], int | None]:
    """Check the next few of a kind; return the key of the last one, None after the very last."""
    page = read(tx, kind, after)
    if page:
        return [check_whole(kind, whole) for _, whole in page], page[-1][0]
    part = PARTS[kind]
    strays = tx.rows(sql.STRAY.format(part=part, kind=kind))
    message = f"{part}s of a {kind} that does not exist"
    return [Finding(kind, "", "damaged", message=message) for _ in strays], None


def check_whole(kind: WholeKind, whole: Whole | Damaged) -> Finding:
    """Return whether a run or a session is damaged; lines are chained by digests, which the stores do not read."""
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
