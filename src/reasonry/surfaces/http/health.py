"""Whether the store answers: asked once a second, so that it is known before somebody needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from ...errors import ReasonryError, StoreError
from ...records import SessionView, Store

T = TypeVar("T")

EVERY_S = 1.0
_PROBE = "healthz"


class _AnsweredError(ReasonryError):
    """Ends the transaction of a probe; nothing is written."""


class Health:
    """Watches a store.

    Attributes:
        is_up: Whether the store answered the last time, within its time.
        waits: Of the work that waits for the store; they are over where it stops answering.
    """

    def __init__(self, store: Store, timeout_s: float) -> None:
        self.is_up = True
        self._store, self._timeout_s = store, timeout_s
        self.waits = set[asyncio.Timeout]()

    async def watch(self) -> None:
        """Ask the store again and again, until this is cancelled."""
        probe: asyncio.Task[bool] | None = None
        try:
            while True:
                # One that does not come back is waited for, rather than more of them sent after it.
                probe = probe or asyncio.ensure_future(self._ask())
                await asyncio.wait({probe}, timeout=self._timeout_s)
                self._note(probe.done() and probe.result())
                probe = None if probe.done() else probe
                await asyncio.sleep(EVERY_S)
        finally:
            if probe is not None:
                probe.cancel()

    def check(self) -> None:
        """Make sure that the store answers.

        Raises:
            StoreError: It does not.
        """
        if not self.is_up:
            raise not_answering()

    async def unless_down(self, work: Awaitable[T]) -> T:
        """Return what comes of work that waits for the store; it is given up where the store stops answering.

        Raises:
            StoreError: It was given up.
        """
        waiting = asyncio.timeout(None)
        try:
            async with waiting:
                self.waits.add(waiting)
                return await work
        except TimeoutError:
            if not waiting.expired():
                raise
            raise not_answering() from None
        finally:
            self.waits.discard(waiting)

    async def _ask(self) -> bool:
        def decide(view: SessionView) -> Any:
            raise _AnsweredError("the store answers")

        try:
            await self._store.change(_PROBE, decide)
        except _AnsweredError:
            return True
        except StoreError:
            return False
        return True

    def _note(self, is_up: bool) -> None:
        self.is_up = is_up
        if not is_up:
            now = asyncio.get_running_loop().time()
            while self.waits:
                self.waits.pop().reschedule(now)


def not_answering() -> StoreError:
    """Return why work that waited for the store was given up."""
    return StoreError(
        "the store does not answer at present; try again soon. Whether a change that was asked for is made is not "
        "known: look before you ask for it again",
        retryable=True,
        retry_after_s=5,
    )
