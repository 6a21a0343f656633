"""Reads and writes leases of runs within a transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import leases, sql
from .leases import Lease, Living, TakenLease, already_driven_error, find_living, lease_lost_error

JOBS = 0
"""The key of the lease of the process that drives the jobs of a store; those of runs begin with 1."""

MOST_AHEAD_MS = 3_600_000
"""A lease that seems to last longer is from before the clock was put back."""

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


def take(tx: sql.Tx, key: int, run_id: str, holder: str, now_ms: int) -> TakenLease:
    """Take the lease of a run.

    Raises:
        ConflictError: Another holds it.
    """
    other, number, _, deaths = found = _read(tx, TAKEN + tx.dialect.lock, key)
    if other != holder and (living := _find_holder(found, now_ms)):
        raise already_driven_error(run_id, living.pid)
    taken = TakenLease(number + 1, deaths + (other not in (None, holder)))
    tx.execute(TAKE, (key, holder, taken.number, _end_ms(now_ms), taken.deaths))
    return taken


def count_deaths(tx: sql.Tx, key: int, place: int) -> int:
    """Return how many holders have died, one after the other, while the run stood at a place; see `Store`."""
    deaths, before = tx.execute(DEATHS, (key,)).fetchone() or (0, 0)
    # The last one may have died at this place.
    counted = deaths if place <= before else min(deaths, 1)
    tx.execute(SET_DEATHS, (counted, place, key))
    return counted


def take_jobs(tx: sql.Tx, holder: str, now_ms: int) -> bool:
    """Take or keep the right to drive the jobs of a store; return whether the holder has it."""
    other, number, until_ms, _ = found = _read(tx, TAKEN, JOBS)
    if other != holder and _find_holder(found, now_ms):
        return False
    if other != holder or until_ms - now_ms < leases.LEASE_S * 500:
        tx.execute(TAKE, (JOBS, holder, number + 1, _end_ms(now_ms), 0))
    return True


def has_job_driver(tx: sql.Tx, now_ms: int) -> bool:
    """Whether a process that lives drives the jobs of a store."""
    return _find_holder(_read(tx, TAKEN, JOBS), now_ms) is not None


def is_held(tx: sql.Tx, run_id: str, now_ms: int) -> bool:
    """Whether a holder that lives has the lease of a run."""
    return _find_holder(_read(tx, HELD, run_id), now_ms) is not None


def _read(tx: sql.Tx, statement: str, which: int | str) -> Sequence[Any]:
    return tx.execute(statement, (which,)).fetchone() or (None, 0, 0, 0)


def _find_holder(found: Sequence[Any], now_ms: int) -> Living | None:
    holder, _, until_ms, _ = found
    # After the clock was put back nothing is known of a lease; its number still keeps two holders apart.
    is_current = now_ms < until_ms <= now_ms + MOST_AHEAD_MS
    return find_living(holder) if holder is not None and is_current else None


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


def renew(tx: sql.Tx, holder: str, numbers: Mapping[str, int], now_ms: int) -> None:
    """Renew the leases of a holder as far as they are still its own."""
    until_ms = _end_ms(now_ms)
    tx.executemany(RENEW, [(until_ms, run_id, holder, number) for run_id, number in numbers.items()])


def _end_ms(now_ms: int) -> int:
    return now_ms + int(leases.LEASE_S * 1_000)
