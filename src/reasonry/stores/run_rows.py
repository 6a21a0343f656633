"""Reads and writes runs and their journals within a transaction.

A run's row notes the position and the digest of the last journal line; see `NOTE_EVERY`. Lines are stored compressed.
"""

import zlib
from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Unpack

from msgspec.structs import astuple, replace

from ..errors import ConflictError
from ..records import (
    KEY_LIFE_MS,
    Line,
    RequestKey,
    RunFilters,
    RunRow,
    UsageGroup,
    UsageTotal,
    Use,
    WholeRun,
    missing_error,
)
from . import leases, session_rows, sql, text_search
from .leases import Lease
from .sql import MAX_INT, RUNS, Tx, new_place, page_size, place, places, seq_of

_UNATTENDED, _PAUSED = (RunRow.__struct_fields__.index(name) for name in ("unattended", "paused"))
"""The indexes of the fields of `RunRow` that the database stores as integers."""

NOTE_EVERY: Final = 16
"""After this many new lines, the run's row is written to note the last line, even if nothing else in the row changes.

Writing the row costs as much as writing a line. If an active run loses fewer last lines, the loss is not detected."""


def pack(body: bytes) -> bytes:
    """Compress a body for storage."""
    # A short window needs little memory. For a short line, preparing the memory takes most of the time.
    window, memory = (12, 5) if len(body) <= 4096 else (15, 8)
    deflate = zlib.compressobj(6, zlib.DEFLATED, -window, memory)
    return deflate.compress(body) + deflate.flush()


def unpack(stored: bytes) -> bytes:
    """Decompress a stored body. Raises zlib.error if the body is cut short or was not compressed."""
    return zlib.decompress(stored, -15)


class _Stored(NamedTuple):
    """The columns of a run's row that this module needs."""

    key: int
    run_id: str
    owner: str
    session_id: str
    last: int
    """The position of the last noted line, which the journal must contain; 0 if no line was noted. See `NOTE_EVERY`."""
    digest: bytes
    """The digest of the last noted line."""

    def has_last(self, lines: Sequence[Line], after: int) -> bool:
        """Whether no line is lost: the last noted line is in `lines`, or its position is at most `after`."""
        end = self.last, self.digest
        return self.last <= after or any(end == (line.seq, line.digest) for line in reversed(lines))


def key_of(tx: Tx, run_id: str) -> int:
    """Return the key of a run. Raises NotFoundError if the run does not exist."""
    return _find(tx, run_id).key


def _find(tx: Tx, run_id: str, *, lock: bool = False) -> _Stored:
    found = tx.execute(sql.RUN_END + (tx.dialect.lock if lock else ""), (run_id,)).fetchone()
    if found is None or tx.hides(found[2]):
        raise missing_error("run", run_id)
    return _Stored(*found)


def _read_row(found: Sequence[Any]) -> RunRow:
    fields = [*found]
    for column in (_UNATTENDED, _PAUSED):
        fields[column] = bool(fields[column])
    return RunRow(*fields)


def _write(tx: Tx, stored: _Stored, lines: Sequence[Line]) -> _Stored:
    last, digest = stored.last, stored.digest
    for line in lines:
        if not tx.rows(sql.ADD_LINE, (new_place(stored.key, line.seq), pack(line.body), line.digest)):
            raise ConflictError(
                f"line {line.seq} of run {stored.run_id} has already been written: another process drives this run",
                run_id=stored.run_id,
                line=line.seq,
            )
        if line.seq > last:
            last, digest = line.seq, line.digest
    return stored._replace(last=last, digest=digest)


def create_run(tx: Tx, row: RunRow, lines: Sequence[Line], key: RequestKey | None) -> str:
    """Add a run with its first lines, or find the run that `key` already began. Return the run's id."""
    row = row if tx.owner is None else replace(row, owner=tx.owner)
    if key is not None and (begun := begun_with(tx, key, row.owner)) is not None:
        return begun
    if tx.execute(sql.RUN_END, (row.run_id,)).fetchone() is not None:
        raise ConflictError(f"run {row.run_id} already exists", run_id=row.run_id)
    new = _Stored(tx.next_key("run"), row.run_id, row.owner, row.session_id, 0, b"")
    stored = _write(tx, new, lines)
    tx.execute(sql.ADD_RUN, (stored.key, *sql.column_values(astuple(row)), stored.last, stored.digest))
    _make_searchable(tx, stored.key, row)
    if key is not None:
        _keep_request(tx, row.owner, key, stored.key)
    return row.run_id


def _make_searchable(tx: Tx, key: int, row: RunRow) -> None:
    text_search.put(tx, [(RUNS + key, f"{row.problem}\x1f{row.answer or ''}\x1f{row.detail}")])


