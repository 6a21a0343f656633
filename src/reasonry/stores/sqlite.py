"""Runs and sessions in a SQLite file, which several processes may share."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar, Unpack

from ..errors import StoreError
from ..records import (
    Backup,
    Checkpoint,
    Finding,
    Found,
    Line,
    OnProgress,
    RequestKey,
    RunFilters,
    RunRow,
    SessionFilters,
    SessionRow,
    Sweep,
    ThoughtRow,
    UsageGroup,
    UsageTotal,
    Use,
)
from . import backup, runs, session_rows, sql, text_index
from .checks import check_key, check_limit, check_row, check_seqs, check_texts, check_thoughts
from .database import Source
from .locks import LockFolder, RunLock
from .readers import Readers
from .selection import check_filters
from .session_rows import Decide
from .steady import Uptime, uptime
from .verification import verify
from .writer import Writer

T = TypeVar("T")

INDEXING_S = 0.5
"""How long a search goes on indexing what an earlier version has written."""


class SqliteStore:
    """A store in one SQLite file. It is opened, and created if necessary, when first used.

    Args:
        path: Where the file is, or will be created.
        busy_timeout_s: How long to wait for other processes before `store_busy`.

    Attributes:
        uptime: Returns how long the computer has been up.
    """

    durable = True

    def __init__(self, path: Path | str, busy_timeout_s: float = 10.0) -> None:
        self.path = Path(path)
        self.name = str(path)
        self.uptime: Callable[[], Uptime] = uptime
        source = Source(self.path, busy_timeout_s, reserve=True)
        self._source = source
        self._writer = Writer(source)
        self._readers = Readers(source)
        self._locks = LockFolder(self.path.with_name(self.path.name + ".locks"), source.give_up_reserve)

    async def create_run(
        self,
        row: RunRow,
        lines: Sequence[Line],
        session: SessionRow | None = None,
        key: RequestKey | None = None,
    ) -> str:
        """See `Store`."""
        check_row(row)
        check_seqs(lines)
        check_key(key)
        if session is not None:
            check_row(session)

        def work(tx: sql.Tx) -> str:
            run_id = runs.create_run(tx, row, lines, key)
            if session is not None and run_id == row.run_id:
                session_rows.import_session(tx, session, (), self.uptime())
            return run_id

        return await self._write(work)

    async def _write(self, work: Callable[[sql.Tx], T]) -> T:
        """Do work in a transaction, and in the same one some of the indexing that has come together."""

        def with_index(tx: sql.Tx) -> T:
            value = work(tx)
            text_index.catch_up(tx)
            return value

        return await self._writer.do(with_index)

    async def append(
        self, run_id: str, lines: Sequence[Line], row: RunRow | None = None, use: Use | None = None
    ) -> None:
        """See `Store`. Raises NotFoundError if there is no such run."""
        check_texts(run_id)
        check_seqs(lines)
        for record in (row, use):
            if record is not None:
                check_row(record)
        await self._write(lambda tx: runs.append(tx, run_id, lines, row, use, self.uptime()))

    async def run(self, run_id: str) -> RunRow:
        """See `Store`."""
        check_texts(run_id)
        return await self._readers.do(lambda tx: runs.run(tx, run_id))

    async def lines(self, run_id: str, after: int = 0) -> list[Line]:
        """See `Store`."""
        check_texts(run_id)
        return await self._readers.do(lambda tx: runs.lines(tx, run_id, after))

    async def tail(self, run_id: str) -> tuple[Checkpoint | None, list[Line]]:
        """See `Store`."""
        check_texts(run_id)
        return await self._readers.do(lambda tx: runs.tail(tx, run_id))

    async def keep(self, run_id: str, checkpoint: Checkpoint) -> None:
        """See `Store`."""
        check_texts(run_id)
        await self._writer.do(lambda tx: runs.keep(tx, run_id, checkpoint))

    async def runs(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[RunFilters]
    ) -> list[RunRow]:
        """See `Store`. Raises NotFoundError if there is no run `before`."""
        check_texts(before)
        check_filters(which)
        size = check_limit(limit)
        return await self._readers.do(lambda tx: runs.runs(tx, which, size, before))

    async def run_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        check_texts(prefix, owner)
        size = check_limit(limit)
        return await self._readers.do(lambda tx: sql.ids_from(tx, sql.RUN_IDS, prefix, size, owner))

    async def usage_since(self, since_ms: int, owner: str | None = None) -> UsageTotal:
        """See `Store`."""
        check_texts(owner)
        found = await self._readers.do(lambda tx: runs.usage(tx, None, since_ms, owner))
        return found[0] if found else UsageTotal()

    async def usage_by(self, group: UsageGroup, since_ms: int, owner: str | None = None) -> list[UsageTotal]:
        """See `Store`."""
        check_texts(owner)
        return await self._readers.do(lambda tx: runs.usage(tx, group, since_ms, owner))

    async def delete_run(self, run_id: str) -> None:
        """See `Store`.

        Raises:
            NotFoundError: There is no such run.
            StoreError: `store_busy`: it is deleted, but another process keeps its bytes in the log.
        """
        check_texts(run_id)
        await self._writer.do(lambda tx: runs.delete_run(tx, run_id), deletes=True)
        await self._erase()

    def drive(self, run_id: str) -> AbstractAsyncContextManager[None]:
        """See `Store`."""
        check_texts(run_id)
        return RunLock(lambda: self._locks.take(run_id))

    async def change(self, session_id: str, decide: Decide) -> Any:
        """See `Store`. Raises ConflictError if a new session or thought is there already."""
        check_texts(session_id)
        return await self._write(lambda tx: session_rows.change(tx, session_id, decide, self.uptime()))

    async def session(self, session_id: str) -> SessionRow:
        """See `Store`."""
        check_texts(session_id)
        return await self._readers.do(lambda tx: session_rows.session(tx, session_id))

    async def sessions(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
    ) -> list[SessionRow]:
        """See `Store`. Raises NotFoundError if there is no session `before`."""
        check_texts(before)
        check_filters(which)
        size = check_limit(limit)
        return await self._readers.do(lambda tx: session_rows.sessions(tx, which, size, before))

    async def session_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        check_texts(prefix, owner)
        size = check_limit(limit)
        return await self._readers.do(lambda tx: sql.ids_from(tx, sql.SESSION_IDS, prefix, size, owner))

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
        return await self._readers.do(
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
        await self._index_rest()
        return await self._readers.do(
            lambda tx: session_rows.search(tx, query, session_id, owner, after, size)
        )

    async def import_session(self, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        check_row(row)
        check_thoughts(thoughts)
        await self._write(lambda tx: session_rows.import_session(tx, row, thoughts, self.uptime()))

    async def keep_thoughts(self, session_id: str, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        check_texts(session_id)
        check_thoughts(thoughts)
        await self._write(lambda tx: session_rows.keep_thoughts(tx, session_id, thoughts))

    async def sweep_sessions(self, sweep: Sweep) -> None:
        """See `Store`."""
        await self._writer.do(lambda tx: session_rows.sweep(tx, sweep, self.uptime()), deletes=True)

    async def delete_session(self, session_id: str) -> None:
        """See `Store`. Raises StoreError as `delete_run` does."""
        check_texts(session_id)
        await self._writer.do(lambda tx: session_rows.delete_session(tx, session_id), deletes=True)
        await self._erase()

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

    async def _index_rest(self) -> None:
        """Put into the index what a search would have to read, for a moment at most; much is left of an old store."""
        until = time.monotonic() + INDEXING_S
        while time.monotonic() < until:
            if await self._readers.do(text_index.queue_size) < 2 * text_index.PIECE:
                return
            await self._writer.do(text_index.put_piece)

    async def _erase(self) -> None:
        if self._writer.erasure_pending:
            await self._writer.erase()
        if not self._writer.erasure_pending:
            return
        if self._source.can_be_rewritten():
            why, code, when = "another process is using it", "store_busy", "that process is done"
        else:
            why, code, when = "the disk has too little room to rewrite it", "store_full", "there is more"
        raise StoreError(
            f"it is deleted, but bytes of it may still be in {self.name} because {why}; the next deletion "
            f"erases them once {when}",
            code=code,
            path=self.name,
            deleted=True,
        )
