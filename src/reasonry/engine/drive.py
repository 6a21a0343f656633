"""One drive of one run: perform, write down, fold in, until the run ends."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from ..core.budget import NOTHING, Budget
from ..core.effects import Ask, CallTool
from ..core.events import Event, Stopped
from ..core.machine import Pending, Step
from ..errors import ConflictError
from .calls import Calls
from .control import Control, Held
from .follow import Observer
from .guard import BudgetExhausted, BudgetGuard, limit_reached, limits_calls, refuse_call
from .journal import CallIntended, Entry, Settled, Steered
from .policy import Performers, Policy
from .run import Run
from .run_journal import RunJournal

LOOK_EVERY_S: Final = 0.5
"""How often a waiting drive looks whether somebody has cancelled its run."""


class Drive:
    """Holds what lives only while a run is being driven: tasks, the clock, the budget's ledger.

    Args:
        journal: The run, which this task has the right to drive.
        coached: Questions are the caller's to answer: the drive ends when nothing else is left to perform.
    """

    def __init__(
        self,
        journal: RunJournal,
        performers: Performers,
        policy: Policy,
        watch: Observer,
        coached: bool = False,
        control: Control | None = None,
    ) -> None:
        self.journal, self.watch, self.coached = journal, watch, coached
        self.performers = performers
        self.hands_over = coached or bool(performers.callers_tools)
        """Whether the drive may end with the run active: what is left is the caller's to answer."""
        self.control = control or Control()
        self.started = time.monotonic() - self.run.snapshot.at_ms / 1000 - performers.opened_s
        self.guard = BudgetGuard(self.run.ledger)
        self.calls = Calls(performers, self.guard, policy, watch, self._intend, self._at_ms, self.control)
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
        self.limit: BudgetExhausted | None = None

    @property
    def run(self) -> Run:
        """The run as it stands."""
        return self.journal.run

    async def complete(self) -> None:
        """Drive the run until it ends, or until it is paused or drained and nothing is in flight: then it stays active.

        Raises:
            StoreError: What happened could not be written down; the run stays as the journal has it.
            asyncio.CancelledError: The caller was cancelled; the run is recorded as cancelled first, unless it drains.
        """
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
            # They refer back to the drive: without this, all of it stays until garbage is collected.
            del self.calls

    async def _until_a_limit(self) -> None:
        try:
            left = self._seconds_left()
            if left == 0:
                raise TimeoutError
            async with asyncio.timeout(left) as self.deadline:
                await self._loop()
        except TimeoutError:
            seconds = self.run.budget.seconds or 0
            await self._stop("max_seconds", f"the limit of {seconds:g} s is reached")

    async def _loop(self) -> None:
        self._apply_terms()
        while self.run.snapshot.status == "active" and (self.tasks or not self.hands_over):
            if self._halts and not self.tasks:
                await self._leave()
                return
            reached = limit_reached(self.run) if self.limit is None or self.tasks else self.limit.refusal
            if reached is not None:
                await self._stop(reached.reason, reached.detail)
                return
            waits = [*self.tasks, self.control.news]
            done, _ = await asyncio.wait(waits, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if self.control.news.done():
                await self._take_orders()
            settled = [task for task in self.tasks if task in done]
            if settled:
                await self._take(settled)
            elif not done:
                await self._check_outside()
        if self.run.snapshot.status == "active" and self.coached:
            await self._check_questions()

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
                unwritten = self._calls_to_count(self.calls.sent) if is_limited else []
                async with self.writing:
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
        self.control.gate.set(closed=self._halts)
        if not self.deadline.expired():
            left = self._seconds_left()
            now = asyncio.get_running_loop().time()
            self.deadline.reschedule(None if left is None else now + left)
        # What a limit has kept from going out may go out now.
        self.limit = None
        known = {waiting.id for waiting in self.tasks.values()} | {settled.id for settled in self.unwritten}
        self._launch(effect for effect in self.run.open_effects if effect.id not in known)

    async def _check_outside(self) -> None:
        """Look whether somebody outside has ended or steered the run.

        Raises:
            ConflictError: It has been ended.
        """
        row = await self.journal.store.run(self.journal.row.run_id)
        if row.status != "active":
            raise ConflictError("the run was ended from outside")
        if row != self.journal.row:
            async with self.writing:
                await self._take_steering()

    async def _take_steering(self) -> bool:
        """Fold in what somebody outside has written into the journal of the run.

        Returns:
            Whether there was something, and it was nothing but steering. What this drive could not write because of it
            is to be written again.
        """
        came = await self.journal.reload()
        if not came or not all(isinstance(entry, Steered) for entry in came):
            return False
        self.watch.note_lines(self.journal.chain.seq, came)
        self.control.wake()
        return True

    async def _leave(self) -> None:
        """End the drive with the run active; what is in flight is cut off, and its calls are counted."""
        await self._drop_tasks()
        await self._write_unwritten()
        if self.run.snapshot.status == "active":
            cut = self._calls_to_count(self.calls.sent)
            async with self.writing:
                await self._write(cut)

    async def _check_questions(self) -> None:
        """A coached run meets its limits where the driven one would: an answer counts as a call."""
        seconds = self._seconds_left()
        if seconds is not None and seconds <= 0:
            raise TimeoutError
        reached = refuse_call(self.run)
        if reached is not None:
            await self._stop(reached.reason, reached.detail)

    def _launch(self, effects: Iterable[Pending]) -> None:
        if self._halts:
            return
        for pending in effects:
            effect = pending.effect
            is_callers = isinstance(effect, CallTool) and effect.tool in self.performers.callers_tools
            if is_callers or (self.coached and isinstance(effect, Ask)) or pending.id in self.cancelled:
                continue
            self.tasks[asyncio.create_task(self.calls.perform(pending))] = pending

    async def _take(self, done: Sequence[asyncio.Task[Event]]) -> None:
        self._collect(done)
        for step in await self._write_unwritten():
            # Where calls are used up, what costs none may still bring the answer; the guard refuses the others.
            if self.run.snapshot.status == "active" and limit_reached(self.run) is None:
                self._launch(step.effects)

    def _collect(self, done: Iterable[asyncio.Task[Event]]) -> None:
        for task in done:
            pending = self.tasks.pop(task)
            try:
                self.unwritten.append(Settled(pending.id, task.result()))
            except BudgetExhausted as exhausted:
                self.limit = self.limit or exhausted
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
            if step is not None:
                steps.append(step)
                await self._cut_off(step.cancelled)
                cut = {effect_id: self.cut_calls.get(effect_id, 0) for effect_id in step.cancelled}
                waiting.extendleft(self._calls_to_count(cut))

        def on_written(seq: int, written: Sequence[Entry]) -> None:
            del self.unwritten[:unwritten]
            self.intended.update(entry.id for entry in written if isinstance(entry, CallIntended))
            self.watch.note_lines(seq, written)

        # What the owner has spent today is read from the rows.
        has_steered = any(isinstance(entry, Steered) for entry in folded)
        await self.journal.write(
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

    async def _intend(self, effect_id: str) -> None:
        dearest = self.guard.ledger.largest
        async with self.writing:
            self.control.gate.check()
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
        self._collect([task for task in self.tasks if not task.cancelled() and task.exception() is None])
        self.tasks.clear()

    async def _yield_to_the_journal(self, error: ConflictError) -> None:
        """Somebody else wrote to this run's journal: what is written there counts, not what is in memory."""
        await self._drop_tasks()
        await self.journal.reload()
        run_id = self.journal.row.run_id
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

    def _seconds_left(self) -> float | None:
        seconds = self.run.budget.seconds
        return None if seconds is None else max(0.0, seconds - self._at_ms() / 1000)

    def _at_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)
