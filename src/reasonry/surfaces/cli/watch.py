"""Shows a run in progress on standard error: a growing tree in a terminal, plain lines elsewhere."""

import sys
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from msgspec import structs
from rich.console import Console, Group, RenderableType
from rich.live import Live as RichLive
from rich.spinner import Spinner
from rich.text import Text

from ...core.budget import DEFAULT_CALLS, Budget
from ...core.machine import Step
from ...engine.observer import Observer
from ...engine.result import result_of
from ...engine.run import Run
from ...text import display_line
from .. import present
from ..run_report import thought_title, whole_thought
from ..web.run_nodes import first_nodes
from .draw import tree_of
from .output import print_note

MAX_ROWS = 40
DEFAULT_LIMIT = f"at most {DEFAULT_CALLS} calls (--max-calls N allows more)"


class Lines(Observer):
    """Prints a run as plain lines: its start, its retries and its thoughts.

    A long thought is printed whole if `full` is set, or if the run has so far worked on only one thought at a time.
    """

    def __init__(self, why: str = "", *, full: bool = False) -> None:
        self.why, self.full = why, full
        self.thoughts = 0
        self.reason = ""
        self.is_side_by_side = False
        """Whether the run has ever asked several questions at once, or recorded several branches in one step."""

    def began(self, run_id: str, run: Run) -> None:
        """Print a line with the strategy, the model and the id of the run."""
        name = run.strategy.name + (f" ({run.begun.why})" if run.begun.why else "")
        why = f" ({self.why})" if self.why else ""
        limit = f" · {DEFAULT_LIMIT}" if run.budget == Budget(calls=DEFAULT_CALLS) else ""
        print_note(f"{name} · model {run.participants.model}{why} · run {run_id}{limit}")
        self.thoughts = run.counts.thoughts
        self.is_side_by_side = len(run.open_effects) > 1

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """Print that a call will be repeated. The reason is printed only if it has changed."""
        cause, self.reason = "" if reason == self.reason else f"{reason}; ", reason
        print_note(f"{effect_id}: {cause}again in {delay_s:.1f} s")

    def stepped(self, run: Run, step: Step) -> None:
        """Print the thoughts of a step."""
        lines_of_thought = {thought.branch for thought in step.thoughts}
        self.is_side_by_side |= max(len(run.open_effects), len(lines_of_thought)) > 1
        for thought in step.thoughts:
            # Thoughts are counted here, since the run may be several steps ahead.
            self.thoughts += 1
            title = thought_title(self.thoughts, thought)
            lines = present.thought_lines(thought.text, thought.data, 160)
            is_cut = any(line.endswith("…") for line in lines)
            if self.full or (is_cut and not self.is_side_by_side):
                print_note(*whole_thought(title, thought))
            else:
                print_note(f"{title}: {lines[0]}", *lines[1:])


class Live(Lines):
    """Draws the tree, the open questions and the usage of a run. If there is no tree, thoughts are printed as lines."""

    def __init__(self, why: str = "") -> None:
        super().__init__(why)
        self.run: Run | None = None
        self.tree: RenderableType | None = None
        self.since = time.monotonic()
        self.console = Console(stderr=True)
        self.spinner = Spinner("dots", style="cyan")
        self.screen = RichLive(
            get_renderable=self.draw, console=self.console, refresh_per_second=10, vertical_overflow="crop"
        )

    def began(self, run_id: str, run: Run) -> None:
        """Print the first line, as `Lines` does, and start to draw the run."""
        super().began(run_id, run)
        self.run = run

    def stepped(self, run: Run, step: Step) -> None:
        """Update the tree of the run, or print the thoughts of the step if the run has no tree."""
        document = result_of("", "", run).document()
        nodes = [*first_nodes(document, run.begun.problem, ()).values()]
        has_tree = any(node.kind == "thought" for node in nodes)
        self.run, self.tree = run, tree_of(nodes, run.begun.problem, MAX_ROWS) if has_tree else None
        if has_tree:
            self.thoughts += len(step.thoughts)
        else:
            super().stepped(run, step)

    def draw(self) -> RenderableType:
        """Return the current view: the tree, the open questions and the usage."""
        run = self.run
        if run is None:
            return Text("")
        parts = [] if self.tree is None else [self.tree]
        usage, duration_ms = run.usage, 1_000 * (time.monotonic() - self.since)
        if run.snapshot.status == "active":
            # After the end of the run, the notes below the view show its usage.
            stages = Counter(pending.stage for pending in run.open_effects)
            asked = ", ".join(f"{stage} ×{n}" if n > 1 else stage for stage, n in stages.items())
            self.spinner.update(text=Text(display_line(asked, self.console.width - 4), style="cyan"))
            counts = {
                "usage": structs.asdict(usage) | {"samples": usage.samples},
                "rounds": run.snapshot.rounds,
                "duration_ms": duration_ms,
            }
            parts += [self.spinner, Text(present.spend(counts), style="dim")]
        return Group(*parts)


@contextmanager
def watching(silent: bool, why: str = "", *, full: bool = False) -> Generator[Observer]:
    """Yield an observer that shows a run: live in a terminal, as plain lines elsewhere. If `silent`, show nothing.

    Args:
        why: The reason why the default model was chosen, if the user named no model.
        full: Whether to print plain lines in a terminal too, with each thought whole.
    """
    if silent:
        yield Observer()
    elif full or not sys.stderr.isatty():
        yield Lines(why, full=full)
    else:
        live = Live(why)
        with live.screen:
            yield live
