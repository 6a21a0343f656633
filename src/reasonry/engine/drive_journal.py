"""The journal of a run as its drive writes it, one write at a time."""

import asyncio
from collections import deque
from collections.abc import Sequence

from ..core.events import NOTHING
from ..core.machine import Step
from ..errors import ConflictError
from ..records import Line
from .budget_guard import BudgetGuard
from .control import Control
from .in_flight import InFlight
from .journal import CallIntended, Entry, Settled, TermsChanged
from .observer import Observer
from .open_run import OpenRun
from .run import Run
from .watchdog import WATCHDOG


class DriveJournal:
    """Folds and writes the entries of a drive, and folds the entries that other processes have written.

    Attributes:
        effects: The effects in flight. The drive sets them once.
    """

    effects: InFlight

    def __init__(self, opened: OpenRun, watch: Observer, control: Control, guard: BudgetGuard) -> None:
        self.opened, self.watch, self.control, self.guard = opened, watch, control, guard
        self.writing = asyncio.Lock()

    @property
    def run(self) -> Run:
        """The folded run."""
        return self.opened.run

    @property
    def halts(self) -> bool:
        """Whether the drive may start no new effect, because the run is paused or the drive drains."""
        return self.run.paused or self.control.is_draining

    def fold_first_call(self) -> None:
        """Fold the call that was recorded when the run was accepted, if there is one."""
        first_call, self.opened.first_call = self.opened.first_call, ()
        for entry in first_call:
            lines = self.opened.chain.lines([entry])
            self.run.apply(entry)
            self.opened.chain.extend(lines)
            self.effects.calls.recorded, self.effects.intended[entry.id] = entry.id, 1
            self.watch.note_entry(self.run, lines[0].seq, entry, None)
            self.watch.note_lines(lines, [entry])

    async def write_unwritten(self) -> None:
        """Write the events that have arrived. If the first call was recorded but not sent, withdraw its entry."""
        await self.withdraw()
        async with self.writing:
            steps = await self._write(self.effects.unwritten[:], unwritten=len(self.effects.unwritten))
        for step in steps:
            self.watch.stepped(self.run, step)

    async def drop_effects(self) -> None:
        """Cut off the effects in flight. Write the events that arrived, and withdraw the calls that did not go out."""
        dropped = await self.effects.drop()
        await self.write_unwritten()
        if self.run.snapshot.status == "active":
            await self.write(self.effects.unsent(dropped))

    async def fold_news(self) -> None:
        """Fold the commands that other processes have added. If there are any, also record the calls in flight."""
        async with self.writing:
            if await self._take_commands():
                await self._write(self.effects.count_calls(self.effects.calls.sent))

    async def write(self, entries: Sequence[Entry]) -> list[Step]:
        """Fold and write entries. Return the resulting steps of the run."""
        async with self.writing:
            return await self._write(entries)

    async def intend(self, effect_id: str, refused: bool) -> None:
        """Record that a call is about to go out, or that a rate limit refused it."""
        dearest = NOTHING if refused else self.guard.ledger.largest
        async with self.writing:
            if not refused:
                self.effects.calls.halt.check()
            await self._write([CallIntended(effect_id, dearest.tokens, dearest.usd, refused)])

    async def withdraw(self) -> None:
        """Withdraw the recorded first call, if it has not gone out yet."""
        effect_id = self.effects.calls.recorded
        if effect_id is None:
            return
        async with self.writing:
            # The call may have gone out while this task waited for another write.
            if self.effects.calls.recorded == effect_id:
                self.effects.calls.recorded = None
                await self._write([CallIntended(effect_id, refused=True)])

    async def _take_commands(self) -> bool:
        """Fold other processes' new entries. Return True if there are any and all of them are `TermsChanged`."""
        lines, came = await self.opened.reload()
        if not came or not all(isinstance(entry, TermsChanged) for entry in came):
            return False
        for line, entry in zip(lines, came, strict=True):
            self.watch.note_entry(self.run, line.seq, entry, None)
        self.watch.note_lines(lines, came)
        self.control.wake()
        return True

    async def _write(self, entries: Sequence[Entry], unwritten: int = 0) -> list[Step]:
        """Fold and write entries. If another process wrote a command first, fold the command and try again."""
        while entries:
            try:
                return await self._write_next(entries, unwritten)
            except ConflictError:
                if not await self._take_commands():
                    raise
                # New limits may lift the limit at which the run would end.
                if (
                    isinstance(entries[0], Settled)
                    and entries[0].id is None
                    and not self.effects.calls.in_flight
                ):
                    break
                counted = self.effects.count_calls(self.effects.calls.sent)
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
            updates_row=self.control.allowance is not None or self.halts,
            uses_session=any(step.thoughts for step in steps),
            on_written=on_written,
        )
        return steps
