"""Runs and sessions in a PostgreSQL database."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TypeVar

from ...records import Backup, Finding, OnProgress
from .. import sql
from ..checks import check_texts
from ..locks import RunLock, already_driven_error
from ..row_store import RowStore
from ..steady import Uptime, uptime
from ..verification import verify
from .address import read_address
from .connections import LONG_S, Connections

T = TypeVar("T")

UPTIME = """
SELECT extract(epoch FROM pg_postmaster_start_time())::text,
  (extract(epoch FROM clock_timestamp() - pg_postmaster_start_time()) * 1000)::bigint
"""


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
        self._driven = set[str]()
        self._connections = Connections(address)

    async def _read(self, work: Callable[[sql.Tx], T]) -> T:
        return await self._connections.read(work)

    async def _write(self, work: Callable[[sql.Tx], T]) -> T:
        return await self._connections.write(work)

    def _uptime(self, tx: sql.Tx) -> Uptime:
        # Stores on several computers count alike by the time of the database.
        return Uptime(*tx.rows(UPTIME)[0]) if self.uptime is uptime else self.uptime()

    def drive(self, run_id: str) -> AbstractAsyncContextManager[None]:
        """See `Store`."""
        check_texts(run_id)
        return RunLock(lambda: self._take(run_id))

    def _take(self, run_id: str) -> Callable[[], None]:
        if run_id in self._driven:
            raise already_driven_error(run_id, os.getpid())
        self._driven.add(run_id)
        return lambda: self._driven.discard(run_id)

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """See `Store`."""
        raise NotImplementedError

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """See `Store`."""
        raise NotImplementedError

    def verify(self) -> AsyncGenerator[Finding]:
        """See `Store`."""
        return verify(self.name, lambda work: self._connections.read(work, LONG_S))

    async def close(self) -> None:
        """See `Store`."""
        await self._connections.close()
