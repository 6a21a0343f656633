"""The one store: the work on rows in the transactions of a database."""

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
from . import leases, run_rows, session_rows, sql, whole_rows
from .leases import Lease, Leases

if TYPE_CHECKING:
    from types import CoroutineType

T = TypeVar("T")
P = ParamSpec("P")
Work = Callable[[sql.Tx], T]


class Database(Protocol):
    """Runs transactions: the part of a store that differs from one database to the other.

    What is not overridden is so where there is no file.

    Attributes:
        name: As written after `--store`.
        durable: Whether acknowledged writes outlive the process.
        has_workers: Whether any number of workers share the jobs; else the process that drives them looks for them.
        answered_s: When the database last did something for a caller, by the monotonic clock.
    """

    name: str
    durable: bool
    has_workers: bool = False
    answered_s: float = 0.0

    async def read(self, work: Work[T]) -> T:
        """Do work in a transaction that sees one state of the store."""
        ...

    async def write(self, work: Work[T]) -> T:
        """Do work in a transaction that no other writer comes into; return when it is durable."""
        ...

    def put_job(self, tx: sql.Tx, row: RunRow, job: JobOptions) -> None:
        """Have a run wait for a worker, where workers share the jobs."""

    def space(self, tx: sql.Tx) -> tuple[int, int | None]:
        """Return how many bytes all takes on the disk, and how many of them are empty, if that is known."""
        return 0, 0

    async def verify(self) -> AsyncGenerator[Finding]:
        """See `RowStore`."""
        yield Finding("file", self.name)

    async def vacuum(self) -> None:
        """See `RowStore`."""

    async def back_up(self, file: Path, force: bool, on_progress: OnProgress | None) -> Backup:
        """See `RowStore`."""
        raise _kept_nowhere()

    async def restore(self, file: Path, on_progress: OnProgress | None) -> Backup:
        """See `RowStore`."""
        raise _kept_nowhere()

    async def close(self) -> None:
        """Finish what was begun, then release all resources."""
        ...


def _kept_nowhere() -> UsageError:
    return UsageError("the store in memory has no file; give --store a path", option="store")


