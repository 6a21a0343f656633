"""What the stores made of rows and transactions have in common: the checks of what comes in, and the work on rows."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar, Unpack

from ..records import (
    Checkpoint,
    Damaged,
    Found,
    Line,
    RequestKey,
    RunFilters,
    RunRow,
    SessionFilters,
    SessionRow,
    ShareDecision,
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
from . import lease_rows, runs, session_rows, shared_rows, sql, whole_rows
from .checks import check_key, check_limit, check_row, check_seqs, check_texts, check_thoughts
from .leases import Leases, Living
from .selection import check_filters
from .session_rows import Decide
from .steady import Uptime, uptime
from .whole import check_whole

T = TypeVar("T")


class RowStore(ABC):
    """A store whose methods are transactions over rows.

    Attributes:
        uptime: Returns how long the computer has been up.
    """

    def __init__(self) -> None:
        self.uptime: Callable[[], Uptime] = uptime
        self._leases = Leases(self._take_lease, self._renew_leases, self._give_back_lease)

    @abstractmethod
    async def _read(self, work: Callable[[sql.Tx], T]) -> T:
        """Do work in a transaction that sees one state of the store."""

    @abstractmethod
    async def _write(self, work: Callable[[sql.Tx], T]) -> T:
        """Do work in a transaction that no other writer comes into; return when it is durable."""

    async def _write_passing(self, work: Callable[[sql.Tx], T]) -> T:
        """Do the same with work that a crash of the database may undo."""
        return await self._write(work)

    async def _delete(self, work: Callable[[sql.Tx], None], *, erase: bool = True) -> None:
        """Do work that deletes.

        Args:
            erase: Whether to erase the bytes of what was deleted before returning.
        """
        await self._write(work)

    @abstractmethod
    def _space(self, tx: sql.Tx) -> tuple[int, int | None]:
        """Return how many bytes all takes on the disk, and how many of them are empty, if that is known."""

    async def _prepare_search(self) -> None:
        """Do what makes the next search quick."""
        return

    def _uptime(self, tx: sql.Tx) -> Uptime:
        """Return what the store counts its monotonic time by."""
        return self.uptime()

    @abstractmethod
    def _show_life(self, tx: sql.Tx) -> None:
        """See to it that others find this store object among the living while it is open."""

    @abstractmethod
    def _find_living(self, tx: sql.Tx, run_id: str, holder: str | None) -> Living | None:
        """Return the process that drives a run, if it lives.

        Args:
            holder: Whose lease has not expired; None: nobody's.
        """

    def _lease_clock_ms(self, tx: sql.Tx) -> int:
        """Return the time as leases count it; what is less after another start of the computer is right."""
        # Nobody can renew a lease while the computer is asleep.
        return time.monotonic_ns() // 1_000_000

    async def _take_lease(self, run_id: str) -> int:
        return await self._write(lambda tx: self._lease_taken(tx, run_id))

    def _lease_taken(self, tx: sql.Tx, run_id: str) -> int:
        self._show_life(tx)
        key, holder, now_ms = runs.key_of(tx, run_id), self._leases.holder, self._lease_clock_ms(tx)
        return lease_rows.take(
            tx, key, run_id, holder, now_ms, lambda other: self._find_living(tx, run_id, other)
        )

    async def _renew_leases(self, numbers: Mapping[str, int]) -> None:
        await self._write_passing(
            lambda tx: lease_rows.renew(tx, self._leases.holder, numbers, self._lease_clock_ms(tx))
        )

    async def _give_back_lease(self, run_id: str) -> None:
        await self._write(lambda tx: lease_rows.give_back(tx, run_id, self._leases.holder))

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
        check_row(row)
        check_seqs(lines)
        check_key(key)
        if session is not None:
            check_row(session)

        def work(tx: sql.Tx) -> tuple[str, int | None]:
            run_id = runs.create_run(tx, row, lines, key)
            if run_id != row.run_id:
                return run_id, None
            if session is not None:
                session_rows.import_session(tx, session, (), self._uptime(tx))
            return run_id, self._lease_taken(tx, run_id) if drive else None

        run_id, number = await self._write(work)
        if number is not None:
            self._leases.note_taken(run_id, number)
        return run_id

    async def run_begun_with(self, key: RequestKey, owner: str = "") -> str | None:
        """See `Store`."""
        check_key(key)
        check_texts(owner)
        return await self._read(lambda tx: runs.begun_with(tx, owner, key))

    async def append(
        self, run_id: str, lines: Sequence[Line], row: RunRow | None = None, use: Use | None = None
    ) -> None:
        """See `Store`. Raises NotFoundError if there is no such run."""
        check_texts(run_id)
        check_seqs(lines)
        for record in (row, use):
            if record is not None:
                check_row(record)
        lease = self._leases.lease_of(run_id)
        await self._write(lambda tx: runs.append(tx, run_id, lines, row, use, self._uptime(tx), lease))
        if lease is not None and row is not None and row.status != "active":
            self._leases.note_end(run_id, lease)

    async def run(self, run_id: str) -> RunRow:
        """See `Store`."""
        check_texts(run_id)
        return await self._read(lambda tx: runs.run(tx, run_id))

    async def lines(self, run_id: str, after: int = 0) -> list[Line]:
        """See `Store`."""
        check_texts(run_id)
        return await self._read(lambda tx: runs.lines(tx, run_id, after))

    async def tail(self, run_id: str) -> tuple[Checkpoint | None, list[Line]]:
        """See `Store`."""
        check_texts(run_id)
        return await self._read(lambda tx: runs.tail(tx, run_id))

    async def keep(self, run_id: str, checkpoint: Checkpoint) -> None:
        """See `Store`."""
        check_texts(run_id)
        lease = self._leases.lease_of(run_id)
        await self._write(lambda tx: runs.keep(tx, run_id, checkpoint, lease))

    async def runs(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[RunFilters]
    ) -> list[RunRow]:
        """See `Store`. Raises NotFoundError if there is no run `before`."""
        check_texts(before)
        check_filters(which)
        size = check_limit(limit)
        return await self._read(lambda tx: runs.runs(tx, which, size, before))

    async def run_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        check_texts(prefix, owner)
        size = check_limit(limit)
        return await self._read(lambda tx: sql.ids_from(tx, sql.RUN_IDS, prefix, size, owner))

    async def usage_since(self, since_ms: int, owner: str | None = None) -> UsageTotal:
        """See `Store`."""
        check_texts(owner)
        found = await self._read(lambda tx: runs.usage(tx, None, since_ms, owner))
        return found[0] if found else UsageTotal()

    async def usage_by(self, group: UsageGroup, since_ms: int, owner: str | None = None) -> list[UsageTotal]:
        """See `Store`."""
        check_texts(owner)
        return await self._read(lambda tx: runs.usage(tx, group, since_ms, owner))

    async def change(self, session_id: str, decide: Decide) -> Any:
        """See `Store`. Raises ConflictError if a new session or thought is there already."""
        check_texts(session_id)
        return await self._write(lambda tx: session_rows.change(tx, session_id, decide, self._uptime(tx)))

    async def session(self, session_id: str) -> SessionRow:
        """See `Store`."""
        check_texts(session_id)
        return await self._read(lambda tx: session_rows.session(tx, session_id))

    async def sessions(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
    ) -> list[SessionRow]:
        """See `Store`. Raises NotFoundError if there is no session `before`."""
        check_texts(before)
        check_filters(which)
        size = check_limit(limit)
        return await self._read(lambda tx: session_rows.sessions(tx, which, size, before))

    async def session_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        check_texts(prefix, owner)
        size = check_limit(limit)
        return await self._read(lambda tx: sql.ids_from(tx, sql.SESSION_IDS, prefix, size, owner))

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
        return await self._read(
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
        await self._prepare_search()
        return await self._read(lambda tx: session_rows.search(tx, query, session_id, owner, after, size))

    async def import_session(self, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        check_row(row)
        check_thoughts(thoughts)
        await self._write(lambda tx: session_rows.import_session(tx, row, thoughts, self._uptime(tx)))

    async def keep_thoughts(self, session_id: str, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        check_texts(session_id)
        check_thoughts(thoughts)
        await self._write(lambda tx: session_rows.keep_thoughts(tx, session_id, thoughts))

    async def sweep_sessions(self, sweep: Sweep) -> None:
        """See `Store`."""
        await self._delete(lambda tx: session_rows.sweep(tx, sweep, self._uptime(tx)), erase=False)

    async def share(self, name: str, decide: ShareDecision[T]) -> T:
        """See `Store`."""
        check_texts(name)
        return await self._write_passing(
            lambda tx: shared_rows.change(tx, name, decide, self._lease_clock_ms)
        )

    def drive(self, run_id: str) -> AbstractAsyncContextManager[None]:
        """See `Store`."""
        check_texts(run_id)
        return self._leases.hold(run_id)

    async def find_driven(self, run_ids: Sequence[str]) -> set[str]:
        """See `Store`."""
        check_texts(*run_ids)

        def look(tx: sql.Tx) -> set[str]:
            holder, now_ms = self._leases.holder, self._lease_clock_ms(tx)
            return {
                run_id
                for run_id in run_ids
                if lease_rows.is_held(
                    tx,
                    run_id,
                    holder,
                    now_ms,
                    lambda other, run_id=run_id: self._find_living(tx, run_id, other),
                )
            }

        return await self._read(look)

    async def delete_run(self, run_id: str) -> None:
        """See `Store`. Raises NotFoundError if there is no such run."""
        check_texts(run_id)
        await self._delete(lambda tx: runs.delete_run(tx, run_id))

    async def delete_session(self, session_id: str) -> None:
        """See `Store`."""
        check_texts(session_id)
        await self._delete(lambda tx: session_rows.delete_session(tx, session_id))

    async def read_whole(
        self, kind: WholeKind, after: int = 0, limit: int = 20, owner: str | None = None
    ) -> list[tuple[int, Whole | Damaged]]:
        """See `Store`."""
        check_texts(owner)
        size = check_limit(limit)
        return await self._read(lambda tx: whole_rows.read(tx, kind, after, size, owner))

    async def write_whole(self, wholes: Sequence[Whole]) -> list[Written]:
        """See `Store`."""
        for whole in wholes:
            check_whole(whole)

        def work(tx: sql.Tx) -> list[Written]:
            return [whole_rows.write(tx, whole, self._uptime(tx)) for whole in wholes]

        written = await self._write(work)
        await self._prepare_search()
        return written

    async def stats(self) -> StoreStats:
        """See `Store`."""
        return await self._read(lambda tx: whole_rows.stats(tx, *self._space(tx)))
