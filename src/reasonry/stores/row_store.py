"""The one store: the checks of what comes in, and the work on rows in the transactions of a database."""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar, Unpack

from ..errors import StoreError, UsageError
from ..records import (
    Backup,
    Checkpoint,
    Damaged,
    Finding,
    Found,
    JobOptions,
    JobStanding,
    Line,
    OnProgress,
    RequestKey,
    RunFilters,
    RunRow,
    SessionFilters,
    SessionRow,
    ShareDecision,
    StoreStats,
    Sweep,
    ThoughtRow,
    UsageGroup,
    UsageTotal,
    Use,
    Whole,
    WholeKind,
    Written,
)
from . import job_rows, lease_rows, runs, session_rows, shared_rows, sql, whole_rows
from .checks import check_filters, check_key, check_limit, check_row, check_seqs, check_texts, check_thoughts
from .leases import Leases, TakenLease
from .session_rows import Decide
from .whole import check_whole

T = TypeVar("T")


class Database(Protocol):
    """Runs transactions: the part of a store that differs from one database to the other.

    Attributes:
        name: As written after `--store`.
        durable: Whether acknowledged writes outlive the process.
        has_workers: Whether any number of workers share the jobs.
    """

    name: str
    durable: bool
    has_workers: bool

    async def read(self, work: Callable[[sql.Tx], T]) -> T:
        """Do work in a transaction that sees one state of the store."""
        ...

    async def write(self, work: Callable[[sql.Tx], T], *, certain: bool = True) -> T:
        """Do work in a transaction that no other writer comes into; return when it is durable.

        Args:
            certain: Whether the work must outlive a crash of the database.
        """
        ...

    def put_job(self, tx: sql.Tx, row: RunRow, job: JobOptions) -> None:
        """Have a run wait for a worker, where workers share the jobs."""
        ...

    def now_ms(self, tx: sql.Tx) -> int:
        """Return the time as leases count it: the same for all processes that share the store."""
        ...

    def space(self, tx: sql.Tx) -> tuple[int, int | None]:
        """Return how many bytes all takes on the disk, and how many of them are empty, if that is known."""
        ...

    def verify(self) -> AsyncGenerator[Finding]:
        """See `Store`."""
        ...

    async def vacuum(self) -> None:
        """See `Store`."""
        ...

    async def back_up(self, file: Path, force: bool, on_progress: OnProgress | None) -> Backup:
        """See `Store`."""
        ...

    async def restore(self, file: Path, on_progress: OnProgress | None) -> Backup:
        """See `Store`."""
        ...

    async def close(self) -> None:
        """Finish what was begun, then release all resources."""
        ...


class OneMachine:
    """The part of a `Database` that no workers and no other machine share."""

    has_workers = False

    def put_job(self, tx: sql.Tx, row: RunRow, job: JobOptions) -> None:
        """See `Database`; the process that drives the jobs looks for them."""

    def now_ms(self, tx: sql.Tx) -> int:
        """See `Database`."""
        return time.time_ns() // 1_000_000


