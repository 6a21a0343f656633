"""One drive of one run: perform, write down, fold in, until the run ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from typing import Final

from ..core.budget import Refusal, Usage
from ..core.effects import Ask
from ..core.events import Event, Stopped
from ..core.machine import Pending, Step
from ..errors import ConflictError
from . import journal
from .guard import BudgetExhausted, BudgetGuard
from .journal import Chain, Entry, Folded, Sent, Took
from .observe import Observer
from .perform import Performing
from .policy import Performers, Policy
from .ports import Line, RunRow, Store

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
        run: Folded,
        chain: Chain,
        who: Performers,
        policy: Policy,
        watch: Observer,
        coached: bool = False,
    ) -> None:
        self.coached = coached
        self.store, self.row, self.run, self.chain, self.watch = store, row, run, chain, watch
        self.started = time.monotonic() - run.snapshot.at_ms / 1000
        self.guard = BudgetGuard(run.budget, run.usage)
        self.performing = Performing(who, self.guard, policy, watch, self._intend, self._at_ms)
        self.tasks: dict[asyncio.Task[Event], Pending] = {}
        self.writing = asyncio.Lock()
        self.limit: BudgetExhausted | None = None

    async def to_the_end(self) -> None:
        """Drive the run until it ends.

        Raises:
            StoreError: What happened could not be written down; the run stays as the journal has it.
            asyncio.CancelledError: The caller was cancelled; the run is recorded as cancelled first.
        """
        try:
            async with asyncio.timeout(self._seconds_left()):
                await self._loop()
        except TimeoutError:
            seconds = self.run.budget.seconds or 0
            await self._stop("max_seconds", f"the limit of {seconds:g} s is reached")
        except asyncio.CancelledError:
            await self._stop("cancelled", "interrupted")
            raise
        except ConflictError:
            await self._yield_to_the_journal()
        finally:
            await self._drop_tasks()

    async def _loop(self) -> None:
        self._launch(self.run.wanted)
        while self.run.snapshot.status == "active" and (self.tasks or not self.coached):
            reached = self._limit_reached()
            if reached is not None:
                await self._stop(*reached)
                return
            done, _ = await asyncio.wait(
                self.tasks, timeout=LOOK_EVERY_S, return_when=asyncio.FIRST_COMPLETED
            )
            if done:
                await self._take([task for task in self.tasks if task in done])
            elif (await self.store.run(self.row.run_id)).status != "active":
                raise ConflictError("the run was ended from outside")
        if self.run.snapshot.status == "active":
            await self._check_questions()

    async def _check_questions(self) -> None:
        """A coached run meets its limits where the driven one would: an answer counts as a call."""
        seconds = self._seconds_left()
        if seconds is not None and seconds <= 0:
            raise TimeoutError
        refusal = self.guard.ledger.reserve(Usage())
        if isinstance(refusal, Refusal):
            await self._stop(refusal.reason, refusal.detail)

    def _launch(self, effects: Iterable[Pending]) -> None:
        for one in effects:
            if self.coached and isinstance(one.effect, Ask):
                continue
            self.tasks[asyncio.create_task(self.performing.perform(one))] = one

    async def _take(self, done: Sequence[asyncio.Task[Event]]) -> None:
        entries: list[Entry] = []
        for task in done:
            one = self.tasks.pop(task)
            try:
                entries.append(Took(one.id, task.result()))
            except BudgetExhausted as exhausted:
                self.limit = self.limit or exhausted
        steps = [step for step in await self._write(entries) if step is not None]
        for step in steps:
            self.watch.stepped(self.run, step)
            if self.run.snapshot.status == "active" and self._limit_reached() is None:
                self._launch(step.effects)

    async def _write(self, entries: Sequence[Entry]) -> list[Step | None]:
        if not entries:
            return []
        async with self.writing:
            steps = [self.run.apply(entry) for entry in entries]
            ending = journal.closing(self.run)
            row = journal.row_after(self.row, self.run, time.time_ns() // 1_000_000) if ending else None
            lines = self.chain.lines([*entries, *ending])
            await self._append(lines, row)
            return steps

    async def _append(self, lines: Sequence[Line], row: RunRow | None) -> None:
        """Write lines; a write once begun is finished even if the drive is cancelled meanwhile."""
        writing = asyncio.ensure_future(self.store.append(self.row.run_id, lines, row))
        try:
            await asyncio.shield(writing)
        finally:
            if not writing.done():
                await asyncio.wait([writing])
            if writing.exception() is None:
                self.chain.written(lines)
                self.row = row or self.row

    async def _intend(self, effect_id: str) -> None:
        await self._write([Sent(effect_id)])

    async def _stop(self, reason: str, detail: str) -> None:
        await self._drop_tasks()
        if self.run.snapshot.status == "active":
            stopped = Stopped(reason, detail, at_ms=self._at_ms(), usage=self.performing.cut())
            await self._write([Took(None, stopped)])

    async def _drop_tasks(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        self.tasks.clear()

    async def _yield_to_the_journal(self) -> None:
        """Somebody else wrote to this run's journal: what is written there counts, not what is in memory."""
        await self._drop_tasks()
        entries, self.chain = journal.read(self.row.run_id, await self.store.lines(self.row.run_id))
        told = journal.fold(entries, self.run.strategies)
        self.run.__dict__.update(told.__dict__)
        if self.run.snapshot.status == "active":
            raise ConflictError(f"run {self.row.run_id} is driven by somebody else", run_id=self.row.run_id)

    def _limit_reached(self) -> tuple[str, str] | None:
        budget, refusal = self.run.budget, self.limit.refusal if self.limit else None
        if refusal is not None and not self.tasks:
            return refusal.reason, refusal.detail
        if budget.thoughts is not None and len(self.run.thoughts) >= budget.thoughts:
            return "max_thoughts", f"the limit of {budget.thoughts} thoughts is reached"
        progress = self.run.strategy.progress
        if budget.nodes is not None and progress is not None:
            nodes = progress(self.run.snapshot.state).get("nodes", 0)
            if nodes >= budget.nodes:
                return "max_nodes", f"the limit of {budget.nodes} nodes is reached"
        return None

    def _seconds_left(self) -> float | None:
        seconds = self.run.budget.seconds
        return None if seconds is None else max(0.0, seconds - self.run.snapshot.at_ms / 1000)

    def _at_ms(self) -> int:
        return int((time.monotonic() - self.started) * 1000)
