"""One drive of one run: perform, write down, fold in, until the run ends."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from ..core.budget import NOTHING, Budget, Refusal, Usage
from ..core.effects import Ask
from ..core.events import Event, Stopped
from ..core.machine import Pending, Step
from ..errors import ConflictError
from ..records import Line, RunRow, Store, Use
from . import journal, record
from .calls import Calls
from .control import Control, Held, check_steering
from .follow import FoldedLine, Observer, note_step
from .guard import BudgetExhausted, BudgetGuard, limit_reached, limits_calls
from .journal import CallIntended, Chain, Entry, Settled, Steered
from .policy import Performers, Policy
from .record import SessionUses
from .result import outcome_of, result_of, row_after
from .run import Run, fold

LOOK_EVERY_S: Final = 0.5
"""How often a waiting drive looks whether somebody has cancelled its run."""


class Drive:
    """Holds what lives only while a run is being driven: tasks, the clock, the budget's ledger.

    Args:
        coached: Questions are the caller's to answer: the drive ends when nothing else is left to perform.
    """

    def __init__(
        self,
        store: Store,
        row: RunRow,
        run: Run,
        chain: Chain,
        performers: Performers,
        policy: Policy,
        watch: Observer,
        coached: bool = False,
        control: Control | None = None,
        uses: SessionUses | None = None,
    ) -> None:
        self.coached = coached
        self.uses = uses or SessionUses(None)
        self.performers = performers
        self.hands_over = coached or bool(performers.callers_tools)
        """Whether the drive may end with the run active: what is left is the caller's to answer."""
        self.control = control or Control()
        self.store, self.row, self.run, self.chain, self.watch = store, row, run, chain, watch
        self.started = time.monotonic() - run.snapshot.at_ms / 1000 - performers.opened_s
        self.guard = BudgetGuard(run.ledger)
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
                    await self._let_go()
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
        self._obey()
        while self.run.snapshot.status == "active" and (self.tasks or not self.hands_over):
            if self._halts and not self.tasks:
                await self._let_go()
                return
            reached = self._limit_reached()
            if reached is not None:
                await self._stop(*reached)
                return
            waits = [*self.tasks, self.control.news]
            done, _ = await asyncio.wait(waits, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED)
            if self.control.news.done():
                await self._heed()
            settled = [task for task in self.tasks if task in done]
            if settled:
                await self._take(settled)
            elif not done:
                await self._look()
        if self.run.snapshot.status == "active" and self.coached:
            await self._check_questions()

    @property
    def _halts(self) -> bool:
        """Whether nothing new is to be begun."""
        return self.run.paused or self.control.is_draining

    async def _heed(self) -> None:
        """Do what is wanted of the drive."""
        for entry, done in self.control.take_wanted():
            if self.run.snapshot.status != "active":
                done.set_result(False)
                continue
            try:
                if isinstance(entry, Steered):
                    check_steering(self.row.run_id, self.run, entry)
            except ConflictError as error:
                done.set_exception(error)
                continue
            is_written = False
            try:
                if isinstance(entry, Steered):
                    await self._steer(entry)
                else:
                    await self._stop(entry.reason, entry.detail)
                is_written = True
            finally:
                done.set_result(is_written)
        if self.control.is_cut:
            await self._let_go()
        self._obey()

    async def _steer(self, entry: Steered) -> None:
        """Write down other limits, or a pause or its end.

        Where calls are limited from now on, those in flight are written down as well.
        """
        budget = entry.budget or Budget()
        unwritten = [] if not limits_calls(budget) else self._calls_to_count(self.calls.in_flight)
        async with self.writing:
            await self._write([entry, *unwritten])
        self.intended.update(call.id for call in unwritten)

    def _obey(self) -> None:
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

    async def _look(self) -> None:
        """Look whether somebody outside has ended or steered the run.

        Raises:
            ConflictError: It has been ended.
        """
        row = await self.store.run(self.row.run_id)
        if row.status != "active":
            raise ConflictError("the run was ended from outside")
        if row != self.row:
            async with self.writing:
                await self._take_steering()
            self.row = row

    async def _take_steering(self) -> bool:
        """Fold in what somebody outside has written into the journal of the run.

        Returns:
            Whether there was something, and it was nothing but steering. What this drive could not write because of it
            is to be written again.
        """
        row, lines = await self.store.run(self.row.run_id), await self.store.lines(self.row.run_id)
        before = self.chain.seq
        entries, chain = journal.read(self.row.run_id, lines)
        came = entries[before:]
        if not came or not all(isinstance(entry, Steered) for entry in came):
            return False
        self.run, self.chain, self.row = fold(entries, self.run.strategies), chain, row
        self.control.on_written(
            [note_step(seq, entry, self.run, None) for seq, entry in enumerate(came, before + 1)]
        )
        self.control.wake()
        return True

    async def _let_go(self) -> None:
        """End the drive with the run active; what is in flight is cut off, and its calls are counted."""
        await self._drop_tasks()
        for step in await self._write_unwritten():
            self.watch.stepped(self.run, step)
        if self.run.snapshot.status == "active":
            cut = self._calls_to_count(self.calls.in_flight)
            async with self.writing:
                await self._write(cut)
            self.intended.update(call.id for call in cut)

    async def _check_questions(self) -> None:
        """A coached run meets its limits where the driven one would: an answer counts as a call."""
        seconds = self._seconds_left()
        if seconds is not None and seconds <= 0:
            raise TimeoutError
        refusal = self.guard.ledger.reserve(Usage())
        reached = limit_reached(self.run)
        if reached is None and isinstance(refusal, Refusal):
            reached = refusal.reason, refusal.detail
        if reached is not None:
            await self._stop(*reached)

    def _launch(self, effects: Iterable[Pending]) -> None:
        if self._halts:
            return
        for pending in effects:
            if pending.id in self.cancelled:
                continue
            if self.performers.leaves_to_caller(pending.effect):
                continue
            if self.coached and isinstance(pending.effect, Ask):
                continue
            self.tasks[asyncio.create_task(self.calls.perform(pending))] = pending

    async def _take(self, done: Sequence[asyncio.Task[Event]]) -> None:
        self._collect(done)
        for step in await self._write_unwritten():
            self.watch.stepped(self.run, step)
            if self.run.snapshot.status == "active" and self._limit_reached() is None:
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
            return await self._write(self.unwritten[:], unwritten=len(self.unwritten))

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
        steps, written = list[Step](), list[FoldedLine]()
        for entry in entries:
            if isinstance(entry, Settled) and entry.id in self.cancelled:
                # What came in before was enough: the answer is not taken, but what was asked is counted.
                calls = {entry.id or "": getattr(entry.event, "usage", NOTHING).calls}
                written += self._note_all(written, self._count_calls(calls))
                continue
            step = self.run.apply(entry)
            written += self._note_all(
                written, [self.run.events[-1] if isinstance(entry, Settled) else entry], step
            )
            if step is not None:
                steps.append(step)
                await self._cut_off(step.cancelled)
                calls = {effect_id: self.cut_calls.get(effect_id, 0) for effect_id in step.cancelled}
                written += self._note_all(written, self._count_calls(calls))
        entries = [line.entry for line in written]
        self.run = await record.whole_at_end(self.run, self.store, self.row.run_id, entries)
        ending = self._note_all(written, record.ending(self.row, self.run))
        if ending:
            result = result_of(self.row.run_id, self.row.session_id, self.run)
            ending = [line._replace(result=result) for line in ending]
        now = time.time_ns() // 1_000_000
        # What the owner has spent today is read from the rows.
        says_row = (
            ending
            or self.control.allowance is not None
            or outcome_of(self.run) != self.row.outcome
            or any(isinstance(line.entry, Steered) for line in written)
        )
        row = row_after(self.row, self.run, now) if says_row else None
        used = ending or any(step.thoughts for step in steps)
        use = self.uses.at(now, self.run) if used else None
        written += ending
        await self._append(self.chain.lines(line.entry for line in written), row, use, unwritten, written)
        return steps

    def _note_all(
        self, before: Sequence[FoldedLine], entries: Sequence[Entry], step: Step | None = None
    ) -> list[FoldedLine]:
        """Return entries that have been folded in as the lines that follow those."""
        first = self.chain.seq + len(before) + 1
        return [note_step(seq, entry, self.run, step) for seq, entry in enumerate(entries, first)]

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
            self.cut_calls[effect_id] = answered or self.calls.in_flight.pop(effect_id, 0)
            self.calls.taken.pop(effect_id, None)

    def _calls_to_count(self, calls: Mapping[str, int]) -> list[CallIntended]:
        """Return an entry for each of these calls that was not written down before it went out."""
        return [
            CallIntended(effect_id)
            for effect_id, number in calls.items()
            for _ in range(number - self.intended[effect_id])
        ]

    def _count_calls(self, calls: Mapping[str, int]) -> list[CallIntended]:
        """Count calls whose answer is not taken."""
        entries = self._calls_to_count(calls)
        for entry in entries:
            self.run.apply(entry)
        return entries

    async def _append(
        self,
        lines: Sequence[Line],
        row: RunRow | None = None,
        use: Use | None = None,
        unwritten: int = 0,
        written: Sequence[FoldedLine] = (),
    ) -> None:
        """Write lines, and tell of them; a write once begun is finished even if the drive is cancelled meanwhile."""
        writing = asyncio.ensure_future(self.store.append(self.row.run_id, lines, row, use))
        try:
            await asyncio.shield(writing)
        finally:
            if not writing.done():
                await asyncio.wait([writing])
            if writing.exception() is None:
                self.chain.extend(lines)
                self.row = row or self.row
                del self.unwritten[:unwritten]
                self.control.on_written(written)

    async def _intend(self, effect_id: str) -> None:
        dearest = self.guard.ledger.largest
        async with self.writing:
            self.control.gate.check()
            await self._write([CallIntended(effect_id, dearest.tokens, dearest.usd)])
            self.intended[effect_id] += 1

    async def _stop(self, reason: str, detail: str) -> None:
        await self._drop_tasks()
        for step in await self._write_unwritten():
            self.watch.stepped(self.run, step)
        if self.run.snapshot.status == "active":
            cut = self.calls.cut_off
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
        entries, self.chain = journal.read(self.row.run_id, await self.store.lines(self.row.run_id))
        self.run = fold(entries, self.run.strategies)
        if self.run.snapshot.status == "active":
            if error.code == "lease_lost":
                raise error
            raise ConflictError(f"run {self.row.run_id} is driven by somebody else", run_id=self.row.run_id)
        unrecorded = self._unrecorded_calls()
        if unrecorded:
            # Where somebody else has taken the run over, it is theirs to write.
            with suppress(ConflictError):
                await self._append(self.chain.lines(unrecorded))

    def _unrecorded_calls(self) -> list[CallIntended]:
        """Count what went out and found the run ended."""
        calls = Counter(self.calls.in_flight)
        for settled in self.unwritten:
            calls[settled.id or ""] += getattr(settled.event, "usage", NOTHING).calls
        return self._count_calls(calls)

    def _limit_reached(self) -> tuple[str, str] | None:
        refusal = self.limit.refusal if self.limit else None
        if refusal is not None and not self.tasks:
            return refusal.reason, refusal.detail
        return limit_reached(self.run)

    def _seconds_left(self) -> float | None:
        seconds = self.run.budget.seconds
        return None if seconds is None else max(0.0, seconds - self._at_ms() / 1000)

    def _at_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)
