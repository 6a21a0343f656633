"""What every way of watching a run knows of it."""

from __future__ import annotations

import time
from typing import Any

from ...core.budget import DEFAULT_CALLS, Budget
from ...core.machine import Pending, Step
from ...engine.journal import Run
from ...engine.observe import Unwatched
from ...engine.streamed_text import StreamedText

DEFAULT_LIMIT = f"at most {DEFAULT_CALLS} calls (--max-calls N allows more)"


class Watch(Unwatched):
    """What every way of watching knows: the run, what is in flight, since when."""

    def __init__(self, model: str, why: str, budget: Budget | None) -> None:
        self.model, self.why, self.budget = model, why, budget or Budget()
        self.run: Run | None = None
        self.run_id = ""
        self.in_flight: dict[str, Pending] = {}
        self.streams: dict[str, StreamedText] = {}
        self.streamed: dict[str, str] = {}
        self.note = ""
        self.since = time.monotonic()

    @property
    def latest(self) -> str:
        """The end of the answer that came in last, as far as it may be shown; without one, the note."""
        return next(reversed(self.streamed.values())) if self.streamed else self.note

    def began(self, run_id: str, run: Run) -> None:
        """See `Observer`."""
        self.run_id, self.run = run_id, run

    def asked(self, pending: Pending) -> None:
        """See `Observer`."""
        self.in_flight[pending.id] = pending

    def text(self, effect_id: str, piece: str) -> None:
        """See `Observer`."""
        shown = self.streams.setdefault(effect_id, StreamedText()).add(piece)
        self.streamed[effect_id] = (self.streamed.get(effect_id, "") + shown)[-400:]

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        self.streams.pop(effect_id, None)
        self.streamed.pop(effect_id, None)
        self.note = f"{effect_id}: {reason}; again in {delay_s:.1f} s"

    def stepped(self, run: Run, step: Step) -> None:
        """See `Observer`."""
        self.run = run
        waiting = {pending.id for pending in run.open_effects}
        self.in_flight = {key: pending for key, pending in self.in_flight.items() if key in waiting}
        self.streams = {key: stream for key, stream in self.streams.items() if key in waiting}
        self.streamed = {key: text for key, text in self.streamed.items() if key in waiting}

    @property
    def header(self) -> str:
        """One line: what runs, with which model, why that one, and the limit that nobody named."""
        run = self.run
        name = run.strategy.name if run else ""
        if run and run.begun.why:
            name += f" ({run.begun.why})"
        why = f" ({self.why})" if self.why else ""
        limit = f" · {DEFAULT_LIMIT}" if self.budget == Budget(calls=DEFAULT_CALLS) else ""
        return f"{name} · model {self.model}{why} · run {self.run_id}{limit}"


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


def progress_of(run: Run) -> dict[str, Any]:
    """Return what the strategy shows of itself."""
    progress = run.strategy.progress
    return progress(run.snapshot.state) if progress else {}
