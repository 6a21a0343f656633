"""Leases: which runs one store object may drive, and until when.

A lease has a holder, which is one store object, and a fencing number, which grows with each lease of the run. A holder
that hangs loses its leases once it has not renewed them for `LEASE_S`, and its number shows that when it goes on.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

from ..errors import ConflictError, StoreError

LEASE_S = 10.0
"""How long a lease lasts that is not renewed."""

RENEWALS = 4
"""How often it is renewed within that time."""


class Lease(NamedTuple):
    """What a write is checked against."""

    holder: str
    number: int


class TakenLease(NamedTuple):
    """A lease that was taken.

    Attributes:
        deaths: Holders that did not give it back, since it was last counted where the run stands.
    """

    number: int
    deaths: int = 0


class Living(NamedTuple):
    """A holder that lives, as far as is known here."""

    pid: int | None
    """Its process; None: it is of another computer."""


@cache
def _host() -> str:
    """Return what names the computer, or the container, whose processes have numbers of their own."""
    try:
        return f"{platform.node()}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return platform.node()


def find_living(holder: str) -> Living | None:
    """Return the process of a holder; None: it is of this computer and has died."""
    pid, host, _ = holder.split(" ", 2)
    if host != _host():
        return Living(None)
    if os.name != "nt":
        # On Windows this call would end the process.
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            pass
    return Living(int(pid))


def already_driven_error(run_id: str, pid: int | None) -> ConflictError:
    """Return the error for a run that is already being driven."""
    mine = pid == os.getpid()
    holder = "another task of this process" if mine else f"process {pid}" if pid else "another process"
    return ConflictError(
        f"run {run_id} is being driven by {holder}; wait until it is done, or end it", run_id=run_id, pid=pid
    )


def lease_lost_error(run_id: str) -> ConflictError:
    """Return the error for what a former holder of a run would have written."""
    return ConflictError(
        f"run {run_id} has been taken over by another process, because this one did not answer for {LEASE_S:g} s; "
        "it goes on there",
        code="lease_lost",
        run_id=run_id,
    )


class _Pulse(NamedTuple):
    """Renews the leases of the runs that are driven on one event loop."""

    task: asyncio.Task[None]
    runs: set[str]


class Leases:
    """The leases that one store object holds. It holds a run once, however often its lease was lost meanwhile.

    Args:
        take: Takes the lease of a run.
        renew: Renews the leases of runs, given with their numbers, as far as they are still its own.
        give_back: Gives back the lease of a run, if there is one; what is taken later comes after it.

    Attributes:
        holder: Names the store object.
    """

    def __init__(
        self,
        take: Callable[[str], Coroutine[Any, Any, TakenLease]],
        renew: Callable[[Mapping[str, int]], Coroutine[Any, Any, None]],
        give_back: Callable[[str], Coroutine[Any, Any, None]],
    ) -> None:
        self.holder = f"{os.getpid()} {_host()} {secrets.token_hex(16)}"
        self._take, self._renew, self._give_back = take, renew, give_back
        self._numbers = dict[str, int | None]()
        """None: it is being taken."""
        self._taken = dict[str, TakenLease]()
        """With the run's first write, and not held yet."""
        self._ended = set[str]()
        self._pulses = dict[asyncio.AbstractEventLoop, _Pulse]()
        self._lock = threading.Lock()

    @property
    def holds_any(self) -> bool:
        """Whether a lease is held or was taken."""
        return bool(self._numbers or self._taken)

    def lease_of(self, run_id: str) -> Lease | None:
        """Return the lease that a write to a run has to be checked against; None: the run is not held here."""
        number = self._numbers.get(run_id)
        return None if number is None else Lease(self.holder, number)

    def note_taken(self, run_id: str, taken: TakenLease) -> None:
        """Note the lease that was taken when a run was first written; the next `hold` has it."""
        self._taken[run_id] = taken

    def note_end(self, run_id: str, lease: Lease) -> None:
        """Note that a write checked against a lease has given it back."""
        if self.lease_of(run_id) == lease:
            self._ended.add(run_id)

    @asynccontextmanager
    async def hold(self, run_id: str) -> AsyncGenerator[int]:
        """See `RunStore.drive`."""
        with self._lock:
            if run_id in self._numbers:
                raise already_driven_error(run_id, os.getpid())
            self._numbers[run_id] = None
        loop = asyncio.get_running_loop()
        try:
            taken = self._taken.pop(run_id, None) or await self._take(run_id)
            self._numbers[run_id] = taken.number
            self._begin(loop, run_id)
            yield taken.deaths
        finally:
            self._end(loop, run_id)
            try:
                if run_id not in self._ended:
                    await self._give_back(run_id)
            finally:
                self._ended.discard(run_id)
                del self._numbers[run_id]

    def _begin(self, loop: asyncio.AbstractEventLoop, run_id: str) -> None:
        if loop not in self._pulses:
            runs = set[str]()
            self._pulses[loop] = _Pulse(loop.create_task(self._renew_again_and_again(runs)), runs)
        self._pulses[loop].runs.add(run_id)

    async def _renew_again_and_again(self, runs: set[str]) -> None:
        while True:
            await asyncio.sleep(LEASE_S / RENEWALS)
            held = {run_id: number for run_id in runs if (number := self._numbers.get(run_id)) is not None}
            # If a lease was lost, the next write of its run says so.
            with suppress(StoreError):
                await self._renew(held)

    def _end(self, loop: asyncio.AbstractEventLoop, run_id: str) -> None:
        pulse = self._pulses.get(loop)
        if pulse is None:
            return
        pulse.runs.discard(run_id)
        if not pulse.runs:
            pulse.task.cancel()
            del self._pulses[loop]
