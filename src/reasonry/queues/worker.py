"""A worker: drives runs of the queue by way of a supervisor, as many at once as it may.

Rule 1: what it has at work when it ends, or dies, goes back into the queue. It says that it is alive every `BEAT_S`;
        any other that finds it silent for long puts its runs back. Who was silent as well, as all are while the
        database is away, first gives it the time to be heard again.
Rule 2: a run whose workers died `MAX_KILLS` times, without it having got any further, is set aside. Before the last
        time it is driven with no other run that has cost a worker its life, so that each is judged for itself.
Rule 3: what was accepted and is neither driven nor in the queue is found in the store, bit by bit, and put into it.
Rule 4: what a worker cannot drive, as it is of another version or may not ask its model, it leaves; by rule 3 another
        has its turn after a while.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ..app import App
from ..core.machine import SET_ASIDE
from ..engine.engine import OpenRun
from ..engine.journal import CALLER
from ..engine.telemetry import trace_work
from ..errors import ConflictError, NotFoundError, OverloadedError, ReasonryError, StoreError
from ..ids import new_id
from ..records import RunRow
from ..supervisor import Supervisor
from . import queue_tables as tables
from .group_commit import GroupCommit
from .queue import DEFAULT_QUEUE, Claimed, Queue, Waiting, traced_as

if TYPE_CHECKING:
    from sqlalchemy import Connection

CONCURRENCY: Final = 32
MAX_KILLS: Final = 3
POLL_S: Final = 0.1
BEAT_S: Final = 1.0

PATIENCE_S: Final = 15.0
"""How long a run that somebody else drives is waited for: the right to drive it may be that of a worker which died."""
RETRY_S: Final = 0.5
SETTLED_MS: Final = 30_000
"""A run that was written to in this time is at work, or about to be."""
SWEEP_PAGE: Final = 100

_LOG = logging.getLogger("reasonry.worker")


class Worker:
    """Drives runs of a queue in the background; a process has one at most.

    Args:
        app: Over the store whose queue it is.
        concurrency: How many it drives at once, of all its queues.
        max_running: It begins none while so many runs of a queue are driven, by all workers together; None: any number.
        queues: The names of those it takes runs from.
    """

    def __init__(
        self,
        app: App,
        queue: Queue,
        supervisor: Supervisor,
        *,
        concurrency: int = CONCURRENCY,
        queues: Sequence[str] = (DEFAULT_QUEUE,),
        max_running: int | None = None,
    ) -> None:
        self.id = f"{new_id()}.{os.getpid()}"
        """Never that of another process, so that nobody takes a new one for one that died."""
        self._process = tables.Process(_host(), os.getpid())
        self._app, self._queue, self._supervisor = app, queue, supervisor
        self._concurrency, self._max_running, self._queues = concurrency, max_running, tuple(queues)
        self._commits = GroupCommit(queue)
        self._turns = dict[tuple[str, int], int]()
        """The last turn begun here of each queue and priority."""
        self._draining = asyncio.Event()
        self._suspect = asyncio.Lock()
        self._beating: asyncio.Task[None] | None = None
        self._taking: asyncio.Task[None] | None = None
        self._has_reason = asyncio.Event()
        self._at_work = set[str]()
        self._tasks = set[asyncio.Task[None]]()
        self._swept: str | None = None
        self._heard_s = self._steady_since_s = 0.0
        """By the monotonic clock: the last time this worker said that it is alive, and the end of its last silence."""

    async def start(self) -> None:
        """Begin to take runs.

        Raises:
            StoreError: The queue cannot be used.
        """
        await self._beat()
        self._beating = asyncio.create_task(self._keep_beating())
        self._taking = asyncio.create_task(self._take_runs())

    def look(self) -> None:
        """Look for runs now: one was put into the queue, or there is a place for one."""
        self._has_reason.set()

    async def take_up_unfinished(self) -> None:
        """Put all into the queue that stands in the store since before, and that nobody seems to have."""
        begun_ms = time.time_ns() // 1_000_000
        while True:
            await self._sweep(begun_ms)
            if self._swept is None:
                return

    async def drain(self) -> None:
        """Take no more runs, and put back those at work; the supervisor is drained first, or at the same time."""
        self._draining.set()
        self.look()
        if self._beating is not None and self._taking is not None:
            self._beating.cancel()
            # What is being taken comes to be this worker's before all of that is put back.
            await asyncio.gather(self._beating, self._taking, return_exceptions=True)
            with contextlib.suppress(StoreError):
                await self._queue.do(lambda: self._queue.adopt(self.id, died=False))

    async def _take_runs(self) -> None:
        while not self._draining.is_set():
            self._has_reason.clear()
            if places := self._concurrency - len(self._at_work):
                try:
                    for claimed in await self._commits.transact(
                        lambda connection, places=places: self._claim(connection, places)
                    ):
                        self._begin_work(claimed)
                except StoreError as error:
                    _LOG.debug("no runs can be taken at present: %s", error)
                except Exception:
                    _LOG.exception("runs cannot be taken")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._has_reason.wait()

    def _begin_work(self, claimed: Claimed) -> None:
        self._at_work.add(claimed.run_id)
        task = asyncio.create_task(self._work(claimed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _claim(self, connection: Connection, places: int) -> list[Claimed]:
        claimed = list[Claimed]()
        for name in random.sample(self._queues, len(self._queues)):
            left = places - len(claimed)
            claimed += self._queue.claim(connection, name, self.id, left, self._max_running) if left else []
        return claimed

    # -- one run

    async def _work(self, claimed: Claimed) -> None:
        """Drive a run until it has ended, or stands still, or is somebody else's, and note that."""
        patience_ends = time.monotonic() + PATIENCE_S
        with self._trace(claimed):
            while not self._draining.is_set():
                with contextlib.suppress(StoreError):
                    if await self._try_work(claimed, patience_ends):
                        return
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(RETRY_S):
                        await self._draining.wait()
        # What this worker had at work stays so in the queue, until all of it is put back.

    def _trace(self, claimed: Claimed) -> contextlib.AbstractContextManager[object]:
        facts = {
            **traced_as(claimed.queue),
            "messaging.operation.type": "process",
            "reasonry.run_id": claimed.run_id,
            "reasonry.worker": self.id,
        }
        return trace_work(f"process {claimed.queue}", "CONSUMER", facts, claimed.carried)

    async def _try_work(self, claimed: Claimed, patience_ends: float) -> bool:
        """Drive a run, if it is to be driven; return whether it is noted that the queue has nothing more to do for it.

        Raises:
            StoreError: That cannot be noted at present.
        """
        run_id, is_over, is_left = claimed.run_id, True, False
        try:
            is_over = await self._drive(claimed)
        except NotFoundError:
            is_left = True
        except ReasonryError as error:
            if not _passes(error):
                _LOG.warning("run %s cannot be driven here: %s", run_id, error)
            elif isinstance(error, ConflictError) and time.monotonic() > patience_ends:
                _LOG.info("run %s is left to whoever drives it: %s", run_id, error)
            else:
                return False
            is_left = True
        except Exception:
            _LOG.exception("run %s cannot be driven here", run_id)
            is_left = True

        def note(connection: Connection) -> None:
            if claimed.is_suspect and not is_left:
                tables.note_ended(connection, run_id)
            if is_over:
                tables.note_over(connection, run_id, self.id)

        if is_over:
            # So the next one is taken in the same transaction.
            self._at_work.discard(run_id)
            self.look()
        await self._commits.transact(note)
        return is_over

    async def _drive(self, claimed: Claimed) -> bool:
        """Drive a run, if it is to be driven; return whether there is nothing more to do for it."""
        async with contextlib.AsyncExitStack() as held:

            async def admit(opened: OpenRun) -> None:
                await self._admit(opened, claimed, held)

            ended = await self._supervisor.take_up(claimed.run_id, claimed.owner, admit)
            if ended is None:
                return True
            await asyncio.wait([ended])
            return not self._draining.is_set() and ended.exception() is None

    async def _admit(self, opened: OpenRun, claimed: Claimed, held: contextlib.AsyncExitStack) -> None:
        """Note that a run is begun which has cost workers their lives, or set it aside."""
        run_id, events = opened.row.run_id, len(opened.run.events)
        about = claimed.queue, claimed.priority
        self._turns[about] = max(claimed.turn, self._turns.get(about, 0))
        if not claimed.is_suspect:
            return

        def begin(connection: Connection) -> int:
            kills = tables.kills(connection, run_id, events)
            if 0 < kills < MAX_KILLS - 1:
                tables.note_begun(connection, run_id, kills, events)
            return kills

        kills = await self._commits.transact(begin)
        if kills >= MAX_KILLS:
            detail = (
                f"whoever drove it died {kills} times at the same point, so nobody drives it any more; "
                "resume it once the reason is found"
            )
            await opened.stop(SET_ASIDE, detail)
            _LOG.error("run %s is set aside: its workers died %d times at the same point", run_id, kills)
        elif kills == MAX_KILLS - 1:
            await held.enter_async_context(self._suspect)

            def note_begun(connection: Connection) -> None:
                tables.note_begun(connection, run_id, kills, events)

            await self._commits.transact(note_begun)

    # -- beside the runs

    async def _keep_beating(self) -> None:
        is_well = True
        while True:
            await asyncio.sleep(BEAT_S)
            try:
                if await self._beat():
                    await self._sweep(time.time_ns() // 1_000_000 - SETTLED_MS)
                if not is_well:
                    _LOG.warning("the queue can be looked after again")
                is_well = True
            except ReasonryError as error:
                if is_well:
                    _LOG.warning("the queue cannot be looked after at present: %s", error)
                is_well = False
            except Exception:
                _LOG.exception("the queue cannot be looked after")

    async def _beat(self) -> bool:
        """Say that this worker is alive, and see to those that are not; return whether it is the first of all."""
        turns = dict(self._turns)

        def beat(connection: Connection) -> tuple[list[str], bool]:
            for (queue, priority), turn in turns.items():
                tables.begin_turn(connection, queue, priority, turn)
            queues = ",".join(self._queues)
            tables.beat(connection, self.id, self._process, queues, self._concurrency, len(self._at_work))
            gone = [
                worker for worker, pid in tables.workers_of(connection, self._process.host) if _is_gone(pid)
            ]
            silent = tables.silent_workers(connection) if self._is_steady() else ()
            is_first = tables.is_first(connection, self.id)
            if is_first:
                tables.enqueue_due(connection)
            return [*{*gone, *silent}], is_first

        def work() -> bool:
            dead, is_first = self._queue.transact(beat)
            for worker in dead:
                self._adopt(worker)
            if is_first:
                self._queue.clear()
            return is_first

        return await self._queue.do(work)

    def _is_steady(self) -> bool:
        """Note that this worker is heard; return whether it was all the time in which a silent one counts as dead."""
        now_s, dead_s = time.monotonic(), tables.DEAD_MS / 1000
        if now_s - self._heard_s > dead_s * 3 / 4:
            self._steady_since_s = now_s
        self._heard_s = now_s
        return now_s - self._steady_since_s >= dead_s

    def _adopt(self, worker: str) -> None:
        adopted = self._queue.adopt(worker, died=True)
        if adopted:
            self._queue.transact(lambda connection: tables.add(connection, "adopted", adopted))
        _LOG.warning("worker %s died; %d runs of it are driven by others", worker, adopted)

    async def _sweep(self, until_ms: int) -> None:
        """Put one page of what the store has, and nobody has, into the queue, if it was not written to since then."""
        rows = await self._app.store.runs(
            limit=SWEEP_PAGE, before=self._swept, status="active", unattended=True, paused=False
        )
        self._swept = rows[-1].run_id if len(rows) == SWEEP_PAGE else None
        left = [row for row in rows if row.model != CALLER and row.updated_at_ms <= until_ms]
        await self._put_lost(left)

    async def _put_lost(self, rows: Sequence[RunRow]) -> None:
        known = await self._queue.find_known([row.run_id for row in rows]) if rows else set[str]()
        unknown = {row.run_id: row for row in rows if row.run_id not in known}
        driven = await self._app.store.find_driven([*unknown]) if unknown else set[str]()
        if lost := unknown.keys() - driven:
            await self._queue.put([Waiting(run_id, unknown[run_id].owner) for run_id in sorted(lost)])


def _passes(error: ReasonryError) -> bool:
    """Whether what was in the way of driving a run passes by itself, or the process is about to end."""
    if error.code in ("strategy_changed", "store_newer", "store_corrupt"):
        # Another version drives it, if any.
        return False
    return isinstance(error, (ConflictError, OverloadedError, StoreError))


def _host() -> str:
    """Return what the processes have in common that can see each other."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:
        space = ""
    return f"{socket.gethostname()} {space}".strip()


def _is_gone(pid: int) -> bool:
    """Whether there is no such process on this machine any more, for sure."""
    if os.name != "posix":
        # There, asking whether a process lives may end it.
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
