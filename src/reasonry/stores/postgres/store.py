"""Runs and sessions in a PostgreSQL database."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ...errors import StoreError
from ...records import (
    Backup,
    Finding,
    JobOptions,
    JobStanding,
    OnProgress,
    RunRow,
    Whole,
    Written,
)
from .. import sql
from ..copy import copy_rows
from ..row_store import Database, RowStore
from ..sqlite import SqliteStore
from ..verification import verify
from . import jobs
from .address import read_address
from .connections import LONG_S, Connections

T = TypeVar("T")

SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""
TABLES = "run, line, checkpoint, lease, request_key, session, thought, searchable, shared"
HELD = "SELECT count(*) FROM lease WHERE holder IS NOT NULL AND until_ms > $1"


class PostgresStore(RowStore):
    """A store in a PostgreSQL database. It is connected to, and its tables are made if necessary, when first used.

    Args:
        url: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`; see `Address` for its parameters.
    """

    def __init__(self, url: str) -> None:
        self.address = read_address(url)
        self._connections = Connections(self.address)
        super().__init__(PostgresDatabase(self._connections, self.address.name))

    async def job_standing(self) -> JobStanding:
        """See `Store`."""
        return await self.read(jobs.standing)

    async def workers(self) -> list[jobs.WorkerStanding]:
        """Return the workers that are alive."""
        return await self.read(jobs.workers)

    async def put_missing_jobs(self) -> int:
        """Have all unattended runs wait for a worker that have no job; return how many those are."""
        return await self._connections.write(jobs.put_missing, LONG_S)

    async def write_whole(self, wholes: Sequence[Whole]) -> list[Written]:
        """See `Store`; the runs among them that have to be driven wait for a worker."""
        written = await super().write_whole(wholes)
        await self.put_missing_jobs()
        return written


class PostgresDatabase(Database):
    """Transactions on a PostgreSQL database; see `Database`."""

    durable = True
    has_workers = True

    def __init__(self, connections: Connections, name: str) -> None:
        self.name = name
        self._connections = connections

    async def read(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`."""
        return await self._connections.read(work)

    async def write(self, work: Callable[[sql.Tx], T], *, certain: bool = True) -> T:
        """See `Database`."""
        return await self._connections.write(work, certain=certain)

    def put_job(self, tx: sql.Tx, row: RunRow, job: JobOptions) -> None:
        """See `Database`."""
        jobs.put(tx, row.run_id, row.owner, job)

    def space(self, tx: sql.Tx) -> tuple[int, int | None]:
        """See `Database`."""
        return tx.rows(SIZE)[0][0], None

    async def vacuum(self) -> None:
        """See `Store`; others go on reading and writing."""
        await self._connections.maintain(f"VACUUM (ANALYZE) {TABLES}")

    def verify(self) -> AsyncGenerator[Finding]:
        """See `Store`; the server checks its pages by itself."""
        return verify(self.name, lambda work: self._connections.read(work, LONG_S), lambda tx: [])

    async def back_up(self, file: Path, force: bool, on_progress: OnProgress | None) -> Backup:
        """Copy the store to a SQLite store, from which either kind is restored; see `Store`."""
        with tempfile.TemporaryDirectory(prefix="reasonry-") as folder:
            copy = SqliteStore(Path(folder) / "copy.db")

            def work(tx: sql.Tx) -> None:
                asyncio.run(_copy_all(self._within(tx), copy, on_progress))

            try:
                await self._connections.read(work, LONG_S)
                return await copy.back_up(file, force=force)
            finally:
                await copy.close()

    async def restore(self, file: Path, on_progress: OnProgress | None) -> Backup:
        """See `Store`."""

        def work(tx: sql.Tx) -> None:
            if tx.rows(HELD, (tx.now_ms(),))[0][0]:
                raise StoreError(
                    f"the store {self.name} is in use: its runs are being driven; end the processes that drive them",
                    code="store_busy",
                )
            tx.execute(f"LOCK TABLE {TABLES} IN ACCESS EXCLUSIVE MODE NOWAIT")
            tx.execute(f"TRUNCATE {TABLES}")
            tx.execute("DELETE FROM procrastinate_jobs")
            asyncio.run(_copy_all(copy, self._within(tx)))
            jobs.put_missing(tx)

        with tempfile.TemporaryDirectory(prefix="reasonry-") as folder:
            copy = SqliteStore(Path(folder) / "copy.db")
            try:
                backup = await copy.restore(file, on_progress=on_progress)
                await self._connections.write(work, LONG_S)
                return backup
            finally:
                await copy.close()

    def _within(self, tx: sql.Tx) -> RowStore:
        return RowStore(_OpenTransaction(tx, self._connections, self.name))

    async def close(self) -> None:
        """See `Store`."""
        await self._connections.close()


class _OpenTransaction(PostgresDatabase):
    """Does everything in a transaction that is open."""

    def __init__(self, tx: sql.Tx, connections: Connections, name: str) -> None:
        super().__init__(connections, name)
        self._tx = tx

    async def read(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`."""
        return work(self._tx)

    async def write(self, work: Callable[[sql.Tx], T], *, certain: bool = True) -> T:
        """See `Database`."""
        return work(self._tx)


async def _copy_all(source: RowStore, target: RowStore, on_progress: OnProgress | None = None) -> None:
    report = await copy_rows(source, target, on_progress=on_progress)
    if report.damage:
        raise StoreError(f"nothing was copied: {'; '.join(report.damage)[:500]}", code="store_corrupt")
