"""Reads and writes runs and their journals within a transaction.

A run's row has the position and the digest of the last line of its journal, and a checksum over all its columns.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import astuple, replace

from ..errors import ConflictError, NotFoundError, StoreError
from ..records import (
    Checkpoint,
    Line,
    RequestKey,
    RunFilters,
    RunRow,
    UsageGroup,
    UsageTotal,
    Use,
    WholeRun,
    Written,
)
from . import checkpoints, lease_rows, request_keys, session_rows, sql, text_index
from .checks import MAX_INT
from .checksums import (
    ADDED_RUN_COLUMNS,
    check_index,
    check_keys,
    list_damage_error,
    row_checksum,
    run_damage_error,
)
from .damage import is_damage
from .keys_in_order import KeysInOrder
from .leases import Lease
from .packing import UnpackError, pack, unpack
from .selection import lists_run
from .sql import Prefetch, Tx, place, seq_of
from .steady import Uptime
from .whole import compare_runs

FEW_RUNS = 300
"""So many of the newest runs are looked into one by one before the index of all texts is asked."""

MANY_RUNS = 10_000
"""So many keys of the runs that a filter lists are read together."""

_OWNER = len(RunRow.__struct_fields__) - len(ADDED_RUN_COLUMNS)
"""Where the columns of a row begin that stand behind those of its journal's end."""


class _Stored(NamedTuple):
    key: int
    row: RunRow
    last: int
    """The place of the journal's last line within the run; 0: there is none."""
    digest: bytes
    """The last line's."""

    @property
    def tail(self) -> tuple[int, bytes] | None:
        """Position and digest that the journal must end with."""
        return (self.last, self.digest) if self.last else None


def no_run_error(run_id: str) -> NotFoundError:
    """Return the error for a run that does not exist."""
    return NotFoundError(
        f"there is no run {run_id[:100]!r}; list the runs to see which there are", run_id=run_id
    )


def line_exists_error(run_id: str, seq: int) -> ConflictError:
    """Return the error for a line that already exists."""
    return ConflictError(
        f"line {seq} of run {run_id} has already been written: someone else drives this run",
        run_id=run_id,
        line=seq,
    )


def run_exists_error(run_id: str) -> ConflictError:
    """Return the error for a run that already exists."""
    return ConflictError(f"run {run_id} already exists", run_id=run_id)


def key_of(tx: Tx, run_id: str) -> int:
    """Return the key of a run; raises NotFoundError if there is none."""
    found = tx.execute(sql.RUN_KEY, (run_id,)).fetchone()
    if found is None:
        check_index(tx, "run")
        raise no_run_error(run_id)
    return found[0]


def _read_row(tx: Tx, key: int, run_id: str | None = None) -> _Stored:
    """Return a run's row.

    Args:
        run_id: What it was found by; None: by its key.

    Raises:
        StoreError: `store_corrupt`: it is not as it was written.
    """
    try:
        found = tx.execute(sql.RUN, (key,)).fetchone()
    except Exception as error:
        if is_damage(error):
            raise run_damage_error(run_id or sql.name_of(tx, sql.RUN_ID, key)) from error
        raise
    whole = found is not None and _checksum(found[:-1]) == found[-1]
    if found is None or not whole or run_id not in (None, found[1]):
        raise run_damage_error(run_id or sql.name_of(tx, sql.RUN_ID, key))
    last, digest, owner, unattended, paused, *spent = found[_OWNER + 1 : -1]
    fields: list[Any] = [*found[1 : _OWNER + 1], owner, bool(unattended), bool(paused), *spent]
    row = RunRow(*fields)
    return _Stored(key, row, last, digest)


def _values(stored: _Stored) -> tuple[Any, ...]:
    """Return a row as it is stored: its key, its columns, and the checksum over them."""
    fields = astuple(stored.row)
    owner, unattended, paused, calls, tokens, usd = fields[_OWNER:]
    added = (owner, int(unattended), int(paused), calls, tokens, None if usd is None else float(usd))
    values = (stored.key, *fields[:_OWNER], stored.last, stored.digest, *added)
    return (*values, _checksum(values))


def _checksum(values: Sequence[Any]) -> bytes:
    return row_checksum("run", values, ADDED_RUN_COLUMNS)


def _journal(key: int) -> tuple[int, int]:
    """Return the first and the last place of a run's journal."""
    return place(key, 0), place(key, sql.MAX_SEQ)


def _check_tail(tx: Tx, stored: _Stored) -> None:
    key = stored.key
    tail = tx.execute(sql.LAST_LINE, _journal(key)).fetchone()
    if (tail and (seq_of(tail[0]), tail[1])) != stored.tail:
        raise _tail_lost(stored)


