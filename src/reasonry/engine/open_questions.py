"""The effects that the caller of a run performs: the questions of a coached run, and calls to the caller's own tools.

A drive performs all other effects and then ends, although the run is still active. The caller's answers and results
become ordinary events, so any process can continue the run, even after a crash.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.effects import Ask, CallTool
from ..core.events import Event, ToolReturned
from ..core.pending import Pending
from ..errors import ConflictError
from ..system.masking import SECRETS
from .budget_guard import closing_reserve, refuse_call
from .run import Run


def questions(run: Run) -> list[Pending]:
    """Return the open questions of a run, in the order in which they were first asked."""
    place = {effect_id: number for number, effect_id in enumerate(run.asked)}
    asks = (pending for pending in run.open_effects if isinstance(pending.effect, Ask))
    return sorted(asks, key=lambda pending: place[pending.id])


def handed_out(run: Run) -> Sequence[Pending]:
    """Return the open questions that the budget covers, in the order of `questions`. Each answer counts as a call.

    Each question is returned again until it is answered.
    """
    reserve, calls = closing_reserve(run), run.budget.calls
    if refuse_call(run, reserve):
        return ()
    covered = None if calls is None else calls - run.usage.calls - reserve.calls
    return questions(run)[:covered]


def waiting_calls(run: Run) -> list[Pending]:
    """Return the open calls to the caller's own tools, in the order in which the run requested the calls."""
    own = {card.name for card in run.participants.callers_tools}
    place = {effect_id: number for number, effect_id in enumerate(run.performed)}
    calls = [
        pending
        for pending in run.open_effects
        if isinstance(pending.effect, CallTool) and pending.effect.tool in own
    ]
    return sorted(calls, key=lambda pending: place.get(pending.id, -1))


def result_events(run: Run, results: Mapping[str, Any], at_ms: int) -> list[tuple[str, Event]]:
    """Turn results of the caller's tools into events. Results that are already recorded are skipped.

    Raises:
        ConflictError: The run waits for no such call, or already has another result of it. No result is accepted.
    """
    waiting = [pending.id for pending in waiting_calls(run)]
    recorded = {settled.id: settled.event for settled in run.events}
    events: list[tuple[str, Event]] = []
    for effect_id, value in results.items():
        event: ToolReturned = SECRETS.mask_data(ToolReturned(value, at_ms))
        before = recorded.get(effect_id)
        if effect_id in waiting:
            events.append((effect_id, event))
        elif not (isinstance(before, ToolReturned) and before.value == event.value):
            why = "has another result already" if before is not None else "is not waited for"
            message = f"the call {effect_id[:40]!r} {why}"
            raise ConflictError(message, effect=effect_id, choices=waiting)
    return sorted(events, key=lambda event: waiting.index(event[0]))
