"""Leases: a lease gives a store object the right to drive a run for a limited time.

A lease has a holder (a store object) and a fencing number, which grows with each lease of the run. If a lease is not
renewed for `LEASE_S` seconds, another holder can take the lease. Writes with the old fencing number are then refused.
"""

import asyncio
import os
import platform
import secrets
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from math import inf
from typing import Any, NamedTuple

from ..errors import ConflictError, StoreError
from ..records import RETRY_S, QueueStatus
from . import sql

LEASE_S = 10.0
"""The seconds after which a lease ends if its holder does not renew it."""

RENEWALS = 4
"""How many times a holder renews a lease in `LEASE_S` seconds."""


class Lease(NamedTuple):
    """The right to drive a run. If another holder takes over the run, writes with the old lease are refused.

    Attributes:
        deaths: How many holders of the run's lease have died since the run last made progress.
    """

    holder: str
    number: int
    deaths: int = 0


@cache
def _host() -> str:
    """Return the name of this computer or container. Process ids are unique only within it."""
    try:
        return f"{platform.node()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return platform.node()


def find_living(holder: str) -> int | None:
    """Return the process id of a holder, or None if the process is dead. 0 means a process on another computer."""
    pid, host, _ = holder.split(" ", 2)
    if host != _host():
        return 0
    if os.name != "nt":
        # On Windows this call would end the process.
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
    return int(pid)


def already_driven_error(run_id: str, pid: int) -> ConflictError:
    """Return the error for a run that is already being driven. `pid` is a result of `find_living`."""
    mine = pid == os.getpid()
    holder = "another task of this process" if mine else f"process {pid}" if pid else "another process"
    message = f"run {run_id} is being driven by {holder}; wait until it is done, or end it"
    return ConflictError(message, retryable=True, run_id=run_id, pid=pid or None)


class _Pulse(NamedTuple):
    """A task that renews the leases of runs on an event loop, and the ids of these runs."""

    task: asyncio.Task[None]
    runs: set[str]


class Leases:
    """The leases that a store object holds, at most one for each run.

    Attributes:
        holder: The name of the store object.
        taken: The leases of newly created runs that no `hold` has used yet, by run id and owner.
    """

    def __init__(
        self,
        take: Callable[[str], Awaitable[Lease]],
        write: Callable[[Callable[[sql.Tx], None]], Awaitable[None]],
    ) -> None:
        self.holder = f"{os.getpid()} {_host()} {secrets.token_hex(16)}"
        self._take, self._write = take, write
        self._held = dict[str, Lease | None]()
        """The held leases by run id. The value is None while a lease is being taken."""
        self.taken = dict[tuple[str, str | None], Lease]()
        self._ended = set[str]()
        self._pulses = dict[asyncio.AbstractEventLoop, _Pulse]()
        self._lock = threading.Lock()

    @property
    def holds_any(self) -> bool:
        """Whether this store object has any lease, or is just taking one."""
        return bool(self._held or self.taken)

    def lease_of(self, run_id: str) -> Lease | None:
        """Return this store object's lease of a run, or None if the store object holds no lease of the run."""
        return self._held.get(run_id)

    def note_end(self, run_id: str, lease: Lease) -> None:
        """Record that a lease has already been released, so that `hold` does not release it again."""
        if self.lease_of(run_id) == lease:
            self._ended.add(run_id)

    @asynccontextmanager
    async def hold(self, run_id: str, taken: Lease | None) -> AsyncGenerator[int]:
        """Hold the lease of a run, and yield `Lease.deaths`; see `RunStore.drive`."""
        with self._lock:
            if run_id in self._held:
                raise already_driven_error(run_id, os.getpid())
            self._held[run_id] = None
        loop = asyncio.get_running_loop()
        try:
            lease = self._held[run_id] = taken or await self._take(run_id)
            if loop not in self._pulses:
                runs = set[str]()
                self._pulses[loop] = _Pulse(loop.create_task(self._renew_again_and_again(runs)), runs)
            self._pulses[loop].runs.add(run_id)
            yield lease.deaths
        finally:
            if pulse := self._pulses.get(loop):
                pulse.runs.discard(run_id)
                if not pulse.runs:
                    pulse.task.cancel()
                    del self._pulses[loop]
            try:
                # If this fails, the lease ends after `LEASE_S` seconds.
                with suppress(StoreError):
                    if run_id not in self._ended:
                        await self._write(lambda tx: give_back(tx, run_id, self.holder))
            finally:
                self._ended.discard(run_id)
                del self._held[run_id]

    async def _renew_again_and_again(self, runs: set[str]) -> None:
        rest_s = LEASE_S / RENEWALS
        while True:
            await asyncio.sleep(rest_s)
            held = {run_id: lease for run_id in runs if (lease := self._held.get(run_id)) is not None}
            # If a lease was lost, the next write of its run says so.
            try:
                await self._write(lambda tx, held=held: renew(tx, held))
                rest_s = LEASE_S / RENEWALS
            except StoreError:
                rest_s = RETRY_S


