"""Runs and sessions in a PostgreSQL database, which any number of processes and computers may share.

The work on rows is that of the SQLite store; what is different stands here: how a database is named and connected to,
which of its words differ, its jobs, and its index of texts.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ...errors import StoreError, UsageError
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
from ..whole_rows import verify
from . import jobs
from .address import read_address
from .connections import LONG_S, Connections

T = TypeVar("T")

SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""
TABLES = "run, line, checkpoint, lease, request_key, session, thought, searchable"


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

    async def write(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`."""
        return await self._connections.write(work)

    def put_job(self, tx: sql.Tx, row: RunRow, job: JobOptions) -> None:
        """See `Database`."""
        jobs.put(tx, row.run_id, row.owner, job)

    def space(self, tx: sql.Tx) -> tuple[int, int | None]:
        """See `Database`."""
        return tx.rows(SIZE)[0][0], None

    async def vacuum(self) -> None:
        """See `Store`; others continue reading and writing."""
        await self._connections.maintain(f"VACUUM (ANALYZE) {TABLES}")

    def verify(self) -> AsyncGenerator[Finding]:
        """See `Store`; the server checks its pages by itself."""
        return verify(self.name, lambda work: self._connections.read(work, LONG_S), lambda tx: [])

    async def back_up(self, file: Path, force: bool, on_progress: OnProgress | None) -> Backup:
        """Copy the store to a SQLite store; see `Store`. Each run and session is copied as it is in one moment."""
        with tempfile.TemporaryDirectory(prefix="reasonry-") as folder:
            copy = SqliteStore(Path(folder) / "copy.db")
            try:
                report = await copy_rows(RowStore(self), copy, on_progress=on_progress)
                if report.damage:
                    message = f"no backup was made: {'; '.join(report.damage)[:500]}"
                    raise StoreError(message, code="store_corrupt")
                return await copy.back_up(file, force=force)
            finally:
                await copy.close()

    async def restore(self, file: Path, on_progress: OnProgress | None) -> Backup:
        """See `Store`. Raises UsageError: what is in a database is not replaced."""
        raise UsageError(
            "a backup is put into PostgreSQL by `reasonry store copy FILE URL`; name an empty database, or another "
            "schema of this one with ?reasonry_schema=NAME"
        )

    async def close(self) -> None:
        """See `Store`."""
        await self._connections.close()
