"""The supervisor of one process: accepts runs, drives them in the background, and streams their events.

The app that a method receives determines the owner. Runs of other owners do not exist for that app. The journal holds
the complete state of a run, so the supervisor holds no state that has to survive the process.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import AsyncExitStack, contextmanager, suppress
from functools import partial
from math import inf
from typing import Any, Final

from ..app.app import App
from ..app.participants import Participants
from ..app.runs import continue_paused, resumable, set_limits
from ..core.budget import Budget
from ..core.machine import POISONED
from ..engine.budget_guard import Allowance
from ..engine.control import Control
from ..engine.drive import LOOK_EVERY_S, drive_run
from ..engine.engine import BY_USER, Accepted
from ..engine.fork import Fork
from ..engine.journal import Begun, TermsChanged
from ..engine.open_run import OpenRun
from ..engine.policy import Performers, rewind
from ..engine.prices import check_priced
from ..engine.result import Result
from ..errors import ConflictError, OverloadedError, ReasonryError, UsageError
from ..records import JobOptions, RequestKey, RunRow
from .deaths import MAX_DEATHS, register_retry
from .run_events import Feed, FeedReader, Follower, RunEvent

CUT_S: Final = 1.0
"""When the process drains, calls that are cut off have this many seconds to end."""

MAX_RUNS: Final = 256
"""The most runs that are driven at once."""

MAX_QUEUED: Final = 100_000
"""The most jobs that may wait. Additional jobs are refused, and clients may retry later."""

FULL_RETRY_S: Final = 5.0

HUNG_UP: Final = "its client hung up"
"""The termination detail of a run that ended because its client disconnected. It resumes when the client returns."""

_log = logging.getLogger("reasonry")


class _Drive:
    ended: asyncio.Task[Result]
    """A task that returns the run's result when the drive ends. It raises if the journal could not be written."""

    def __init__(self, opened: OpenRun, performers: Performers, control: Control, feed: Feed) -> None:
        self.opened, self.performers, self.control, self.feed = opened, performers, control, feed


class _News:
    """Wakes the followers of runs that other processes drive."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def tell(self) -> None:
        """Wake all waiting followers."""
        self._event.set()
        self._event.clear()

    async def wait(self) -> None:
        """Wait for news, at most `LOOK_EVERY_S` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._event.wait()


