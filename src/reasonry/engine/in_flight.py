"""The effects that a drive performs at the moment, and the calls of these effects."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from ..core.budget import Refusal
from ..core.events import NOTHING, Event
from ..core.pending import Pending
from .budget_guard import BudgetExhausted
from .calls import Calls, Halted
from .journal import CallIntended, Settled


class InFlight:
    """Holds the effects in flight, and holds their events until the events are written."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.tasks: dict[asyncio.Task[Event], Pending] = {}
        self.unwritten: list[Settled] = []
        self.cancelled: dict[str, int] = {}
        """Maps each effect that the run no longer needs, since it has enough answers, to the count of requests sent."""
        self.intended: Counter[str] = Counter()
        """Maps each effect to the count of its calls that this drive recorded before the calls went out."""
        self.refused: dict[str, Refusal] = {}
        """Maps each effect that a limit forbids to the refusal."""
        self._under_other_terms = frozenset[asyncio.Task[Event]]()
        """Tasks that began under earlier limits. The new limits may permit what the earlier limits refused."""

    @property
    def known(self) -> set[str]:
        """The ids of effects that need no new task."""
        waiting = {pending.id for pending in self.tasks.values()}
        return waiting | {settled.id or "" for settled in self.unwritten} | {*self.cancelled, *self.refused}

    def renew_terms(self) -> None:
        """Forget earlier refusals, since the limits have changed."""
        self.refused.clear()
        self._under_other_terms = frozenset(self.tasks)

    def collect(self) -> None:
        """Move the results of finished tasks to `unwritten` and `refused`."""
        for task in [task for task in self.tasks if task.done()]:
            pending = self.tasks.pop(task)
            try:
                self.unwritten.append(Settled(pending.id, task.result()))
            except BudgetExhausted as exhausted:
                if task not in self._under_other_terms:
                    self.refused[pending.id] = exhausted.refusal
            except Halted:
                pass

    async def cut_off(self, cancelled: Collection[str]) -> dict[str, int]:
        """Cut off effects that the run no longer needs. Return how many requests were sent for each effect."""
        # If a write has failed and is repeated, these effects were cut off and counted before.
        self.cancelled |= {effect_id: self.cancelled.get(effect_id, 0) for effect_id in cancelled}
        cut = [task for task, waiting in self.tasks.items() if waiting.id in cancelled]
        for task in cut:
            task.cancel()
        await asyncio.gather(*cut, return_exceptions=True)
        for task in cut:
            effect_id = self.tasks.pop(task).id
            has_come = not task.cancelled() and task.exception() is None
            answered = getattr(task.result(), "usage", NOTHING).calls if has_come else 0
            self.cancelled[effect_id] = answered or self.calls.in_flight.pop(effect_id, NOTHING).calls
        return {effect_id: self.cancelled[effect_id] for effect_id in cancelled}

    def count_calls(self, calls: Mapping[str, int]) -> list[CallIntended]:
        """Return an entry for each call that is not recorded yet. `calls` maps effects to the count of their calls."""
        return [
            CallIntended(effect_id)
            for effect_id, number in calls.items()
            for _ in range(number - self.intended[effect_id])
        ]

    async def drop(self) -> list[str]:
        """Cut off all effects in flight, and keep the answers that arrived. Return the ids of the other effects."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        cut = [task for task in self.tasks if task.cancelled() or task.exception() is not None]
        dropped = [self.tasks.pop(task).id for task in cut]
        self.collect()
        return dropped

    def unsent(self, dropped: Iterable[str]) -> list[CallIntended]:
        """Return an entry for each recorded call of the dropped effects that did not go out."""
        sent = self.calls.sent
        return [
            CallIntended(effect_id, refused=True)
            for effect_id in dropped
            for _ in range(self.intended[effect_id] - sent.get(effect_id, 0))
        ]