def _tail_lost(stored: _Stored) -> StoreError:
    line = stored.last
    return run_damage_error(stored.row.run_id, f"line {line} of its journal, the last", line=line)


def _write(tx: Tx, stored: _Stored, lines: Sequence[Line]) -> _Stored:
    """Write lines; return the row as it then has to be stored."""
    key, row, last, digest = stored
    for line in lines:
        values = (place(key, line.seq), pack(line.body), line.digest)
        if tx.change(sql.ADD_LINE, values) != 1:
            raise line_exists_error(row.run_id, line.seq)
        if line.seq > last:
            last, digest = line.seq, line.digest
    return _Stored(key, row, last, digest)


def create_run(tx: Tx, row: RunRow, lines: Sequence[Line], key: RequestKey | None) -> str:
    """Add a run and its first lines; return its id, or that of the run which the same request began."""
    if key is not None and (begun := begun_with(tx, row.owner, key)) is not None:
        return begun
    if tx.execute(sql.RUN_KEY, (row.run_id,)).fetchone() is not None:
        raise run_exists_error(row.run_id)
    (place,) = tx.rows(sql.NEXT_RUN_KEY)[0]
    tx.execute(sql.ADD_RUN, _values(_write(tx, _Stored(place, row, 0, b""), lines)))
    tx.texts.queue(tx, text_index.RUNS + place, text_index.RUNS + place)
    if key is not None:
        request_keys.put(tx, row.owner, key, place)
    return row.run_id


def begun_with(tx: Tx, owner: str, key: RequestKey) -> str | None:
    """Return the run that the same request has begun, if it has begun one."""
    found = request_keys.find(tx, owner, key)
    if found is None:
        return None
    run, is_same = found
    run_id = sql.name_of(tx, sql.RUN_ID, run)
    if not is_same:
        raise request_keys.key_reused_error(key.key, run_id)
    return run_id


def append(
    tx: Tx,
    run_id: str,
    lines: Sequence[Line],
    row: RunRow | None,
    use: Use | None,
    up: Uptime,
    lease: Lease | None,
) -> None:
    """Add lines to a run, put `row` in place of its row, and note the use of its session."""
    key = key_of(tx, run_id)
    lease_rows.check(tx, key, run_id, lease)
    stored = _write(tx, _read_row(tx, key, run_id), lines)
    if row is not None:
        if (row.problem, row.answer) != (stored.row.problem, stored.row.answer):
            tx.texts.queue(tx, text_index.RUNS + key, text_index.RUNS + key)
        stored = stored._replace(row=replace(row, run_id=run_id, owner=stored.row.owner))
    values = _values(stored)
    if row is None:
        tx.execute(sql.SET_TAIL, (stored.last, stored.digest, values[-1], key))
    else:
        tx.execute(sql.SET_RUN, (*values[2:], key))
    if use is not None:
        session_rows.use(tx, stored.row.session_id, run_id, use, up)
    if lease is not None and row is not None and row.status != "active":
        lease_rows.give_back(tx, run_id, lease.holder)


def run(tx: Tx, run_id: str) -> RunRow:
    """Return a run's row.

    Raises:
        StoreError: `store_corrupt`: it is not as it was written, or the journal has lost its tail.
    """
    stored = _read_row(tx, key_of(tx, run_id), run_id)
    _check_tail(tx, stored)
    return stored.row


def lines(tx: Tx, run_id: str, after: int = 0) -> list[Line]:
    """Return a run's journal, but for the lines up to a position.

    Raises:
        StoreError: As `run`; or a line cannot be unpacked.
    """
    return _lines(tx, _read_row(tx, key_of(tx, run_id), run_id), after)


def tail(tx: Tx, run_id: str) -> tuple[Checkpoint | None, list[Line]]:
    """Return a run's latest checkpoint and the lines after it; without one, the whole journal; raises as `lines`."""
    stored = _read_row(tx, key_of(tx, run_id), run_id)
    checkpoint = checkpoints.read(tx, stored.key)
    if checkpoint is not None:
        lines = _lines_after(tx, stored, checkpoint.seq)
        end = lines[-1] if lines else checkpoint
        if (end.seq, end.digest) == stored.tail:
            return checkpoint, lines
    return None, _lines(tx, stored)


def keep(tx: Tx, run_id: str, checkpoint: Checkpoint, lease: Lease | None) -> None:
    """Keep a checkpoint of a run in the place of an earlier one."""
    key = key_of(tx, run_id)
    lease_rows.check(tx, key, run_id, lease)
    checkpoints.write(tx, key, checkpoint)