class Supervisor:
    """Drives runs in the background.

    A run that begins as a job waits in the store for a worker, or for the process that takes jobs (see `Jobs`).
    A method that reads or changes a run raises NotFoundError if the run does not exist.

    Attributes:
        draining: Whether the supervisor starts no more work, because the process is about to end.
        has_job: An event that is set when a job may be waiting, and when the supervisor drains.

    Args:
        max_runs: The limit of runs driven at once.
        queued: Returns how many jobs were waiting a short time ago.
        usd_a_day: Returns the daily limit of an owner in US dollars. None means that there is no limit.
    """

    def __init__(
        self,
        app: App,
        *,
        max_runs: int = MAX_RUNS,
        max_queued: int = MAX_QUEUED,
        queued: Callable[[], int] = lambda: 0,
        usd_a_day: Callable[[str], float | None] = lambda owner: None,
    ) -> None:
        self._app, self._max_runs, self._max_queued = app, max_runs, max_queued
        self.has_job = asyncio.Event()
        self._queued, self._usd_a_day = queued, usd_a_day
        self._allowances: dict[str, Allowance] = {}
        """Maps each owner to the guard of the owner's daily limit."""
        self._drives: dict[str, _Drive] = {}
        self._starting = 0
        self._present = Counter[str]()
        """How many clients wait for each run."""
        self._hanging_up = set[asyncio.Task[None]]()
        self._deadly = list[int]()
        self.draining = False
        self._news = _News()

    @property
    def running(self) -> int:
        """How many runs this process drives now."""
        return len(self._drives)

    def is_driven(self, run_id: str) -> bool:
        """Whether this process drives the run now."""
        return run_id in self._drives

    # -- beginning

    async def start(
        self,
        app: App,
        order: Begun,
        performers: Performers,
        fork: Fork | None = None,
        *,
        key: RequestKey | None = None,
        text: bool = False,
        job: JobOptions | None = None,
    ) -> Accepted:
        """Accept a run and drive it in the background, unless the same request has already begun a run.

        If this process dies, another process continues the run only if the run is a job.

        Args:
            key: An idempotency key. For a day, another start by the same owner with this key returns the same run.
            text: Whether to keep pieces of answers from the start, for a client that is about to watch.
            job: Options that queue the run as a job. If None, this process drives the run.

        Raises:
            OverloadedError: This process drains or already drives `max_runs` runs, or the queue is full.
            ConflictError: As in `Engine.accept`.
            UsageError: `budget_exceeded`: the owner's daily limit is reached; `price_unknown`: a model has no price.
        """
        try:
            with self._room(job):
                allowance = await _look_at_allowance(app, self._usd_a_day, self._allowances)
                if allowance is not None:
                    check_priced("max_usd_a_day", performers.models, performers.prices)
                    if refusal := allowance.refusal():
                        message = f"{refusal.detail}; it starts over at midnight, UTC"
                        raise UsageError(message, code="budget_exceeded")
                accepted = await app.engine.accept(order, fork, job=job, key=key, drive=job is None)
                if job is not None:
                    self.has_job.set()
                elif accepted.written is not None:
                    async with AsyncExitStack() as held:
                        opened = await held.enter_async_context(app.engine.open(*accepted))
                        if fork is not None:
                            rewind(performers, opened.run, fork.participants)
                        self._drive(opened, performers, allowance, held.pop_all(), text=text)
                return accepted
        except (OverloadedError, UsageError):
            # A repeated start returns its run, even at the limit of runs or of spending.
            if key is None or not (begun := await app.store.run_begun_with(key)):
                raise
            return Accepted(begun)

    async def resume(
        self,
        app: App,
        run_id: str,
        participants: Participants | None = None,
        budget: Budget | None = None,
        *,
        text: bool = False,
        job: JobOptions | None = None,
    ) -> None:
        """Resume a run in the background. A run that concluded stays ended.

        The run may be paused, interrupted, or ended by a limit, a cancellation or an external failure.

        Args:
            participants: The participants from now on. None keeps the recorded participants of the run.
            text: As in `start`. The same applies to `job`.

        Raises:
            ConflictError: The run is being driven.
            OverloadedError: As in `start`.
        """
        if await continue_paused(app, run_id, participants, budget):
            self._wake(run_id)
            return
        if (drive := self._drives.get(run_id)) and not await app.store.find_driven([run_id]):
            # This drive has released the run and is about to end.
            await asyncio.wait([drive.ended])
        with self._room(job):
            async with AsyncExitStack() as held:
                allowance = await _look_at_allowance(app, self._usd_a_day, self._allowances)
                opened = await held.enter_async_context(app.engine.open(run_id))
                performers = await app.reopen(opened, participants, budget, job=job)
                if job is None and opened.run.snapshot.status == "active":
                    self._drive(opened, performers, allowance, held.pop_all(), text=text)
            self.has_job.set()

    async def drive_job(self, run_id: str, owner: str = "") -> asyncio.Future[Result] | None:
        """Drive a job's run in the background. Return a future, or None if the run has ended or is paused.

        If the processes that drive the job keep dying, stop the run and return None.

        Raises:
            ConflictError: Another process drives the run, or the run must wait for another run or the end of a pause.
            OverloadedError: As in `start`.
        """
        app = self._app.for_owner(owner) if owner else self._app
        with self._room():
            async with AsyncExitStack() as held:
                # Checked before the lease is taken: a death during the release of the lease would be blamed on the run.
                deaths, since_s = await app.store.deaths_of(run_id)
                held.enter_context(register_retry(self._deadly, run_id, deaths, since_s))
                opened = await held.enter_async_context(app.engine.open(run_id))
                counted = await app.store.count_deaths(run_id, len(opened.run.events)) if deaths else 0
                if since_s < inf:
                    app.engine.policy.meter.add("deaths")
                if opened.run.snapshot.status != "active" or opened.run.paused:
                    return None
                if counted >= MAX_DEATHS:
                    # The run would end this process too, and with it all other runs.
                    died = f"the process that drove it died {counted} times at the same place"
                    await opened.stop(POISONED, f"{died}; resume it once the reason is found")
                    _log.error("run %s is poisoned: %s", run_id, died)
                    return None
                allowance = await _look_at_allowance(app, self._usd_a_day, self._allowances)
                performers = await app.reopen(opened)
                ended = self._drive(opened, performers, allowance, held.pop_all())
                self._news.tell()
                return ended

    def check_room(self) -> None:
        """Check that this process can drive another run, or raise OverloadedError."""
        if self.draining:
            raise OverloadedError("this server is about to end; try again once it is back")
        if self.is_full:
            message = f"{self._max_runs} runs are at work here, which is the limit; try again later"
            raise OverloadedError(message)

    @contextmanager
    def _room(self, job: JobOptions | None = None) -> Generator[None]:
        """If `job` is None, reserve a place for a run. Otherwise, check that the queue has room for the job."""
        if job is not None:
            if self._queued() >= self._max_queued:
                message = f"{self._max_queued} runs are in the queue, which is the limit; try again later"
                raise OverloadedError(message, retry_after_s=FULL_RETRY_S)
            yield
            return
        self.check_room()
        self._starting += 1
        try:
            yield
        finally:
            self._starting -= 1

    @property
    def is_full(self) -> bool:
        """Whether this process cannot drive another run."""
        return self.draining or self.running + self._starting >= self._max_runs

    def _drive(
        self,
        opened: OpenRun,
        performers: Performers,
        allowance: Allowance | None,
        held: AsyncExitStack,
        *,
        text: bool = False,
    ) -> asyncio.Task[Result]:
        """Drive a run in the background; `held` owns the run's lease."""
        feed = Feed(opened, text=text)
        drive = self._drives[opened.row.run_id] = _Drive(opened, performers, Control(allowance), feed)
        if self.draining:
            drive.control.drain()
        drive.ended = asyncio.create_task(self._complete(drive, held))
        # Retrieve an exception even if nobody awaits the task.
        drive.ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        return drive.ended

    async def _complete(self, drive: _Drive, held: AsyncExitStack) -> Result:
        run_id = drive.opened.row.run_id
        try:
            async with held:
                return await drive_run(drive.opened, drive.performers, drive.feed, control=drive.control)
        except Exception as error:
            _log.warning("run %s was left as its journal has it: %s", run_id, error)
            if isinstance(error, ReasonryError) and error.code == "lease_lost":
                self._app.engine.policy.meter.add("lost_leases")
            raise
        finally:
            del self._drives[run_id]
            drive.feed.wake()

    # -- commands

    async def cancel(self, app: App, run_id: str, detail: str = BY_USER) -> Result:
        """End a run as cancelled. The answers so far are kept.

        Raises:
            ConflictError: The run has already ended.
        """
        await app.store.run(run_id)
        if drive := self._drives.get(run_id):
            drive.control.cancel(detail)
            result = await asyncio.shield(drive.ended)
            if result.status == "cancelled":
                return result
        return await app.engine.cancel(run_id, detail)

    async def pause(self, app: App, run_id: str) -> None:
        """Pause a run: calls in flight finish, and nothing new starts until the run is resumed.

        Raises:
            ConflictError: The run has ended, is already paused, or waits for its caller.
        """
        await app.engine.command(run_id, TermsChanged(paused=True))
        self._wake(run_id)

    async def set_limits(self, app: App, run_id: str, limits: Mapping[str, Any]) -> None:
        """Replace the named limits of an active run. Earlier spending counts against the new limits.

        Raises:
            UsageError: The budget limits dollars, but a price is unknown.
            ConflictError: The run has ended.
        """
        await set_limits(app, run_id, limits)
        self._wake(run_id)

    def _wake(self, run_id: str) -> None:
        if drive := self._drives.get(run_id):
            drive.control.wake()

    @contextmanager
    def attending(self, app: App, run_id: str, *, leaves: bool) -> Generator[None]:
        """Count a waiting client of a run. If the last client disconnects, cancel the run, unless `leaves` is True."""

        async def cancel() -> None:
            with suppress(ReasonryError):
                await self.cancel(app, run_id, HUNG_UP)

        self._present[run_id] += 1
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            if self._present[run_id] == 1 and not (leaves or self.draining):
                # This needs a task of its own, since the request itself is cancelled.
                task = asyncio.create_task(cancel())
                self._hanging_up.add(task)
                task.add_done_callback(self._hanging_up.discard)
            raise
        finally:
            self._present[run_id] -= 1
            self._present += Counter()

    # -- the end of the process

    async def drain(self, timeout_s: float = 4.0) -> None:
        """Start no new work, wait for calls in flight, then release all runs. Other processes continue the jobs.

        Shortly before the time limit, calls in flight are cut off and counted.
        """
        self.draining = True
        self.has_job.set()
        if self._hanging_up:
            await asyncio.wait(self._hanging_up, timeout=CUT_S)
        for cut, wait_s in ((False, max(0.0, timeout_s - CUT_S)), (True, CUT_S)):
            for drive in self._drives.values():
                drive.control.drain(cut=cut)
            if at_work := [drive.ended for drive in self._drives.values()]:
                await asyncio.wait(at_work, timeout=wait_s)
        self._news.tell()

    # -- following

    async def watch(
        self, app: App, run_id: str, after: int = 0, *, text: bool = False
    ) -> AsyncGenerator[RunEvent]:
        """Yield the events of a run after position `after`. If `text` is True, also yield pieces of answers.

        The events end with the run, or when this process drains.
        """
        row = await self._row(app, run_id)
        follower, reader = Follower(app.store, app.strategies, row, after), FeedReader(text)
        feed, is_idle = None, False
        while True:
            drive = self._drives.get(run_id)
            if drive is not None:
                feed = drive.feed
                feed.admit(reader)
            reader.news.clear()
            # While the run is driven here, the feed of the drive has its events, including the end.
            has_news = follower.is_behind(feed)
            if drive is None or has_news:
                row = None if has_news else await app.store.run(run_id)
                events = await follower.read_on(feed if has_news else None)
                for event in reader.tell(events):
                    after, is_idle = event.id or after, False
                    yield event
                if events:
                    # An `ended` event before others does not count: the run was resumed after it.
                    if events[-1].kind == "ended":
                        return
                    continue
                if row is not None and (row.status != "active" or (self.draining and is_idle)):
                    return
                if row is not None and not is_idle and not await app.store.find_driven([run_id]):
                    is_idle, left = True, await resumable(app.store, [row])
                    yield RunEvent(None, "idle", {"paused": row.paused, "resumable": run_id in left})
            for event in reader.take_passing(after):
                yield event
            await (self._news if drive is None else reader.news).wait()

    async def _row(self, app: App, run_id: str) -> RunRow:
        drive = self._drives.get(run_id)
        # If the run has another owner, `app.store` does not find it.
        if drive is not None and drive.opened.store is app.store:
            return drive.opened.row
        return await app.store.run(run_id)

    async def wait(self, app: App, run_id: str) -> Result:
        """Wait until a run ends, pauses or needs its caller, or until this process drains. Return the run's result.

        Raises:
            ReasonryError: The journal could not be written. The run keeps its recorded state.
        """
        while (row := await app.store.run(run_id)).status == "active":
            drive = self._drives.get(run_id)
            if drive is not None:
                try:
                    return await asyncio.shield(drive.ended)
                except ConflictError as error:
                    if error.code != "lease_lost":
                        raise
                # The run continues in another process.
                continue
            if row.paused or row.outcome == "waiting" or self.draining:
                break
            await self._news.wait()
        return await app.engine.result(run_id)


async def _look_at_allowance(
    app: App, usd_a_day: Callable[[str], float | None], known: dict[str, Allowance]
) -> Allowance | None:
    """Return the updated allowance of an app's owner, or None if the owner has no daily limit."""
    owner = getattr(app.store, "owner", "")
    usd = usd_a_day(owner)
    if usd is None:
        return None
    if owner not in known:
        known[owner] = Allowance(usd, partial(app.store.usage_since, owner=owner))
    await known[owner].catch_up()
    return known[owner]
