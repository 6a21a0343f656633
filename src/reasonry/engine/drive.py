"""The drive of a run. Until the run ends, the drive performs effects, and writes and folds their events.

Rule 1: a command to a run, such as a pause or a cancellation, is a journal entry, so the command outlives the drive.
Rule 2: a drive that halts sends no new request. Answers to earlier requests may still arrive.
"""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Final

from ..core.budget import Refusal
from ..core.effects import Ask, CallTool
from ..core.events import NOTHING, Closing, Stopped
from ..errors import ConflictError
from .budget_guard import (
    CLOSED_BY,
    CLOSING_SHARE,
    CLOSING_TIMES,
    BudgetGuard,
    closing_reserve,
    limit_reached,
    refuse_call,
)
from .calls import Calls
from .control import Control
from .drive_journal import DriveJournal
from .in_flight import InFlight
from .journal import Settled
from .observer import ContainedObserver, Observer
from .open_run import OpenRun
from .policy import Performers
from .result import Result
from .run import Run
from .telemetry import facts_of_run, trace_work

LOOK_EVERY_S: Final = 0.5
"""Seconds between two reads of the store for news from other processes, such as the cancellation of a run."""


async def drive_run(
    opened: OpenRun,
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
    if opened.run.snapshot.status == "active":
        watch.began(opened.row.run_id, opened.run)
        with trace_work(
            f"invoke_agent {opened.row.strategy}", "INTERNAL", facts_of_run(opened.row)
        ) as traced:
            await Drive(opened, performers, watch, coached, control).complete()
            traced.note(facts_of_run(opened.row))
            if opened.row.outcome == "error":
                traced.note_failure(opened.row.reason or "failed")
        if opened.row.outcome is not None and opened.row.status != "active":
            meter, outcome = opened.policy.meter, opened.row.outcome
            meter.add("runs", outcome=outcome)
            meter.add("run_seconds", opened.run.snapshot.at_ms / 1_000, outcome=outcome)
        watch.ended(opened.row.run_id, opened.run)
        await opened.tell_end()
    if coached:
        await opened.save_checkpoint()
    return opened.result


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
        self.journal = DriveJournal(opened, watch, self.control, self.guard)
        self.calls = Calls(
            performers,
            self.guard,
            opened.policy,
            watch,
            self.journal.intend,
            self.journal.withdraw,
            self._at_ms,
            self.control.allowance,
            self.control.drain if opened.row.unattended else None,
        )
        self.effects = self.journal.effects = InFlight(self.calls)
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
        self.journal.fold_first_call()
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
            del self.calls, self.effects, self.journal.effects

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
            if self.journal.halts and not self.effects.tasks:
                await self._leave()
                release_paused = partial(self.opened.store.release_paused, self.opened.row.run_id)
                if self.control.is_draining or await self.opened.retry(release_paused):
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
                await self.journal.write_unwritten()
            elif not done:
                await self._check_outside()
            self._launch()
        if self.run.snapshot.status == "active" and self.coached and await self._is_closed_by_questions():
            await self._loop()

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
        if self.journal.halts:
            self.calls.halt.set()
        else:
            self.calls.halt.clear()
        self.effects.renew_terms()
        self._launch()

    async def _check_outside(self) -> None:
        """Fold the changes that other processes have made to the run. Raise ConflictError if the run has ended."""
        opened = self.opened
        row = await opened.retry(lambda: opened.store.run(opened.row.run_id))
        if row.status != "active":
            raise ConflictError("the run was ended from outside")
        if row != opened.row:
            await self.journal.fold_news()

    async def _leave(self) -> None:
        """End the drive but not the run. Cut off effects in flight and count their calls."""
        await self.journal.drop_effects()
        if self.run.snapshot.status == "active":
            await self.journal.write(self.effects.count_calls(self.calls.sent))

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
        is_late = bool(asks) and self._seconds_left(reserve_s=0) == 0
        if reached.reason not in CLOSED_BY or asks is None or is_late:
            return False
        await self.journal.drop_effects()
        # After the last events, closing may need a smaller reserve, so that another call is possible after all.
        is_due = reached.reason != "max_calls" or refuse_call(self.run) is not None
        if self.run.snapshot.status == "active" and is_due:
            if self.run.last_questions is None:
                return False
            cut = sum(self.calls.in_flight.values(), NOTHING)
            at_ms, number = self._at_ms(), self.run.closings + 1
            closing = Closing(reached.reason, reached.detail, at_ms, number, cut)
            steps = await self.journal.write([Settled(None, closing)])
            self.calls.in_flight.clear()
            for step in steps:
                self.watch.stepped(self.run, step)
        self._apply_terms()
        return True

    def _launch(self) -> None:
        left = self._seconds_left()
        if left is not None and self.deadline and not self.deadline.expired():
            self.deadline.reschedule(asyncio.get_running_loop().time() + left)
        if self.journal.halts or limit_reached(self.run) is not None:
            return
        self.guard.set_closing_reserve(closing_reserve(self.run))
        known = self.effects.known
        for pending in self.run.open_effects:
            effect = pending.effect
            is_callers = isinstance(effect, CallTool) and effect.tool in self.performers.callers_tools
            if is_callers or (self.coached and isinstance(effect, Ask)) or pending.id in known:
                continue
            self.effects.tasks[asyncio.create_task(self.calls.perform(pending))] = pending

    async def _stop(self, reason: str, detail: str) -> None:
        await self.journal.drop_effects()
        if self.run.snapshot.status == "active":
            cut = sum(self.calls.in_flight.values(), NOTHING)
            await self.journal.write([Settled(None, Stopped(reason, detail, self._at_ms(), cut))])

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
            await self.journal.write(self.effects.count_calls(calls))

    def _seconds_left(self, reserve_s: float | None = None) -> float | None:
        """Return the seconds left until the run's time limit, minus `reserve_s` seconds. Without a limit, return None.

        By default, `reserve_s` is the time to reserve for the last questions if the run can be closed.
        """
        seconds, run = self.run.budget.seconds, self.run
        if seconds is None:
            return None
        if reserve_s is None:
            asks = None if run.snapshot.closing else run.last_questions
            reserve_s = max(seconds * CLOSING_SHARE, self.calls.slowest_s * CLOSING_TIMES) if asks else 0.0
        return max(0.0, seconds - reserve_s - self._at_ms() / 1000)

    def _at_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)
