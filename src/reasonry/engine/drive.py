"""A run held open, and one drive of it: perform, write down, fold in, until the run ends.

Rule 1: what is wanted of a drive is written into the journal before it holds, so that it outlives the drive.
Rule 2: where a drive is to halt, nothing new goes out. What is out already may still come in.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

import msgspec
from msgspec.structs import replace

from ..core.budget import Budget, Refusal
from ..core.effects import Ask, CallTool
from ..core.events import NOTHING, Closing, Event, Stopped
from ..core.machine import Step
from ..core.pending import Pending
from ..errors import ConflictError, StoreError
from ..records import RETRY_S, JobOptions, Line, RunRow, Store, Use, now_ms
from . import journal
from .budget_guard import (
    CLOSED_BY,
    KEPT_SHARE,
    KEPT_TIMES,
    BudgetExhausted,
    BudgetGuard,
    kept_for_the_end,
    limit_reached,
    limits_calls,
    refuse_call,
)
from .calls import Calls, Held
from .control import Control
from .journal import CallIntended, Chain, Ended, Entry, ParticipantNames, Resumed, Settled, Steered
from .observer import ContainedObserver, Observer
from .policy import Performers, Policy
from .record import Record, Rows, record_as_it_stands
from .result import Result, outcome_of, result_of, row_after
from .run import Run, fold
from .telemetry import carried_context, facts_of_run, trace_work
from .watchdog import WATCHDOG

_LOG = logging.getLogger("reasonry")

T = TypeVar("T")

LOOK_EVERY_S: Final = 0.5
"""How often a waiting drive looks whether somebody has cancelled its run."""

KEEP_EVERY: Final = 32
"""Lines of a coached run after which its folded state is kept, so that an answer costs the same however long it is."""


class OpenRun:
    """A run as its journal has it, read once, that this task may write to; whoever drives it holds the right to do so.

    Args:
        kept: The line of the checkpoint it was folded from.
        rows: Turns thoughts into the rows of the run's session.
        on_end: Awaited with the run once it has ended here.
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
        """What the last write has recorded of its end."""
        self._thoughts = self.run.skipped.thoughts
        """How many thoughts the session has, as far as is known here."""
        self.awaits_store: Callable[[], bool] = lambda: False
        """Whether what cannot be written while the store is away is tried again; see `patiently`."""

    @property
    def record(self) -> Record:
        """All there is to see of the run."""
        return self._end or record_as_it_stands(self.row, self.run)

    @property
    def result(self) -> Result:
        """Where the run stands."""
        return self._end.result if self._end else result_of(self.row.run_id, self.row.session_id, self.run)

    async def drive(
        self,
        performers: Performers,
        observer: Observer | None = None,
        *,
        coached: bool = False,
        control: Control | None = None,
    ) -> Result:
        """Perform the run until it ends, or until this task is cancelled: then it is recorded as cancelled.

        Args:
            coached: Questions are the caller's to answer: the drive ends when nothing else is left to perform.
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
        """Take the run up again, after a crash, a cancellation, a limit or a failure of the world.

        A run that came to its own end stays ended.

        Args:
            budget: New limits; what was spent before counts against them.
            participants: Who works on it from now on, if others do.
            job: As in `Engine.accept`, from now on; where workers share the store, the right to drive it is
                given back.
        """
        begins_anew = self.run.paused or self.run.out or job is not None
        if self.run.snapshot.status == "active" and not (budget or participants or begins_anew):
            return
        entry = Resumed(None if budget == self.run.budget else budget, participants)
        self.run.apply(entry)
        if self.run.snapshot.status != "active":
            return
        self.row = replace(self.row, unattended=self.row.unattended or job is not None)
        await self.write(entry, job=job and replace(job, carried=carried_context()))

    async def take_answers(
        self, answers: Sequence[tuple[str, Event]], *, refusing: bool = False
    ) -> dict[str, str]:
        """Take answers from outside, one by one, up to a limit; those after it, or after enough, are not taken.

        Args:
            refusing: An answer that cannot be read is not taken, and its question stays open; one that is only doubted
                is taken and asked for again.

        Returns:
            Why answers cannot be read, by question.

        Raises:
            ConflictError: An answer is not waited for. None of the answers is taken.
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
        """End the run, which nobody drives at present, or has ended at a limit, in one write; see `Stopped`."""
        lifted = [Resumed()] if self.run.snapshot.status != "active" else []
        for entry in lifted:
            self.run.apply(entry)
        self.run.take(Settled(None, Stopped(reason, detail, at_ms=self.run.snapshot.at_ms)))
        await self.write(*lifted, self.run.events[-1])

    async def _keep(self) -> None:
        """Keep the folded state once so many lines have come since the last checkpoint."""
        if self.chain.seq - self._kept < KEEP_EVERY:
            return
        state = self.run.keep()
        if state is not None:
            self._kept = self.chain.seq
            body = msgspec.json.encode(state)
            checkpoint = Line(self.chain.seq, body, self.chain.digest)
            await self.store.keep(self.row.run_id, checkpoint)

    # -- its journal

    async def write(
        self,
        *entries: Entry,
        says_row: bool = True,
        is_use: bool = True,
        job: JobOptions | None = None,
        on_written: Callable[[Sequence[Line], Sequence[Entry]], Any] = lambda lines, entries: None,
    ) -> None:
        """Write down entries that are folded in, and what the end of the run adds to them.

        A write once begun is finished even if this task is cancelled meanwhile.

        Args:
            says_row: Whether lists show the run as it now is; is_use: whether it counts as use of the session. The end
                of a run is both.
            on_written: Told of the lines once they are durable, and of the entries.
        """
        now = now_ms()
        if self.run.snapshot.status != "active" and not self.run.is_whole:
            # Its record has the whole history.
            before, _ = journal.read(self.row.run_id, await self.store.lines(self.row.run_id))
            self.run = fold([*before, *entries], self.run.strategies)
        is_over = self.run.snapshot.status != "active" and self.run.ended is None
        end = record_as_it_stands(self.row, self.run) if is_over else None
        entries = (*entries, Ended(end.pack())) if end else entries
        lines = self.chain.lines(entries)
        use = self._use(now) if is_use or end else None
        says_row = says_row or end is not None or outcome_of(self.run) != self.row.outcome
        row = row_after(self.row, self.run, now) if says_row else None
        is_again = False

        async def append() -> None:
            nonlocal is_again
            # What was not acknowledged may have been written.
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
        """Do work on the store, and while the store is away, again and again: no answer that came in is lost by that.

        It ends where the store refuses the work, as it does once another has taken the run over.
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
        """Read and fold the journal once more; return the lines, and entries, that others have written meanwhile."""
        row = await self.patiently(lambda: self.store.run(self.row.run_id))
        lines = await self.patiently(lambda: self.store.lines(self.row.run_id))
        known = self.chain.seq
        entries, self.chain = journal.read(row.run_id, lines)
        self.row, self.run = row, fold(entries, self.run.strategies)
        return lines[known:], entries[known:]

    def _use(self, at_ms: int) -> Use:
        """Return the use of the session now, with the thoughts that it has not yet."""
        run, known = self.run, self._thoughts
        new = run.thoughts[known - run.skipped.thoughts :]
        return Use(run.counts.thoughts, at_ms, tuple(self._rows(new, known, run.branches)))


class Drive:
    """Holds what lives only while a run is being driven: tasks, the clock, the budget's ledger.

    Args:
        opened: The run, which this task has the right to drive.
        coached: Questions are the caller's to answer: the drive ends when nothing else is left to perform.
    """

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
        """Whether the drive may end with the run active: what is left is the caller's to answer."""
        self.control = control or Control()
        self.started = time.monotonic() - self.run.snapshot.at_ms / 1000 - performers.opened_s
        self.guard = BudgetGuard(self.run.ledger)
        self.calls = Calls(
            performers,
            self.guard,
            opened.policy,
            watch,
            self._intend,
            self._at_ms,
            self.control.allowance,
            self.control.drain if opened.row.unattended else None,
        )
        self.tasks: dict[asyncio.Task[Event], Pending] = {}
        self.unwritten: list[Settled] = []
        """Answers that came in and are not written down yet."""
        self.cancelled: set[str] = set()
        """Effects nobody waits for any more, because what came in was enough."""
        self.cut_calls: dict[str, int] = {}
        """How many calls went out for these."""
        self.intended: Counter[str] = Counter()
        """Calls that this drive has written down before they went out, by effect."""
        self.writing = asyncio.Lock()
        self.deadline = asyncio.timeout(None)
        self.refused: dict[str, Refusal] = {}
        """Effects that the limits keep from going out."""
        self.under_other_terms = frozenset[asyncio.Task[Event]]()
        """Tasks that began under earlier limits: what these refuse may go out now."""

    @property
    def run(self) -> Run:
        """The run as it stands."""
        return self.opened.run

    async def complete(self) -> None:
        """Drive the run until it ends, or until it is paused or drained and nothing is in flight: then it stays active.

        Raises:
            StoreError: What happened could not be written down; the run stays as the journal has it.
            asyncio.CancelledError: The caller was cancelled; the run is recorded as cancelled first, unless it drains.
        """
        task = asyncio.current_task()
        assert task is not None
        # The process that ends, or its user, does not wait; the time limit of the run does.
        self.opened.awaits_store = lambda: (
            not (self.control.is_cut or task.cancelling() > self.deadline.expired())
        )
        try:
            await self._until_a_limit()
        except asyncio.CancelledError:
            # Whoever ended the run at the same moment has written that down.
            with suppress(ConflictError):
                if self.control.is_draining:
                    await self._leave()
                else:
                    await self._stop("cancelled", "interrupted")
            raise
        except ConflictError as error:
            await self._yield_to_the_journal(error)
        finally:
            await self._drop_tasks()
            self.control.close()
            self.opened.awaits_store = lambda: False
            # They refer back to the drive: without this, all of it stays until garbage is collected.
            del self.calls

    async def _until_a_limit(self) -> None:
        while True:
            try:
                left = self._seconds_left()
                if left == 0:
                    raise TimeoutError
                async with asyncio.timeout(left) as self.deadline:
                    return await self._loop()
            except TimeoutError:
                detail = f"the limit of {self.run.budget.seconds or 0:g} s is reached"
                if not await self._close(Refusal("max_seconds", detail)):
                    return await self._stop("max_seconds", detail)

    async def _loop(self) -> None:
        self._apply_terms()
        while self.run.snapshot.status == "active" and (self.tasks or not self.hands_over):
            if self._halts and not self.tasks:
                await self._leave()
                if self.control.is_draining or await self._let_go():
                    return
                # It has been resumed, or ended, at the last moment.
                await self._check_outside()
            refusal = None if self.tasks else next(iter(self.refused.values()), None)
            if (reached := refusal or limit_reached(self.run)) is not None:
                if await self._close(reached):
                    continue
                await self._stop(reached.reason, reached.detail)
                return
            waits = [*self.tasks, self.control.news]
            done, _ = await asyncio.wait(waits, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if self.control.news.done():
                await self._take_orders()
            self._collect()
            if self.unwritten:
                await self._write_unwritten()
            elif not done:
                await self._check_outside()
            self._launch()
        if self.run.snapshot.status == "active" and self.coached and await self._is_closed_by_questions():
            await self._loop()

    @property
    def _halts(self) -> bool:
        """Whether nothing new is to be begun."""
        return self.run.paused or self.control.is_draining

    async def _take_orders(self) -> None:
        """Do what is wanted of the drive."""
        self.control.news = asyncio.get_running_loop().create_future()
        while self.control.wanted and self.run.snapshot.status == "active":
            entry, done = self.control.wanted[0]
            if isinstance(entry, Stopped):
                await self._stop(entry.reason, entry.detail)
            else:
                # Where calls are limited from now on, those in flight are written down as well.
                is_limited = limits_calls(entry.budget or Budget())
                async with self.writing:
                    unwritten = self._calls_to_count(self.calls.sent) if is_limited else []
                    await self._write([entry, *unwritten])
            del self.control.wanted[0]
            if not done.done():
                done.set_result(True)
        if self.control.is_cut:
            await self._leave()
        self._apply_terms()

    def _apply_terms(self) -> None:
        """Continue as the limits, and whether the run is paused, now say."""
        self.guard.set_budget(self.run.budget)
        if self._halts:
            self.calls.halt.set()
        else:
            self.calls.halt.clear()
        self.refused.clear()
        self.under_other_terms = frozenset(self.tasks)
        self._launch()

    async def _check_outside(self) -> None:
        """Look whether somebody outside has ended or steered the run.

        Raises:
            ConflictError: It has been ended.
        """
        opened = self.opened
        row = await opened.patiently(lambda: opened.store.run(opened.row.run_id))
        if row.status != "active":
            raise ConflictError("the run was ended from outside")
        if row != opened.row:
            async with self.writing:
                await self._take_steering()

    async def _take_steering(self) -> bool:
        """Fold in what somebody outside has written into the journal of the run.

        Returns:
            Whether there was something, and it was nothing but steering. What this drive could not write because of it
            is to be written again.
        """
        lines, came = await self.opened.reload()
        if not came or not all(isinstance(entry, Steered) for entry in came):
            return False
        for line, entry in zip(lines, came, strict=True):
            self.watch.note_entry(self.run, line.seq, entry, None)
        self.watch.note_lines(lines, came)
        self.control.wake()
        return True

    async def _let_go(self) -> bool:
        """Give the paused run back; return whether it is paused still."""
        opened = self.opened
        return await opened.patiently(lambda: opened.store.let_go(opened.row.run_id))

    async def _leave(self) -> None:
        """End the drive with the run active; what is in flight is cut off, and its calls are counted."""
        await self._drop_tasks()
        await self._write_unwritten()
        if self.run.snapshot.status == "active":
            cut = self._calls_to_count(self.calls.sent)
            async with self.writing:
                await self._write(cut)

    async def _is_closed_by_questions(self) -> bool:
        """A coached run meets its limits where the driven one would: an answer counts as a call."""
        seconds = self._seconds_left()
        if seconds is not None and seconds <= 0:
            raise TimeoutError
        reached = refuse_call(self.run)
        if reached is None or await self._close(reached):
            return reached is not None
        await self._stop(reached.reason, reached.detail)
        return False

    async def _close(self, reached: Refusal) -> bool:
        """Have the run come to its answer with what was kept back for that; return whether it can."""
        asks = self.run.last_questions
        is_late = bool(asks) and self._seconds_left(kept=0) == 0
        if reached.reason not in CLOSED_BY or asks is None or is_late:
            return False
        await self._drop_tasks()
        await self._write_unwritten()
        # With what came in the ending may take less than was kept back for it.
        is_due = reached.reason != "max_calls" or refuse_call(self.run) is not None
        if self.run.snapshot.status == "active" and is_due:
            if self.run.last_questions is None:
                return False
            cut = sum(self.calls.in_flight.values(), NOTHING)
            self.calls.in_flight.clear()
            at_ms, number = self._at_ms(), self.run.closings + 1
            closing = Closing(reached.reason, reached.detail, at_ms, number, cut)
            async with self.writing:
                steps = await self._write([Settled(None, closing)])
            for step in steps:
                self.watch.stepped(self.run, step)
        self._apply_terms()
        return True

    def _set_deadline(self) -> None:
        if self.run.budget.seconds is not None and not self.deadline.expired():
            left = self._seconds_left() or 0
            self.deadline.reschedule(asyncio.get_running_loop().time() + left)

    def _launch(self) -> None:
        """Begin all that is open and has no task, whatever has become of an earlier one."""
        self._set_deadline()
        if self._halts or limit_reached(self.run) is not None:
            return
        self.guard.keep(kept_for_the_end(self.run))
        known = {waiting.id for waiting in self.tasks.values()} | {settled.id for settled in self.unwritten}
        known.update(self.cancelled, self.refused)
        for pending in self.run.open_effects:
            effect = pending.effect
            is_callers = isinstance(effect, CallTool) and effect.tool in self.performers.callers_tools
            if is_callers or (self.coached and isinstance(effect, Ask)) or pending.id in known:
                continue
            self.tasks[asyncio.create_task(self.calls.perform(pending))] = pending

    def _collect(self) -> None:
        """Take what has come of the tasks that are done."""
        for task in [task for task in self.tasks if task.done()]:
            pending = self.tasks.pop(task)
            try:
                self.unwritten.append(Settled(pending.id, task.result()))
            except BudgetExhausted as exhausted:
                if task not in self.under_other_terms:
                    self.refused[pending.id] = exhausted.refusal
            except Held:
                pass

    async def _write_unwritten(self) -> list[Step]:
        async with self.writing:
            steps = await self._write(self.unwritten[:], unwritten=len(self.unwritten))
        for step in steps:
            self.watch.stepped(self.run, step)
        return steps

    async def _write(self, entries: Sequence[Entry], unwritten: int = 0) -> list[Step]:
        """Fold entries in and write them down, behind what somebody outside may have steered meanwhile."""
        while entries:
            try:
                return await self._write_next(entries, unwritten)
            except ConflictError:
                if not await self._take_steering():
                    raise
        return []

    async def _write_next(self, entries: Sequence[Entry], unwritten: int) -> list[Step]:
        if any(isinstance(entry, Settled) for entry in entries):
            WATCHDOG.note_life(self.opened.row.run_id)
        steps, folded, waiting = list[Step](), list[Entry](), deque(entries)
        while waiting:
            entry = waiting.popleft()
            if isinstance(entry, Settled) and entry.id in self.cancelled:
                # What came in before was enough: the answer is not taken, but what was asked is counted.
                calls = {entry.id or "": getattr(entry.event, "usage", NOTHING).calls}
                waiting.extendleft(self._calls_to_count(calls))
                continue
            step = self.run.apply(entry)
            folded.append(self.run.events[-1] if isinstance(entry, Settled) else entry)
            self.watch.note_entry(self.run, self.opened.chain.seq + len(folded), folded[-1], step)
            if step is not None:
                steps.append(step)
                await self._cut_off(step.cancelled)
                cut = {effect_id: self.cut_calls.get(effect_id, 0) for effect_id in step.cancelled}
                waiting.extendleft(self._calls_to_count(cut))

        def on_written(lines: Sequence[Line], written: Sequence[Entry]) -> None:
            del self.unwritten[:unwritten]
            for entry in written:
                if isinstance(entry, CallIntended):
                    self.intended[entry.id] += -1 if entry.refused else 1
            self.watch.note_lines(lines, written)

        # What the owner has spent today is read from the rows.
        has_steered = any(isinstance(entry, Steered) for entry in folded)
        await self.opened.write(
            *folded,
            says_row=self.control.allowance is not None or has_steered,
            is_use=any(step.thoughts for step in steps),
            on_written=on_written,
        )
        return steps

    async def _cut_off(self, cancelled: Collection[str]) -> None:
        """Cut off effects nobody waits for any more; note how many calls went out for them."""
        self.cancelled.update(cancelled)
        cut = [task for task, waiting in self.tasks.items() if waiting.id in cancelled]
        for task in cut:
            task.cancel()
        await asyncio.gather(*cut, return_exceptions=True)
        for task in cut:
            effect_id = self.tasks.pop(task).id
            has_come = not task.cancelled() and task.exception() is None
            answered = getattr(task.result(), "usage", NOTHING).calls if has_come else 0
            self.cut_calls[effect_id] = answered or self.calls.in_flight.pop(effect_id, NOTHING).calls

    def _calls_to_count(self, calls: Mapping[str, int]) -> list[CallIntended]:
        """Return an entry for each of these calls that was not written down before it went out."""
        return [
            CallIntended(effect_id)
            for effect_id, number in calls.items()
            for _ in range(number - self.intended[effect_id])
        ]

    async def _intend(self, effect_id: str, refused: bool) -> None:
        dearest = self.guard.ledger.largest
        async with self.writing:
            if refused:
                await self._write([CallIntended(effect_id, refused=True)])
                return
            self.calls.halt.check()
            await self._write([CallIntended(effect_id, dearest.tokens, dearest.usd)])

    async def _stop(self, reason: str, detail: str) -> None:
        await self._drop_tasks()
        await self._write_unwritten()
        if self.run.snapshot.status == "active":
            cut = sum(self.calls.in_flight.values(), NOTHING)
            async with self.writing:
                await self._write([Settled(None, Stopped(reason, detail, self._at_ms(), cut))])

    async def _drop_tasks(self) -> None:
        """Cut off what is in flight; an answer that is there already is kept."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for task in [task for task in self.tasks if task.cancelled() or task.exception() is not None]:
            del self.tasks[task]
        self._collect()

    async def _yield_to_the_journal(self, error: ConflictError) -> None:
        """Another process wrote to this run's journal: the journal counts, not the memory of this process."""
        await self._drop_tasks()
        await self.opened.reload()
        run_id = self.opened.row.run_id
        if self.run.snapshot.status == "active":
            if error.code == "lease_lost":
                raise error
            raise ConflictError(f"run {run_id} is driven by another process", run_id=run_id)
        calls = Counter(self.calls.sent)
        for settled in self.unwritten:
            calls[settled.id or ""] += getattr(settled.event, "usage", NOTHING).calls
        # Where somebody else has taken the run over, it is theirs to write.
        with suppress(ConflictError):
            async with self.writing:
                await self._write(self._calls_to_count(calls))

    def _seconds_left(self, kept: float | None = None) -> float | None:
        """Return the time left, less what is kept back for the last question of a run that can be closed."""
        seconds, run = self.run.budget.seconds, self.run
        if seconds is None:
            return None
        if kept is None:
            asks = None if run.snapshot.closing else run.last_questions
            kept = max(seconds * KEPT_SHARE, self.calls.slowest_s * KEPT_TIMES) if asks else 0.0
        return max(0.0, seconds - kept - self._at_ms() / 1000)

    def _at_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)
