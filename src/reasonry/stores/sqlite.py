"""Stores in SQLite: in a file that several processes can share, or in memory.

Each store has one thread that writes to the file. The thread commits all waiting write jobs together, with savepoints
between them, so that a failed job does not undo the other jobs. Success is reported once the commit is on the disk. A
few threads read in parallel.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

from ..errors import StoreError
from ..records import Backup, Finding, OnProgress
from . import backup, sql
from .database import Source, closed_on_error, faults_of, find_faults, is_fault, migrate, read_fault
from .row_store import Database, RowStore
from .transfer import verify

T = TypeVar("T")

MAX_BATCH = 256
"""The most write jobs in a transaction."""

READERS = 4
"""The most reads in parallel."""

MEMORY = sql.SQLITE._replace(own_steps="", hint="", text_index=None)
"""The dialect of a store in memory. It omits indexes for lists and searches, which would cost more than they save."""


class MemoryStore(RowStore):
    """A store for tests and temporary data. Its content is lost when the process ends."""

    def __init__(self) -> None:
        super().__init__(MemoryDatabase())


class MemoryDatabase(Database):
    """Runs transactions on an in-memory database, in the thread of the caller; see `Database`."""

    name = "memory"
    durable = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._db: sql.Database | None = None
        self._closed = False

    async def write(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`. `read` is the same method."""
        with self._lock:
            if self._closed:
                raise StoreError("the store memory is closed")
            if self._db is None:
                import apsw

                self._db = apsw.Connection(":memory:")
                migrate(self._db, "memory", MEMORY)
            with self._db:
                return work(sql.Tx(self._db, MEMORY))
        raise AssertionError("unreachable")

    read = write

    async def close(self) -> None:
        """See `Store`."""
        with self._lock:
            self._closed = True
            if self._db is not None:
                self._db.close()
                self._db = None


class SqliteStore(RowStore):
    """A store in a SQLite file. At first use, the store opens the file, or creates the file if it is missing.

    Args:
        busy_timeout_s: Seconds to wait for other processes that lock the file, before the error `store_busy`.
    """

    def __init__(self, path: Path | str, busy_timeout_s: float = 10.0) -> None:
        self.path = Path(path)
        super().__init__(SqliteDatabase(Source(self.path, busy_timeout_s), str(path)))


TURN_S = 10.0
"""The longest wait for other stores of this process, in seconds. After that time, SQLite itself waits for the file."""

_TURNS: Final = defaultdict[Path, threading.Lock](threading.Lock)
"""Maps each file to a lock. The stores of a process write in turn, because SQLite's polling could starve a store."""


class _Job(NamedTuple):
    work: Callable[[sql.Tx], Any]
    done: asyncio.Future[Any]

    def report(self, result: Any = None, error: Exception | None = None) -> None:
        """Report the result or the error to the waiting event loop, unless the loop has been closed."""

        def settle() -> None:
            if self.done.done():
                return
            if error is None:
                self.done.set_result(result)
            else:
                self.done.set_exception(error)

        with contextlib.suppress(RuntimeError):
            self.done.get_loop().call_soon_threadsafe(settle)


