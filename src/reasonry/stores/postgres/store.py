"""Runs and sessions in a PostgreSQL database."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ...errors import StoreError
from ...records import Backup, Finding, OnProgress
from .. import lease_rows, sql
from ..leases import Living
from ..row_store import RowStore
from ..steady import Uptime, uptime
from ..verification import verify
from . import backup_files
from .address import read_address
from .connections import LONG_S, Connections
from .table_steps import TABLES

T = TypeVar("T")

UPTIME = """
SELECT extract(epoch FROM pg_postmaster_start_time())::text,
  (extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000)::bigint
"""

SIZE = """
SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
"""
CLOCK = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
UNCERTAIN = "SET LOCAL synchronous_commit TO off"
"""Of a transaction that need not outlive a crash of the server."""

IS_DEAD = "SELECT pg_try_advisory_xact_lock(hashtextextended(?, 0))"
"""Whether nobody has the lock that a holder of leases keeps while it lives."""


class PostgresStore(RowStore):
    """A store in a PostgreSQL database. It is connected to, and its tables are made if necessary, when first used.

    Args:
        url: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`; see `Address` for its parameters.
    """

    durable = True

    def __init__(self, url: str) -> None:
        super().__init__()
        address = read_address(url)
        self.name = address.name
        self.address = address
        self._connections = Connections(address)

    async def _read(self, work: Callable[[sql.Tx], T]) -> T:
        return await self._connections.read(work)

    async def _write(self, work: Callable[[sql.Tx], T]) -> T:
        return await self._connections.write(work)

    def _uptime(self, tx: sql.Tx) -> Uptime:
        # Stores on several computers count alike by the time of the database.
        return Uptime(*tx.rows(UPTIME)[0]) if self.uptime is uptime else self.uptime()

    def _space(self, tx: sql.Tx) -> tuple[int, int | None]:
        return tx.rows(SIZE)[0][0], None

    async def vacuum(self) -> None:
        """See `Store`; others go on reading and writing."""
        await self._connections.maintain([f"VACUUM (ANALYZE) {table}" for table in TABLES])

    def _lease_clock_ms(self, tx: sql.Tx) -> int:
        return tx.rows(CLOCK)[0][0]

    def _show_life(self, tx: sql.Tx) -> None:
        self._connections.show_life(self._leases.holder)

    def _find_living(self, tx: sql.Tx, run_id: str, holder: str | None) -> Living | None:
        if holder is None or tx.rows(IS_DEAD, (holder,))[0][0]:
            return None
        return Living(None)

    async def _write_passing(self, work: Callable[[sql.Tx], T]) -> T:
        def uncertain(tx: sql.Tx) -> T:
            tx.execute(UNCERTAIN)
            return work(tx)

        return await self._write(uncertain)

    async def _renew_leases(self, numbers: Mapping[str, int]) -> None:
        def work(tx: sql.Tx) -> None:
            self._show_life(tx)
            lease_rows.renew(tx, self._leases.holder, numbers, self._lease_clock_ms(tx))

        await self._write_passing(work)

    async def _give_back_lease(self, run_id: str) -> None:
        # One that is not given back ends by itself.
        with suppress(StoreError):
            await self._write_passing(lambda tx: lease_rows.give_back(tx, run_id, self._leases.holder))

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """See `Store`."""
        return await backup_files.back_up(self._connections, file, force, on_progress)

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """See `Store`."""
        up, now_ms = await self._read(lambda tx: (self._uptime(tx), self._lease_clock_ms(tx)))
        return await backup_files.restore(self.name, self._connections, file, up, now_ms, on_progress)

    def verify(self) -> AsyncGenerator[Finding]:
        """See `Store`."""
        return verify(self.name, lambda work: self._connections.read(work, LONG_S))

    async def close(self) -> None:
        """See `Store`."""
        await self._connections.close()
