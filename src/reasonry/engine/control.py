"""The handle of whoever has started a drive: what is wanted of it while it continues, and what it writes down.

Rule 1: what is wanted is written into the journal before it holds, so that it outlives the drive.
Rule 2: where a drive is to halt, nothing new goes out: the gate is closed. What is out already may still come in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from ..core.events import Stopped
from ..errors import ConflictError
from .allowance import Allowance
from .journal import CALLER, Steered
from .run import Run

T = TypeVar("T")


class Held(Exception):
    """Ends an attempt before it goes out: the drive is to halt, and the effect stays open."""


class CallGate:
    """What every request to a model, a tool or a verifier passes right before it goes out."""

    def __init__(self) -> None:
        self._closing = asyncio.Event()

    def set(self, *, closed: bool) -> None:
        """Close the gate, or open it."""
        if closed:
            self._closing.set()
        else:
            self._closing.clear()

    def check(self) -> None:
        """Let through what may go out.

        Raises:
            Held: The gate is closed.
        """
        if self._closing.is_set():
            raise Held

    async def wait(self, pause: Awaitable[T]) -> T:
        """Return what comes of a pause before a request.

        Raises:
            Held: The gate is closed meanwhile.
        """
        waiting = asyncio.ensure_future(pause)
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait([waiting, closing], return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise Held
            return waiting.result()
        finally:
            waiting.cancel()
            closing.cancel()
            await asyncio.gather(waiting, closing, return_exceptions=True)


class Control:
    """The other end of one drive, on the same event loop.

    Args:
        allowance: What the run's owner may spend in a day, whichever run it is for; None: there is no limit.
    """

    def __init__(self, allowance: Allowance | None = None) -> None:
        self.allowance, self.gate = allowance, CallGate()
        self.is_draining = self.is_cut = False
        """Whether the drive is to end with the run active: once nothing is in flight, or at once."""
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done once something is wanted that the drive has not looked at."""
        self.wanted: list[tuple[Steered | Stopped, asyncio.Future[bool]]] = []
        """What is to be written down, and who waits for that."""
        self._is_over = False

    async def want(self, entry: Steered | Stopped) -> bool:
        """Have limits changed, or the run paused, continued or ended; return whether that is written down.

        It is not if the drive has ended before.
        """
        if self._is_over:
            return False
        done = asyncio.get_running_loop().create_future()
        self.wanted.append((entry, done))
        self.wake()
        return await done

    def drain(self, *, cut: bool = False) -> None:
        """Have the drive end once nothing is in flight, or at once; the run stays active."""
        self.is_draining, self.is_cut = True, cut
        self.wake()

    def wake(self) -> None:
        """Have the drive look at what is wanted."""
        if not self.news.done():
            self.news.set_result(None)

    def close(self) -> None:
        """Say that the drive has ended; what is still wanted is not written down by it."""
        self._is_over = True
        for _, done in self.wanted:
            if not done.done():
                done.set_result(False)


def check_steering(run_id: str, run: Run, entry: Steered | Stopped) -> None:
    """Check that a run can be given other limits, be paused, continued or ended.

    Raises:
        ConflictError: It has ended, is paused already or is not, or waits for its caller anyway.
    """
    status, why = run.snapshot.status, ""
    if status != "active":
        why = f"has ended already ({status})"
    elif isinstance(entry, Stopped) or entry.paused is None:
        return
    elif entry.paused and run.participants.model == CALLER:
        why = "stands still by itself until its caller answers"
    elif entry.paused == run.paused:
        why = "is paused already" if run.paused else "is not paused"
    if why:
        raise ConflictError(f"run {run_id} {why}", run_id=run_id)
