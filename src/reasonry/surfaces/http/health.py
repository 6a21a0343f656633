"""Polls the state of the store and its jobs once a second, so that requests need not wait for the store."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from ...errors import ReasonryError, StoreError
from ...records import QueueStatus, SessionView
from ...stores.row_store import RowStore

EVERY_S = 1.0
_PROBE = "healthz"


class Health:
    """Watches whether a store answers, and how many jobs wait.

    Attributes:
        reads: Watches whether the store answers reads. `writes` watches whether it also accepts writes.
        jobs: The state of the store's jobs at the latest poll.
    """

    def __init__(self, store: RowStore, timeout_s: float) -> None:
        self.jobs = QueueStatus()
        self._store = store
        self.reads = Answering(store, timeout_s, self._read)
        self.writes = Answering(store, timeout_s, lambda: store.change(_PROBE, _write_nothing))

    async def watch(self) -> None:
        """Poll the store until the task is cancelled."""
        await asyncio.gather(self.reads.watch(), self.writes.watch())

    def answering(self, method: str) -> Answering:
        """Return the attribute `reads` for the method GET or HEAD, and the attribute `writes` for any other method."""
        return self.reads if method in ("GET", "HEAD") else self.writes

    async def _read(self) -> None:
        self.jobs = await self._store.queue_status()


def _write_nothing(view: SessionView) -> Any:
    raise ReasonryError("the store answers, and this ends the transaction")


class Answering:
    """Watches whether a store answers one kind of request.

    Attributes:
        is_up: Whether the store answered the latest probe in time, or answered another request during the probe.
    """

    def __init__(self, store: RowStore, timeout_s: float, ask: Callable[[], Awaitable[object]]) -> None:
        self.is_up = True
        self._store, self._timeout_s, self._ask_store = store, timeout_s, ask
        self._waits = set[asyncio.Timeout]()
        """Timeouts of work that waits for the store. They fire when the store stops answering."""

    async def watch(self) -> None:
        """Poll the store until the task is cancelled."""
        probe: asyncio.Task[bool] | None = None
        try:
            while True:
                # If the last probe has no answer yet, it is awaited, and no other probe is sent.
                probe, began_s = probe or asyncio.ensure_future(self._ask()), time.monotonic()
                await asyncio.wait({probe}, timeout=self._timeout_s)
                # A store that has answered another request meanwhile is only slow: under load, or on a busy machine.
                is_slow = self._store.whole.answered_s >= began_s
                self.is_up = probe.result() if probe.done() else is_slow
                while self._waits and not self.is_up:
                    self._waits.pop().reschedule(asyncio.get_running_loop().time())
                probe = None if probe.done() else probe
                await asyncio.sleep(EVERY_S)
        finally:
            if probe is not None:
                probe.cancel()

    def check(self) -> None:
        """Check that the store answers, or raise StoreError."""
        if not self.is_up:
            raise _not_answering()

    @contextlib.asynccontextmanager
    async def waiting(self) -> AsyncGenerator[Callable[[], None]]:
        """Yield a function. Until the `with` block calls this function, abort the block if the store stops answering.

        Raises:
            StoreError: The block was aborted.
        """
        waiting = asyncio.timeout(None)

        def end_wait() -> None:
            self._waits.discard(waiting)
            # A timeout that has just expired, or whose block has ended, cannot be rescheduled.
            with contextlib.suppress(RuntimeError):
                waiting.reschedule(None)

        try:
            async with waiting:
                self._waits.add(waiting)
                yield end_wait
        except TimeoutError:
            if not waiting.expired():
                raise
            raise _not_answering() from None
        finally:
            self._waits.discard(waiting)

    async def _ask(self) -> bool:
        try:
            await self._ask_store()
        except ReasonryError as error:
            return not isinstance(error, StoreError)
        return True


def _not_answering() -> StoreError:
    return StoreError(
        "the store does not answer at present; try again soon. A change that you asked for may have been made: "
        "look before you ask for it again",
        retryable=True,
        retry_after_s=5,
    )