class SqliteDatabase(Database):
    """Runs transactions on a SQLite file, for any number of tasks and event loops; see `Database`."""

    durable = True

    def __init__(self, source: Source, name: str) -> None:
        self.name = name
        self._source = source
        self._jobs = SimpleQueue[_Job | None]()
        """The waiting write jobs. None marks the end of the jobs."""
        self._writing: threading.Thread | None = None
        self._asking = threading.Lock()
        self._writer: sql.Database | None = None
        self._reading = ThreadPoolExecutor(READERS, "reasonry-read")
        self._idle_readers: list[sql.Database] = []
        self._is_closed = False

    async def read(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`."""
        self._check_open()
        return await asyncio.get_running_loop().run_in_executor(self._reading, self._read, work)

    async def write(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`. If a call is cancelled, its work may still be done."""
        # A future of `concurrent.futures` would have to be chained to a future of the event loop.
        job = _Job(work, asyncio.get_running_loop().create_future())
        with self._asking:
            self._check_open()
            if self._writing is None:
                # An executor would take a third longer to hand over a job.
                self._writing = threading.Thread(target=self._write_jobs, name="reasonry-write", daemon=True)
                self._writing.start()
            self._jobs.put(job)
        return await job.done

    def space(self, tx: sql.Tx) -> tuple[int, int | None]:
        """See `Database`."""
        (free,), (page,) = tx.rows("PRAGMA freelist_count")[0], tx.rows("PRAGMA page_size")[0]
        return self._source.size_with_log(), free * page

    async def vacuum(self) -> None:
        """See `Database`."""
        if not await asyncio.to_thread(self._source.rewrite):
            raise StoreError(
                f"what was deleted still takes space in {self.name} because another process is using it; do it again "
                "once that process is done",
                code="store_busy",
                path=self.name,
            )

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """See `Database`."""
        return await backup.back_up(self._source, file, force, on_progress, _findings)

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """See `Database`."""
        return await backup.restore(self._source.path, file, on_progress, _findings)

    async def verify(self) -> AsyncGenerator[Finding]:
        """See `Database`."""
        # SQLite checks its index of texts against a connection's earlier reads, which may be out of date.
        fresh = SqliteDatabase(self._source, self.name)
        try:
            async for finding in verify(self.name, fresh.read, find_faults):
                yield finding
        finally:
            await fresh.close()

    async def close(self) -> None:
        """See `Store`."""
        with self._asking:
            self._is_closed = True
            self._jobs.put(None)
        await asyncio.to_thread(self._finish)

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"the store {self._source.path} is closed")

    def _finish(self) -> None:
        if self._writing is not None:
            self._writing.join()
        self._reading.shutdown()
        self._drop_writer()
        while self._idle_readers:
            self._idle_readers.pop().close()

    def _read(self, work: Callable[[sql.Tx], T]) -> T:
        with faults_of(self._source.path):
            db = self._take_reader()
            try:
                db.execute("BEGIN")
                return work(sql.Tx(db, sql.SQLITE))
            finally:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                if db.readonly("main"):
                    db.close()
                else:
                    self._idle_readers.append(db)

    def _take_reader(self) -> sql.Database:
        try:
            db = self._idle_readers.pop()
        except IndexError:
            return self._source.reader()
        with closed_on_error(db):
            self._source.check_in_place(db)
        return db

    def _write_jobs(self) -> None:
        """Commit waiting jobs until the store is closed."""
        is_open = True
        while is_open:
            found = [self._jobs.get()]
            while len(found) < MAX_BATCH and not self._jobs.empty():
                found.append(self._jobs.get())
            is_open = found[-1] is not None
            self._perform([job for job in found if job and not job.done.cancelled()])

    def _perform(self, batch: Sequence[_Job]) -> None:
        """Commit a batch and report the results. If the batch fails due to size or damage, commit each job alone."""
        try:
            reports = self._commit_in_turn(batch) if batch else []
        except Exception as error:
            meant = read_fault(error, self._source.path)
            if len(batch) > 1 and getattr(meant, "code", "") in ("store_full", "store_corrupt"):
                reports = [partial(self._perform, [job]) for job in batch]
            else:
                reports = [partial(job.report, error=meant) for job in batch]
        for report in reports:
            report()

    def _commit_in_turn(self, batch: Sequence[_Job]) -> list[partial[None]]:
        turn = _TURNS[self._source.path]
        is_ours = turn.acquire(timeout=TURN_S)
        try:
            return self._commit(batch)
        finally:
            if is_ours:
                turn.release()

    def _commit(self, batch: Sequence[_Job]) -> list[partial[None]]:
        """Commit a batch, and return the functions that report the results."""
        try:
            if self._writer is None:
                self._writer = self._source.writer()
            else:
                self._source.check_in_place(self._writer)
            self._writer.execute("BEGIN IMMEDIATE")
            reports = list[partial[None]]()
            for job in batch:
                reports.append(_run(self._writer, job, is_first=not reports))
                self.answered_s = time.monotonic()
            self._writer.execute("COMMIT")
        except Exception:
            # After a disk error, the connection's memory cannot be trusted.
            self._drop_writer()
            raise
        return reports

    def _drop_writer(self) -> None:
        db, self._writer = self._writer, None
        if db is not None:
            with contextlib.suppress(Exception):
                db.close()


def _run(db: sql.Database, job: _Job, *, is_first: bool) -> partial[None]:
    """Do a job. Return a function that reports the job's result. If the job fails, undo only this job."""
    if not is_first:
        db.execute("SAVEPOINT job")
    try:
        report = partial(job.report, job.work(sql.Tx(db, sql.SQLITE)))
    except Exception as error:
        if is_fault(error):
            raise
        report = partial(job.report, error=error)
        db.execute("ROLLBACK; BEGIN IMMEDIATE" if is_first else "ROLLBACK TO job")
    if not is_first:
        db.execute("RELEASE job")
    return report


async def _findings(draft: Path, name: str) -> list[Finding]:
    """Verify the file `draft` and return the findings. In the findings, the file is called `name`."""
    return [finding async for finding in SqliteDatabase(Source(draft), name).verify()]
