"""Watching a run: a tree that grows in a terminal, plain lines elsewhere. Both on standard error."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

from ...core.budget import Budget
from ...core.machine import Step
from ...engine.journal import Run
from ...engine.observe import Observer, Unwatched
from .. import present
from ..run_report import thought_title, whole_thought
from .output import print_notes
from .watch import Watch


class Lines(Watch):
    """One plain line for each thing that happens, and one for each step of a plan.

    Args:
        full: Print each thought whole instead.
    """

    def __init__(self, model: str, why: str, budget: Budget | None, *, full: bool = False) -> None:
        super().__init__(model, why, budget)
        self.full = full

    def began(self, run_id: str, run: Run) -> None:
        """See `Observer`."""
        super().began(run_id, run)
        print_notes([self.header])

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        super().retrying(effect_id, reason, delay_s)
        print_notes([self.note])

    def stepped(self, run: Run, step: Step) -> None:
        """See `Observer`."""
        super().stepped(run, step)
        for number, thought in enumerate(step.thoughts, run.counts.thoughts - len(step.thoughts) + 1):
            title = thought_title(number, thought)
            if self.full:
                lines = whole_thought(title, thought)
            else:
                first, *plan = present.thought_lines(thought.text, thought.data, 160)
                lines = [f"{title}: {first}", *plan]
            print_notes(lines)


@contextmanager
def watching(
    silent: bool, model: str, why: str, budget: Budget | None, *, full: bool = False
) -> Generator[Observer]:
    """Watch a run in the way that fits where it is shown.

    Args:
        full: Print each thought whole, in a terminal too.
    """
    if silent:
        yield Unwatched()
        return
    if full or not sys.stderr.isatty():
        yield Lines(model, why, budget, full=full)
        return
    from .live import Live

    with Live(model, why, budget) as live:
        yield live
