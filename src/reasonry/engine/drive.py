"""An open run and its drive. Until the run ends, the drive performs effects, and writes and folds their events.

Rule 1: a command to a run, such as a pause or a cancellation, is a journal entry, so the command outlives the drive.
Rule 2: a drive that halts sends no new request. Answers to earlier requests may still arrive.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from ..core.budget import Budget, Refusal
from ..core.effects import Ask, CallTool
from ..core.events import NOTHING, Closing, Event, Stopped
from ..core.machine import Step
from ..errors import ConflictError, StoreError
from ..records import RETRY_S, JobOptions, Line, RunRow, Store, Use, now_ms
from . import journal
from .budget_guard import (
    CLOSED_BY,
    KEPT_SHARE,
    KEPT_TIMES,
    BudgetGuard,
    closing_reserve,
    limit_reached,
    refuse_call,
)
from .calls import Calls
from .control import Control
from .in_flight import InFlight
from .journal import CallIntended, Chain, Ended, Entry, ParticipantNames, Resumed, Settled, Steered
from .observer import ContainedObserver, Observer
from .policy import Performers, Policy
from .record import Record, Rows, record_of_run
from .result import Result, outcome_of, result_of, row_after
from .run import Run, fold
from .telemetry import facts_of_run, trace_context, trace_work
from .watchdog import WATCHDOG

_LOG = logging.getLogger("reasonry")

T = TypeVar("T")

LOOK_EVERY_S: Final = 0.5
"""Seconds between two reads of the store for news from other processes, such as the cancellation of a run."""

KEEP_EVERY: Final = 32
"""After this many new lines, the folded state of a coached run is saved, so that answers to a long run stay cheap."""


class OpenRun:
    """A run that was folded from its journal, for a task that reads, drives or stops the run.

    Args:
        kept: The position of the checkpoint where the fold began. 0 means that the fold began with the first line.
        rows: A function that turns thoughts into rows of the run's session.
        on_end: An async function that is called with the run once the run has ended in this process.
    """

    def __init__(
        self,
        store: Store,
        row: RunRow,
        run: Run,
        chain: Chain,
        kept: int,
        policy: Policy,
        rows: Rows,
        on_end: Callable[[Run], Awaitable[None]] | None = None,
    ) -> None:
        self.store, self.policy, self._rows, self._on_end = store, policy, rows, on_end
        self.row, self.run, self.chain, self._kept = row, run, chain, kept
        self._end: Record | None = None
        """The record of the run, if the last write ended the run."""
        self._thoughts = self.run.skipped.thoughts
        """How many thoughts the session of the run has, as far as this object knows."""
        self.first_call: Sequence[CallIntended] = ()
        """The last entry of a run that was just accepted, if the journal has the entry but `run` does not yet."""
        self.awaits_store: Callable[[], bool] = lambda: False
        """Returns whether to retry work while the store is unavailable; see `patiently`."""

    @property
    def record(self) -> Record:
        """The run's record."""
        return self._end or record_of_run(self.row, self.run)

    @property
    def result(self) -> Result:
        """The run's result so far."""
        return self._end.result if self._end else result_of(self.row.run_id, self.row.session_id, self.run)

    async def drive(
        self,
        performers: Performers,
        observer: Observer | None = None,
        *,
        coached: bool = False,
        control: Control | None = None,
    ) -> Result:
        """Drive the run until it ends. If this task is cancelled, the run is recorded as cancelled.

        Args:
            coached: Whether the caller answers the questions. If so, the drive ends once all other effects are done.
        """
        watch = ContainedObserver(observer) if observer else Observer()
        if self.run.snapshot.status == "active":
            watch.began(self.row.run_id, self.run)
            with trace_work(
                f"invoke_agent {self.row.strategy}", "INTERNAL", facts_of_run(self.row)
            ) as traced:
                await Drive(self, performers, watch, coached, control).complete()
                traced.note(facts_of_run(self.row))
                if self.row.outcome == "error":
                    traced.note_failure(self.row.reason or "failed")
            if self.row.outcome is not None and self.row.status != "active":
                meter, outcome = self.policy.meter, self.row.outcome
                meter.add("runs", outcome=outcome)
                meter.add("run_seconds", self.run.snapshot.at_ms / 1_000, outcome=outcome)
            watch.ended(self.row.run_id, self.run)
            await self._tell_end()
        if coached:
            await self._keep()
        return self.result

    async def _tell_end(self) -> None:
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
        await self.write(entry, job=job and replace(job, carried=trace_context()))

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
            await self._tell_end()
        return refused

    async def stop(self, reason: str, detail: str) -> None:
        """End the run without a drive; see `Stopped`. If the run has already ended, replace its termination."""
        lifted = [Resumed()] if self.run.snapshot.status != "active" else []
        for entry in lifted:
            self.run.apply(entry)
        self.run.take(Settled(None, Stopped(reason, detail, at_ms=self.run.snapshot.at_ms)))
        await self.write(*lifted, self.run.events[-1])

    async def _keep(self) -> None:
        """Save the folded state if at least `KEEP_EVERY` lines follow the last checkpoint."""
        if self.chain.seq - self._kept < KEEP_EVERY:
            return
        if (state := self.run.keep()) is not None:
            self._kept = self.chain.seq
            body = msgspec.json.encode(state)
            checkpoint = Line(self.chain.seq, body, self.chain.digest)
            await self.store.keep(self.row.run_id, checkpoint)

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

        writing = asyncio.ensure_future(self.patiently(append))
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

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
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
        row = await self.patiently(lambda: self.store.run(self.row.run_id))
        lines = await self.patiently(lambda: self.store.lines(self.row.run_id))
        known, strategies = self.chain.seq, self.run.strategies
        entries, self.chain = await journal.aside(lines, lambda: journal.read(row.run_id, lines))
        self.row, self.run = row, await journal.aside(lines, lambda: fold(entries, strategies))
        return lines[known:], entries[known:]