class RowStore:
    """A store whose methods are transactions over rows.

    Args:
        database: Runs the transactions.

    Attributes:
        owner: The owner whose runs and sessions alone exist here; None: the operator, for whom all exist.
    """

    def __init__(self, database: Database) -> None:
        self.name, self.durable = database.name, database.durable
        self.has_workers = database.has_workers
        self.owner: str | None = None
        self._database = database
        self._is_driving_jobs = False
        self._leases = Leases(self._take_lease, self._renew_leases, self._give_back_lease)

    def of_owner(self, owner: str) -> RowStore:
        """Return this store as one owner sees it; whoever opened this one closes it."""
        scoped = copy.copy(self)
        scoped.owner = owner
        return scoped

    async def _read(self, work: Callable[[sql.Tx], T]) -> T:
        return await self._database.read(self._as_owner(work))

    async def _write(self, work: Callable[[sql.Tx], T], *, certain: bool = True) -> T:
        return await self._database.write(self._as_owner(work), certain=certain)

    def _as_owner(self, work: Callable[[sql.Tx], T]) -> Callable[[sql.Tx], T]:
        if self.owner is None:
            return work

        def as_owner(tx: sql.Tx) -> T:
            before, tx.owner = tx.owner, self.owner
            try:
                return work(tx)
            finally:
                tx.owner = before

        return as_owner

    def _among_own(self, owner: str | None) -> tuple[bool, str | None]:
        """Return whether nothing of the owner that is asked for exists here, and whose things are meant."""
        return (False, owner) if self.owner is None else (owner not in (None, self.owner), self.owner)

    def _check_operator(self, done: str) -> None:
        if self.owner is not None:
            raise UsageError(
                f"a store that several people use is {done} by its operator: with `reasonry store`"
            )

    async def _take_lease(self, run_id: str) -> TakenLease:
        return await self._write(lambda tx: self._lease_taken(tx, run_id))

    def _lease_taken(self, tx: sql.Tx, run_id: str) -> TakenLease:
        key, now_ms = runs.key_of(tx, run_id), self._database.now_ms(tx)
        return lease_rows.take(tx, key, run_id, self._leases.holder, now_ms)

    async def _renew_leases(self, numbers: Mapping[str, int]) -> None:
        await self._write(
            lambda tx: lease_rows.renew(tx, self._leases.holder, numbers, self._database.now_ms(tx)),
            certain=False,
        )

    async def _give_back_lease(self, run_id: str) -> None:
        # A lease that is not given back ends by itself.
        with contextlib.suppress(StoreError):
            await self._write(lambda tx: lease_rows.give_back(tx, run_id, self._leases.holder), certain=False)

    async def create_run(
        self,
        row: RunRow,
        lines: Sequence[Line],
        session: SessionRow | None = None,
        key: RequestKey | None = None,
        *,
        drive: bool = False,
        job: JobOptions | None = None,
    ) -> str:
        """See `Store`."""
        check_row(row)
        check_seqs(lines)
        check_key(key)
        if session is not None:
            check_row(session)

        def work(tx: sql.Tx) -> tuple[str, TakenLease | None]:
            run_id = runs.create_run(tx, row, lines, key)
            if run_id != row.run_id:
                return run_id, None
            if session is not None:
                session_rows.import_session(tx, session, ())
            if job is not None:
                self._database.put_job(tx, runs.run(tx, run_id), job)
            return run_id, self._lease_taken(tx, run_id) if drive else None

        run_id, taken = await self._write(work)
        if taken is not None:
            self._leases.note_taken(run_id, taken)
        return run_id

    async def run_begun_with(self, key: RequestKey, owner: str = "") -> str | None:
        """See `Store`."""
        check_key(key)
        check_texts(owner)
        mine = owner if self.owner is None else self.owner
        return await self._read(lambda tx: runs.begun_with(tx, mine, key))

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
        check_texts(run_id)
        check_seqs(lines)
        for record in (row, use):
            if record is not None:
                check_row(record)
        lease = self._leases.lease_of(run_id)
        is_over = job is not None or (row is not None and row.status != "active")

        def work(tx: sql.Tx) -> None:
            runs.append(tx, run_id, lines, row, use, lease)
            if job is not None:
                self._database.put_job(tx, runs.run(tx, run_id), job)
            if lease is not None and is_over:
                lease_rows.give_back(tx, run_id, lease.holder)

        await self._write(work)
        if lease is not None and is_over:
            self._leases.note_end(run_id, lease)

    async def run(self, run_id: str) -> RunRow:
        """See `Store`."""
        check_texts(run_id)
        return await self._read(lambda tx: runs.run(tx, run_id))

    async def lines(self, run_id: str, after: int = 0) -> list[Line]:
        """See `Store`."""
        check_texts(run_id)
        return await self._read(lambda tx: runs.lines(tx, run_id, after))

    async def tail(self, run_id: str) -> tuple[Checkpoint | None, list[Line]]:
        """See `Store`."""
        check_texts(run_id)
        return await self._read(lambda tx: runs.tail(tx, run_id))

    async def keep(self, run_id: str, checkpoint: Checkpoint) -> None:
        """See `Store`."""
        check_texts(run_id)
        lease = self._leases.lease_of(run_id)
        await self._write(lambda tx: runs.keep(tx, run_id, checkpoint, lease))

    async def runs(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[RunFilters]
    ) -> list[RunRow]:
        """See `Store`. Raises NotFoundError if there is no run `before`."""
        check_texts(before)
        check_filters(which)
        size = check_limit(limit)
        is_none, which["owner"] = self._among_own(which.get("owner"))
        return [] if is_none else await self._read(lambda tx: runs.runs(tx, which, size, before))

    async def run_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        check_texts(prefix, owner)
        size = check_limit(limit)
        is_none, owner = self._among_own(owner)
        return [] if is_none else await self._read(lambda tx: sql.ids_from(tx, "run", prefix, size, owner))

    async def usage_since(self, since_ms: int, owner: str | None = None) -> UsageTotal:
        """See `Store`."""
        check_texts(owner)
        is_none, owner = self._among_own(owner)
        found = [] if is_none else await self._read(lambda tx: runs.usage(tx, None, since_ms, owner))
        return found[0] if found else UsageTotal()

    async def usage_by(self, group: UsageGroup, since_ms: int, owner: str | None = None) -> list[UsageTotal]:
        """See `Store`."""
        check_texts(owner)
        is_none, owner = self._among_own(owner)
        return [] if is_none else await self._read(lambda tx: runs.usage(tx, group, since_ms, owner))

    async def change(self, session_id: str, decide: Decide) -> Any:
        """See `Store`. Raises ConflictError if a new session or thought is there already."""
        check_texts(session_id)
        return await self._write(lambda tx: session_rows.change(tx, session_id, decide))

    async def session(self, session_id: str) -> SessionRow:
        """See `Store`."""
        check_texts(session_id)
        return await self._read(lambda tx: session_rows.session(tx, session_id))

    async def sessions(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
    ) -> list[SessionRow]:
        """See `Store`. Raises NotFoundError if there is no session `before`."""
        check_texts(before)
        check_filters(which)
        size = check_limit(limit)
        is_none, which["owner"] = self._among_own(which.get("owner"))
        return [] if is_none else await self._read(lambda tx: session_rows.sessions(tx, which, size, before))

    async def session_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        check_texts(prefix, owner)
        size = check_limit(limit)
        is_none, owner = self._among_own(owner)
        return (
            [] if is_none else await self._read(lambda tx: sql.ids_from(tx, "session", prefix, size, owner))
        )

    async def thoughts(
        self,
        session_id: str,
        *,
        first: int | None = None,
        last: int | None = None,
        branch: str | None = None,
        after_seq: int = 0,
        limit: int = 50,
    ) -> list[ThoughtRow]:
        """See `Store`. Raises NotFoundError if there is no such session."""
        check_texts(session_id, branch)
        size = check_limit(limit)
        return await self._read(
            lambda tx: session_rows.thoughts(tx, session_id, (first, last), branch, after_seq, size)
        )

    async def search_thoughts(
        self,
        query: str,
        *,
        session_id: str | None = None,
        owner: str | None = None,
        after: int = 0,
        limit: int = 50,
    ) -> list[Found]:
        """See `Store`. Raises NotFoundError if there is no such session."""
        check_texts(query, session_id, owner)
        size = check_limit(limit)
        is_none, owner = self._among_own(owner)
        if is_none:
            return []
        return await self._read(
            lambda tx: session_rows.search_thoughts(tx, query, session_id, owner, after, size)
        )

    async def import_session(self, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        check_row(row)
        check_thoughts(thoughts)
        await self._write(lambda tx: session_rows.import_session(tx, row, thoughts))

    async def keep_thoughts(self, session_id: str, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        check_texts(session_id)
        check_thoughts(thoughts)
        await self._write(lambda tx: session_rows.keep_thoughts(tx, session_id, thoughts))

    async def sweep_sessions(self, sweep: Sweep) -> None:
        """See `Store`."""
        await self._write(lambda tx: session_rows.sweep(tx, sweep))

    async def share(self, name: str, decide: ShareDecision[T]) -> T:
        """See `Store`."""
        check_texts(name)
        return await self._write(
            lambda tx: shared_rows.change(tx, name, decide, self._database.now_ms), certain=False
        )

    async def waiting(self, skip: Collection[str] = ()) -> list[RunRow]:
        """See `Store`."""
        check_texts(*skip)

        def look(tx: sql.Tx) -> list[RunRow]:
            now_ms = self._database.now_ms(tx)
            if not lease_rows.take_jobs(tx, self._leases.holder, now_ms):
                return []
            self._is_driving_jobs = True
            return [row for row in runs.waiting(tx, skip, now_ms) if self.owner in (None, row.owner)]

        return [] if self.has_workers else await self._write(look)

    async def job_standing(self) -> JobStanding:
        """See `Store`."""
        return await self._read(lambda tx: job_rows.standing(tx, self._database.now_ms(tx)))

    async def count_deaths(self, run_id: str, place: int) -> int:
        """See `Store`. Raises NotFoundError if there is no such run."""
        check_texts(run_id)
        return await self._write(lambda tx: lease_rows.count_deaths(tx, runs.key_of(tx, run_id), place))

    def drive(self, run_id: str) -> AbstractAsyncContextManager[int]:
        """See `Store`."""
        check_texts(run_id)
        return self._drive(run_id)

    @contextlib.asynccontextmanager
    async def _drive(self, run_id: str) -> AsyncGenerator[int]:
        if self.owner is not None:
            await self._read(lambda tx: runs.key_of(tx, run_id))
        async with self._leases.hold(run_id) as deaths:
            yield deaths

    async def find_driven(self, run_ids: Collection[str]) -> set[str]:
        """See `Store`."""
        check_texts(*run_ids)

        def look(tx: sql.Tx) -> set[str]:
            for run_id in run_ids if tx.owner is not None else ():
                runs.key_of(tx, run_id)
            now_ms = self._database.now_ms(tx)
            return {run_id for run_id in run_ids if lease_rows.is_held(tx, run_id, now_ms)}

        return await self._read(look)

    async def delete_run(self, run_id: str) -> None:
        """See `Store`. Raises NotFoundError if there is no such run."""
        check_texts(run_id)
        await self._write(lambda tx: runs.delete_run(tx, run_id))

    async def delete_session(self, session_id: str) -> None:
        """See `Store`."""
        check_texts(session_id)
        await self._write(lambda tx: session_rows.delete_session(tx, session_id))

    async def read_whole(
        self, kind: WholeKind, after: int = 0, limit: int = 20, owner: str | None = None
    ) -> list[tuple[int, Whole | Damaged]]:
        """See `Store`."""
        check_texts(owner)
        size = check_limit(limit)
        self._check_operator("copied")
        return await self._read(lambda tx: whole_rows.read(tx, kind, after, size, owner))

    async def write_whole(self, wholes: Sequence[Whole]) -> list[Written]:
        """See `Store`."""
        self._check_operator("copied")
        for whole in wholes:
            check_whole(whole)

        def work(tx: sql.Tx) -> list[Written]:
            return [whole_rows.write(tx, whole) for whole in wholes]

        return await self._write(work)

    async def stats(self) -> StoreStats:
        """See `Store`."""
        self._check_operator("measured")
        return await self._read(lambda tx: whole_rows.stats(tx, *self._database.space(tx)))

    def verify(self) -> AsyncGenerator[Finding]:
        """See `Store`."""
        self._check_operator("verified")
        return self._database.verify()

    async def vacuum(self) -> None:
        """See `Store`."""
        self._check_operator("rewritten")
        await self._database.vacuum()

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """See `Store`."""
        self._check_operator("copied")
        return await self._database.back_up(file, force, on_progress)

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """See `Store`."""
        self._check_operator("replaced")
        return await self._database.restore(file, on_progress)

    async def close(self) -> None:
        """See `Store`."""
        if self.owner is not None:
            return
        if self._leases.holds_any or self._is_driving_jobs:
            with contextlib.suppress(StoreError):
                await self._write(lambda tx: lease_rows.give_back_all(tx, self._leases.holder))
        await self._database.close()