def whole_run(tx: Tx, key: int) -> WholeRun:
    """Return all that is kept of the run with that key; raises as `lines`."""
    stored = _read_row(tx, key)
    lines = tuple(_lines(tx, stored))
    return WholeRun(stored.row, lines, checkpoints.read(tx, key), request_keys.of_run(tx, key))


def write_whole(tx: Tx, run: WholeRun, up: Uptime) -> Written:
    """Write a run of another store; see `Store`."""
    run_id, owner = run.row.run_id, run.row.owner
    found = tx.execute(sql.RUN_KEY, (run_id,)).fetchone()
    if found is None:
        create_run(tx, run.row, run.lines, None)
        written, key = "new", key_of(tx, run_id)
        for request in run.keys:
            if request_keys.find(tx, owner, request) is None:
                request_keys.put(tx, owner, request, key)
    else:
        key, there = found[0], whole_run(tx, found[0])
        written = compare_runs(there, run)
        if written == "continued":
            append(tx, run_id, run.lines[len(there.lines) :], run.row, None, up, None)
    if written in ("new", "continued") and run.checkpoint is not None:
        checkpoints.write(tx, key, run.checkpoint)
    return written


def journal_of(tx: Tx, key: int) -> tuple[str, list[Line]]:
    """Return the id of the run with that key, and its whole journal; raises as `lines`."""
    stored = _read_row(tx, key)
    return stored.row.run_id, _lines(tx, stored)


def _lines(tx: Tx, stored: _Stored, after: int = 0) -> list[Line]:
    lines = _lines_after(tx, stored, after)
    has_all = stored.tail == (lines[-1].seq, lines[-1].digest) if lines else stored.last <= after
    if not has_all:
        raise _tail_lost(stored)
    return lines


def _lines_after(tx: Tx, stored: _Stored, after: int) -> list[Line]:
    bounds = place(stored.key, after + 1 if after else 0), place(stored.key, sql.MAX_SEQ)
    found = tx.execute(sql.LINES, bounds)
    return [Line(seq_of(at), _unpack_line(stored.row.run_id, at, body), digest) for at, body, digest in found]


def _unpack_line(run_id: str, at: int, body: bytes) -> bytes:
    try:
        return unpack(body)
    except UnpackError as error:
        line = seq_of(at)
        raise run_damage_error(run_id, f"line {line} of its journal", line=line) from error


def runs(tx: Tx, which: RunFilters, limit: int, before: str | None) -> list[RunRow]:
    """Return a page of the runs that are listed, newest first."""
    check_keys(tx, "run")
    bound, query = MAX_INT if before is None else key_of(tx, before), (which.get("query") or "").casefold()
    if not query:
        return _list_entries(tx, _keys(tx, which, bound, limit))
    newest = _keys(tx, which, bound, FEW_RUNS)
    found = list(islice(_that_contain(tx, newest, query), limit))
    if len(found) < limit and len(newest) == FEW_RUNS:
        found += islice(_containing(tx, query, newest[-1], which), limit - len(found))
    return _list_entries(tx, found)


def _keys(tx: Tx, which: RunFilters, before: int, limit: int) -> list[int]:
    """Return the keys of the next runs that are listed, whatever the query, newest first."""
    wanted = {name: f"AND {test}" for name, test in sql.RUN_FILTERS.items() if which.get(name) is not None}
    index = "run_list" if wanted.keys() - {"owner"} else "run_owner" if wanted else "run_key"
    statement = sql.RUN_KEYS.format(index, " ".join(wanted.values()))
    keys = [key for (key,) in tx.execute(statement, {**which, "before": before, "limit": limit})]
    if any(not 0 < key < before for key in keys):
        raise list_damage_error("run")
    return keys


def _each_key(tx: Tx, which: RunFilters, before: int) -> Iterator[int]:
    """Yield what `_keys` returns, all of them."""
    while keys := _keys(tx, which, before, MANY_RUNS):
        yield from keys
        before = keys[-1]


def _that_contain(tx: Tx, keys: Iterable[int], needle: str) -> Iterator[int]:
    """Yield those of the runs that contain a text whose case is folded."""

    def prepare(prefetch: Prefetch, some: list[int]) -> None:
        prefetch(sql.RUN_TEXTS, [(key,) for key in some])
        rows = [row for key in some for row in tx.rows(sql.RUN_TEXTS, (key,))]
        names = [
            (session, run) for session, problem, answer, run in rows if not _has(problem, answer, needle)
        ]
        prefetch(sql.SESSION_OF_RUN, names)
        sessions = [key for name in names for (key,) in tx.rows(sql.SESSION_OF_RUN, name)]
        session_rows.prefetch_texts(prefetch, sessions)

    return (key for key in tx.each(keys, prepare) if _contains(tx, key, needle))


