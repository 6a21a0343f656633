"""Reads, writes, counts and verifies whole runs and sessions, so that they can be copied between stores."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from ..engine import journal
from ..errors import NotFoundError, StoreError
from ..records import Finding, StoreStats, Tally, Whole, WholeKind, WholeRun, WholeSession, Written
from . import run_rows, session_rows, sql
from .sql import Tx

PARTS: dict[WholeKind, str] = {"run": "line", "session": "thought"}
"""The parts of each kind. Runs come first, so that every run is copied before its session."""

LARGE_BYTES = 8 * 1024 * 1024
"""Once `read` has read this many bytes, it adds no more runs or sessions to its result."""


def read(
    tx: Tx, kind: WholeKind, after: int = 0, limit: int = 20, owner: str | None = None
) -> list[tuple[int, Whole | Finding]]:
    """Return the next runs or sessions with their positions. A damaged entry becomes a Finding.

    The result may be shorter than `limit` if the entries are large. An empty result means that no entries are left.

    Args:
        after: The position of the last entry of the previous result. 0 begins with the oldest entry.
        owner: The owner of the entries. None means all owners.
    """
    found, size, key = list[tuple[int, Whole | Finding]](), 0, after
    tests, values = sql.tests_of(tx, sql.OWNER_FILTER, {"owner": owner}, 2)
    statement = sql.NEXT_KEY.format(kind=kind, tests=tests)
    while len(found) < sql.page_size(limit) and size < LARGE_BYTES:
        if (following := tx.execute(statement, (key, *values)).fetchone()) is None:
            break
        key, name = following
        try:
            whole = (run_rows if kind == "run" else session_rows).find_whole(tx, name)
            size += sum(len(part.body) + len(getattr(part, "text", "")) for part in _parts(whole))
        except (NotFoundError, StoreError) as error:
            # With a damaged index, an entry that was found by its key may not be found by its id.
            whole = Finding(kind, name, "damaged", message=error.message)
        found.append((key, whole))
    return found


def write(tx: Tx, wholes: Sequence[Whole]) -> list[Written]:
    """Write runs and sessions from another store, in the given order and in one transaction.

    An earlier state of the same run or session is updated. Any other existing entry with the same id is kept. The
    caller must check the digests of lines.

    Raises:
        StoreError: `store_corrupt`: an existing entry is damaged. Nothing was written.
    """
    return [_write(tx, whole) for whole in wholes]


def _write(tx: Tx, whole: Whole) -> Written:
    """Write a run or a session.

    The comparison with an existing entry ignores a run's request key, and whether a session is archived or pinned.
    """
    is_run, row, parts = isinstance(whole, WholeRun), whole.row, _parts(whole)
    rows: Any = run_rows if is_run else session_rows
    try:
        there: Whole = rows.find_whole(tx, row.run_id if is_run else row.session_id, lock=True)
    except NotFoundError:
        rows.add_whole(tx, whole)
        return "new"
    before, unimportant = _parts(there), () if is_run else ("status", "pinned")
    if (replace(there.row, **{name: getattr(row, name) for name in unimportant}), before) == (row, parts):
        return "same"
    began = [(each.run_id, each.session_id, each.owner, each.created_at_ms) for each in (there.row, row)]
    at = attrgetter("updated_at_ms" if is_run else "used_at_ms")
    is_later = at(row) > at(there.row) or len(parts) > len(before)
    if began[0] != began[1] or not is_later or parts[: len(before)] != before:
        return "differs"
    rows.update_whole(tx, whole, len(before))
    return "continued"


def _parts(whole: Whole) -> Sequence[Any]:
    return whole.lines if isinstance(whole, WholeRun) else whole.thoughts


def stats(tx: Tx, size: int, free: int | None) -> StoreStats:
    """Count the content of a store. Return the counts together with the given size and free space, in bytes."""
    tallies, totals = list[Tally](), dict[str, int]()
    for kind, part in PARTS.items():
        found: list[Any] = tx.rows(sql.TALLY.format(kind=kind, part=part))
        tallies += [Tally(kind, owner, status, count) for owner, status, count, _ in found]
        totals[kind] = sum(parts for *_, parts in found)
    return StoreStats(tuple(tallies), totals["run"], totals["session"], size, free)


# -- verification

Look = Callable[[Callable[[Tx], Any]], Awaitable[Any]]


async def verify(name: str, look: Look, find_faults: Callable[[Tx], list[str]]) -> AsyncGenerator[Finding]:
    """Verify the file and every run and session; see `Database`.

    Args:
        look: Calls a function in a transaction that sees a consistent state of the store, and returns the result.
        find_faults: Returns the faults that the database itself finds in its file.
    """
    try:
        yield await look(lambda tx: _check_file(tx, name, find_faults))
        for kind, part in PARTS.items():
            after = 0
            while page := await look(lambda tx, kind=kind, after=after: read(tx, kind, after)):
                for _, whole in page:
                    yield check_whole(whole)
                after = page[-1][0]
            if await look(lambda tx, kind=kind, part=part: tx.rows(sql.STRAY.format(part=part, kind=kind))):
                yield Finding(kind, "", "damaged", message=f"{part}s of a {kind} that does not exist")
    except StoreError as error:
        if error.code != "store_corrupt":
            raise
        yield Finding("file", name, "damaged", message=error.message)


def _check_file(tx: Tx, name: str, find_faults: Callable[[Tx], list[str]]) -> Finding:
    if faults := find_faults(tx):
        return Finding("file", name, "damaged", message="; ".join(faults))
    return Finding("file", name, entries=sum(tx.rows(sql.COUNT.format(kind=kind))[0][0] for kind in PARTS))


def check_whole(whole: Whole | Finding) -> Finding:
    """Check a run or a session that `read` returned, and return the finding."""
    if isinstance(whole, Finding):
        return whole
    if isinstance(whole, WholeSession):
        return Finding("session", whole.row.session_id, entries=len(whole.thoughts))
    run_id = whole.row.run_id
    try:
        entries, _ = journal.read(run_id, whole.lines)
    except StoreError as error:
        return Finding("run", run_id, "damaged", message=error.message)
    return Finding("run", run_id, entries=len(entries))
