"""The engine accepts runs, drives them and resumes them.

The engine accepts a run by writing it to the store. A drive is a loop: it performs the effects that the machine
requests, writes their events to the journal, and folds the events. The journal holds the whole state of a run. So if a
process dies, any other process can continue the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import takewhile
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from ..core.budget import Budget
from ..core.effects import Ask
from ..core.events import Closing, Stopped
from ..core.registry import Registry
from ..errors import ConflictError, UsageError
from ..records import JobOptions, Line, RequestKey, RunRow, Store, new_id, now_ms
from . import journal
from .budget_guard import limits_calls
from .fork import Fork, begin_run, check_rewordings
from .journal import (
    CALLER,
    Begun,
    CallIntended,
    Ended,
    Entry,
    ParticipantNames,
    Resumed,
    Settled,
    TermsChanged,
)
from .open_run import OpenRun
from .policy import Performers, Policy, rewind
from .record import Record, Rows, differences, record_of, record_of_row, record_of_run
from .result import Result, rows_of
from .run import Run, fold, fold_from
from .telemetry import trace_context

RELEASE_S: Final = 3
"""Seconds that a cancellation waits for the drive to end."""

QUEUE_S: Final = 10
"""Seconds that an answer to a coached run waits while other answers to the run are processed."""

BY_USER: Final = "cancelled by its user"


class Engine:
    """Accepts, reads, drives and commands the runs of one store. For `rows` and `on_end`, see `OpenRun`."""

    def __init__(
        self,
        store: Store,
        strategies: Registry,
        policy: Policy | None = None,
        rows: Rows = lambda thoughts, before, branches: (),
        on_end: Callable[[Run], Awaitable[None]] | None = None,
    ) -> None:
        self.store, self.strategies, self.policy = store, strategies, policy or Policy()
        self.rows, self.on_end = rows, on_end

    # -- accepting

    @asynccontextmanager
    async def begin(
        self, order: Begun, performers: Performers, fork: Fork | None = None, *, session_id: str = ""
    ) -> AsyncGenerator[OpenRun]:
        """Accept a run and open it, without reading it back from the store; see `accept` and `open`."""
        accepted = await self.accept(order, fork, session_id=session_id, drive=True)
        async with self.open(*accepted) as opened:
            if fork is not None:
                rewind(performers, opened.run, fork.participants)
            yield opened

    async def accept(
        self,
        order: Begun,
        fork: Fork | None = None,
        *,
        session_id: str = "",
        job: JobOptions | None = None,
        key: RequestKey | None = None,
        drive: bool = False,
    ) -> Accepted:
        """Write a new run to the store, without driving the run. For a repeated `key`, return the earlier run.

        If the run is driven at once and its calls are recorded, the same write records its first call.

        Args:
            order: The request for the run. `accept` fills in the strategy's version, the time and the fork.
            session_id: The session for the run's thoughts. A named session does not expire. Defaults to a new session.
            job: Options that queue the run as a job. A worker of the store then drives the run.
            drive: Whether to take the right to drive the run at once, because the caller opens the run next.

        Raises:
            ConflictError: The copied events do not fit the run, or a reworded question is not open after these events.
                `idempotency_conflict`: the key was used for another request.
        """
        run_id = new_id()
        run, entries = begin_run(order, fork, self.strategies)
        row, session = rows_of(run_id, run, session_id)
        row = replace(row, unattended=job is not None, owner=getattr(self.store, "owner", None) or "")
        chain = journal.Chain(run_id)
        ended = [Ended(record_of_run(row, run).pack())] if row.status != "active" else []
        first_call = _first_call(run) if drive else []
        lines = chain.lines([run.begun, *entries, *ended, *first_call])
        job = job and replace(job, carrier=trace_context())
        thoughts = self.rows(run.thoughts, 0, run.branches)
        accepted = await self.store.create_run(
            row, lines, session, key, thoughts=thoughts, drive=drive, job=job
        )
        if accepted != run_id:
            return Accepted(accepted)
        chain.extend(lines[: len(lines) - len(first_call)])
        opened = self._hold(row, run, chain)
        opened.first_call = first_call
        return Accepted(run_id, opened)

    # -- reading

    async def read(self, run_id: str, *, whole: bool = True) -> OpenRun:
        """Read a run by folding its journal. If `whole` is False, an active run is folded from its latest checkpoint.

        Raises:
            NotFoundError: The run does not exist.
            StoreError: `store_corrupt`: the journal is damaged.
            ConflictError: `strategy_changed`: the journal does not fit the current version of its strategy;
                `strategy_unknown`: the strategy is missing.
        """
        row = await self.store.run(run_id)
        if not whole and row.status == "active":
            checkpoint, lines = await self.store.tail(run_id)
            if checkpoint is not None:
                chain = journal.Chain(run_id, checkpoint.seq, checkpoint.digest)
                run = fold_from(checkpoint.body, [*journal.decode(chain, lines)], self.strategies)
                if run is not None:
                    return self._hold(row, run, chain, checkpoint.seq)
                lines = await self.store.lines(run_id)
        else:
            lines = await self.store.lines(run_id)
        return await journal.offload(lines, lambda: self._fold(row, lines))

    def _fold(self, row: RunRow, lines: Sequence[Line]) -> OpenRun:
        chain = journal.Chain(row.run_id)
        return self._hold(row, fold(journal.decode(chain, lines), self.strategies), chain)

    def _hold(self, row: RunRow, run: Run, chain: journal.Chain, checkpoint_seq: int = 0) -> OpenRun:
        return OpenRun(self.store, row, run, chain, checkpoint_seq, self.policy, self.rows, self.on_end)

    async def recorded_run(self, run_id: str) -> RecordedRun:
        """Read a run's journal without folding it."""
        row, lines = await self.store.run(run_id), await self.store.lines(run_id)
        entries, _ = await journal.offload(lines, lambda: journal.read(run_id, lines))
        return RecordedRun(row, lines, entries, *journal.terms(entries))

    async def record(self, run_id: str) -> Record:
        """Return the record that was written at the end of a run. If there is none, make a record from the folded run.

        If the strategy is missing or no longer fits, make the record from the row and the events of the run instead.
        """
        return (await self.view(run_id)).record

    async def last_line(self, run_id: str) -> tuple[int, bytes]:
        """Return the position and the digest of the last line of a run's journal, without folding the run."""
        checkpoint, lines = await self.store.tail(run_id)
        last = lines[-1] if lines else checkpoint
        assert last is not None, "a journal begins with a line"
        return last.seq, last.digest

    async def view(self, run_id: str) -> RunView:
        """Return the row and the record of a run, and the last line of its journal."""
        row, lines = await self.store.run(run_id), await self.store.lines(run_id)
        return await self.view_of(row, lines)

    async def view_of(self, row: RunRow, lines: Sequence[Line]) -> RunView:
        """Build the view of a run from its row and the lines of its journal."""
        return RunView(row, await journal.offload(lines, lambda: self._record(row, lines)), lines[-1])

    def _record(self, row: RunRow, lines: Sequence[Line]) -> Record:
        recorded = record_of(journal.read_last(row.run_id, lines))
        if recorded is not None:
            return recorded
        try:
            run = self._fold(row, lines).run
            if row.status != "active" and run.begun.version != run.strategy.version and differences(row, run):
                message = f"as {run.strategy.name} is today, its answers lead to another end"
                raise ConflictError(message, code="strategy_changed", run_id=row.run_id)
            return record_of_run(row, run)
        except ConflictError as error:
            if error.code not in ("strategy_changed", "strategy_unknown"):
                raise
            return record_of_row(row, journal.read(row.run_id, lines)[0], error)

    async def result(self, run_id: str) -> Result:
        """Return the result of a run so far."""
        return (await self.record(run_id)).result

    async def replay(self, run_id: str) -> dict[str, Any]:
        """Fold a run's journal again, without a model, and compare the result with the run's record.

        Returns:
            The result document with a member `replay`: {`identical` (None if there is no record yet), `events` (how
            many), `differs` (the names of the parts that differ: `events`, `path`, `thoughts`, `outcome`)}.
        """
        read = await self.read(run_id)
        run, differs = read.run, differences(read.row, read.run)
        identical = None if run.ended is None else not differs
        replay = {"identical": identical, "events": len(run.events), "differs": differs}
        return {**read.result.document(), "replay": replay}

    # -- driving

    @asynccontextmanager
    async def open(
        self, run_id: str, written: OpenRun | None = None, *, whole: bool = True
    ) -> AsyncGenerator[OpenRun]:
        """Take the right to drive a run, then read the run.

        Args:
            written: The run that this task has just accepted, if any. This run is not read again.
            whole: Whether to read the whole history of the run. Otherwise, reading begins at the latest checkpoint.

        Raises:
            ConflictError: Another task drives the run.
        """
        async with AsyncExitStack() as held:
            await self._take_right(run_id, held)
            yield written or await self.read(run_id, whole=whole)

    async def cancel(self, run_id: str, detail: str = BY_USER) -> Result:
        """Record a run as cancelled, and wait up to `RELEASE_S` seconds for its drive to stop.

        Raises:
            ConflictError: The run has ended already.
        """
        await self.command(run_id, Stopped("cancelled", detail))
        for _ in range(RELEASE_S * 20):
            try:
                async with self.store.drive(run_id):
                    break
            except ConflictError:
                await asyncio.sleep(0.05)
        return await self.result(run_id)

    async def command(self, run_id: str, entry: TermsChanged | Stopped) -> None:
        """Write an entry that changes the limits of an active run, or pauses, continues or ends the run.

        The process that drives the run obeys the entry at its next write, or within a second.

        Raises:
            ConflictError: The run has ended, is already (un)paused as requested, or is coached and cannot be paused.
        """
        while True:
            opened = await self.read(run_id) if isinstance(entry, Stopped) else None
            # The row is read after the last line, so that a line added in between makes the write fail.
            seq, digest = await self.last_line(run_id)
            row = await self.store.run(run_id)
            _check_command(row, entry)
            try:
                if opened is not None and isinstance(entry, Stopped):
                    await opened.stop(entry.reason, entry.detail)
                elif isinstance(entry, TermsChanged):
                    # The run is not folded: the long journal of a busy run would grow faster than it can be folded.
                    paused = row.paused if entry.paused is None else entry.paused
                    row = replace(row, paused=paused, updated_at_ms=now_ms())
                    await self.store.append(run_id, journal.Chain(run_id, seq, digest).lines([entry]), row)
                return
            except ConflictError as error:
                # Any other conflict means that another process has added a line.
                if error.code == "lease_lost":
                    raise

    async def _take_right(self, run_id: str, held: AsyncExitStack) -> None:
        """Take the right to drive a run. For a coached run, wait up to `QUEUE_S` seconds for the right."""
        until = time.monotonic() + QUEUE_S
        while True:
            try:
                await held.enter_async_context(self.store.drive(run_id))
                return
            except ConflictError as error:
                if (await self.store.run(run_id)).model != CALLER:
                    raise
                if time.monotonic() >= until:
                    message = (
                        f"other answers to run {run_id} have been in work for {QUEUE_S} s; try again later"
                    )
                    raise ConflictError(message, retryable=True, **error.details) from error
            await asyncio.sleep(0.02)


