"""The class of all stores. Its methods read and write rows in transactions of a database."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from ..errors import StoreError, UsageError
from ..records import (
    Backup,
    Finding,
    JobOptions,
    Line,
    OnProgress,
    RequestKey,
    RunRow,
    SessionRow,
    StoreStats,
    ThoughtRow,
    Use,
)
from . import leases, run_rows, session_rows, sql, transfer
from .leases import Lease, Leases

if TYPE_CHECKING:
    from types import CoroutineType

T = TypeVar("T")
P = ParamSpec("P")
Work = Callable[[sql.Tx], T]


class Database(Protocol):
    """The part of a store that differs between databases. It runs the transactions of the store.

    The default methods suit a database that has no file.

    Attributes:
        name: The value of `--store`, without its secret parts.
        durable: Whether acknowledged writes outlive the process.
        has_workers: Whether workers share the jobs. Otherwise one process drives all jobs.
        answered_s: The time of the last answer of the database, by the monotonic clock.
    """

    name: str
    durable: bool
    has_workers: bool = False
    answered_s: float = 0.0

    async def read(self, work: Work[T]) -> T:
        """Call `work` in a transaction that sees a consistent state of the store, and return the result."""
        ...

    async def write(self, work: Work[T]) -> T:
        """Call `work` in a transaction isolated from other writers. Return the result once the writes are durable."""
        ...

    def put_job(self, tx: sql.Tx, row: RunRow, job: JobOptions) -> None:
        """Queue a run for a worker. Do nothing if this database has no shared job queue."""

    def space(self, tx: sql.Tx) -> tuple[int, int | None]:
        """Return how many bytes the store uses on the disk, and how many of them are free (None if unknown)."""
        return 0, 0

    async def verify(self) -> AsyncGenerator[Finding]:
        """Verify the file, then each run and session, and yield the findings. Verification changes nothing.

        Each transaction checks only a few runs or sessions, so that writing can continue between the transactions.
        """
        yield Finding("file", self.name)

    async def vacuum(self) -> None:
        """Return the space of deleted content to the disk.

        Raises:
            StoreError: `store_busy` or `store_full`: the space cannot be returned now. No content is lost.
        """

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """Copy a snapshot of the store to a file. Reading and writing continue meanwhile.

        Raises:
            ConflictError: The file exists, and `force` is false.
            StoreError: `store_corrupt`: the store is damaged, and no backup was made.
        """
        raise _kept_nowhere()

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """Replace the content of the store with a backup. After an error the store is unchanged.

        Raises:
            UsageError: The file does not exist.
            StoreError: The file is damaged (`store_corrupt`), a newer version wrote the file (`store_newer`), or
                another process has the store open (`store_busy`).
        """
        raise _kept_nowhere()

    async def close(self) -> None:
        """Finish pending work and release all resources."""


def _kept_nowhere() -> UsageError:
    return UsageError("the store in memory has no file; give --store a path", option="store")


def reads(
    work: Callable[Concatenate[sql.Tx, P], T],
) -> Callable[Concatenate[RowStore, P], CoroutineType[Any, Any, T]]:
    """Make a store method from a function that reads rows. The method uses a read-only transaction."""

    async def method(self: RowStore, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.read(lambda tx: work(tx, *args, **kwargs))

    return method


def writes(
    work: Callable[Concatenate[sql.Tx, P], T],
) -> Callable[Concatenate[RowStore, P], CoroutineType[Any, Any, T]]:
    """Make a store method from a function that writes rows. The method uses a write transaction."""

    async def method(self: RowStore, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.write(lambda tx: work(tx, *args, **kwargs))

    return method


class RowStore:
    """A `Store` that keeps rows in a database. It also has methods for servers and operators.

    Attributes:
        has_workers: Whether workers share the store's jobs. Otherwise one process drives all jobs; see `waiting`.
        owner: The owner whose runs and sessions are visible, or None for the operator, who sees all.
        whole: The database, which the operator uses for work on the whole store, such as a backup.
    """

    def __init__(self, database: Database) -> None:
        self.name, self.durable = database.name, database.durable
        self.has_workers = database.has_workers
        self.owner: str | None = None
        self.whole = database
        self._is_driving_jobs = False
        self._leases = Leases(lambda run_id: self.write(lambda tx: self._lease_taken(tx, run_id)), self.write)

    def of_owner(self, owner: str) -> RowStore:
        """Return a view of this store that shows one owner's content. Close only the store, not its views."""
        scoped = copy.copy(self)
        scoped.owner = owner
        return scoped

    async def read(self, work: Work[T]) -> T:
        """Call `work` for the owner in a read transaction; see `Database.read`."""
        return await self.whole.read(self._own(work))

    async def write(self, work: Work[T]) -> T:
        """Call `work` for the owner in a write transaction; see `Database.write`."""
        return await self.whole.write(self._own(work))

    def _own(self, work: Work[T]) -> Work[T]:
        """Limit `work` to the owner's content, and make it raise UsageError for values that cannot be stored."""

        def own(tx: sql.Tx) -> T:
            tx.owner = self.owner
            try:
                return work(tx)
            except UnicodeEncodeError as error:
                raise UsageError(
                    f"a text has a lone surrogate at character {error.start}; it is not valid Unicode",
                    position=error.start,
                ) from None
            except OverflowError:
                raise UsageError("a number is too large to be stored") from None

        return own

    def _lease_taken(self, tx: sql.Tx, run_id: str) -> Lease:
        return leases.take(tx, run_rows.key_of(tx, run_id), run_id, self._leases.holder)

    async def create_run(
        self,
        row: RunRow,
        lines: Sequence[Line],
        session: SessionRow | None = None,
        key: RequestKey | None = None,
        *,
        thoughts: Sequence[ThoughtRow] = (),
        drive: bool = False,
        job: JobOptions | None = None,
    ) -> str:
        """See `Store`."""

        def work(tx: sql.Tx) -> tuple[str, Lease | None]:
            run_id = run_rows.create_run(tx, row, lines, key)
            if run_id != row.run_id:
                return run_id, None
            if session is not None:
                session_rows.import_session(tx, session, thoughts)
            if job is not None:
                self.whole.put_job(tx, run_rows.run(tx, run_id), job)
            return run_id, self._lease_taken(tx, run_id) if drive else None

        run_id, taken = await self.write(work)
        if taken is not None:
            self._leases.taken[run_id, self.owner] = taken
        return run_id

    async def append(
        self,
        run_id: str,
        lines: Sequence[Line],
        row: RunRow | None = None,
        use: Use | None = None,
        *,
        job: JobOptions | None = None,
    ) -> None:
        """See `Store`. Raises NotFoundError if the run does not exist."""
        lease = self._leases.lease_of(run_id)
        is_over = job is not None or (row is not None and row.status != "active")

        def work(tx: sql.Tx) -> None:
            run_rows.append(tx, run_id, lines, row, use, lease)
            if job is not None:
                self.whole.put_job(tx, run_rows.run(tx, run_id), job)
            if lease is not None and is_over:
                leases.give_back(tx, run_id, lease.holder)

        await self.write(work)
        if lease is not None and is_over:
            self._leases.note_end(run_id, lease)

    async def save_checkpoint(self, run_id: str, checkpoint: Line) -> None:
        """See `Store`."""
        lease = self._leases.lease_of(run_id)
        await self.write(lambda tx: run_rows.save_checkpoint(tx, run_id, checkpoint, lease))

    run_begun_with = reads(run_rows.begun_with)
    run = reads(run_rows.run)
    rows = reads(run_rows.rows)
    lines = reads(run_rows.lines)
    tail = reads(run_rows.tail)
    runs = reads(run_rows.runs)
    run_ids = reads(partial(sql.ids_from, table="run"))
    usage_since = reads(run_rows.usage_since)
    usage_by = reads(run_rows.usage_by)
    deaths_of = reads(leases.deaths_of)
    find_driven = reads(leases.find_driven)
    queue_status = reads(leases.queue_status)
    delete_run = writes(run_rows.delete_run)
    count_deaths = writes(run_rows.count_deaths)

    change = writes(session_rows.change)
    session = reads(session_rows.session)
    sessions = reads(session_rows.sessions)
    session_ids = reads(partial(sql.ids_from, table="session"))
    thoughts = reads(session_rows.thoughts)
    search_thoughts = reads(session_rows.search_thoughts)
    import_session = writes(session_rows.import_session)
    sweep_sessions = writes(session_rows.sweep)
    delete_session = writes(session_rows.delete_session)

    async def waiting(self, skip: Collection[str] = ()) -> list[RunRow]:
        """Return the jobs to drive next: the longest-waiting job of each owner, except the runs in `skip`.

        The oldest job comes first. If workers share the jobs, return no jobs. Otherwise, only the first process that
        calls this method gets jobs, until this process ends or closes the store. Other processes get no jobs.
        """

        def look(tx: sql.Tx) -> list[RunRow]:
            if not leases.take_jobs(tx, self._leases.holder):
                return []
            self._is_driving_jobs = True
            return run_rows.waiting(tx, skip)

        return [] if self.has_workers else await self.write(look)

    @contextlib.asynccontextmanager
    async def drive(self, run_id: str) -> AsyncGenerator[int]:
        """See `Store`. Yield how many holders of the lease have died since the run last made progress."""
        taken = self._leases.taken.pop((run_id, self.owner), None)
        if taken is None and self.owner is not None:
            await self.run(run_id)
        async with self._leases.hold(run_id, taken) as deaths:
            yield deaths

    async def release_paused(self, run_id: str) -> bool:
        """See `Store`."""
        return await self.write(lambda tx: run_rows.release_paused(tx, run_id, self._leases.holder))

    read_whole = reads(transfer.read)
    write_whole = writes(transfer.write)

    async def stats(self) -> StoreStats:
        """Return the counts of the store's content, and the store's size on the disk."""
        return await self.read(lambda tx: transfer.stats(tx, *self.whole.space(tx)))

    async def close(self) -> None:
        """See `Store`."""
        if self.owner is not None:
            return
        if self._leases.holds_any or self._is_driving_jobs:
            with contextlib.suppress(StoreError):
                await self.write(lambda tx: tx.execute(leases.GIVE_BACK_ALL, (self._leases.holder,)))
        await self.whole.close()