class Drive:
    """Drives an open run. Holds only the state of the drive: the effects in flight, the clock and the ledger."""

    def __init__(
        self,
        opened: OpenRun,
        performers: Performers,
        watch: Observer,
        coached: bool = False,
        control: Control | None = None,
    ) -> None:
        self.opened, self.watch, self.coached = opened, watch, coached
        self.performers = performers
        self.hands_over = coached or bool(performers.callers_tools)
        """Whether the drive may end while the run is active, because the caller performs the remaining effects."""
        self.control = control or Control()
        self.started = time.monotonic() - self.run.snapshot.at_ms / 1000 - performers.opened_s
        self.guard = BudgetGuard(self.run.ledger)
        self.calls = Calls(
            performers,
            self.guard,
            opened.policy,
            watch,
            self._intend,
            self._withdraw,
            self._at_ms,
            self.control.allowance,
            self.control.drain if opened.row.unattended else None,
        )
        self.effects = InFlight(self.calls)
        self.writing = asyncio.Lock()
        self.deadline: asyncio.Timeout | None = None

    @property
    def run(self) -> Run:
        """The folded run."""
        return self.opened.run

    async def complete(self) -> None:
        """Drive the run until it ends. After a pause or a drain, the drive ends once no effect is in flight.

        Raises:
            StoreError: An event could not be written. The run keeps the state that its journal records.
            asyncio.CancelledError: The caller was cancelled. Unless the drive drains, the run is recorded as cancelled.
        """
        task = asyncio.current_task()
        assert task is not None
        # At the time limit of the run, writes still wait for the store. After a cancellation or a cut, they do not.
        self.opened.awaits_store = lambda: (
            not (self.control.is_cut or task.cancelling() > bool(self.deadline and self.deadline.expired()))
        )
        self._fold_first_call()
        try:
            await self._until_a_limit()
        except asyncio.CancelledError:
            # Another process may have ended the run at the same moment.
            with suppress(ConflictError):
                if self.control.is_draining:
                    await self._leave()
                else:
                    await self._cancel("interrupted")
            raise
        except ConflictError as error:
            await self._yield_to_the_journal(error)
        finally:
            await self.effects.drop()
            self.opened.awaits_store = lambda: False
            # The calls refer back to the drive, which would otherwise stay in memory until garbage collection.
            del self.calls, self.effects

    def _fold_first_call(self) -> None:
        first_call, self.opened.first_call = self.opened.first_call, ()
        for entry in first_call:
            lines = self.opened.chain.lines([entry])
            self.run.apply(entry)
            self.opened.chain.extend(lines)
            self.calls.recorded, self.effects.intended[entry.id] = entry.id, 1
            self.watch.note_entry(self.run, lines[0].seq, entry, None)
            self.watch.note_lines(lines, [entry])

    async def _until_a_limit(self) -> None:
        while True:
            try:
                left = self._seconds_left()
                if left == 0:
                    raise TimeoutError
                async with asyncio.timeout(left) as self.deadline:
                    await self._loop()
                return
            except TimeoutError:
                detail = f"reached the limit of {self.run.budget.seconds or 0:g} s"
                if not await self._close(Refusal("max_seconds", detail)):
                    await self._stop("max_seconds", detail)
                    if self.run.snapshot.status != "active":
                        return

    async def _loop(self) -> None:
        self._apply_terms()
        while self.run.snapshot.status == "active" and (self.effects.tasks or not self.hands_over):
            if self._halts and not self.effects.tasks:
                await self._leave()
                let_go = partial(self.opened.store.let_go, self.opened.row.run_id)
                if self.control.is_draining or await self.opened.patiently(let_go):
                    return
                # The run was resumed or ended at the last moment.
                await self._check_outside()
            refusal = None if self.effects.tasks else next(iter(self.effects.refused.values()), None)
            if (reached := refusal or limit_reached(self.run)) is not None:
                if not await self._close(reached):
                    await self._stop(reached.reason, reached.detail)
                    self._apply_terms()
                continue
            waits = [*self.effects.tasks, self.control.news]
            done, _ = await asyncio.wait(waits, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if self.control.news.done():
                await self._follow_commands()
            self.effects.collect()
            if self.effects.unwritten:
                await self._write_unwritten()
            elif not done:
                await self._check_outside()
            self._launch()
        if self.run.snapshot.status == "active" and self.coached and await self._is_closed_by_questions():
            await self._loop()

    @property
    def _halts(self) -> bool:
        return self.run.paused or self.control.is_draining

    async def _follow_commands(self) -> None:
        """Obey the commands of `control`, and fold the changes that other processes have made to the run."""
        self.control.news = asyncio.get_running_loop().create_future()
        if self.control.cancelled is not None:
            await self._cancel(self.control.cancelled)
        if self.control.is_cut:
            await self._leave()
        if self.run.snapshot.status == "active":
            await self._check_outside()
        self._apply_terms()

    def _apply_terms(self) -> None:
        """Apply the run's current limits. Start new effects unless the drive halts."""
        self.guard.set_budget(self.run.budget)
        if self._halts:
            self.calls.halt.set()
        else:
            self.calls.halt.clear()
        self.effects.renew_terms()
        self._launch()

    async def _check_outside(self) -> None:
        """Fold the changes that other processes have made to the run. Raise ConflictError if the run has ended."""
        opened = self.opened
        row = await opened.patiently(lambda: opened.store.run(opened.row.run_id))
        if row.status != "active":
            raise ConflictError("the run was ended from outside")
        if row != opened.row:
            async with self.writing:
                if await self._take_steering():
                    # Record the calls in flight, so that a new limit on calls counts them too.
                    await self._write(self.effects.count_calls(self.calls.sent))

    async def _take_steering(self) -> bool:
        """Fold the entries that other processes have added. Return True if there are entries and all are `Steered`."""
        lines, came = await self.opened.reload()
        if not came or not all(isinstance(entry, Steered) for entry in came):
            return False
        for line, entry in zip(lines, came, strict=True):
            self.watch.note_entry(self.run, line.seq, entry, None)
        self.watch.note_lines(lines, came)
        self.control.wake()
        return True

    async def _leave(self) -> None:
        """End the drive but not the run. Cut off effects in flight and count their calls."""
        await self.effects.drop()
        await self._write_unwritten()
        if self.run.snapshot.status == "active":
            async with self.writing:
                await self._write(self.effects.count_calls(self.calls.sent))

    async def _is_closed_by_questions(self) -> bool:
        """Check the limits of a coached run. Return whether a limit closed the run."""
        if self._seconds_left() == 0:
            raise TimeoutError
        reached = refuse_call(self.run)
        if reached is None or await self._close(reached):
            return reached is not None
        await self._stop(reached.reason, reached.detail)
        return False

    async def _close(self, reached: Refusal) -> bool:
        """Close the run: let it ask its last questions with the reserved usage. Return False if that is impossible."""
        asks = self.run.last_questions
        is_late = bool(asks) and self._seconds_left(kept=0) == 0
        if reached.reason not in CLOSED_BY or asks is None or is_late:
            return False
        await self.effects.drop()
        await self._write_unwritten()
        # After the last events, closing may need a smaller reserve, so that another call is possible after all.
        is_due = reached.reason != "max_calls" or refuse_call(self.run) is not None
        if self.run.snapshot.status == "active" and is_due:
            if self.run.last_questions is None:
                return False
            cut = sum(self.calls.in_flight.values(), NOTHING)
            at_ms, number = self._at_ms(), self.run.closings + 1
            closing = Closing(reached.reason, reached.detail, at_ms, number, cut)
            async with self.writing:
                steps = await self._write([Settled(None, closing)])
            self.calls.in_flight.clear()
            for step in steps:
                self.watch.stepped(self.run, step)
        self._apply_terms()
        return True

    def _launch(self) -> None:
        left = self._seconds_left()
        if left is not None and self.deadline and not self.deadline.expired():
            self.deadline.reschedule(asyncio.get_running_loop().time() + left)
        if self._halts or limit_reached(self.run) is not None:
            return
        self.guard.keep(closing_reserve(self.run))
        known = self.effects.known
        for pending in self.run.open_effects:
            effect = pending.effect
            is_callers = isinstance(effect, CallTool) and effect.tool in self.performers.callers_tools
            if is_callers or (self.coached and isinstance(effect, Ask)) or pending.id in known:
                continue
            self.effects.tasks[asyncio.create_task(self.calls.perform(pending))] = pending

    async def _write_unwritten(self) -> None:
        """Write the events that have arrived. If the first call was recorded but not sent, withdraw its entry."""
        await self._withdraw()
        async with self.writing:
            steps = await self._write(self.effects.unwritten[:], unwritten=len(self.effects.unwritten))
        for step in steps:
            self.watch.stepped(self.run, step)

    async def _write(self, entries: Sequence[Entry], unwritten: int = 0) -> list[Step]:
        """Fold and write entries. If another process wrote `Steered` entries first, fold them and try again."""
        while entries:
            try:
                return await self._write_next(entries, unwritten)
            except ConflictError:
                if not await self._take_steering():
                    raise
                # New limits may lift the limit at which the run would end.
                if isinstance(entries[0], Settled) and entries[0].id is None and not self.calls.in_flight:
                    break
                counted = self.effects.count_calls(self.calls.sent)
                entries = [*counted, *(entry for entry in entries if entry not in counted)]
        return []

    async def _write_next(self, entries: Sequence[Entry], unwritten: int) -> list[Step]:
        if any(isinstance(entry, Settled) for entry in entries):
            WATCHDOG.note_life(self.opened.row.run_id)
        steps, folded, waiting = list[Step](), list[Entry](), deque(entries)
        while waiting:
            entry = waiting.popleft()
            if isinstance(entry, Settled) and entry.id in self.effects.cancelled:
                # The run no longer needs the answer, but the calls for the answer count.
                calls = {entry.id or "": getattr(entry.event, "usage", NOTHING).calls}
                waiting.extendleft(self.effects.count_calls(calls))
                continue
            step = self.run.apply(entry)
            folded.append(self.run.events[-1] if isinstance(entry, Settled) else entry)
            self.watch.note_entry(self.run, self.opened.chain.seq + len(folded), folded[-1], step)
            if step is not None:
                steps.append(step)
                cut = await self.effects.cut_off(step.cancelled)
                waiting.extendleft(self.effects.count_calls(cut))

        def on_written(lines: Sequence[Line], written: Sequence[Entry]) -> None:
            del self.effects.unwritten[:unwritten]
            for entry in written:
                if isinstance(entry, CallIntended):
                    self.effects.intended[entry.id] += -1 if entry.refused else 1
            self.watch.note_lines(lines, written)

        # Rows tell how much an owner has spent today, and how much usage a paused run has.
        await self.opened.write(
            *folded,
            updates_row=self.control.allowance is not None or self._halts,
            uses_session=any(step.thoughts for step in steps),
            on_written=on_written,
        )
        return steps

    async def _intend(self, effect_id: str, refused: bool) -> None:
        dearest = NOTHING if refused else self.guard.ledger.largest
        async with self.writing:
            if not refused:
                self.calls.halt.check()
            await self._write([CallIntended(effect_id, dearest.tokens, dearest.usd, refused)])

    async def _withdraw(self) -> None:
        effect_id = self.calls.recorded
        if effect_id is None:
            return
        async with self.writing:
            # The call may have gone out while this task waited for another write.
            if self.calls.recorded == effect_id:
                self.calls.recorded = None
                await self._write([CallIntended(effect_id, refused=True)])

    async def _stop(self, reason: str, detail: str) -> None:
        await self.effects.drop()
        await self._write_unwritten()
        if self.run.snapshot.status == "active":
            cut = sum(self.calls.in_flight.values(), NOTHING)
            async with self.writing:
                await self._write([Settled(None, Stopped(reason, detail, self._at_ms(), cut))])

    async def _cancel(self, detail: str) -> None:
        while self.run.snapshot.status == "active":
            await self._stop("cancelled", detail)

    async def _yield_to_the_journal(self, error: ConflictError) -> None:
        """Reload the run, because another process has written to it. Raise ConflictError if the run is still active."""
        await self.effects.drop()
        await self.opened.reload()
        run_id = self.opened.row.run_id
        if self.run.snapshot.status == "active":
            if error.code == "lease_lost":
                raise error
            raise ConflictError(f"run {run_id} is driven by another process", run_id=run_id)
        calls = Counter(self.calls.sent)
        for settled in self.effects.unwritten:
            calls[settled.id or ""] += getattr(settled.event, "usage", NOTHING).calls
        # This write is refused if another process drives the run by now.
        with suppress(ConflictError):
            async with self.writing:
                await self._write(self.effects.count_calls(calls))

    def _seconds_left(self, kept: float | None = None) -> float | None:
        """Return the seconds left until the run's time limit, minus `kept` seconds. Without a limit, return None.

        By default, `kept` is the time to reserve for the last questions if the run can be closed.
        """
        seconds, run = self.run.budget.seconds, self.run
        if seconds is None:
            return None
        if kept is None:
            asks = None if run.snapshot.closing else run.last_questions
            kept = max(seconds * KEPT_SHARE, self.calls.slowest_s * KEPT_TIMES) if asks else 0.0
        return max(0.0, seconds - kept - self._at_ms() / 1000)

    def _at_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)
