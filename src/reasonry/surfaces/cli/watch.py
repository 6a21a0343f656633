"""Watching a run: a tree that grows in a terminal, plain lines elsewhere. Both on standard error."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...core.budget import DEFAULT_CALLS, Budget
from ...core.machine import Pending, Step
from ...core.text import clip, inert
from ...engine.follow import Observer, StreamedText
from ...engine.run import Run
from .. import present
from ..run_report import plan_name, score_of, thought_title, whole_thought
from .draw import drawn_start, tree_of
from .output import print_note

if TYPE_CHECKING:
    from rich.console import RenderableType

MAX_ROWS = 40
DEFAULT_LIMIT = f"at most {DEFAULT_CALLS} calls (--max-calls N allows more)"


class Watch(Observer):
    """The state that every view of a run needs: the run, the calls in flight, their start."""

    def __init__(self, model: str, why: str, budget: Budget | None, *, full: bool = False) -> None:
        self.model, self.why, self.budget, self.full = model, why, budget or Budget(), full
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
        for known in (self.in_flight, self.streams, self.streamed):
            for key in known.keys() - waiting:
                del known[key]

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


class Lines(Watch):
    """One plain line for each thing that happens, and one for each step of a plan; with `full` each thought whole."""

    def began(self, run_id: str, run: Run) -> None:
        """See `Observer`."""
        super().began(run_id, run)
        self.thoughts = run.counts.thoughts
        print_note(self.header)

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        super().retrying(effect_id, reason, delay_s)
        print_note(self.note)

    def stepped(self, run: Run, step: Step) -> None:
        """See `Observer`."""
        super().stepped(run, step)
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


class Live(Watch):
    """Draws the run as it grows: its tree or its thoughts, what is being asked, what is spent."""

    wants_text = True

    def __init__(self, model: str, why: str, budget: Budget | None) -> None:
        from rich.console import Console
        from rich.live import Live as RichLive
        from rich.spinner import Spinner

        super().__init__(model, why, budget)
        self.console = Console(stderr=True)
        self.spinner = Spinner("dots", style="cyan")
        self.screen = RichLive(
            get_renderable=self.draw, console=self.console, refresh_per_second=10, vertical_overflow="crop"
        )

    def draw(self) -> RenderableType:
        """Return the view as it is now."""
        from rich.console import Group
        from rich.text import Text

        if self.run is None:
            return Text("")
        width = self.console.width
        parts: list[RenderableType] = [Text(inert(self.header), style="dim")]
        progress, problem = progress_of(self.run), self.run.begun.problem
        tree = progress.get("tree")
        work = [Text(f"  {clip(line, width - 2)}", style=style) for line, style in _work(progress)]
        rows = MAX_ROWS // (5 if work else 2)
        parts.append(tree_of(tree, problem, width, MAX_ROWS) if tree else _thoughts(self.run, width, rows))
        parts += work
        if self.run.snapshot.status == "active":
            # The notes after the run have its counts.
            parts += [self._asking(width), self._counts(self.run)]
        return Group(*parts, self._bars(self.run))

    def _asking(self, width: int) -> RenderableType:
        from rich.text import Text

        stages = Counter(pending.stage for pending in self.in_flight.values())
        asked = ", ".join(f"{stage} ×{n}" if n > 1 else stage for stage, n in stages.items())
        self.spinner.update(text=Text(clip(f"{asked}  {self.latest}", width - 4), style="cyan"))
        return self.spinner

    def _counts(self, run: Run) -> RenderableType:
        from rich.text import Text

        usage = run.usage
        parts = [present.count_of(usage.calls, "call"), present.count_of(run.snapshot.rounds, "round")]
        parts += [f"{usage.tokens:,} tokens", *([] if usage.usd is None else [f"${usage.usd:.4f}"])]
        return Text(" · ".join([*parts, f"{time.monotonic() - self.since:.1f} s"]), style="dim")

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
            "nodes": progress_of(run).get("nodes", 0),
        }
        table = Table.grid(padding=(0, 1))
        for unit, done in spent.items():
            if (limit := getattr(self.budget, unit)) is not None:
                style = "red" if done >= limit else "green"
                bar = ProgressBar(total=limit, completed=min(done, limit), width=24, complete_style=style)
                table.add_row(Text(f"{unit:>8}"), bar, Text(f"{done:g} / {limit:g}"))
        return table


def _work(progress: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield lines, with their styles, on plans and tasks, where a strategy has them."""
    if "tasks" not in progress:
        return
    level = f", {progress['complexity_level']}" if progress.get("complexity_level") else ""
    yield f"Iteration {progress['iteration']} of at most {progress['max_iterations']}{level}", "bold"
    for number, score in enumerate(progress["plans"], 1):
        is_selected = progress["selected_plan"] == number
        name = f"{plan_name(number)} {score_of(score) or '…'}"
        yield name + (", selected" if is_selected else ""), "green" if is_selected else ""
    for number, task in enumerate(progress["tasks"], 1):
        status = task["status"] if task["status"] != "PENDING" else task["at"].replace("_", " ")
        styles = {"ACCEPTED": "green", "REJECTED": "red", "FAILED": "red"}
        line = f"Task {number} ({task['resource_name']}) {status}: {task['query']}"
        yield line, styles.get(task["status"], "dim")


def _thoughts(run: Run, width: int, rows: int) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    lines = [Text(clip(run.begun.problem, width - 2), style="bold")]
    first_shown = max(len(run.thoughts) - rows, 0)
    first_number = run.skipped.thoughts + first_shown + 1
    plan: list[str] = []
    for number, thought in enumerate(run.thoughts[first_shown:], first_number):
        line = Text(f"  {thought_title(number, thought)}  ", style="cyan")
        room = max(width - len(line) - 1, 10)
        first, *steps = present.thought_lines(thought.text, thought.data, 4 * width)
        lines.append(line.append_text(drawn_start(first, room)))
        if "planning" in thought.data:
            plan = steps or plan
        else:
            lines += [drawn_start(f"  {step}", width - 1) for step in steps]
    # The plan as it stands is enough here; `runs show` has the one of each thought.
    lines += [drawn_start(f"  {step}", width - 1) for step in plan[:rows]]
    return Group(*lines)


def progress_of(run: Run) -> dict[str, Any]:
    """Return what the strategy shows of itself, with the tree of the first run inside it that has one."""
    children = (waiting.child for waiting in run.snapshot.pending if waiting.child is not None)
    inside = [(run.strategies[child.strategy].progress, child.state) for child in children]
    trees = (shown["tree"] for show, state in inside if show and (shown := show(state)).get("tree"))
    show = run.strategy.progress
    own = show(run.snapshot.state) if show else {}
    return {"tree": next(trees, None), **own}


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
