"""Watching a run: a tree that grows in a terminal, plain lines elsewhere. Both on standard error."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import structs

from ...core.budget import DEFAULT_CALLS, Budget
from ...core.machine import Pending, Step
from ...core.text import clip
from ...engine.follow import Observer, StreamedText
from ...engine.guard import node_count
from ...engine.result import result_of
from ...engine.run import Run
from .. import present
from ..run_report import thought_title, whole_thought
from ..web.run_nodes import first_nodes
from .draw import tree_of
from .output import print_note

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ..web.page import PageNode

MAX_ROWS = 40
DEFAULT_LIMIT = f"at most {DEFAULT_CALLS} calls (--max-calls N allows more)"


class Lines(Observer):
    """One plain line for each thing that happens, and one for each step of a plan; with `full` each thought whole."""

    def __init__(self, model: str, why: str, budget: Budget | None, *, full: bool = False) -> None:
        self.model, self.why, self.budget, self.full = model, why, budget or Budget(), full
        self.thoughts = 0

    def began(self, run_id: str, run: Run) -> None:
        """Print what runs, with which model, why that one, and the limit that nobody named."""
        name = run.strategy.name + (f" ({run.begun.why})" if run.begun.why else "")
        why = f" ({self.why})" if self.why else ""
        limit = f" · {DEFAULT_LIMIT}" if self.budget == Budget(calls=DEFAULT_CALLS) else ""
        print_note(f"{name} · model {self.model}{why} · run {run_id}{limit}")
        self.thoughts = run.counts.thoughts

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        print_note(f"{effect_id}: {reason}; again in {delay_s:.1f} s")

    def stepped(self, run: Run, step: Step) -> None:
        """See `Observer`."""
        for thought in step.thoughts:
            # The run may be several steps ahead.
            self.thoughts += 1
            title = thought_title(self.thoughts, thought)
            if self.full:
                lines = whole_thought(title, thought)
            else:
                first, *plan = present.thought_lines(thought.text, thought.data, 160)
                lines = [f"{title}: {first}", *plan]
            print_note(*lines)


class Live(Lines):
    """Draws, under the same lines, what is being asked and what is spent; a run with a tree has the tree alone."""

    wants_text = True

    def __init__(self, model: str, why: str, budget: Budget | None) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive
        from rich.spinner import Spinner

        super().__init__(model, why, budget)
        self.run: Run | None = None
        self.run_id = ""
        self.nodes: Sequence[PageNode] = ()
        self.in_flight: dict[str, str] = {}
        """The stages of what is asked."""
        self.streams: dict[str, StreamedText] = {}
        self.streamed: dict[str, str] = {}
        self.since = time.monotonic()
        self.console = Console(stderr=True)
        self.spinner = Spinner("dots", style="cyan")
        self.screen = RichLive(
            get_renderable=self.draw, console=self.console, refresh_per_second=10, vertical_overflow="crop"
        )

    @property
    def has_tree(self) -> bool:
        """Whether the run, or one inside it, has a tree."""
        return any(node.kind == "thought" for node in self.nodes)

    @property
    def latest(self) -> str:
        """The end of the answer that came in last, as far as it may be shown."""
        return next(reversed(self.streamed.values()), "")

    def began(self, run_id: str, run: Run) -> None:
        """See `Observer`."""
        super().began(run_id, run)
        self.run, self.run_id = run, run_id

    def asked(self, pending: Pending) -> None:
        """See `Observer`."""
        self.in_flight[pending.id] = pending.stage

    def text(self, effect_id: str, piece: str) -> None:
        """See `Observer`."""
        shown = self.streams.setdefault(effect_id, StreamedText()).add(piece)
        self.streamed[effect_id] = (self.streamed.get(effect_id, "") + shown)[-400:]

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        super().retrying(effect_id, reason, delay_s)
        self.streams.pop(effect_id, None)
        self.streamed.pop(effect_id, None)

    def stepped(self, run: Run, step: Step) -> None:
        """See `Observer`."""
        document = result_of(self.run_id, "", run).document()
        self.run, self.nodes = run, [*first_nodes(document, run.begun.problem, ()).values()]
        if self.has_tree:
            self.thoughts += len(step.thoughts)
        else:
            super().stepped(run, step)
        waiting = {pending.id for pending in run.open_effects}
        for known in (self.in_flight, self.streams, self.streamed):
            for key in known.keys() - waiting:
                del known[key]

    def draw(self) -> RenderableType:
        """Return the view as it is now."""
        from rich.console import Group
        from rich.text import Text

        if self.run is None:
            return Text("")
        parts: list[RenderableType] = []
        if self.has_tree:
            parts = [tree_of(self.nodes, self.run.begun.problem, MAX_ROWS)]
        if self.run.snapshot.status == "active":
            # The notes after the run have its counts.
            parts += [self._asking(), self._counts(self.run)]
        return Group(*parts, self._bars(self.run))

    def _asking(self) -> RenderableType:
        from rich.text import Text

        stages = Counter(self.in_flight.values())
        asked = ", ".join(f"{stage} ×{n}" if n > 1 else stage for stage, n in stages.items())
        self.spinner.update(text=Text(clip(f"{asked}  {self.latest}", self.console.width - 4), style="cyan"))
        return self.spinner

    def _counts(self, run: Run) -> RenderableType:
        from rich.text import Text

        duration_ms = 1_000 * (time.monotonic() - self.since)
        rounds, usage = run.snapshot.rounds, structs.asdict(run.usage)
        spent = {"usage": usage, "rounds": rounds, "duration_ms": duration_ms}
        return Text(present.spend(spent), style="dim")

    def _bars(self, run: Run) -> RenderableType:
        """Return a bar for each limit of the run's budget."""
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        usage = run.usage
        spent: dict[str, float] = {
            "calls": usage.calls,
            "tokens": usage.tokens,
            "usd": usage.usd or 0,
            "seconds": run.snapshot.at_ms / 1000,
            "thoughts": len(run.thoughts),
            "nodes": node_count(run),
        }
        table = Table.grid(padding=(0, 1))
        for unit, done in spent.items():
            if (limit := getattr(self.budget, unit)) is not None:
                style = "red" if done >= limit else "green"
                bar = ProgressBar(total=limit, completed=min(done, limit), width=24, complete_style=style)
                table.add_row(Text(f"{unit:>8}"), bar, Text(f"{done:g} / {limit:g}"))
        return table


@contextmanager
def watching(
    silent: bool, model: str, why: str, budget: Budget | None, *, full: bool = False
) -> Generator[Observer]:
    """Watch a run in the way that fits where it is shown.

    Args:
        full: Print each thought whole, in a terminal too.
    """
    if silent:
        yield Observer()
    elif full or not sys.stderr.isatty():
        yield Lines(model, why, budget, full=full)
    else:
        live = Live(model, why, budget)
        with live.screen:
            yield live
