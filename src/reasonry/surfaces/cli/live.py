"""The live view of a run in a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from ...core.budget import Budget
from ...core.text import clip
from ...engine.journal import Run
from .. import present
from ..run_report import plan_name, score_of, thought_title
from .draw_tree import tree_of
from .watch import Watch, bars, progress_of

MAX_ROWS = 40


class Live(Watch):
    """Draws the run as it grows: its tree or its thoughts, what is being asked, what is spent."""

    wants_text = True

    def __init__(self, model: str, why: str, budget: Budget | None) -> None:
        super().__init__(model, why, budget)
        self.console = Console(stderr=True)
        self.spinner = Spinner("dots", style="cyan")
        self.live = RichLive(
            get_renderable=self.draw, console=self.console, refresh_per_second=10, vertical_overflow="crop"
        )

    def __enter__(self) -> Live:
        self.live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.live.__exit__(*error)

    def draw(self) -> RenderableType:
        """Return the view as it is now."""
        if self.run is None:
            return Text("")
        width = self.console.width
        parts: list[RenderableType] = [Text(clip(self.header, width), style="dim")]
        progress, problem = progress_of(self.run), self.run.begun.problem
        tree = progress.get("tree")
        work = [Text(f"  {clip(line, width - 2)}", style=style) for line, style in _work(progress)]
        rows = MAX_ROWS // (5 if work else 2)
        parts.append(tree_of(tree, problem, width, MAX_ROWS) if tree else _thoughts(self.run, width, rows))
        parts += work
        if self.run.snapshot.status == "active":
            parts.append(self._asking(width))
        return Group(*parts, self._spend())

    def _asking(self, width: int) -> RenderableType:
        stages: dict[str, int] = {}
        for pending in self.in_flight.values():
            stages[pending.stage] = stages.get(pending.stage, 0) + 1
        asked = ", ".join(f"{stage} ×{n}" if n > 1 else stage for stage, n in stages.items())
        self.spinner.update(text=Text(clip(f"{asked}  {self.latest}", width - 4), style="cyan"))
        return self.spinner

    def _spend(self) -> RenderableType:
        assert self.run is not None
        usage, table = self.run.usage, Table.grid(padding=(0, 2))
        seconds = time.monotonic() - self.since
        dollars = "" if usage.usd is None else f" · ${usage.usd:.4f}"
        line = f"{usage.calls} calls · {self.run.snapshot.rounds} rounds · {usage.tokens:,} tokens{dollars}"
        table.add_row(Text(f"{line} · {seconds:.1f} s", style="dim"))
        for unit, spent, limit in bars(self):
            row = Table.grid(padding=(0, 1))
            style = "red" if spent >= limit else "green"
            bar = ProgressBar(total=limit, completed=min(spent, limit), width=24, complete_style=style)
            row.add_row(Text(f"{unit:>8}"), bar, Text(f"{spent:g} / {limit:g}"))
            table.add_row(row)
        return table


def _work(progress: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield lines, with their styles, on plans and tasks, where a strategy has them."""
    if "tasks" not in progress:
        return
    level = progress.get("complexity_level")
    yield (
        f"Iteration {progress['iteration']} of at most {progress['max_iterations']}{f', {level}' if level else ''}",
        "bold",
    )
    for number, score in enumerate(progress["plans"], 1):
        is_selected = progress["selected_plan"] == number
        name = f"{plan_name(number)} {score_of(score) or '…'}"
        yield name + (", selected" if is_selected else ""), "green" if is_selected else ""
    for number, task in enumerate(progress["tasks"], 1):
        status = task["status"] if task["status"] != "PENDING" else task["at"].replace("_", " ")
        line = f"Task {number} ({task['resource_name']}) {status}: {task['query']}"
        yield line, _TASK_STYLES.get(task["status"], "")


_TASK_STYLES = {"ACCEPTED": "green", "REJECTED": "red", "FAILED": "red", "SKIPPED": "dim", "PENDING": "dim"}


def _thoughts(run: Run, width: int, rows: int) -> RenderableType:
    lines = [Text(clip(run.begun.problem, width - 2), style="bold")]
    first_shown = max(len(run.thoughts) - rows, 0)
    first_number = run.skipped.thoughts + first_shown + 1
    plan: list[str] = []
    for number, thought in enumerate(run.thoughts[first_shown:], first_number):
        line = Text(f"  {thought_title(number, thought)}  ", style="cyan")
        room = max(width - len(line) - 1, 10)
        first, *steps = present.thought_lines(thought.text, thought.data, max(width - 3, 10))
        lines.append(line.append(clip(first, room), style="default"))
        if "planning" in thought.data:
            plan = steps or plan
        else:
            lines += [Text(f"  {step}") for step in steps]
    # The plan as it stands is enough here; `runs show` has the one of each thought.
    lines += [Text(f"  {step}") for step in plan[:rows]]
    return Group(*lines)
