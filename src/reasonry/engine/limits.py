"""Limits that hold whoever performs a run: what ends it between two steps, and what a caller may still be asked."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.budget import Refusal, Usage
from ..core.effects import Ask
from ..core.machine import Pending
from ..errors import ConflictError
from .journal import CALLER, Run, Steered


def limit_reached(run: Run) -> tuple[str, str] | None:
    """Return which limit on what a run may hold is reached, for programs and for people."""
    budget, progress = run.budget, run.strategy.progress
    if budget.thoughts is not None and run.counts.thoughts >= budget.thoughts:
        return "max_thoughts", f"the limit of {budget.thoughts} thoughts is reached"
    if budget.nodes is not None and progress is not None:
        nodes = progress(run.snapshot.state).get("nodes", 0)
        if nodes >= budget.nodes:
            return "max_nodes", f"the limit of {budget.nodes} nodes is reached"
    return None


def check_steering(run_id: str, run: Run, entry: Steered) -> None:
    """Check that a run can be given other limits, be paused or continued.

    Raises:
        ConflictError: It has ended, is paused already or is not, or waits for its caller anyway.
    """
    status, is_coached = run.snapshot.status, run.participants.model == CALLER
    why = ""
    if status != "active":
        why = f"has ended ({status}); take it up again to change anything"
    elif entry.paused and is_coached:
        why = "stands still by itself until its caller answers"
    elif entry.paused is not None and entry.paused == run.paused:
        why = "is paused already" if run.paused else "is not paused"
    if why:
        raise ConflictError(f"run {run_id} {why}", run_id=run_id)


def questions(run: Run) -> list[Pending]:
    """Return the questions a run waits for, in the order they were asked first."""
    place = {effect_id: number for number, effect_id in enumerate(run.asked)}
    asks = (pending for pending in run.open_effects if isinstance(pending.effect, Ask))
    return sorted(asks, key=lambda pending: place[pending.id])


def handed_out(run: Run) -> Sequence[Pending]:
    """Return the questions a caller may answer: as many as the budget covers, each answer being a call.

    It is the first of them in the order they were asked, so that one handed out stays so until it is answered.
    """
    if limit_reached(run) or isinstance(run.ledger.reserve(Usage()), Refusal):
        return ()
    calls = run.budget.calls
    return questions(run)[: None if calls is None else calls - run.usage.calls]
