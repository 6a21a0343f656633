"""What the caller of a run does: the questions of a coached run, and the calls of tools that are the caller's own.

A drive performs everything else and then ends, with the run still active; what the caller brings is taken as events
like any other, so the run may be continued after a crash, or by another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.effects import Ask, CallTool
from ..core.events import Event, Failed, ToolReturned
from ..core.pending import Pending
from ..errors import ConflictError
from ..masking import SECRETS
from .budget_guard import kept_for_the_end, refuse_call
from .run import Run


def questions(run: Run) -> list[Pending]:
    """Return the questions a run waits for, in the order they were asked first."""
    place = {effect_id: number for number, effect_id in enumerate(run.asked)}
    asks = (pending for pending in run.open_effects if isinstance(pending.effect, Ask))
    return sorted(asks, key=lambda pending: place[pending.id])


def handed_out(run: Run) -> Sequence[Pending]:
    """Return the questions a caller may answer: as many as the budget covers, each answer being a call.

    It is the first of them in the order they were asked, so that one handed out stays so until it is answered.
    """
    kept, calls = kept_for_the_end(run), run.budget.calls
    if refuse_call(run, kept):
        return ()
    covered = None if calls is None else calls - run.usage.calls - kept.calls
    return questions(run)[:covered]


def waiting_calls(run: Run) -> list[Pending]:
    """Return the calls that a run waits for its caller to make, in the order they were wanted."""
    own = {card.name for card in run.participants.callers_tools}
    place = {effect_id: number for number, effect_id in enumerate(run.performed)}
    calls = [
        pending
        for pending in run.open_effects
        if isinstance(pending.effect, CallTool) and pending.effect.tool in own
    ]
    return sorted(calls, key=lambda pending: place.get(pending.id, -1))


def result_events(run: Run, results: Mapping[str, Any], at_ms: int) -> list[tuple[str, Event]]:
    """Return a caller's results, JSON data by effect, as events; results that are recorded already are left out.

    Raises:
        ConflictError: The run waits for no such call, or has been given another result for it. Nothing is taken.
    """
    waiting = [pending.id for pending in waiting_calls(run)]
    recorded = {settled.id: settled.event for settled in run.events}
    events: list[tuple[str, Event]] = []
    for effect_id, value in results.items():
        event: ToolReturned = SECRETS.mask_data(ToolReturned(value, at_ms))
        before = recorded.get(effect_id)
        if effect_id in waiting:
            events.append((effect_id, event))
        elif isinstance(before, Failed) or not (
            isinstance(before, ToolReturned) and before.value == event.value
        ):
            why = "has another result already" if before is not None else "is not waited for"
            message = f"the call {effect_id[:40]!r} {why}"
            raise ConflictError(message, effect=effect_id, choices=waiting)
    return sorted(events, key=lambda event: waiting.index(event[0]))