def _first_call(run: Run) -> list[CallIntended]:
    """Return a list with the entry for a new run's first call. If the call need not be recorded, the list is empty."""
    if run.participants.model == CALLER or not limits_calls(run.budget):
        return []
    return [CallIntended(pending.id) for pending in run.open_effects if isinstance(pending.effect, Ask)][:1]


def _check_command(row: RunRow, entry: TermsChanged | Stopped) -> None:
    why = ""
    if row.status != "active":
        why = f"has ended already ({row.status})"
    elif isinstance(entry, Stopped) or entry.paused is None:
        return
    elif entry.paused and row.model == CALLER:
        why = "already waits for answers from its caller"
    elif entry.paused == row.paused:
        why = "is paused already" if row.paused else "is not paused"
    if why:
        raise ConflictError(f"run {row.run_id} {why}", run_id=row.run_id)


class RecordedRun(NamedTuple):
    """A run that was read from its journal but not folded, with the latest limits and participants of the run."""

    row: RunRow
    lines: Sequence[Line]
    entries: Sequence[Entry]
    begun: Begun
    budget: Budget
    participants: ParticipantNames

    def fork(self, at: int, reworded: Mapping[str, str] | None = None) -> Fork:
        """Return the part of this run that a fork copies.

        Args:
            at: How many events to copy. The fork copies no readings of answers, but reads the answers again.
            reworded: Maps the ids of questions that are open after the copied events to their new texts.

        Raises:
            UsageError: A text is empty or too long, or `at` is negative.
            ConflictError: The run has fewer than `at` events.
        """
        check_rewordings(reworded or {})
        taken = list[Settled]()
        for entry in self.entries:
            if isinstance(entry, Resumed) and entry.budget is not None:
                taken = [*takewhile(lambda each: not isinstance(each.event, Closing), taken)]
            elif isinstance(entry, Settled) and not isinstance(entry.event, Stopped):
                taken.append(replace(entry, reading=None))
        if not 0 <= at <= len(taken):
            message = f"run {self.row.run_id} can be forked at a number from 0 to {len(taken)}, not at {at}"
            raise (UsageError if at < 0 else ConflictError)(message, field="at")
        texts = {**self.begun.reworded, **(reworded or {})}
        return Fork(self.row.run_id, self.participants, taken[:at], texts, [*(reworded or {})])


class Accepted(NamedTuple):
    """An accepted run. `written` is the run that was just written. It is None if the request is a repetition."""

    run_id: str
    written: OpenRun | None = None


class RunView(NamedTuple):
    """The row and the record of a run, as of the last line of its journal."""

    row: RunRow
    record: Record
    last: Line
