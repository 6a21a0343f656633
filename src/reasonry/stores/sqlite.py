"""Runs and sessions in a SQLite file, which several processes may share."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from ..errors import StoreError
from ..records import Backup, Finding, OnProgress
from . import backup, lease_rows, sql, text_index
from .database import Source
from .leases import Living
from .locks import LockFolder, name_in_0_1
from .readers import Readers
from .row_store import RowStore
from .verification import verify
from .writer import Writer

T = TypeVar("T")

INDEXING_S = 0.5
"""How long a search goes on indexing what an earlier version has written."""


class SqliteStore(RowStore):
    """A store in one SQLite file. It is opened, and created if necessary, when first used.

    Args:
        path: Where the file is, or will be created.
        busy_timeout_s: How long to wait for other processes before `store_busy`.
    """

    durable = True

    def __init__(self, path: Path | str, busy_timeout_s: float = 10.0) -> None:
        super().__init__()
        self.path = Path(path)
        self.name = str(path)
        source = Source(self.path, busy_timeout_s, reserve=True)
        self._source = source
        self._writer = Writer(source)
        self._readers = Readers(source)
        self._locks = LockFolder(self.path.with_name(self.path.name + ".locks"), source.give_up_reserve)
        self._unlock: Callable[[], None] | None = None

    async def _read(self, work: Callable[[sql.Tx], T]) -> T:
        return await self._readers.do(work)

    async def _write(self, work: Callable[[sql.Tx], T]) -> T:
        """Do work in a transaction, and in the same one some of the indexing that has come together."""

        def with_index(tx: sql.Tx) -> T:
            value = work(tx)
            text_index.catch_up(tx)
            return value

        return await self._writer.do(with_index)

    async def _delete(self, work: Callable[[sql.Tx], None], *, erase: bool = True) -> None:
        """Do work that deletes.

        Raises:
            StoreError: `store_busy`: it is deleted, but another process keeps its bytes in the log.
        """
        await self._writer.do(work, deletes=True)
        if erase:
            await self._erase()

    async def _take_lease(self, run_id: str) -> int:
        # A run can be driven in order to be deleted on a full disk.
        return await self._writer.do(lambda tx: self._lease_taken(tx, run_id), deletes=True)

    async def _give_back_lease(self, run_id: str) -> None:
        # Of a store that is closed they are free already.
        with suppress(StoreError):
            self._writer.post(lambda tx: lease_rows.give_back(tx, run_id, self._leases.holder))

    def _show_life(self, tx: sql.Tx) -> None:
        if self._unlock is None:
            self._unlock = self._locks.take(self._leases.holder)

    def _find_living(self, tx: sql.Tx, run_id: str, holder: str | None) -> Living | None:
        names = name_in_0_1(run_id), holder
        return next(filter(None, (self._locks.find_living(name) for name in names if name)), None)

    def _space(self, tx: sql.Tx) -> tuple[int, int | None]:
        (free,), (page,) = tx.rows("PRAGMA freelist_count")[0], tx.rows("PRAGMA page_size")[0]
        return self._source.size_with_log(), free * page

    async def vacuum(self) -> None:
        """See `Store`."""
        while await self._readers.do(text_index.queue_size):
            await self._writer.do(text_index.put_piece)
        await self._writer.erase()
        if self._writer.erasure_pending:
            raise self._not_rewritten_error("what was deleted still takes space", "do it again")

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """See `Store`."""
        return await backup.back_up(self._source, file, force, on_progress)

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """See `Store`."""
        return await backup.restore(self.path, file, on_progress)

    def verify(self) -> AsyncGenerator[Finding]:
        """See `Store`."""
        return verify(self.name, self._readers.do)

    async def close(self) -> None:
        """See `Store`."""
        await self._readers.close()
        await self._writer.close()
        unlock, self._unlock = self._unlock, None
        if unlock is not None:
            unlock()

    async def _prepare_search(self) -> None:
        """Put into the index what a search would have to read, for a moment at most; much is left of an old store."""
        until = time.monotonic() + INDEXING_S
        while time.monotonic() < until:
            if await self._readers.do(text_index.queue_size) < 2 * text_index.PIECE:
                return
            await self._writer.do(text_index.put_piece)

    async def _erase(self) -> None:
        if self._writer.erasure_pending:
            await self._writer.erase()
        if self._writer.erasure_pending:
            remains = "it is deleted, but bytes of it may still be"
            raise self._not_rewritten_error(remains, "the next deletion erases them", deleted=True)

    def _not_rewritten_error(self, remains: str, then: str, **details: bool) -> StoreError:
        if self._source.can_be_rewritten():
            why, code, when = "another process is using it", "store_busy", "that process is done"
        else:
            why, code, when = "the disk has too little room to rewrite it", "store_full", "there is more"
        message = f"{remains} in {self.name} because {why}; {then} once {when}"
        return StoreError(message, code=code, path=self.name, **details)
