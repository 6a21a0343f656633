"""Runs and sessions in a SQLite file, which several processes may share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import TypeVar

from ..errors import StoreError
from ..records import Backup, Finding, OnProgress
from . import backup, sql
from .database import Source, find_faults
from .readers import Readers
from .row_store import OneMachine, RowStore
from .verification import verify
from .writer import Writer

T = TypeVar("T")


class SqliteStore(RowStore):
    """A store in one SQLite file. It is opened, and created if necessary, when first used.

    Args:
        path: Where the file is, or will be created.
        busy_timeout_s: How long to wait for other processes before `store_busy`.
    """

    def __init__(self, path: Path | str, busy_timeout_s: float = 10.0) -> None:
        self.path = Path(path)
        super().__init__(SqliteDatabase(Source(self.path, busy_timeout_s), str(path)))


class SqliteDatabase(OneMachine):
    """Transactions on a SQLite file; see `Database`."""

    durable = True

    def __init__(self, source: Source, name: str) -> None:
        self.name = name
        self._source = source
        self._writer = Writer(source)
        self._readers = Readers(source)

    async def read(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`."""
        return await self._readers.do(work)

    async def write(self, work: Callable[[sql.Tx], T], *, certain: bool = True) -> T:
        """See `Database`."""
        return await self._writer.do(work)

    def space(self, tx: sql.Tx) -> tuple[int, int | None]:
        """See `Database`."""
        (free,), (page,) = tx.rows("PRAGMA freelist_count")[0], tx.rows("PRAGMA page_size")[0]
        return self._source.size_with_log(), free * page

    async def vacuum(self) -> None:
        """See `Store`."""
        if not await self._writer.rewrite():
            raise StoreError(
                f"what was deleted still takes space in {self.name} because another process is using it; do it again "
                "once that process is done",
                code="store_busy",
                path=self.name,
            )

    async def back_up(self, file: Path, force: bool, on_progress: OnProgress | None) -> Backup:
        """See `Store`."""
        return await backup.back_up(self._source, file, force, on_progress)

    async def restore(self, file: Path, on_progress: OnProgress | None) -> Backup:
        """See `Store`."""
        return await backup.restore(self._source.path, file, on_progress)

    async def verify(self) -> AsyncGenerator[Finding]:
        """See `Store`."""
        # SQLite checks its index of texts by what a connection has read of it before, which may be out of date.
        readers = Readers(self._source)
        try:
            async for finding in verify(self.name, readers.do, find_faults):
                yield finding
        finally:
            await readers.close()

    async def close(self) -> None:
        """See `Store`."""
        await self._readers.close()
        await self._writer.close()
