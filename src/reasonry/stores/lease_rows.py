"""Reads and writes leases of runs within a transaction, and finds the jobs that nobody drives."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ..records import JobStanding
from . import leases, sql
from .leases import Lease, Living, TakenLease, already_driven_error, find_living, lease_lost_error

JOBS = 0
"""The key of the lease of the process that drives the jobs of a store; those of runs begin with 1."""

TAKEN = "SELECT holder, number, until_ms, deaths FROM lease WHERE key = $1"
HELD = (
    "SELECT holder, number, until_ms, deaths FROM lease WHERE key = (SELECT key FROM run WHERE run_id = $1)"
)
TAKE = """
INSERT INTO lease (key, holder, number, until_ms, deaths, place) VALUES ($1, $2, $3, $4, $5, 0)
ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, number = excluded.number, until_ms = excluded.until_ms,
  deaths = excluded.deaths
"""
DEATHS = "SELECT deaths, place FROM lease WHERE key = $1"
SET_DEATHS = "UPDATE lease SET deaths = $1, place = $2 WHERE key = $3"
IS_OWN = "SELECT 1 FROM lease WHERE key = $1 AND (holder = $2 OR holder IS NULL) AND number = $3"
"""Or it was, and nobody has taken it since."""
RENEW = """
UPDATE lease SET until_ms = $1 WHERE key = (SELECT key FROM run WHERE run_id = $2) AND holder = $3 AND number = $4
"""
GIVE_BACK = (
    "UPDATE lease SET holder = NULL WHERE key = (SELECT key FROM run WHERE run_id = $1) AND holder = $2"
)
GIVE_BACK_ALL = "UPDATE lease SET holder = NULL WHERE holder = $1"
DROP = "DELETE FROM lease WHERE key = $1"

JOB = "run.status = 'active' AND run.unattended = 1 AND run.paused = 0"
HOLDERS = f"""
SELECT DISTINCT holder FROM run INDEXED BY run_job JOIN lease ON lease.key = run.key
WHERE {JOB} AND holder IS NOT NULL AND until_ms > $1
"""
WAITING = f"""
FROM run INDEXED BY run_job LEFT JOIN lease ON lease.key = run.key
WHERE {JOB} AND (holder IS NULL OR holder NOT IN ({{living}}))
"""
FIRST_JOBS = f"""
SELECT {sql.RUN_COLUMNS} FROM run WHERE key IN (
  SELECT min(run.key) {WAITING} AND run_id NOT IN ({{skip}}) GROUP BY owner
) ORDER BY key
"""
STANDING = f"SELECT count(*), min(created_at_ms) {WAITING}"


def take(tx: sql.Tx, key: int, run_id: str, holder: str) -> TakenLease:
    """Take the lease of a run.

    Raises:
        ConflictError: Another holds it.
    """
    other, number, _, deaths = found = _read(tx, TAKEN + tx.dialect.lock, key)
    if other != holder and (living := _find_holder(tx, found)):
        raise already_driven_error(run_id, living.pid)
    taken = TakenLease(number + 1, deaths + (other not in (None, holder)))
    tx.execute(TAKE, (key, holder, taken.number, _end_ms(tx), taken.deaths))
    return taken


def count_deaths(tx: sql.Tx, key: int, place: int) -> int:
    """Return how many holders have died, one after the other, while the run stood at a place; see `Store`."""
    deaths, before = tx.execute(DEATHS, (key,)).fetchone() or (0, 0)
    # The last one may have died at this place.
    counted = deaths if place <= before else min(deaths, 1)
    tx.execute(SET_DEATHS, (counted, place, key))
    return counted


def take_jobs(tx: sql.Tx, holder: str) -> bool:
    """Take or keep the right to drive the jobs of a store; return whether the holder has it."""
    other, number, until_ms, _ = found = _read(tx, TAKEN, JOBS)
    if other != holder and _find_holder(tx, found):
        return False
    if other != holder or until_ms - tx.now_ms() < leases.LEASE_S * 500:
        tx.execute(TAKE, (JOBS, holder, number + 1, _end_ms(tx), 0))
    return True


def first_jobs(tx: sql.Tx, skip: Collection[str]) -> list[tuple[object, ...]]:
    """Return the row of the job of each owner that has waited longest."""
    living = _find_living(tx)
    lists = {"living": sql.values(len(living)), "skip": sql.values(len(skip), len(living) + 1)}
    return tx.rows(FIRST_JOBS.format(**lists), [*living, *skip])


def job_standing(tx: sql.Tx) -> JobStanding:
    """Return how the jobs stand."""
    living = _find_living(tx)
    depth, created_at_ms = tx.rows(STANDING.format(living=sql.values(len(living))), living)[0]
    waited_s = time.time() - created_at_ms / 1_000 if depth else 0.0
    has_driver = _find_holder(tx, _read(tx, TAKEN, JOBS)) is not None
    return JobStanding(depth, max(0.0, waited_s), int(has_driver))


def _find_living(tx: sql.Tx) -> list[str]:
    return [holder for (holder,) in tx.rows(HOLDERS, (tx.now_ms(),)) if find_living(holder)]


def find_driven(tx: sql.Tx, run_ids: Collection[str]) -> set[str]:
    """Return the runs whose lease a holder has that lives."""
    return {run_id for run_id in run_ids if _find_holder(tx, _read(tx, HELD, run_id))}


def _read(tx: sql.Tx, statement: str, which: int | str) -> Sequence[Any]:
    return tx.execute(statement, (which,)).fetchone() or (None, 0, 0, 0)


def _find_holder(tx: sql.Tx, found: Sequence[Any]) -> Living | None:
    holder, _, until_ms, _ = found
    return find_living(holder) if holder is not None and tx.now_ms() < until_ms else None


def check(tx: sql.Tx, key: int, run_id: str, lease: Lease | None) -> None:
    """Raise ConflictError if a lease of a run is another's by now."""
    if lease is not None and tx.execute(IS_OWN, (key, *lease)).fetchone() is None:
        raise lease_lost_error(run_id)


def give_back(tx: sql.Tx, run_id: str, holder: str) -> None:
    """Give back the lease of a run, if it is the holder's."""
    tx.execute(GIVE_BACK, (run_id, holder))


def give_back_all(tx: sql.Tx, holder: str) -> None:
    """Give back all leases of a holder."""
    tx.execute(GIVE_BACK_ALL, (holder,))


def drop(tx: sql.Tx, key: int) -> None:
    """Remove the lease of a run."""
    tx.execute(DROP, (key,))


def renew(tx: sql.Tx, holder: str, numbers: Mapping[str, int]) -> None:
    """Renew the leases of a holder as far as they are still its own."""
    until_ms = _end_ms(tx)
    tx.executemany(RENEW, [(until_ms, run_id, holder, number) for run_id, number in numbers.items()])


def _end_ms(tx: sql.Tx) -> int:
    return tx.now_ms() + int(leases.LEASE_S * 1_000)