def reads(
    work: Callable[Concatenate[sql.Tx, P], T],
) -> Callable[Concatenate[RowStore, P], CoroutineType[Any, Any, T]]:
    """Return the method of `Store` that does work in a transaction that only reads."""

    async def method(self: RowStore, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.read(lambda tx: work(tx, *args, **kwargs))

    return method


def writes(
    work: Callable[Concatenate[sql.Tx, P], T],
) -> Callable[Concatenate[RowStore, P], CoroutineType[Any, Any, T]]:
    """Return the method of `Store` that does work in a transaction that writes."""

    async def method(self: RowStore, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self.write(lambda tx: work(tx, *args, **kwargs))

    return method


class RowStore:
    """A store whose methods are transactions over rows: a `Store`, and what servers and operators need besides.

    Attributes:
        has_workers: Whether any number of workers share its jobs; else one process drives them, see `waiting`.
        owner: The owner whose runs and sessions alone exist here; None: the operator, for whom all exist.
    """

    def __init__(self, database: Database) -> None:
        self.name, self.durable = database.name, database.durable
        self.has_workers = database.has_workers
        self.owner: str | None = None
        self._database = database
        self._is_driving_jobs = False
        self._leases = Leases(lambda run_id: self.write(lambda tx: self._lease_taken(tx, run_id)), self.write)

    def of_owner(self, owner: str) -> RowStore:
        """Return this store as one owner sees it, for whom nothing of another exists; only this one is closed."""
        scoped = copy.copy(self)
        scoped.owner = owner
        return scoped

    async def read(self, work: Work[T]) -> T:
        """Do work in a transaction that sees one state of the store, as the owner."""
        return await self._database.read(self._own(work))

    async def write(self, work: Work[T]) -> T:
        """Do work in a transaction that no other writer comes into, as the owner; see `Database`."""
        return await self._database.write(self._own(work))

    @property
    def answered_s(self) -> float:
        """When it last got somewhere with what it was asked, by the monotonic clock: it works, however slowly."""
        return self._database.answered_s

    def _own(self, work: Work[T]) -> Work[T]:
        """Return work as it is done for the owner; no database takes some texts and numbers."""

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
                self._database.put_job(tx, run_rows.run(tx, run_id), job)
            return run_id, self._lease_taken(tx, run_id) if drive else None

        run_id, taken = await self.write(work)
        if taken is not None:
            self._leases.note_taken(run_id, taken)
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
        """See `Store`. Raises NotFoundError if there is no such run."""
        lease = self._leases.lease_of(run_id)
        is_over = job is not None or (row is not None and row.status != "active")

        def work(tx: sql.Tx) -> None:
            run_rows.append(tx, run_id, lines, row, use, lease)
            if job is not None:
                self._database.put_job(tx, run_rows.run(tx, run_id), job)
            if lease is not None and is_over:
                leases.give_back(tx, run_id, lease.holder)

        await self.write(work)
        if lease is not None and is_over:
            self._leases.note_end(run_id, lease)

    async def keep(self, run_id: str, checkpoint: Line) -> None:
        """See `Store`."""
        lease = self._leases.lease_of(run_id)
        await self.write(lambda tx: run_rows.keep(tx, run_id, checkpoint, lease))

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
        """Return the job of each owner that has waited longest, and that nobody drives, the oldest first.

        Where no workers share the store, one process at a time drives its jobs: the first that asks this, until it
        ends or closes the store. The others have nothing to do.

        Args:
            skip: Runs that are left out.
        """

        def look(tx: sql.Tx) -> list[RunRow]:
            if not leases.take_jobs(tx, self._leases.holder):
                return []
            self._is_driving_jobs = True
            return run_rows.waiting(tx, skip)

        return [] if self.has_workers else await self.write(look)

    @contextlib.asynccontextmanager
    async def drive(self, run_id: str) -> AsyncGenerator[int]:
        """See `Store`; gives how many holders have died with the lease."""
        if self.owner is not None:
            await self.run(run_id)
        async with self._leases.hold(run_id) as deaths:
            yield deaths

    async def let_go(self, run_id: str) -> bool:
        """See `Store`."""
        return await self.write(lambda tx: run_rows.let_go(tx, run_id, self._leases.holder))

    read_whole = reads(whole_rows.read)
    write_whole = writes(whole_rows.write)

    async def stats(self) -> StoreStats:
        """Return how much is kept."""
        return await self.read(lambda tx: whole_rows.stats(tx, *self._database.space(tx)))

    def verify(self) -> AsyncGenerator[Finding]:
        """Verify everything that is kept, changing nothing; first the file, then each run and session.

        Each is checked in a transaction of its own, so that others can continue writing.
        """
        return self._whole.verify()

    async def vacuum(self) -> None:
        """Give the space of what was deleted back to the disk.

        Raises:
            StoreError: `store_busy | store_full`: it cannot be done now; nothing is lost.
        """
        await self._whole.vacuum()

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """Copy a snapshot of everything to a file; others can continue reading and writing.

        Args:
            force: Overwrite an existing file.

        Raises:
            ConflictError: The file exists.
            StoreError: `store_corrupt`: something in the store is damaged, and no backup was made.
        """
        return await self._whole.back_up(file, force, on_progress)

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """Replace everything that is kept by a backup. After an error the store is unchanged.

        Raises:
            UsageError: There is no such file.
            StoreError: `store_corrupt | store_newer`: the file is not an undamaged store that this version can use;
                `store_busy`: someone has the store open.
        """
        return await self._whole.restore(file, on_progress)

    @property
    def _whole(self) -> Database:
        """The database, for what only the operator may do."""
        sql.check_operator(self.owner)
        return self._database

    async def close(self) -> None:
        """See `Store`."""
        if self.owner is not None:
            return
        if self._leases.holds_any or self._is_driving_jobs:
            with contextlib.suppress(StoreError):
                await self.write(lambda tx: tx.execute(leases.GIVE_BACK_ALL, (self._leases.holder,)))
        await self._database.close()