def begun_with(tx: Tx, key: RequestKey, owner: str = "") -> str | None:
    """Return the id of the run that the request `key` has begun. None if there is none.

    Raises:
        ConflictError: `idempotency_conflict`: the owner has used the key for another request.
    """
    found = tx.execute(sql.REQUEST, (owner if tx.owner is None else tx.owner, key.key)).fetchone()
    if found is None or key.at_ms - found[2] > KEY_LIFE_MS:
        return None
    digest, run_id, _ = found
    if digest != key.digest:
        raise ConflictError(
            f"the key of this request was used for another one, which began run {run_id}; send this one with a new key",
            code="idempotency_conflict",
            run_id=run_id,
        )
    return run_id


def _keep_request(tx: Tx, owner: str, key: RequestKey, run: int) -> None:
    """Record which request began a run. Remove an expired request with the same key."""
    tx.execute(sql.FORGET_REQUEST, (owner, key.key, key.at_ms - KEY_LIFE_MS))
    tx.execute(sql.SET_REQUEST, (key.key, key.digest, key.at_ms, run))


def append(
    tx: Tx, run_id: str, lines: Sequence[Line], row: RunRow | None, use: Use | None, lease: Lease | None
) -> None:
    """Add lines to a run. Also write `row` and `use` unless they are None."""
    stored = _find(tx, run_id, lock=True)
    leases.check(tx, stored.key, run_id, lease)
    known, stored = stored.last, _write(tx, stored, lines)
    if row is not None:
        changes = sql.column_values(getattr(row, name) for name in sql.RUN_CHANGES)
        tx.execute(sql.SET_RUN, (*changes, stored.last, stored.digest, stored.key))
        _make_searchable(tx, stored.key, row)
    elif stored.last - known >= NOTE_EVERY:
        tx.execute(sql.SET_TAIL, (stored.last, stored.digest, stored.key))
    if use is not None:
        session_rows.use(tx, row.session_id if row else stored.session_id, run_id, use)


def run(tx: Tx, run_id: str) -> RunRow:
    """Return a run's row."""
    if not (found := rows(tx, [run_id])):
        raise missing_error("run", run_id)
    return found[0]


def rows(tx: Tx, run_ids: Collection[str]) -> list[RunRow]:
    """Return the rows of the runs with these ids. Leave out runs that do not exist."""
    found = [tx.execute(sql.RUN, (run_id,)).fetchone() for run_id in run_ids]
    return [row for each in found if each is not None and not tx.hides((row := _read_row(each)).owner)]


def lines(tx: Tx, run_id: str, after: int = 0) -> list[Line]:
    """Return the lines of a run's journal after the position `after`.

    Raises:
        StoreError: `store_corrupt`: the journal has lost its end, or a line cannot be unpacked.
    """
    return _lines(tx, _find(tx, run_id), after)


def tail(tx: Tx, run_id: str) -> tuple[Line | None, list[Line]]:
    """Return a run's checkpoint and the later lines. Without a usable checkpoint, return None and all lines."""
    stored = _find(tx, run_id)
    if (found := tx.execute(sql.CHECKPOINT, (stored.key,)).fetchone()) is not None:
        seq, digest, body = found
        kept = _lines_after(tx, stored, seq - 1)
        is_there = kept[:1] and (kept[0].seq, kept[0].digest) == (seq, digest)
        if is_there and stored.has_last(kept, seq - 1):
            with suppress(zlib.error):
                return Line(seq, unpack(body), digest), kept[1:]
    return None, _lines(tx, stored)


def save_checkpoint(tx: Tx, run_id: str, checkpoint: Line, lease: Lease | None) -> None:
    """Replace the checkpoint of a run."""
    key = key_of(tx, run_id)
    leases.check(tx, key, run_id, lease)
    tx.execute(sql.SET_CHECKPOINT, (key, checkpoint.seq, checkpoint.digest, pack(checkpoint.body)))


def find_whole(tx: Tx, run_id: str, *, lock: bool = False) -> WholeRun:
    """Return everything stored about a run. The errors are the same as in `lines`."""
    stored = _find(tx, run_id, lock=lock)
    request = tx.execute(sql.REQUEST_OF_RUN, (stored.key,)).fetchone()
    return WholeRun(run(tx, run_id), tuple(_lines(tx, stored)), request and RequestKey(*request))


def add_whole(tx: Tx, run: WholeRun) -> None:
    """Add a run from another store. Leave out its request key if another run already has the key."""
    create_run(tx, run.row, run.lines, None)
    owner, key, request = run.row.owner, key_of(tx, run.row.run_id), run.request
    if request is not None and tx.execute(sql.REQUEST, (owner, request.key)).fetchone() is None:
        _keep_request(tx, owner, request, key)


