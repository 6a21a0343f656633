"""A store in which only the runs and sessions of one owner exist."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, Unpack

from msgspec.structs import replace

from ..errors import UsageError
from ..records import (
    Backup,
    Checkpoint,
    Damaged,
    Finding,
    Found,
    Line,
    OnProgress,
    RequestKey,
    RunFilters,
    RunRow,
    SessionChange,
    SessionFilters,
    SessionRow,
    SessionView,
    ShareDecision,
    Store,
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
from .checks import check_change
from .runs import no_run_error
from .session_rows import Decide, no_session_error, session_exists_error

T = TypeVar("T")

MAX_KNOWN_RUNS = 10_000
"""Runs that are not looked up again, because they are known to be the owner's."""


class OwnedStore:
    """What one owner sees of a store: the id of another's run or session is like one that nothing has.

    Only what is to be written under an id that another has is refused, with a ConflictError: whoever writes makes the
    id of what is new, and takes it from no one else.

    Args:
        inner: Keeps everything; whoever opened it closes it.
        owner: Empty: the operator, as far as runs and sessions are no one else's.
    """

    def __init__(self, inner: Store, owner: str) -> None:
        self.inner, self.owner = inner, owner
        self.name, self.durable = inner.name, inner.durable
        # A run's id is never used again, so a run that was the owner's once is for good.
        self._known = dict[str, None]()

    async def create_run(
        self,
        row: RunRow,
        lines: Sequence[Line],
        session: SessionRow | None = None,
        key: RequestKey | None = None,
        *,
        drive: bool = False,
    ) -> str:
        """See `Store`."""
        own = session and replace(session, owner=self.owner)
        run_id = await self.inner.create_run(replace(row, owner=self.owner), lines, own, key, drive=drive)
        self._note_own(run_id)
        return run_id

    async def run_begun_with(self, key: RequestKey, owner: str = "") -> str | None:
        """See `Store`."""
        return await self.inner.run_begun_with(key, self.owner)

    async def append(
        self, run_id: str, lines: Sequence[Line], row: RunRow | None = None, use: Use | None = None
    ) -> None:
        """See `Store`. Raises NotFoundError if there is no such run."""
        await self._check_run(run_id)
        await self.inner.append(run_id, lines, row, use)

    async def run(self, run_id: str) -> RunRow:
        """See `Store`."""
        await self._check_run(run_id)
        return await self.inner.run(run_id)

    async def lines(self, run_id: str, after: int = 0) -> list[Line]:
        """See `Store`."""
        await self._check_run(run_id)
        return await self.inner.lines(run_id, after)

    async def tail(self, run_id: str) -> tuple[Checkpoint | None, list[Line]]:
        """See `Store`."""
        await self._check_run(run_id)
        return await self.inner.tail(run_id)

    async def keep(self, run_id: str, checkpoint: Checkpoint) -> None:
        """See `Store`."""
        await self._check_run(run_id)
        await self.inner.keep(run_id, checkpoint)

    async def runs(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[RunFilters]
    ) -> list[RunRow]:
        """See `Store`. Raises NotFoundError if there is no run `before`."""
        if before is not None:
            await self._check_run(before)
        if which.get("owner") not in (None, self.owner):
            return []
        return await self.inner.runs(limit=limit, before=before, **{**which, "owner": self.owner})

    async def run_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        return [] if owner not in (None, self.owner) else await self.inner.run_ids(prefix, limit, self.owner)

    async def usage_since(self, since_ms: int, owner: str | None = None) -> UsageTotal:
        """See `Store`."""
        if owner not in (None, self.owner):
            return UsageTotal()
        return await self.inner.usage_since(since_ms, self.owner)

    async def usage_by(self, group: UsageGroup, since_ms: int, owner: str | None = None) -> list[UsageTotal]:
        """See `Store`."""
        if owner not in (None, self.owner):
            return []
        return await self.inner.usage_by(group, since_ms, self.owner)

    async def delete_run(self, run_id: str) -> None:
        """See `Store`. Raises NotFoundError if there is no such run."""
        await self._check_run(run_id)
        await self.inner.delete_run(run_id)
        self._known.pop(run_id, None)

    def drive(self, run_id: str) -> AbstractAsyncContextManager[None]:
        """See `Store`. Raises NotFoundError, on entering, if there is no such run."""
        return self._drive(run_id)

    @asynccontextmanager
    async def _drive(self, run_id: str) -> AsyncGenerator[None]:
        await self._check_run(run_id)
        async with self.inner.drive(run_id):
            yield

    async def find_driven(self, run_ids: Sequence[str]) -> set[str]:
        """See `Store`. Raises NotFoundError if there is no such run."""
        for run_id in run_ids:
            await self._check_run(run_id)
        return await self.inner.find_driven(run_ids)

    async def change(self, session_id: str, decide: Decide) -> Any:
        """See `Store`. Raises ConflictError if a new session or thought is there already."""
        return await self.inner.change(session_id, lambda view: self._decide(view, session_id, decide))

    def _decide(self, view: SessionView, session_id: str, decide: Decide) -> SessionChange:
        own = _OwnView(view, self.owner)
        wanted = decide(own)
        if own.row is None and view.row is not None:
            # What stands there is another's: nothing happens to it.
            wanted = replace(wanted, delete=False, archive_as=None)
            check_change(wanted, exists=False)
            if wanted.instead is None and wanted.row is not None and wanted.row.session_id == session_id:
                raise session_exists_error(session_id)
        if wanted.instead is not None and own.other(wanted.instead).row is None:
            raise no_session_error(wanted.instead)
        return wanted if wanted.row is None else replace(wanted, row=replace(wanted.row, owner=self.owner))

    async def session(self, session_id: str) -> SessionRow:
        """See `Store`."""
        await self._check_session(session_id)
        return await self.inner.session(session_id)

    async def sessions(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
    ) -> list[SessionRow]:
        """See `Store`. Raises NotFoundError if there is no session `before`."""
        if before is not None:
            await self._check_session(before)
        if which.get("owner") not in (None, self.owner):
            return []
        return await self.inner.sessions(limit=limit, before=before, **{**which, "owner": self.owner})

    async def session_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        if owner not in (None, self.owner):
            return []
        return await self.inner.session_ids(prefix, limit, self.owner)

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
        await self._check_session(session_id)
        return await self.inner.thoughts(
            session_id, first=first, last=last, branch=branch, after_seq=after_seq, limit=limit
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
        if session_id is not None:
            await self._check_session(session_id)
        if owner not in (None, self.owner):
            return []
        return await self.inner.search_thoughts(
            query, session_id=session_id, owner=self.owner, after=after, limit=limit
        )

    async def keep_thoughts(self, session_id: str, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        await self._check_session(session_id)
        await self.inner.keep_thoughts(session_id, thoughts)

    async def import_session(self, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        await self.inner.import_session(replace(row, owner=self.owner), thoughts)

    async def sweep_sessions(self, sweep: Sweep) -> None:
        """See `Store`; the sessions of all owners grow old alike."""
        await self.inner.sweep_sessions(sweep)

    async def delete_session(self, session_id: str) -> None:
        """See `Store`."""
        await self._check_session(session_id)
        await self.inner.delete_session(session_id)

    async def share(self, name: str, decide: ShareDecision[T]) -> T:
        """See `Store`; what is shared is shared by the processes of all owners."""
        return await self.inner.share(name, decide)

    async def verify(self) -> AsyncGenerator[Finding]:
        """Raises UsageError: the store as a whole is the operator's."""
        raise _operators_error("verified")
        yield

    async def read_whole(
        self, kind: WholeKind, after: int = 0, limit: int = 20, owner: str | None = None
    ) -> list[tuple[int, Whole | Damaged]]:
        """Raises UsageError: the store as a whole is the operator's."""
        raise _operators_error("copied")

    async def write_whole(self, wholes: Sequence[Whole]) -> list[Written]:
        """Raises UsageError: the store as a whole is the operator's."""
        raise _operators_error("copied")

    async def stats(self) -> StoreStats:
        """Raises UsageError: the store as a whole is the operator's."""
        raise _operators_error("measured")

    async def vacuum(self) -> None:
        """Raises UsageError: the store as a whole is the operator's."""
        raise _operators_error("rewritten")

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """Raises UsageError: the store as a whole is the operator's."""
        raise _operators_error("copied")

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """Raises UsageError: the store as a whole is the operator's."""
        raise _operators_error("replaced")

    async def close(self) -> None:
        """Do nothing: the store is used by others."""

    async def _check_run(self, run_id: str) -> None:
        """Raise NotFoundError if the owner has no such run, even if it is damaged."""
        if run_id in self._known:
            return
        if await self.inner.run_ids(run_id, 1, self.owner) != [run_id]:
            raise no_run_error(run_id)
        self._note_own(run_id)

    def _note_own(self, run_id: str) -> None:
        while len(self._known) >= MAX_KNOWN_RUNS:
            self._known.pop(next(iter(self._known)), None)
        self._known[run_id] = None

    async def _check_session(self, session_id: str) -> None:
        if await self.inner.session_ids(session_id, 1, self.owner) != [session_id]:
            raise no_session_error(session_id)


class _OwnView:
    """A session as seen by an owner: there is none if it is another's."""

    def __init__(self, view: SessionView, owner: str) -> None:
        self._is_own = view.row is not None and view.row.owner == owner
        self.row = view.row if self._is_own else None
        self._view, self._owner = view, owner

    @property
    def idle_ms(self) -> int:
        """See `Store`."""
        return self._view.idle_ms if self._is_own else 0

    def with_number(self, number: int) -> list[ThoughtRow]:
        """See `Store`."""
        return self._view.with_number(number) if self._is_own else []

    def latest(self, count: int) -> list[ThoughtRow]:
        """See `Store`."""
        return self._view.latest(count) if self._is_own else []

    def other(self, session_id: str) -> SessionView:
        """See `Store`."""
        return _OwnView(self._view.other(session_id), self._owner)


def _operators_error(done: str) -> UsageError:
    return UsageError(f"a store that several people use is {done} by its operator: with `reasonry store`")
