"""Runs and sessions in memory: for tests, and for data that need not outlive the process.

It is an implementation of its own because the SQLite store on `:memory:` makes a call of the thinking tool take 3.3
times the processor time (79 instead of 24 µs, median of 2,000), and the first call 4 ms more.
"""

from __future__ import annotations

import os
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, Unpack

from msgspec.structs import replace

from ..errors import StoreError, UsageError
from ..records import (
    Backup,
    Checkpoint,
    Damaged,
    Finding,
    Found,
    InJournal,
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
    StoreStats,
    Sweep,
    Tally,
    ThoughtRow,
    UsageGroup,
    UsageTotal,
    Use,
    Whole,
    WholeKind,
    WholeRun,
    WholeSession,
    Written,
)
from .checks import check_change, check_key, check_limit, check_row, check_seqs, check_texts, check_thoughts
from .expiry import Due, look_at
from .leases import already_driven_error
from .request_keys import is_over, key_reused_error
from .runs import line_exists_error, name_day, no_run_error, run_exists_error
from .selection import check_filters, lists_run, lists_session
from .session_rows import Decide, no_session_error, session_exists_error, thought_exists_error
from .sql import DAY_MS, MAX_SEQ, place
from .steady import Uptime, uptime
from .whole import check_whole, compare_runs, compare_sessions

T = TypeVar("T")


@dataclass(slots=True)
class _StoredRun:
    key: int
    row: RunRow
    lines: dict[int, Line] = field(default_factory=dict[int, Line])
    checkpoint: Checkpoint | None = None

    def has(self, needle: str) -> bool:
        """Whether its problem or its answer contains a text whose case is folded."""
        return needle in self.row.problem.casefold() or needle in (self.row.answer or "").casefold()


