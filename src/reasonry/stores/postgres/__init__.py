"""Runs and sessions in a PostgreSQL database, which any number of processes and computers may share.

The work on rows is that of the SQLite store; what is different stands here: how a database is named and connected to,
which of its words differ, its jobs, and its index of texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...records import Whole, Written
from ..row_store import RowStore, reads
from . import jobs
from .address import read_address
from .provider_limits import ProviderLimits
from .transactions import LONG_S, PostgresDatabase


class PostgresStore(RowStore):
    """A store in a PostgreSQL database. It is connected to, and its tables are made if necessary, when first used.

    Args:
        url: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`; see `Address` for its parameters.
    """

    def __init__(self, url: str) -> None:
        self.address = read_address(url)
        self._postgres = PostgresDatabase(self.address)
        super().__init__(self._postgres)
        self.provider_limits = ProviderLimits(self)

    queue_status = reads(jobs.queue_status)
    workers = reads(jobs.workers)

    async def put_missing_jobs(self) -> int:
        """Have all unattended runs wait for a worker that have no job; return how many those are."""
        return await self._postgres.write(jobs.put_missing, LONG_S)

    async def write_whole(self, wholes: Sequence[Whole]) -> list[Written]:
        """See `Store`; the runs among them that have to be driven wait for a worker."""
        written = await super().write_whole(wholes)
        await self.put_missing_jobs()
        return written
