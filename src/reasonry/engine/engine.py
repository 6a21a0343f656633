"""The engine: accepts runs, drives them, resumes them.

A run is accepted by writing it down. Driving it is a loop: perform what the machine wants, write down what came of it,
fold it in. All that is known of a run is in its journal, so any process may continue where another one died.
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
from ..core.events import Closing, Stopped
from ..core.registry import Registry
from ..errors import ConflictError, UsageError
from ..records import JobOptions, Line, RequestKey, RunRow, Store, new_id
from . import journal
from .drive import OpenRun
from .fork import Fork, begin_run, check_rewordings
from .journal import CALLER, Begun, Ended, Entry, ParticipantNames, Resumed, Settled, Steered
from .policy import Performers, Policy, rewind
from .record import (
    Record,
    Rows,
    differences,
    record_as_it_stands,
    record_of,
    record_of_row,
)
from .result import Result, rows_of
from .run import Run, check_steering, fold, fold_from
from .telemetry import carried_context

Steer = Callable[[str, Steered], Awaitable[None]]
"""Changes what an active run may do, by its id."""

LET_GO_S: Final = 3
"""How long a cancellation waits for the drive it ends."""

QUEUE_S: Final = 10
"""How long answers to a coached run wait for others that are being taken."""

BY_USER: Final = "cancelled by its user"
"""Why a run was cancelled, unless something else is said."""


class Engine:
    """Runs strategies over one store.

    Args:
        strategies: The registry, by canonical name.
        rows: See `OpenRun`; so is `on_end`.
    """

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
        """Write a run down and open it for its performers, without reading it back. See `accept` and `open`."""
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
        """Write a run down, unless the same request has begun one before; nothing is asked yet.

        Args:
            order: What is asked for; the strategy's version, the instant and what is of the fork are filled in.
            fork: What it takes over of another run.
            session_id: The session the run writes, which then does not expire; empty: a new one.
            job: Whoever drives the jobs of the store brings it to its end, and until then it waits so.
            drive: It is opened here next, so the right to drive it is taken at once.

        Raises:
            ConflictError: What it takes over does not fit it, or a question with another text is not open then;
                `idempotency_conflict`: the key was used for another request.
        """
        run_id = new_id()
        run, entries = begin_run(order, fork, self.strategies)
        row, session = rows_of(run_id, run, session_id)
        row = replace(row, unattended=job is not None)
        chain = journal.Chain(run_id)
        ended = [Ended(record_as_it_stands(row, run).pack())] if row.status != "active" else []
        lines = chain.lines([run.begun, *entries, *ended])
        job = job and replace(job, carried=carried_context())
        thoughts = self.rows(run.thoughts, 0, run.branches)
        accepted = await self.store.create_run(
            row, lines, session, key, thoughts=thoughts, drive=drive, job=job
        )
        if accepted != run_id:
            return Accepted(accepted)
        chain.extend(lines)
        return Accepted(run_id, self._hold(row, run, chain))

    # -- reading

    async def read(self, run_id: str, *, whole: bool = True) -> OpenRun:
        """Fold a run from its journal.

        Args:
            whole: From its start; otherwise, where it has not ended, from its latest checkpoint on.

        Raises:
            NotFoundError: There is no such run.
            StoreError: `store_corrupt`: its journal is damaged.
            ConflictError: `strategy_changed`: another version of its strategy wrote it, and it does not fit today's;
                `strategy_unknown`: its strategy is not here.
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
        return await journal.aside(lines, lambda: self._fold(row, lines))

    def _fold(self, row: RunRow, lines: Sequence[Line]) -> OpenRun:
        chain = journal.Chain(row.run_id)
        return self._hold(row, fold(journal.decode(chain, lines), self.strategies), chain)

    def _hold(self, row: RunRow, run: Run, chain: journal.Chain, kept: int = 0) -> OpenRun:
        return OpenRun(self.store, row, run, chain, kept, self.policy, self.rows, self.on_end)

    async def recorded_run(self, run_id: str) -> RecordedRun:
        """Read a run's journal, without folding it."""
        row, lines = await self.store.run(run_id), await self.store.lines(run_id)
        entries, _ = await journal.aside(lines, lambda: journal.read(run_id, lines))
        return RecordedRun(row, lines, entries, *journal.terms(entries))

    async def record(self, run_id: str) -> Record:
        """Return all there is to see of a run: as it was recorded when it ended, or as it stands.

        A run that does not fit its strategy any more, or whose strategy is missing, and that has no record of its own,
        shows what its row and its events say.
        """
        return (await self.view(run_id)).record

    async def last_line(self, run_id: str) -> tuple[int, bytes]:
        """Return the number and the digest of the last line of a run's journal; nothing is folded."""
        kept, lines = await self.store.tail(run_id)
        last = lines[-1] if lines else kept
        assert last is not None, "a journal begins with a line"
        return last.seq, last.digest

    async def view(self, run_id: str) -> RunView:
        """Return the record of a run, with the line of its journal that it goes up to."""
        row, lines = await self.store.run(run_id), await self.store.lines(run_id)
        return await self.view_of(row, lines)

    async def view_of(self, row: RunRow, lines: Sequence[Line]) -> RunView:
        """Return the same of a run whose row and journal have been read."""
        return RunView(row, await journal.aside(lines, lambda: self._record(row, lines)), lines[-1])

    def _record(self, row: RunRow, lines: Sequence[Line]) -> Record:
        recorded = record_of(journal.read_last(row.run_id, lines))
        if recorded is not None:
            return recorded
        try:
            run = self._fold(row, lines).run
            if row.status != "active" and run.begun.version != run.strategy.version and differences(row, run):
                message = f"as {run.strategy.name} is today, its answers lead to another end"
                raise ConflictError(message, code="strategy_changed", run_id=row.run_id)
            return record_as_it_stands(row, run)
        except ConflictError as error:
            if error.code not in ("strategy_changed", "strategy_unknown"):
                raise
            return record_of_row(row, journal.read(row.run_id, lines)[0], error)

    async def result(self, run_id: str) -> Result:
        """Return where a run stands."""
        return (await self.record(run_id)).result

    async def replay(self, run_id: str) -> dict[str, Any]:
        """Walk a run's journal again, without a model, and compare the result with the run's record.

        Returns:
            The result document, plus `replay`: {`identical`: bool or None for a run that has not ended, `events`:
            their number, `differs`: which of `events`, `path`, `thoughts` and `outcome` are not the same}.
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
        """Take the right to drive a run, then read it; whatever is done with it is done on what was read.

        Args:
            written: The run as this task has just accepted it, so that it need not be read.
            whole: Read its whole history, rather than from the latest checkpoint on.

        Raises:
            ConflictError: Somebody else drives it.
        """
        async with AsyncExitStack() as held:
            await self._take_right(run_id, held)
            yield written or await self.read(run_id, whole=whole)

    async def cancel(self, run_id: str, detail: str = BY_USER) -> Result:
        """Record a run as cancelled, and wait a moment until whoever drives it has noticed and stopped.

        Args:
            detail: Why, as its record is to say it.

        Raises:
            ConflictError: It has ended already.
        """
        await self.steer(run_id, Stopped("cancelled", detail))
        for _ in range(LET_GO_S * 20):
            try:
                async with self.store.drive(run_id):
                    break
            except ConflictError:
                await asyncio.sleep(0.05)
        return await self.result(run_id)

    async def steer(self, run_id: str, entry: Steered | Stopped) -> None:
        """Write down what an active run may do from now on, or that it has been ended.

        Whoever drives it heeds it, in whatever process, at the next write or within a second.

        Raises:
            ConflictError: See `check_steering`.
        """
        while True:
            opened = await self.read(run_id)
            check_steering(run_id, opened.run, entry)
            try:
                if isinstance(entry, Stopped):
                    await opened.stop(entry.reason, entry.detail)
                else:
                    opened.run.apply(entry)
                    await opened.write(entry)
                return
            except ConflictError as error:
                # Else a line has come in between.
                if error.code == "lease_lost":
                    raise

    async def _take_right(self, run_id: str, held: AsyncExitStack) -> None:
        """Take the right to drive a run; a coached run is held for moments only, so its callers queue up."""
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


class RecordedRun(NamedTuple):
    """A run as its journal has it, read and not folded.

    Attributes:
        budget: The limits it was last given; `participants` likewise.
    """

    row: RunRow
    lines: Sequence[Line]
    entries: Sequence[Entry]
    begun: Begun
    budget: Budget
    participants: ParticipantNames

    def fork(self, at: int, reworded: Mapping[str, str] | None = None) -> Fork:
        """Return what a run takes over that begins at a point of this one.

        Args:
            at: How many of the run's events the new one starts with; their answers are read again.
            reworded: Other texts of questions that are open at that point, by their ids.

        Raises:
            UsageError: There is no such text, or it is too long; or there is no such number.
            ConflictError: The run has no such event.
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
    """A run that was asked for.

    Attributes:
        written: The run as it has been written down; None: the same request has begun it before.
    """

    run_id: str
    written: OpenRun | None = None


class RunView(NamedTuple):
    """All there is to see of a run, as of the last line of its journal."""

    row: RunRow
    record: Record
    last: Line