def update_whole(tx: Tx, run: WholeRun, count: int) -> None:
    """Update a stored run to a later state. The first `count` lines are already stored."""
    append(tx, run.row.run_id, run.lines[count:], run.row, None, None)


def _lines(tx: Tx, stored: _Stored, after: int = 0) -> list[Line]:
    lines = _lines_after(tx, stored, after)
    if not stored.has_last(lines, after):
        at = f"line {stored.last} of its journal, which is lost"
        raise sql.damage_error("run", stored.run_id, at, line=stored.last)
    return lines


def _lines_after(tx: Tx, stored: _Stored, after: int) -> list[Line]:
    lines = list[Line]()
    for at, body, digest in tx.execute(sql.LINES, (place(stored.key, after + 1), places(stored.key)[1])):
        seq = seq_of(at)
        try:
            lines.append(Line(seq, unpack(body), digest))
        except zlib.error as error:
            raise sql.damage_error("run", stored.run_id, f"line {seq} of its journal", line=seq) from error
    return lines


def waiting(tx: Tx, skip: Collection[str]) -> list[RunRow]:
    """Return the longest-waiting job of each owner. Leave out the runs in `skip`."""
    return [row for row in map(_read_row, leases.first_jobs(tx, skip)) if not tx.hides(row.owner)]


def count_deaths(tx: Tx, run_id: str, place: int) -> int:
    """Store and return how many holders of a run's lease have died since the run's last progress.

    Args:
        place: How many events the run has. The run has made progress if this count is higher than at the last call.
    """
    key = key_of(tx, run_id)
    deaths, before = tx.execute(leases.DEATHS, (key,)).fetchone() or (0, 0)
    # If the run has made progress, only the last holder can have died since then.
    counted = deaths if place <= before else min(deaths, 1)
    tx.execute(leases.SET_DEATHS, (counted, place, key))
    return counted


def release_paused(tx: Tx, run_id: str, holder: str) -> bool:
    """Release the lease of a run if the run is still paused. Return whether the run is paused."""
    # A process that resumes the run sees either a paused run without a lease, or a run that keeps its lease.
    _find(tx, run_id, lock=True)
    is_paused = run(tx, run_id).paused
    if is_paused:
        leases.give_back(tx, run_id, holder)
    return is_paused


def runs(tx: Tx, *, limit: int = 50, before: str | None = None, **which: Unpack[RunFilters]) -> list[RunRow]:
    """Return a page of runs, newest first."""
    bound = MAX_INT if before is None else key_of(tx, before)
    tests, values = sql.tests_of(tx, sql.RUN_FILTERS, which, 2)
    query, hint = text_search.fold(which.get("query") or ""), ""
    if query:
        test, part = text_search.runs_with(tx, query, f"${len(values) + 2}")
        tests, values = tests + test, values + part
    elif any(which.get(name) is not None for name in sql.RUN_FILTERS):
        hint = tx.dialect.hint.format("run_list")
    statement = sql.RUN_LIST.format(hint=hint, tests=tests, limit=page_size(limit))
    return [_read_row(found) for found in tx.execute(statement, (bound, *values))]


def usage_since(tx: Tx, since_ms: int, owner: str | None = None) -> UsageTotal:
    """Return the total usage of the runs updated since `since_ms`: all runs, or only the runs of `owner`."""
    found = usage_by(tx, None, since_ms, owner)
    return found[0] if found else UsageTotal()


def usage_by(tx: Tx, group: UsageGroup | None, since_ms: int, owner: str | None = None) -> list[UsageTotal]:
    """Return the usage of the runs that were updated since `since_ms`, by `group`, or in total if `group` is None."""
    tests, values = sql.tests_of(tx, sql.OWNER_FILTER, {"owner": owner}, 2)
    found = tx.execute(sql.USAGE.format(group=sql.USAGE_GROUPS[group], tests=tests), (since_ms, *values))
    return [UsageTotal(*row) for row in found]


def delete_run(tx: Tx, run_id: str) -> None:
    """Remove a run and its journal."""
    key, _, _, session_id, *_ = _find(tx, run_id, lock=True)
    tx.execute(sql.DROP_LINES, places(key))
    tx.execute(sql.DROP_CHECKPOINT, (key,))
    tx.execute(leases.DROP, (key,))
    tx.execute(sql.DROP_TEXTS, (RUNS + key, RUNS + key))
    session_rows.forget_thoughts(tx, session_id, run_id)
    tx.execute(sql.DROP_RUN, (key,))
