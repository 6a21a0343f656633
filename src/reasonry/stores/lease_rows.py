"""Reads and writes leases of runs within a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import leases, sql
from .leases import Lease, Living, already_driven_error, lease_lost_error

TAKEN = "SELECT holder, number, until_ms FROM lease WHERE key = ?"
HELD = "SELECT holder, until_ms FROM lease WHERE key = (SELECT key FROM run WHERE run_id = ?)"
TAKE = """
INSERT INTO lease (key, holder, number, until_ms) VALUES (?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, number = excluded.number, until_ms = excluded.until_ms
"""
IS_OWN = "SELECT 1 FROM lease WHERE key = ? AND (holder = ? OR holder IS NULL) AND number = ?"
"""Or it was, and nobody has taken it since."""
RENEW = """
UPDATE lease SET until_ms = ? WHERE key = (SELECT key FROM run WHERE run_id = ?) AND holder = ? AND number = ?
"""
GIVE_BACK = "UPDATE lease SET holder = NULL WHERE key = (SELECT key FROM run WHERE run_id = ?) AND holder = ?"
DROP = "DELETE FROM lease WHERE key = ?"


FindLiving = Callable[[str | None], Living | None]
"""Returns the process that drives the run, if it lives; given whose lease has not expired."""


def take(tx: sql.Tx, key: int, run_id: str, holder: str, now_ms: int, find_living: FindLiving) -> int:
    """Take the lease of a run; return its number.

    Raises:
        ConflictError: Another holds it.
    """
    other, number, until_ms = tx.execute(TAKEN, (key,)).fetchone() or (None, 0, 0)
    if living := find_living(other if until_ms > now_ms and other != holder else None):
        raise already_driven_error(run_id, living.pid)
    tx.execute(TAKE, (key, holder, number + 1, _end_ms(now_ms)))
    return number + 1


def is_held(tx: sql.Tx, run_id: str, holder: str, now_ms: int, find_living: FindLiving) -> bool:
    """Whether a holder who lives has the lease of a run."""
    other, until_ms = tx.execute(HELD, (run_id,)).fetchone() or (None, 0)
    if other is None or until_ms <= now_ms:
        return False
    return other == holder or find_living(other) is not None


def check(tx: sql.Tx, key: int, run_id: str, lease: Lease | None) -> None:
    """Raise ConflictError if a lease of a run is another's by now."""
    if lease is not None and tx.execute(IS_OWN, (key, *lease)).fetchone() is None:
        raise lease_lost_error(run_id)


def give_back(tx: sql.Tx, run_id: str, holder: str) -> None:
    """Give back the lease of a run, if it is the holder's."""
    tx.execute(GIVE_BACK, (run_id, holder))


def drop(tx: sql.Tx, key: int) -> None:
    """Remove the lease of a run."""
    tx.execute(DROP, (key,))


def renew(tx: sql.Tx, holder: str, numbers: Mapping[str, int], now_ms: int) -> None:
    """Renew the leases of a holder as far as they are still its own."""
    until_ms = _end_ms(now_ms)
    tx.executemany(RENEW, [(until_ms, run_id, holder, number) for run_id, number in numbers.items()])


def _end_ms(now_ms: int) -> int:
    return now_ms + int(leases.LEASE_S * 1_000)
