"""A store in a PostgreSQL database, which any number of processes and computers can share.

The code that reads and writes rows is the same as for the SQLite store. This package has only the differences, which
are the address, the connections, the SQL dialect, the jobs, and the text index.
"""

from collections.abc import Sequence

from ...records import Whole, Written
from ..row_store import RowStore, reads
from . import jobs
from .address import read_address
from .provider_limits import ProviderLimits
from .transactions import LONG_S, PostgresDatabase


class PostgresStore(RowStore):
    """A store in a PostgreSQL database. At first use, the store connects to the database and creates missing tables.

    Args:
        url: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE`; see `Address` for the parameters of the URL.
    """

    def __init__(self, url: str) -> None:
        self.address = read_address(url)
        self._postgres = PostgresDatabase(self.address)
        super().__init__(self._postgres)
        self.provider_limits = ProviderLimits(self)

    queue_status = reads(jobs.queue_status)
    workers = reads(jobs.workers)

    async def put_missing_jobs(self) -> int:
        """Queue every unattended run that has no job, and return how many runs were queued."""
        return await self._postgres.write(jobs.put_missing, LONG_S)

    async def write_whole(self, wholes: Sequence[Whole]) -> list[Written]:
        """Write runs and sessions; see `transfer.write`. Then queue every unattended run that has no job."""
        written = await super().write_whole(wholes)
        await self.put_missing_jobs()
        return written
