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
from .output import print_note
from .watch import Watch


class Lines(Watch):
    """One plain line for each thing that happens, and one for each step of a plan."""

    def began(self, run_id: str, run: Run) -> None:
        """See `Observer`."""
        super().began(run_id, run)
        print_note(self.header)

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        super().retrying(effect_id, reason, delay_s)
        print_note(self.note)

    def stepped(self, run: Run, step: Step) -> None:
        """See `Observer`."""
        super().stepped(run, step)
        for thought in step.thoughts:
            score = "" if thought.score is None else f" [{thought.score:.2f}]"
            first, *plan = present.thought_lines(thought.text, thought.data, 160)
            print_note(f"{thought.stage}{score}: {first}")
            for line in plan:
                print_note(line)


@contextmanager
def watching(silent: bool, model: str, why: str, budget: Budget | None) -> Generator[Observer]:
    """Watch a run in the way that fits where it is shown."""
    if silent:
        yield Unwatched()
        return
    if not sys.stderr.isatty():
        yield Lines(model, why, budget)
        return
    from .live import Live

    with Live(model, why, budget) as live:
        yield live
