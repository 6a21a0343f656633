"""Limits that hold whoever performs a run: what ends it between two steps, and what a caller may still be asked."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.budget import Refusal, Usage
from ..core.effects import Ask
from ..core.machine import Pending
from .journal import Run


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
