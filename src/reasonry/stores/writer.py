"""The one thread of a process that writes to a store.

Jobs that wait together are committed together, each under a savepoint of its own, so that one that
fails does not undo the others. Success is reported only after the commit is on the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ..errors import ReasonryError, StoreError
from . import sql
from .database import Source, is_fault, is_suspicious
from .searchable import INDEX

T = TypeVar("T")
Work = Callable[[sql.Tx], T]

MAX_BATCH = 256
"""Most jobs of one transaction."""

WOKEN_AT_ONCE = 8
"""Callers that go on in one turn of the event loop; what else is due there is not kept waiting by all of them."""


class _Job(NamedTuple):
    work: Work[Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class _Outcome(NamedTuple):
    job: _Job
    value: Any = None
    error: Exception | None = None


class Writer:
    """Runs jobs from any number of tasks and event loops."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._start = threading.Lock()
        self._db: sql.Database | None = None
        self._suspect = False
        self._closed = False

    async def do(self, work: Work[T]) -> T:
        """Run `work` in a write transaction and return its value when that is durable.

        What `work` raises is raised here, and nothing of it is written. A call that is cancelled may or may not
        have been written.
        """
        return await self._put(work)

    async def rewrite(self) -> bool:
        """Rewrite the file without what was deleted, and empty its log; return whether the log could be emptied."""
        return await asyncio.to_thread(self._rewrite)

    def _rewrite(self) -> bool:
        try:
            db = self._source.writer(verify=False)
            try:
                db.execute("VACUUM")
                return self._source.empty_log(db)
            finally:
                self._source.close(db)
        except Exception as error:
            meant = self._source.read_fault(error)
            if meant is error:
                raise
            raise meant from error

    def _put(self, work: Work[T]) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._start:
            if self._closed:
                raise StoreError(f"the store {self._source.path} is closed")
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="reasonry-store", daemon=True)
                self._thread.start()
            self._queue.put(_Job(work, loop, future))
        return future

    async def close(self) -> None:
        """Write what was accepted, then end the thread and close its connection."""
        with self._start:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        more = True
        while more:
            batch, more = self._next_batch()
            if batch:
                _settle(self._perform(batch))
        self._drop_connection()

    def _next_batch(self) -> tuple[list[_Job], bool]:
        batch = list[_Job]()
        job = self._queue.get()
        with contextlib.suppress(queue.Empty):
            while job is not None:
                if not job.future.cancelled():
                    batch.append(job)
                if len(batch) == MAX_BATCH:
                    return batch, True
                job = self._queue.get_nowait()
        return batch, job is not None

    def _perform(self, batch: list[_Job]) -> list[_Outcome]:
        """Commit a batch; if it fails as a whole, but the disk is sound, commit each job on its own."""
        try:
            return self._commit(batch)
        except Exception as error:
            retry = len(batch) > 1 and is_fault(error) and not is_suspicious(error)
            if not retry:
                return [_Outcome(job, error=self._source.read_fault(error)) for job in batch]
        return [outcome for job in batch for outcome in self._perform([job])]

    def _commit(self, batch: list[_Job]) -> list[_Outcome]:
        db = self._connection()
        tx = sql.Tx(db, sql.SQLITE, INDEX)
        try:
            db.execute(sql.BEGIN_WRITE)
            outcomes = [_run(db, tx, job, alone=len(batch) == 1) for job in batch]
            if db.in_transaction:
                db.execute(sql.COMMIT)
        except Exception as error:
            self._give_up(db, error)
            raise
        return outcomes

    def _connection(self) -> sql.Database:
        if self._db is not None:
            try:
                self._source.check_in_place(self._db)
            except ReasonryError:
                self._drop_connection()
                raise
            return self._db
        db = self._source.writer(verify=self._suspect)
        self._db, self._suspect = db, False
        return db

    def _give_up(self, db: sql.Database, error: Exception) -> None:
        if is_suspicious(error):
            self._suspect = True
            self._drop_connection()
        elif db.in_transaction:
            db.execute(sql.ROLLBACK)

    def _drop_connection(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            with contextlib.suppress(Exception):
                self._source.close(db)


def _run(db: sql.Database, tx: sql.Tx, job: _Job, *, alone: bool) -> _Outcome:
    if not alone:
        db.execute(sql.SAVEPOINT)
    try:
        outcome = _Outcome(job, job.work(tx))
    except Exception as error:
        if is_fault(error):
            raise
        outcome = _Outcome(job, error=error)
        db.execute(sql.ROLLBACK if alone else sql.ROLLBACK_JOB)
    if not alone:
        db.execute(sql.RELEASE)
    return outcome


def _settle(outcomes: list[_Outcome]) -> None:
    """Wake the waiting callers, each event loop once."""
    loops = {id(outcome.job.loop): outcome.job.loop for outcome in outcomes}
    for key, loop in loops.items():
        mine = [outcome for outcome in outcomes if id(outcome.job.loop) == key]
        # A loop that was closed meanwhile has nobody waiting.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, mine)


def _resolve(outcomes: list[_Outcome]) -> None:
    if len(outcomes) > WOKEN_AT_ONCE:
        asyncio.get_running_loop().call_soon(_resolve, outcomes[WOKEN_AT_ONCE:])
    for job, value, error in outcomes[:WOKEN_AT_ONCE]:
        if job.future.done():
            continue
        if error is None:
            job.future.set_result(value)
        else:
            job.future.set_exception(error)