# -- in a transaction

JOBS = 0
"""The key of the lease that allows its holder to drive a store's jobs. The keys of runs start at 1."""

_LEASE_OF = "SELECT holder, number, until_ms, deaths FROM lease WHERE key ="
TAKEN = f"{_LEASE_OF} $1"
HELD = f"{_LEASE_OF} (SELECT key FROM run WHERE run_id = $1)"
TAKE = """
INSERT INTO lease (key, holder, number, until_ms, deaths, place) VALUES ($1, $2, $3, $4, $5, 0)
ON CONFLICT (key) DO UPDATE SET holder = excluded.holder, number = excluded.number, until_ms = excluded.until_ms,
  deaths = excluded.deaths
"""
DEATHS = "SELECT deaths, place FROM lease WHERE key = $1"
SET_DEATHS = "UPDATE lease SET deaths = $1, place = $2 WHERE key = $3"
IS_OWN = "SELECT 1 FROM lease WHERE key = $1 AND (holder = $2 OR holder IS NULL) AND number = $3"
"""Finds a lease by its number, even if the lease has expired or was released, unless it was taken again since then."""
RENEW = """
UPDATE lease SET until_ms = $1 WHERE key = (SELECT key FROM run WHERE run_id = $2) AND holder = $3 AND number = $4
"""
GIVE_BACK = (
    "UPDATE lease SET holder = NULL WHERE key = (SELECT key FROM run WHERE run_id = $1) AND holder = $2"
)
GIVE_BACK_ALL = "UPDATE lease SET holder = NULL WHERE holder = $1"
DROP = "DELETE FROM lease WHERE key = $1"

JOB = "run.status = 'active' AND run.unattended = 1 AND run.paused = 0 AND run.outcome IS NOT 'waiting'"
HOLDERS = f"""
SELECT DISTINCT holder FROM run INDEXED BY run_job JOIN lease ON lease.key = run.key
WHERE {JOB} AND holder IS NOT NULL AND until_ms > $1 AND until_ms <= $2
"""
WAITING = f"""
FROM run INDEXED BY run_job LEFT JOIN lease ON lease.key = run.key
WHERE {JOB} AND (holder IS NULL OR holder NOT IN ({{living}}))
"""
FIRST_JOBS = f"""
SELECT {sql.RUN_ROW} FROM run WHERE key IN (
  SELECT min(run.key) {WAITING} AND run_id NOT IN ({{skip}}) GROUP BY owner
) ORDER BY key
"""
QUEUE_STATUS = f"SELECT count(*), min(created_at_ms) {WAITING}"


def take(tx: sql.Tx, key: int, run_id: str, holder: str) -> Lease:
    """Take the lease of a run.

    Raises:
        ConflictError: Another store object holds the lease.
    """
    other, number, until_ms, deaths = found = _read(tx, TAKEN + tx.dialect.lock, key)
    if other != holder and (pid := _find_holder(tx, found)) is not None:
        raise already_driven_error(run_id, pid)
    has_died = other not in (None, holder) and until_ms <= _term_ms(tx)[1]
    lease = Lease(holder, number + 1, deaths + has_died)
    tx.execute(TAKE, (key, holder, lease.number, _end_ms(tx), lease.deaths))
    return lease


