"""The supervisor of one process: accepts runs, drives them in the background, and tells whoever follows them.

A run belongs to whoever's app it is asked for with; another's id is an unknown one. All that is known of a run is in
its journal, so nothing here has to survive the process.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, aclosing
from typing import Any, Final

from ..app import App
from ..core.budget import Budget
from ..engine.control import Control
from ..engine.engine import OpenRun, Order
from ..engine.follow import Follower
from ..engine.policy import Performers, rewind
from ..engine.result import Result
from ..errors import ConflictError, OverloadedError, UsageError
from ..participants import Participants
from ..records import RequestKey
from .feed import Feed
from .run_events import RunEvent, event_of

LOOK_EVERY_S: Final = 0.5
"""How often a run that nobody of this process drives is looked at for news."""

RETRY_AFTER_S: Final = 1.0
"""What who comes when the process is full is told to wait."""

_log = logging.getLogger("reasonry")


class _Drive:
    """A run that this process drives."""

    def __init__(self, opened: OpenRun) -> None:
        self.feed = Feed(opened.row.run_id, opened.row.session_id, opened.chain.seq)
        self.control = Control(self.feed.add)
        self.ended: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        """Where the run stood when the drive ended; the error where it could not be written down."""
        # Nobody may be waiting.
        self.ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())


class Supervisor:
    """Brings runs to their end in the background.

    Args:
        max_runs: How many it drives at once.
    """

    def __init__(self, app: App, *, max_runs: int = 256) -> None:
        self._app, self._max_runs = app, max_runs
        self._drives: dict[str, _Drive] = {}
        self._starting = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> int:
        """How many runs are driven at present."""
        return len(self._drives)

    @property
    def draining(self) -> bool:
        """Whether nothing new is begun any more."""
        return False

    def is_driven(self, run_id: str) -> bool:
        """Whether this process drives the run at present."""
        return run_id in self._drives

    # -- beginning

    async def start(
        self,
        app: App,
        order: Order,
        performers: Performers,
        *,
        key: str | None = None,
        digest: bytes = b"",
        text: bool = False,
    ) -> tuple[str, bool]:
        """Accept a run, and drive it in the background.

        Args:
            text: Whether answers are streamed from the first on, for whoever is about to watch.

        Returns:
            The run's id, and whether it is new.

        Raises:
            OverloadedError: As many runs are driven already as may be.
        """
        self._check_room()
        self._starting += 1
        try:
            run_id = await app.engine.accept(order)
            async with AsyncExitStack() as held:
                opened = await held.enter_async_context(app.engine.open(run_id))
                self._drive(opened, performers, held.pop_all(), text=text)
        finally:
            self._starting -= 1
        return run_id, True

    async def resume(
        self,
        app: App,
        run_id: str,
        participants: Participants | None = None,
        budget: Budget | None = None,
        *,
        text: bool = False,
    ) -> None:
        """Take a run up again, and drive it in the background.

        Args:
            text: As in `start`.

        Raises:
            ConflictError: It is driven already, or came to its own end.
            OverloadedError: As many runs are driven already as may be.
        """
        self._check_room()
        self._starting += 1
        try:
            async with AsyncExitStack() as held:
                opened = await held.enter_async_context(app.engine.open(run_id))
                performers = await app.reopen(opened, participants, budget)
                if opened.run.snapshot.status != "active":
                    raise ConflictError(f"run {run_id} came to its own end", run_id=run_id)
                self._drive(opened, performers, held.pop_all(), text=text)
        finally:
            self._starting -= 1

    async def fork(
        self,
        app: App,
        run_id: str,
        at: int,
        participants: Participants,
        options: Mapping[str, Any],
        budget: Budget | None = None,
        *,
        reworded: Mapping[str, str] | None = None,
        key: str | None = None,
        digest: bytes = b"",
    ) -> tuple[str, bool]:
        """Begin a run from a point of another, and drive it in the background.

        Args:
            at: As in `Engine.fork`; `reworded` too.

        Returns:
            As `start`.

        Raises:
            ConflictError: As `Engine.fork`.
            OverloadedError: As many runs are driven already as may be.
        """
        self._check_room()
        self._starting += 1
        try:
            order, performers, names = await app.order_fork(run_id, participants, options, budget)
            once = None if key is None else RequestKey(key, digest, time.time_ns() // 1_000_000)
            forked, is_new = await app.engine.fork_once(
                run_id, order, at, reworded, unattended=True, key=once
            )
            if is_new:
                async with AsyncExitStack() as held:
                    opened = await held.enter_async_context(app.engine.open(forked))
                    rewind(performers, opened.run, names)
                    self._drive(opened, performers, held.pop_all(), text=False)
        finally:
            self._starting -= 1
        return forked, is_new

    def _check_room(self) -> None:
        if len(self._drives) + self._starting >= self._max_runs:
            raise OverloadedError(
                f"{self._max_runs} runs are in work here, and no more may be; try again later",
                retryable=True,
                retry_after_s=RETRY_AFTER_S,
            )

    def _drive(self, opened: OpenRun, performers: Performers, held: AsyncExitStack, *, text: bool) -> None:
        """Drive a run in the background; the right to do so is `held`."""
        drive = self._drives[opened.row.run_id] = _Drive(opened)
        drive.feed.wants_text = text
        task = asyncio.create_task(self._complete(opened, drive, performers, held))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _complete(
        self, opened: OpenRun, drive: _Drive, performers: Performers, held: AsyncExitStack
    ) -> None:
        run_id = opened.row.run_id
        try:
            async with held:
                result = await opened.drive(performers, drive.feed, control=drive.control)
        except Exception as error:
            _log.warning("run %s was left as its journal has it: %s", run_id, error)
            drive.ended.set_exception(error)
        else:
            drive.ended.set_result(result)
        finally:
            del self._drives[run_id]
            drive.feed.close()
            drive.ended.cancel()

    # -- following

    async def watch(
        self, app: App, run_id: str, after: int = 0, *, text: bool = False
    ) -> AsyncGenerator[RunEvent]:
        """Yield what has happened in a run and what happens, until it has ended and all is told.

        Args:
            after: The id of the last event that the reader knows.
            text: Whether the pieces of answers are wanted as they come in.

        Raises:
            NotFoundError: There is no such run.
            UsageError: It has no event `after`.
        """
        row = await app.store.run(run_id)
        known, follower, is_idle = after, Follower(app.store, app.strategies, run_id), False
        while True:
            drive = self._drives.get(run_id)
            if drive is not None and drive.feed.follows(after):
                async with aclosing(drive.feed.read(after, text=text)) as events:
                    async for event in events:
                        after = event.id or after
                        yield event
                follower, is_idle = Follower(app.store, app.strategies, run_id), False
                continue
            status = (await app.store.run(run_id)).status
            lines = await follower.read_on()
            if not 0 <= known <= follower.seq:
                message = f"run {run_id} has no event {known}; its last one is {follower.seq}"
                raise UsageError(message, field="after")
            for line in lines:
                if line.seq > after:
                    after, is_idle = line.seq, False
                    yield event_of(line, run_id, row.session_id)
            if lines:
                continue
            if status != "active":
                return
            if not is_idle and run_id not in self._drives:
                is_idle = True
                yield RunEvent(None, "idle", {"paused": False})
            await asyncio.sleep(LOOK_EVERY_S)

    async def wait(self, app: App, run_id: str) -> Result:
        """Return where a run stands once it has ended.

        Raises:
            NotFoundError: There is no such run.
            ReasonryError: What happened could not be written down; the run stays as its journal has it.
        """
        while (await app.store.run(run_id)).status == "active":
            drive = self._drives.get(run_id)
            if drive is not None:
                return await asyncio.shield(drive.ended)
            await asyncio.sleep(LOOK_EVERY_S)
        return await app.engine.result(run_id)

    async def cancel(self, app: App, run_id: str) -> Result:
        """End a run as cancelled.

        Raises:
            ConflictError: It has ended already.
        """
        return await app.engine.cancel(run_id)