@dataclass(slots=True)
class _Session:
    key: int
    row: SessionRow
    used_steady_ms: int
    due: Due | None = None
    thoughts: dict[int, ThoughtRow] = field(default_factory=dict[int, ThoughtRow])
    numbers: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The `seq` of every thought, by number."""

    def add(self, thought: ThoughtRow) -> None:
        self.thoughts[thought.seq] = thought
        self.numbers.setdefault(thought.number, []).append(thought.seq)

    def add_following(self, thoughts: Sequence[ThoughtRow]) -> None:
        """Add those of the thoughts that come next."""
        new = [thought for thought in thoughts if thought.seq not in self.thoughts]
        if new and new[0].seq == len(self.thoughts) + 1:
            for thought in new:
                self.add(thought)

    def in_order(self) -> list[ThoughtRow]:
        return [self.thoughts[seq] for seq in sorted(self.thoughts)]

    def whole(self) -> WholeSession:
        return WholeSession(self.row, tuple(self.in_order()))

    def look(self, sweep: Sweep, steady_ms: int) -> bool:
        """Archive it if it was not used for long; return whether it is to be deleted."""
        self.row, self.due, is_over = look_at(
            self.row, self.due, steady_ms - self.used_steady_ms, sweep, steady_ms
        )
        return is_over

    def has(self, needle: str) -> bool:
        """Whether its purpose or a thought contains a text whose case is folded."""
        texts = (self.row.purpose, *(thought.text for thought in self.thoughts.values()))
        return any(needle in text.casefold() for text in texts)

    def search(self, needle: str) -> Iterator[Found]:
        if self.row.run_id is not None and len(self.thoughts) < self.row.thoughts:
            found = InJournal(self.row.run_id, place(self.key, 0))
            yield place(self.key, MAX_SEQ), self.row.session_id, found
            return
        for thought in self.in_order():
            if needle in thought.text.casefold():
                yield place(self.key, thought.seq), self.row.session_id, thought


class _View:
    def __init__(self, sessions: Mapping[str, _Session], session_id: str, steady_ms: int) -> None:
        session = sessions.get(session_id)
        self.row = session.row if session else None
        self.idle_ms = steady_ms - session.used_steady_ms if session else 0
        self._session = session
        self._sessions = sessions
        self._steady_ms = steady_ms

    def with_number(self, number: int) -> list[ThoughtRow]:
        if self._session is None:
            return []
        return [self._session.thoughts[seq] for seq in sorted(self._session.numbers.get(number, ()))]

    def latest(self, count: int) -> list[ThoughtRow]:
        if self._session is None or count < 1:
            return []
        return self._session.in_order()[-count:]

    def other(self, session_id: str) -> SessionView:
        return _View(self._sessions, session_id, self._steady_ms)


class MemoryStore:
    """A store whose content is lost when the process ends.

    Attributes:
        uptime: Returns how long the computer has been up.
    """

    name = "memory"
    durable = False

    def __init__(self) -> None:
        self.uptime: Callable[[], Uptime] = uptime
        self._runs = dict[str, _StoredRun]()
        self._sessions = dict[str, _Session]()
        self._requests = dict[tuple[str, str], tuple[RequestKey, str]]()
        self._driven = set[str]()
        self._shared = dict[str, bytes | None]()
        self._key = 0
        self._lock = threading.RLock()
        self._closed = False

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
        with self._open():
            if key is not None and (begun := self._begun_with(row.owner, key)) is not None:
                return begun
            if row.run_id in self._runs:
                raise run_exists_error(row.run_id)
            if session is not None:
                if session.session_id in self._sessions:
                    raise session_exists_error(session.session_id)
                self._sessions[session.session_id] = _Session(self._next_key(), session, self.uptime().ms)
            self._runs[row.run_id] = _StoredRun(self._next_key(), row, {line.seq: line for line in lines})
            if key is not None:
                self._requests = {
                    name: kept
                    for name, kept in self._requests.items()
                    if not is_over(kept[0].at_ms, key.at_ms)
                }
                self._requests[row.owner, key.key] = key, row.run_id
        return row.run_id

    async def run_begun_with(self, key: RequestKey, owner: str = "") -> str | None:
        """See `Store`."""
        check_key(key)
        with self._open():
            return self._begun_with(owner, key)

    def _begun_with(self, owner: str, key: RequestKey) -> str | None:
        earlier, run_id = self._requests.get((owner, key.key), (None, ""))
        if earlier is None or is_over(earlier.at_ms, key.at_ms):
            return None
        if earlier.digest != key.digest:
            raise key_reused_error(key.key, run_id)
        return run_id

    async def append(
        self, run_id: str, lines: Sequence[Line], row: RunRow | None = None, use: Use | None = None
    ) -> None:
        """See `Store`. Raises NotFoundError if there is no such run."""
        check_texts(run_id)
        check_seqs(lines)
        for record in (row, use):
            if record is not None:
                check_row(record)
        with self._open():
            run = self._run(run_id)
            for line in lines:
                if line.seq in run.lines:
                    raise line_exists_error(run_id, line.seq)
            run.lines.update((line.seq, line) for line in lines)
            run.row = run.row if row is None else replace(row, run_id=run_id, owner=run.row.owner)
            session = self._sessions.get(run.row.session_id)
            if use is not None and session is not None and session.row.run_id == run_id:
                session.row = replace(
                    session.row, thoughts=use.thoughts, used_at_ms=use.at_ms, status="active"
                )
                session.add_following(use.added)
                session.used_steady_ms, session.due = self.uptime().ms, None

    async def run(self, run_id: str) -> RunRow:
        """See `Store`."""
        with self._open():
            return self._run(run_id).row

    async def lines(self, run_id: str, after: int = 0) -> list[Line]:
        """See `Store`."""
        with self._open():
            lines = self._run(run_id).lines
            return [lines[seq] for seq in sorted(lines) if seq > after]

    async def tail(self, run_id: str) -> tuple[Checkpoint | None, list[Line]]:
        """See `Store`."""
        lines = await self.lines(run_id)
        with self._open():
            checkpoint = self._run(run_id).checkpoint
        return checkpoint, [line for line in lines if checkpoint is None or line.seq > checkpoint.seq]

    async def keep(self, run_id: str, checkpoint: Checkpoint) -> None:
        """See `Store`."""
        with self._open():
            self._run(run_id).checkpoint = checkpoint

    async def runs(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[RunFilters]
    ) -> list[RunRow]:
        """See `Store`. Raises NotFoundError if there is no run `before`."""
        check_texts(before)
        check_filters(which)
        size, needle = check_limit(limit), (which.get("query") or "").casefold()
        with self._open():
            bound = None if before is None else self._run(before).key
            found = [
                run
                for run in self._runs.values()
                if (bound is None or run.key < bound)
                and lists_run(run.row, **which)
                and self._has(run, needle)
            ]
            return [run.row for run in sorted(found, key=lambda run: -run.key)[:size]]

    def _has(self, run: _StoredRun, needle: str) -> bool:
        session = self._sessions.get(run.row.session_id)
        if session is None or session.row.run_id != run.row.run_id:
            return run.has(needle)
        return run.has(needle) or session.has(needle)

    async def run_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        check_texts(prefix, owner)
        size = check_limit(limit)
        with self._open():
            runs = self._runs.items()
            found = (name for name, run in runs if name.startswith(prefix) and owner in (None, run.row.owner))
            return sorted(found)[:size]

    async def usage_since(self, since_ms: int, owner: str | None = None) -> UsageTotal:
        """See `Store`."""
        check_texts(owner)
        return _total("", self._written_since(since_ms, owner))

    async def usage_by(self, group: UsageGroup, since_ms: int, owner: str | None = None) -> list[UsageTotal]:
        """See `Store`."""
        check_texts(owner)
        groups = dict[str, list[RunRow]]()
        for row in self._written_since(since_ms, owner):
            name = name_day(row.updated_at_ms // DAY_MS) if group == "day" else getattr(row, group)
            groups.setdefault(name, []).append(row)
        return [_total(name, rows) for name, rows in sorted(groups.items())]

    def _written_since(self, since_ms: int, owner: str | None) -> list[RunRow]:
        with self._open():
            rows = [run.row for run in self._runs.values()]
        return [row for row in rows if row.updated_at_ms >= since_ms and owner in (None, row.owner)]

    async def delete_run(self, run_id: str) -> None:
        """See `Store`. Raises NotFoundError if there is no such run."""
        with self._open():
            session = self._sessions.get(self._run(run_id).row.session_id)
            if session is not None and session.row.run_id == run_id:
                session.thoughts.clear()
                session.numbers.clear()
            del self._runs[run_id]
            self._requests = {name: kept for name, kept in self._requests.items() if kept[1] != run_id}

    def drive(self, run_id: str) -> AbstractAsyncContextManager[None]:
        """See `Store`. All drives are of one process: a lease here has no end and no number."""
        check_texts(run_id)
        return self._hold(run_id)

    async def find_driven(self, run_ids: Sequence[str]) -> set[str]:
        """See `Store`."""
        check_texts(*run_ids)
        with self._open():
            return self._driven.intersection(run_ids)

    @asynccontextmanager
    async def _hold(self, run_id: str) -> AsyncGenerator[None]:
        with self._open():
            self._run(run_id)
            if run_id in self._driven:
                raise already_driven_error(run_id, os.getpid())
            self._driven.add(run_id)
        try:
            yield
        finally:
            self._driven.discard(run_id)

    async def share(self, name: str, decide: ShareDecision[T]) -> T:
        """See `Store`."""
        with self._open():
            self._shared[name], returned = decide(self._shared.get(name), time.monotonic_ns() // 1_000_000)
            return returned

    async def change(self, session_id: str, decide: Decide) -> Any:
        """See `Store`. Raises ConflictError if a new session or thought is there already."""
        check_texts(session_id)
        with self._open():
            session = self._sessions.get(session_id)
            wanted = decide(_View(self._sessions, session_id, self.uptime().ms))
            check_change(wanted, session is not None)
            self._check_free(session_id, session, wanted)
            if wanted.archive_as is not None and session is not None:
                self._archive(session, wanted.archive_as)
            self._write(wanted.instead or session_id, wanted)
            return wanted.value

    async def session(self, session_id: str) -> SessionRow:
        """See `Store`."""
        with self._open():
            return self._session(session_id).row

    async def sessions(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
    ) -> list[SessionRow]:
        """See `Store`. Raises NotFoundError if there is no session `before`."""
        check_texts(before)
        check_filters(which)
        size, needle = check_limit(limit), (which.get("query") or "").casefold()
        with self._open():
            bound = None if before is None else _use(self._session(before))
            found = [
                session
                for session in self._sessions.values()
                if (bound is None or _use(session) < bound)
                and lists_session(session.row, **which)
                and session.has(needle)
            ]
            return [session.row for session in sorted(found, key=_use, reverse=True)[:size]]

    async def session_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        """See `Store`."""
        check_texts(prefix, owner)
        size = check_limit(limit)
        with self._open():
            sessions = self._sessions.items()
            found = (
                name
                for name, session in sessions
                if name.startswith(prefix) and owner in (None, session.row.owner)
            )
            return sorted(found)[:size]

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
        with self._open():
            thoughts = self._session(session_id).in_order()
        found = [
            thought
            for thought in thoughts
            if thought.seq > after_seq
            and (first is None or thought.number >= first)
            and (last is None or thought.number <= last)
            and (branch is None or thought.branch == branch or (branch == "" and thought.branch is None))
        ]
        return found[:size]

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
        size, needle = check_limit(limit), query.casefold()
        with self._open():
            chosen = list(self._sessions.values()) if session_id is None else [self._session(session_id)]
            found = [
                match
                for session in sorted(chosen, key=lambda session: session.key)
                if owner in (None, session.row.owner)
                for match in session.search(needle)
            ]
        start = bisect_right(found, after, key=lambda match: match[0])
        return found[start : start + size]

    async def keep_thoughts(self, session_id: str, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        check_thoughts(thoughts)
        with self._open():
            session = self._session(session_id)
            session.row = replace(session.row, thoughts=max(session.row.thoughts, len(thoughts)))
            session.add_following(thoughts)

    async def import_session(self, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
        """See `Store`."""
        check_row(row)
        check_thoughts(thoughts)
        with self._open():
            if row.session_id in self._sessions:
                raise session_exists_error(row.session_id)
            session = self._sessions[row.session_id] = _Session(self._next_key(), row, self.uptime().ms)
            for thought in thoughts:
                session.add(thought)

    async def sweep_sessions(self, sweep: Sweep) -> None:
        """See `Store`."""
        steady_ms = self.uptime().ms
        with self._open():
            for session in list(self._sessions.values()):
                if not session.row.pinned and session.look(sweep, steady_ms):
                    del self._sessions[session.row.session_id]

    async def delete_session(self, session_id: str) -> None:
        """See `Store`."""
        with self._open():
            self._session(session_id)
            del self._sessions[session_id]

    async def read_whole(
        self, kind: WholeKind, after: int = 0, limit: int = 20, owner: str | None = None
    ) -> list[tuple[int, Whole | Damaged]]:
        """See `Store`."""
        check_texts(owner)
        size = check_limit(limit)

        def page(all_: Iterable[Any]) -> list[Any]:
            found = (kept for kept in all_ if kept.key > after and owner in (None, kept.row.owner))
            return sorted(found, key=lambda kept: kept.key)[:size]

        with self._open():
            if kind == "run":
                return [(run.key, self._whole_run(run)) for run in page(self._runs.values())]
            return [(session.key, session.whole()) for session in page(self._sessions.values())]

    def _whole_run(self, run: _StoredRun) -> WholeRun:
        keys = (key for key, run_id in self._requests.values() if run_id == run.row.run_id)
        lines = tuple(run.lines[seq] for seq in sorted(run.lines))
        in_order = sorted(keys, key=lambda key: (key.at_ms, key.key))
        return WholeRun(run.row, lines, run.checkpoint, tuple(in_order))

    async def write_whole(self, wholes: Sequence[Whole]) -> list[Written]:
        """See `Store`."""
        for whole in wholes:
            check_whole(whole)
        with self._open():
            return [
                self._write_run(whole) if isinstance(whole, WholeRun) else self._write_session(whole)
                for whole in wholes
            ]

    def _write_run(self, run: WholeRun) -> Written:
        row, there = run.row, self._runs.get(run.row.run_id)
        written: Written = "new" if there is None else compare_runs(self._whole_run(there), run)
        if there is None:
            there = self._runs[row.run_id] = _StoredRun(self._next_key(), row)
            for key in run.keys:
                self._requests.setdefault((row.owner, key.key), (key, row.run_id))
        if written in ("new", "continued"):
            there.row, there.checkpoint = row, run.checkpoint or there.checkpoint
            there.lines = {line.seq: line for line in run.lines}
        return written

    def _write_session(self, session: WholeSession) -> Written:
        row, there = session.row, self._sessions.get(session.row.session_id)
        written: Written = "new" if there is None else compare_sessions(there.whole(), session)
        if there is None:
            there = self._sessions[row.session_id] = _Session(self._next_key(), row, self.uptime().ms)
        if written in ("new", "continued"):
            there.row, there.used_steady_ms, there.due = row, self.uptime().ms, None
            for thought in session.thoughts[len(there.thoughts) :]:
                there.add(thought)
        return written

    async def stats(self) -> StoreStats:
        """See `Store`."""
        with self._open():
            runs, sessions = self._runs.values(), self._sessions.values()
            counts = Counter[tuple[WholeKind, str, str]](
                ("run", run.row.owner, run.row.status) for run in runs
            )
            counts.update(("session", session.row.owner, session.row.status) for session in sessions)
            tallies = tuple(Tally(*which, count) for which, count in sorted(counts.items()))
            lines = sum(len(run.lines) for run in runs)
            return StoreStats(tallies, lines, sum(len(session.thoughts) for session in sessions), 0, 0)

    async def vacuum(self) -> None:
        """See `Store`; memory has nothing to give back."""

    async def back_up(
        self, file: Path, *, force: bool = False, on_progress: OnProgress | None = None
    ) -> Backup:
        """See `Store`. Raises UsageError."""
        raise _kept_nowhere()

    async def restore(self, file: Path, *, on_progress: OnProgress | None = None) -> Backup:
        """See `Store`. Raises UsageError."""
        raise _kept_nowhere()

    async def verify(self) -> AsyncGenerator[Finding]:
        """See `Store`; memory has no file that could be damaged."""
        with self._open():
            yield Finding("file", self.name)

    async def close(self) -> None:
        """See `Store`."""
        self._closed = True

    def _open(self) -> threading.RLock:
        if self._closed:
            raise StoreError("the store memory is closed")
        return self._lock

    def _next_key(self) -> int:
        self._key += 1
        return self._key

    def _run(self, run_id: str) -> _StoredRun:
        check_texts(run_id)
        if run_id not in self._runs:
            raise no_run_error(run_id)
        return self._runs[run_id]

    def _session(self, session_id: str) -> _Session:
        check_texts(session_id)
        if session_id not in self._sessions:
            raise no_session_error(session_id)
        return self._sessions[session_id]

    def _check_free(self, session_id: str, session: _Session | None, wanted: SessionChange) -> None:
        """Refuse before anything is written, so that nothing has to be taken back."""
        target = None if wanted.delete else session
        moved = wanted.archive_as not in (None, session_id)
        if moved and wanted.archive_as in self._sessions:
            raise session_exists_error(str(wanted.archive_as))
        if wanted.instead is not None:
            target = self._session(wanted.instead)
        elif moved:
            target = None
        elif wanted.row is not None and wanted.row.session_id != session_id:
            if wanted.row.session_id in self._sessions:
                raise session_exists_error(wanted.row.session_id)
            target = None
        if wanted.thought is not None and target is not None and wanted.thought.seq in target.thoughts:
            raise thought_exists_error(session_id, wanted.thought.seq)

    def _archive(self, session: _Session, session_id: str) -> None:
        del self._sessions[session.row.session_id]
        session.row = replace(session.row, session_id=session_id, status="archived")
        self._sessions[session_id] = session

    def _write(self, session_id: str, wanted: SessionChange) -> None:
        if wanted.delete:
            self._sessions.pop(session_id, None)
        owner = session_id
        if wanted.row is not None:
            owner = wanted.row.session_id
            there = self._sessions.get(owner)
            if there is None:
                self._sessions[owner] = _Session(self._next_key(), wanted.row, self.uptime().ms)
            else:
                there.row = replace(wanted.row, owner=there.row.owner)
                if wanted.used:
                    there.used_steady_ms, there.due = self.uptime().ms, None
        if wanted.thought is not None:
            self._sessions[owner].add(wanted.thought)


def _kept_nowhere() -> UsageError:
    return UsageError("the store in memory has no file; give --store a path", option="store")


def _use(session: _Session) -> tuple[int, int]:
    return session.row.used_at_ms, session.key


def _total(group: str, rows: Sequence[RunRow]) -> UsageTotal:
    return UsageTotal(
        group,
        len(rows),
        sum(row.calls for row in rows),
        sum(row.tokens for row in rows),
        sum(row.usd or 0.0 for row in rows),
    )