def _has(problem: str, answer: str | None, needle: str) -> bool:
    return needle in problem.casefold() or needle in (answer or "").casefold()


def _contains(tx: Tx, key: int, needle: str) -> bool:
    """Whether the problem, the answer or a thought of a run contains a text whose case is folded."""
    found = tx.execute(sql.RUN_TEXTS, (key,)).fetchone()
    if found is None:
        return False
    session_id, problem, answer, run_id = found
    if _has(problem, answer, needle):
        return True
    sessions = tx.rows(sql.SESSION_OF_RUN, (session_id, run_id))
    return any(session_rows.contains(tx, session, needle) for (session,) in sessions)


def _containing(tx: Tx, needle: str, before: int, which: RunFilters) -> Iterator[int]:
    """Yield the keys of the runs that are listed and contain a text whose case is folded, newest first."""
    first, is_filtered = text_index.RUNS, any(which.get(name) is not None for name in sql.RUN_FILTERS)
    listed = KeysInOrder(_each_key(tx, which, before), backwards=True) if is_filtered else None
    found = tx.texts.candidates(tx, needle, first, first + min(before, first) - 1, backwards=True)
    by_themselves = _that_contain(
        tx, (at - first for at in found if listed is None or at - first in listed), needle
    )
    sessions = session_rows.own_keys(tx, which.get("owner"), backwards=True)

    def prepare(prefetch: Prefetch, some: list[int]) -> None:
        prefetch(sql.RUN_OF_SESSION, [(session,) for session in some])
        of_them = [key for session in some for (key,) in tx.rows(sql.RUN_OF_SESSION, (session,))]
        prefetch(sql.RUN, [(key,) for key in of_them])

    # A run and its session are written at once, so that both have keys in the same order.
    by_thoughts = (
        key
        for session in tx.each(session_rows.containing(tx, needle, sessions, backwards=True), prepare)
        for (key,) in tx.rows(sql.RUN_OF_SESSION, (session,))
        if key < before and (not is_filtered or _is_listed(tx, key, which))
    )
    last = 0
    for key in heapq.merge(by_themselves, by_thoughts, reverse=True):
        if key != last:
            yield key
        last = key


def _is_listed(tx: Tx, key: int, which: RunFilters) -> bool:
    try:
        return lists_run(_read_row(tx, key).row, **which)
    except StoreError:
        # The list shows that it is damaged.
        return True


def usage(tx: Tx, group: UsageGroup | None, since_ms: int, owner: str | None) -> list[UsageTotal]:
    """Return what runs whose row was written since then have spent, in groups or all together."""
    statement = sql.USAGE.format(sql.USAGE_GROUPS[group], "" if owner is None else sql.OF_OWNER)
    found = tx.execute(statement, {"since": since_ms, "owner": owner})
    return [UsageTotal(name_day(which) if group == "day" else which, *sums) for which, *sums in found]


def name_day(number: int) -> str:
    """Return a day by its number since 1970."""
    return date.fromordinal(
        min(max(date(1970, 1, 1).toordinal() + number, 1), date.max.toordinal())
    ).isoformat()


def _list_entries(tx: Tx, keys: Iterable[int]) -> list[RunRow]:
    def prepare(prefetch: Prefetch, some: list[int]) -> None:
        prefetch(sql.RUN, [(key,) for key in some])
        prefetch(sql.LAST_LINE, [_journal(key) for key in some])

    return [_list_entry(tx, key) for key in tx.each(keys, prepare)]


def _list_entry(tx: Tx, key: int) -> RunRow:
    try:
        stored = _read_row(tx, key)
        _check_tail(tx, stored)
    except StoreError:
        return RunRow(sql.name_of(tx, sql.RUN_ID, key), "", "", "", "", "damaged", 0, 0)
    return stored.row


def delete_run(tx: Tx, run_id: str) -> None:
    """Remove a run and its journal, damaged or not."""
    key = key_of(tx, run_id)
    if sql.name_of(tx, sql.RUN_ID, key) != run_id:
        raise run_damage_error(run_id)
    tx.execute(sql.DROP_LINES, (place(key, 0), place(key, sql.MAX_SEQ)))
    checkpoints.drop(tx, key)
    lease_rows.drop(tx, key)
    request_keys.drop(tx, key)
    tx.texts.drop(tx, text_index.RUNS + key, text_index.RUNS + key)
    for session_id, *_ in tx.rows(sql.RUN_TEXTS, (key,)):
        session_rows.forget_thoughts(tx, str(session_id), run_id)
    tx.execute(sql.DROP_RUN, (key,))
    tx.has_deleted = True
