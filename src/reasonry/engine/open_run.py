"""An open run: its folded state, and the writes to its journal."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from ..core.budget import Budget
from ..core.events import Event, Stopped
from ..errors import StoreError
from ..records import RETRY_S, JobOptions, Line, RunRow, Store, Use, now_ms
from . import journal
from .budget_guard import limit_reached
from .journal import CallIntended, Chain, Ended, Entry, ParticipantNames, Resumed, Settled
from .policy import Policy
from .record import Record, Rows, record_of_run
from .result import Result, outcome_of, result_of, row_after
from .run import Run, fold
from .telemetry import trace_context
from .watchdog import WATCHDOG

_LOG = logging.getLogger("reasonry")

T = TypeVar("T")

CHECKPOINT_EVERY: Final = 32
"""After this many new lines, the folded state of a coached run is saved, so that answers to a long run stay cheap."""


class OpenRun:
    """A run that was folded from its journal, for a task that reads, drives or stops the run.

    Args:
        checkpoint_seq: The position of the checkpoint where the fold began, or 0 if the fold began with the first line.
        rows: A function that turns thoughts into rows of the run's session.
        on_end: An async function that is called with the run once the run has ended in this process.
    """

    def __init__(
        self,
        store: Store,
        row: RunRow,
        run: Run,
        chain: Chain,
        checkpoint_seq: int,
        policy: Policy,
        rows: Rows,
        on_end: Callable[[Run], Awaitable[None]] | None = None,
    ) -> None:
        self.store, self.policy, self._rows, self._on_end = store, policy, rows, on_end
        self.row, self.run, self.chain, self._checkpoint_seq = row, run, chain, checkpoint_seq
        self._end: Record | None = None
        """The record of the run, if the last write ended the run."""
        self._thoughts = self.run.skipped.thoughts
        """How many thoughts the session of the run has, as far as this object knows."""
        self.first_call: Sequence[CallIntended] = ()
        """The last entry of a run that was just accepted, if the journal has the entry but `run` does not yet."""
        self.awaits_store: Callable[[], bool] = lambda: False
        """Returns whether to retry work while the store is unavailable; see `retry`."""

    @property
    def record(self) -> Record:
        """The run's record."""
        return self._end or record_of_run(self.row, self.run)

    @property
    def result(self) -> Result:
        """The run's result so far."""
        return self._end.result if self._end else result_of(self.row.run_id, self.row.session_id, self.run)

    async def tell_end(self) -> None:
        """Call `on_end` if the run has ended."""
        if self._on_end is not None and self.run.snapshot.status != "active":
            await self._on_end(self.run)

    async def reopen(
        self,
        budget: Budget | None = None,
        participants: ParticipantNames | None = None,
        *,
        job: JobOptions | None = None,
    ) -> None:
        """Resume a run after a crash, a cancellation, a limit or an outside failure. Any other ended run stays ended.

        Args:
            budget: New limits; earlier spending counts against the new limits. None keeps the present limits.
            participants: The participants from now on. None keeps the present participants.
            job: Options that turn the run into a job, as in `Engine.accept`. This task then loses its right to drive.
        """
        begins_anew = self.run.paused or self.run.out or job is not None
        if self.run.snapshot.status == "active" and not (budget or participants or begins_anew):
            return
        entry = Resumed(None if budget == self.run.budget else budget, participants)
        self.run.apply(entry)
        if self.run.snapshot.status != "active":
            return
        self.row = replace(self.row, unattended=self.row.unattended or job is not None)
        await self.write(entry, job=job and replace(job, carrier=trace_context()))

    async def take_answers(
        self, answers: Sequence[tuple[str, Event]], *, refusing: bool = False
    ) -> dict[str, str]:
        """Accept answers until a limit is reached. Return the reasons for refused answers, by effect id.

        Answers that the run no longer needs are dropped.

        Args:
            refusing: Whether to refuse an unreadable answer, so that its question stays open. A doubtful answer is
                accepted, and its question is asked again.

        Raises:
            ConflictError: The run does not wait for one of the answers. No answer is accepted.
        """
        WATCHDOG.note_life(self.row.run_id)
        taken, refused, cut = list[Settled](), dict[str, str](), set[str]()
        for effect_id, event in answers:
            if limit_reached(self.run):
                break
            if effect_id in cut:
                continue
            settled = Settled(effect_id, event)
            step = self.run.step_after(settled)
            reading = step.reading
            if refusing and reading is not None and reading.refusal is not None and not reading.doubted:
                refused[effect_id] = " ".join(reading.refusal.split())
                continue
            self.run.take(settled, step)
            cut.update(step.cancelled)
            taken.append(self.run.events[-1])
        if taken:
            await self.write(*taken)
            await self.tell_end()
        return refused

    async def stop(self, reason: str, detail: str) -> None:
        """End the run without a drive; see `Stopped`. If the run has already ended, replace its termination."""
        lifted = [Resumed()] if self.run.snapshot.status != "active" else []
        for entry in lifted:
            self.run.apply(entry)
        self.run.take(Settled(None, Stopped(reason, detail, at_ms=self.run.snapshot.at_ms)))
        await self.write(*lifted, self.run.events[-1])

    async def save_checkpoint(self) -> None:
        """Save the folded state if at least `CHECKPOINT_EVERY` lines follow the last checkpoint."""
        if self.chain.seq - self._checkpoint_seq < CHECKPOINT_EVERY:
            return
        if (state := self.run.checkpoint()) is not None:
            self._checkpoint_seq = self.chain.seq
            body = msgspec.json.encode(state)
            checkpoint = Line(self.chain.seq, body, self.chain.digest)
            await self.store.save_checkpoint(self.row.run_id, checkpoint)

    # -- the journal of the run

    async def write(
        self,
        *entries: Entry,
        updates_row: bool = True,
        uses_session: bool = True,
        job: JobOptions | None = None,
        on_written: Callable[[Sequence[Line], Sequence[Entry]], Any] = lambda lines, entries: None,
    ) -> None:
        """Write entries that are already folded. If the run has ended, also write its record.

        The write finishes even if this task is cancelled in the meantime.

        Args:
            updates_row: Whether to update the row that lists show for the run. The end of a run always updates the row.
            uses_session: Whether the write counts as use of the session. The end of a run always counts as use.
            on_written: Called with the lines and their entries once the lines are durable.
        """
        now = now_ms()
        if self.run.snapshot.status != "active" and not self.run.is_whole:
            # The record needs the whole history.
            before, _ = journal.read(self.row.run_id, await self.store.lines(self.row.run_id))
            self.run = fold([*before, *entries], self.run.strategies)
        is_over = self.run.snapshot.status != "active" and self.run.ended is None
        end = record_of_run(self.row, self.run) if is_over else None
        entries = (*entries, Ended(end.pack())) if end else entries
        lines = self.chain.lines(entries)
        use = None
        if uses_session or end:
            known = self._thoughts
            new = self.run.thoughts[known - self.run.skipped.thoughts :]
            use = Use(self.run.counts.thoughts, now, tuple(self._rows(new, known, self.run.branches)))
        updates_row = updates_row or end is not None or outcome_of(self.run) != self.row.outcome
        row = row_after(self.row, self.run, now) if updates_row else None
        is_again = False

        async def append() -> None:
            nonlocal is_again
            # The store may have written lines that it did not acknowledge.
            if is_again and (await self.store.lines(self.row.run_id, self.chain.seq))[: len(lines)] == lines:
                return
            is_again = True
            await self.store.append(self.row.run_id, lines, row, use, job=job)

        writing = asyncio.ensure_future(self.retry(append))
        try:
            await asyncio.shield(writing)
        finally:
            if not writing.done():
                await asyncio.wait([writing])
            if writing.exception() is None:
                self.chain.extend(lines)
                self.row, self._end = row or self.row, end
                self._thoughts = use.thoughts if use else self._thoughts
                on_written(lines, entries)

    async def retry(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do work on the store. Repeat the work while the store is unavailable, so that no answer is lost.

        If the store refuses the work, for example because another process drives the run, raise its error at once.
        """
        is_told = False
        while True:
            try:
                return await work()
            except StoreError as error:
                if not (error.retryable and self.awaits_store()):
                    raise
                if not is_told:
                    _LOG.warning("run %s waits for its store: %s", self.row.run_id, error)
                is_told = True
            await asyncio.sleep(RETRY_S)

    async def reload(self) -> tuple[list[Line], list[Entry]]:
        """Read and fold the journal again; return the lines and entries that other processes have added."""
        row = await self.retry(lambda: self.store.run(self.row.run_id))
        lines = await self.retry(lambda: self.store.lines(self.row.run_id))
        known, strategies = self.chain.seq, self.run.strategies
        entries, self.chain = await journal.offload(lines, lambda: journal.read(row.run_id, lines))
        self.row, self.run = row, await journal.offload(lines, lambda: fold(entries, strategies))
        return lines[known:], entries[known:]
