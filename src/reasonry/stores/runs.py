"""What a transaction does to runs and their journals, whichever database runs it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import astuple

from ..errors import ConflictError, NotFoundError, StoreError
from ..runtime.ports import Line, RunRow, Use
from . import sql
from .checks import MAX_INT
from .packing import UnpackError, pack, unpack
from .sql import Tx, place, seq_of
from .steady import Uptime, steady_ms


def no_run(run_id: str) -> NotFoundError:
    """Return the error of a run that is not there."""
    return NotFoundError(
        f"there is no run {run_id[:100]!r}; list the runs to see which there are", run_id=run_id
    )


def taken(run_id: str, seq: int) -> ConflictError:
    """Return the error of a line that is there already."""
    return ConflictError(
        f"line {seq} of run {run_id} is written already: someone else drives this run",
        run_id=run_id,
        line=seq,
    )


def run_exists(run_id: str) -> ConflictError:
    """Return the error of a run that is there already."""
    return ConflictError(f"there is a run {run_id} already", run_id=run_id)


def _key(tx: Tx, run_id: str) -> int:
    found = tx.execute(sql.RUN_KEY, (run_id,)).fetchone()
    if found is None:
        raise no_run(run_id)
    return found[0]


def _write(tx: Tx, key: int, run_id: str, lines: Sequence[Line]) -> None:
    for line in lines:
        values = (place(key, line.seq), pack(line.body), line.digest)
        if tx.change(sql.ADD_LINE, values) != 1:
            raise taken(run_id, line.seq)


def create_run(tx: Tx, row: RunRow, lines: Sequence[Line]) -> None:
    """Add a run and its first lines."""
    if tx.change(sql.ADD_RUN, astuple(row)) != 1:
        raise run_exists(row.run_id)
    _write(tx, _key(tx, row.run_id), row.run_id, lines)


def append(
    tx: Tx, run_id: str, lines: Sequence[Line], row: RunRow | None, use: Use | None, up: Uptime
) -> None:
    """Add lines to a run, put `row` in place of its row, and note the use of its session."""
    key = _key(tx, run_id)
    _write(tx, key, run_id, lines)
    if row is not None:
        tx.execute(sql.SET_RUN, (*astuple(row), key))
    if use is not None:
        tx.execute(sql.USE_SESSION, (*astuple(use), steady_ms(tx, up), key, run_id))


def run(tx: Tx, run_id: str) -> RunRow:
    """Return a run's row."""
    found = tx.execute(sql.RUN, (run_id,)).fetchone()
    if found is None:
        raise no_run(run_id)
    return RunRow(*found)


def lines(tx: Tx, run_id: str) -> list[Line]:
    """Return a run's whole journal."""
    key = _key(tx, run_id)
    found = tx.execute(sql.LINES, (place(key, 0), place(key, sql.MAX_SEQ)))
    return [Line(seq_of(at), _unpacked(run_id, at, body), digest) for at, body, digest in found]


def _unpacked(run_id: str, at: int, body: bytes) -> bytes:
    try:
        return unpack(body)
    except UnpackError as error:
        raise StoreError(
            f"run {run_id} is damaged at line {seq_of(at)} of its journal; other runs are not affected",
            code="store_corrupt",
            run_id=run_id,
            line=seq_of(at),
        ) from error


def runs(tx: Tx, status: str | None, limit: int, before: str | None) -> list[RunRow]:
    """Return a page of runs, newest first."""
    bound = MAX_INT if before is None else _key(tx, before)
    return [RunRow(*found) for found in tx.execute(sql.RUNS, (bound, status, status, limit))]


def delete_run(tx: Tx, run_id: str) -> None:
    """Remove a run and its journal."""
    key = _key(tx, run_id)
    tx.execute(sql.DROP_LINES, (place(key, 0), place(key, sql.MAX_SEQ)))
    tx.execute(sql.DROP_RUN, (key,))
    tx.forgot = True
