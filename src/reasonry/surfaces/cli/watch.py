"""Watching a run: a tree that grows in a terminal, plain lines elsewhere. Both on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from ...core.budget import Budget
from ...core.machine import Pending, Step
from ...runtime.journal import Folded
from ...runtime.observe import Observer, Unwatched
from .. import present
from .output import print_note


class Watch(Unwatched):
    """What every way of watching knows: the run, what is in flight, since when."""

    def __init__(self, model: str, why: str, budget: Budget | None) -> None:
        self.model, self.why, self.budget = model, why, budget or Budget()
        self.run: Folded | None = None
        self.run_id = ""
        self.in_flight: dict[str, Pending] = {}
        self.streamed: dict[str, str] = {}
        self.note = ""
        self.since = time.monotonic()

    def began(self, run_id: str, run: Folded) -> None:
        """See `Observer`."""
        self.run_id, self.run = run_id, run

    def asked(self, one: Pending) -> None:
        """See `Observer`."""
        self.in_flight[one.id] = one

    def text(self, effect_id: str, piece: str) -> None:
        """See `Observer`."""
        self.streamed[effect_id] = (self.streamed.get(effect_id, "") + piece)[-400:]

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        self.note = f"{effect_id}: {reason}; again in {delay_s:.1f} s"

    def stepped(self, run: Folded, step: Step) -> None:
        """See `Observer`."""
        self.run = run
        waiting = {one.id for one in run.wanted}
        self.in_flight = {key: one for key, one in self.in_flight.items() if key in waiting}
        self.streamed = {key: text for key, text in self.streamed.items() if key in waiting}

    @property
    def header(self) -> str:
        """One line: what runs, with which model, and why that one."""
        run = self.run
        name = run.strategy.name if run else ""
        why = f" ({self.why})" if self.why else ""
        return f"{name} · model {self.model}{why} · run {self.run_id}"


class Lines(Watch):
    """One plain line for each thing that happens."""

    def began(self, run_id: str, run: Folded) -> None:
        """See `Observer`."""
        super().began(run_id, run)
        print_note(self.header)

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        super().retrying(effect_id, reason, delay_s)
        print_note(self.note)

    def stepped(self, run: Folded, step: Step) -> None:
        """See `Observer`."""
        super().stepped(run, step)
        for thought in step.thoughts:
            score = "" if thought.score is None else f" [{thought.score:.2f}]"
            print_note(f"{thought.stage}{score}: {present.clipped(thought.text, 160)}")


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


def bars(watch: Watch) -> list[tuple[str, float, float]]:
    """Return (unit, spent, limit) for each limit of the run's budget."""
    run, budget = watch.run, watch.budget
    if run is None:
        return []
    usage = run.usage
    spent: dict[str, tuple[float, float | None]] = {
        "calls": (usage.calls, budget.calls),
        "tokens": (usage.tokens, budget.tokens),
        "usd": (usage.usd or 0, budget.usd),
        "seconds": (run.snapshot.at_ms / 1000, budget.seconds),
        "thoughts": (len(run.thoughts), budget.thoughts),
        "nodes": (progress_of(run).get("nodes", 0), budget.nodes),
    }
    return [(unit, value, limit) for unit, (value, limit) in spent.items() if limit is not None]


def progress_of(run: Folded) -> dict[str, Any]:
    """Return what the strategy shows of itself."""
    progress = run.strategy.progress
    return progress(run.snapshot.state) if progress else {}