def take_jobs(tx: sql.Tx, holder: str) -> bool:
    """Take or keep the right to drive a store's jobs. Return whether the holder has the right."""
    other, number, until_ms, _ = found = _read(tx, TAKEN, JOBS)
    if other != holder and _find_holder(tx, found) is not None:
        return False
    if other != holder or until_ms - tx.now_ms() < LEASE_S * 500:
        tx.execute(TAKE, (JOBS, holder, number + 1, _end_ms(tx), 0))
    return True


def first_jobs(tx: sql.Tx, skip: Collection[str]) -> list[tuple[object, ...]]:
    """Return the row of each owner's longest-waiting job. Leave out the runs in `skip`."""
    living = _living_holders(tx)
    lists = {"living": sql.values(len(living)), "skip": sql.values(len(skip), len(living) + 1)}
    return tx.rows(FIRST_JOBS.format(**lists), [*living, *skip])


def queue_status(tx: sql.Tx) -> QueueStatus:
    """Return how many jobs wait, the longest wait in seconds, and whether a process drives the jobs (1 or 0)."""
    living = _living_holders(tx)
    depth, created_at_ms = tx.rows(QUEUE_STATUS.format(living=sql.values(len(living))), living)[0]
    waited_s = time.time() - created_at_ms / 1_000 if depth else 0.0
    has_driver = _find_holder(tx, _read(tx, TAKEN, JOBS)) is not None
    return QueueStatus(depth, max(0.0, waited_s), int(has_driver))


def _living_holders(tx: sql.Tx) -> list[str]:
    return [holder for (holder,) in tx.rows(HOLDERS, _term_ms(tx)) if find_living(holder) is not None]


def deaths_of(tx: sql.Tx, run_id: str) -> tuple[int, float]:
    """Return how many holders of a run's lease have died, and the seconds since the last renewal.

    The seconds are infinite if the holder has released the lease or is alive, or if the clock was set back.
    """
    holder, _, until_ms, deaths = found = _read(tx, HELD, run_id)
    if holder is None or _find_holder(tx, found) is not None:
        return deaths, inf
    now_ms, last_ms = _term_ms(tx)
    return (deaths, inf) if until_ms > last_ms else (deaths + 1, LEASE_S + (now_ms - until_ms) / 1_000)


def find_driven(tx: sql.Tx, run_ids: Collection[str]) -> set[str]:
    """Return the ids of the runs whose lease has a living holder."""
    return {run_id for run_id in run_ids if _find_holder(tx, _read(tx, HELD, run_id)) is not None}


def _read(tx: sql.Tx, statement: str, which: int | str) -> Sequence[Any]:
    return tx.execute(statement, (which,)).fetchone() or (None, 0, 0, 0)


def _find_holder(tx: sql.Tx, found: Sequence[Any]) -> int | None:
    holder, _, until_ms, _ = found
    if holder is None:
        return None
    after_ms, last_ms = _term_ms(tx)
    return find_living(holder) if after_ms < until_ms <= last_ms else None


def _term_ms(tx: sql.Tx) -> tuple[int, int]:
    """Return the time now and the latest time at which a valid lease can end, both in milliseconds.

    A lease with a later end shows that the clock was set back. It can be taken, but its holder does not count as dead.
    """
    now_ms = tx.now_ms()
    return now_ms, now_ms + int(2 * LEASE_S * 1_000)


def check(tx: sql.Tx, key: int, run_id: str, lease: Lease | None) -> None:
    """Raise ConflictError if another holder has taken the lease of a run."""
    if lease is not None and tx.execute(IS_OWN, (key, lease.holder, lease.number)).fetchone() is None:
        raise ConflictError(
            f"run {run_id} has been taken over by another process, because this one did not answer for {LEASE_S:g} s; "
            "it continues there",
            code="lease_lost",
            run_id=run_id,
        )


def give_back(tx: sql.Tx, run_id: str, holder: str) -> None:
    """Release the lease of a run if the holder still has it."""
    tx.execute(GIVE_BACK, (run_id, holder))


def renew(tx: sql.Tx, leases: Mapping[str, Lease]) -> None:
    """Renew the leases that still belong to their holders."""
    until_ms = _end_ms(tx)
    for run_id, each in leases.items():
        tx.execute(RENEW, (until_ms, run_id, each.holder, each.number))


def _end_ms(tx: sql.Tx) -> int:
    return tx.now_ms() + int(LEASE_S * 1_000)
