"""The worked example of a strategy's page: its command is carried out, and each step is shown as it came.

The command is the page's first shell block. Its model is a file of replies that were recorded once from a language
model, or `offline`, so it runs the same each time, anywhere. A step is an answer and what came of it up to the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.core.bodies import Thought
from reasonry.core.budget import Budget
from reasonry.core.effects import Ask, CallTool, Effect
from reasonry.core.events import Answered, Failed, ToolReturned, Usage, Verified
from reasonry.core.machine import Pending, Step
from reasonry.engine.observer import Observer
from reasonry.engine.policy import Policy
from reasonry.engine.result import Result
from reasonry.engine.run import Run
from reasonry.engine.usage import estimate_usage
from reasonry.models.known import price_list
from reasonry.strategies import DEFAULT_STRATEGY
from reasonry.surfaces.cli.settings import RunSettings
from reasonry.surfaces.present import end_text
from reasonry.surfaces.run_report import thought_title, whole_thought

ROOT = Path(__file__).resolve().parents[1]
COMMAND = re.compile(r"^```sh\n(reasonry solve .*?)^```", re.MULTILINE | re.DOTALL)
MARKERS = re.compile(r"<!-- begin (step (\d+)|steps (\d+)-(\d+)|end) -->")
WIDTH = 72
PRICED = "gpt-6-luna"
PRICES = price_list("https://api.openai.com/v1", PRICED)
"""Of the model with which a page says what its run would cost."""
LONGEST = {"notes": WIDTH, "calls": 100, "returns": 100, "answer": 240, "why": 300}
"""Characters that a page shows of a note, a call, its result, the answer and its reason; of all else, 150."""
TEXT = 40
"""Characters that a page shows of a text within a reply of JSON."""


class Worked(NamedTuple):
    """A run that was carried out: the lines of each step, and of how it ended."""

    steps: list[list[str]]
    end: list[str]


def command_of(page: str) -> str:
    """Return the command of a page's worked example; empty if it has none."""
    found = COMMAND.search(page)
    return found[1] if found else ""


def carry_out(command: str) -> Worked:
    """Perform a command in memory."""
    from reasonry.surfaces.cli.commands import app

    _, bound, *_ = app.parse_args(
        shlex.split(command.replace("\\\n", ""))[1:], exit_on_error=False, print_error=False
    )
    steps = _Steps()
    with contextlib.chdir(ROOT):
        result = asyncio.run(_solve(bound.arguments, steps))
    return Worked(steps.lines, list(_end(result, steps.usage)))


async def _solve(given: dict[str, Any], steps: _Steps) -> Result:
    settings = given.get("settings", RunSettings())
    strategy, options = given.get("strategy", DEFAULT_STRATEGY), given.get("option", ())
    request = settings.request(given["problem"], strategy, options)
    async with App("memory", Policy(max_concurrency=1), {}) as app:
        participants = await app.equip(request.participants)
        budget = request.budget or Budget()
        order, performers = app.order(replace(request, budget=budget, participants=participants))
        return await app.solve(order, performers, steps)


class _Steps(Observer):
    """Writes down what happens, an answer and what comes of it together."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = []
        self.taken = self.answers = 0
        self.heading = self.replies = ""
        self.effects: dict[str, tuple[str, Effect]] = {}
        self.usage = Usage()

    def asked(self, pending: Pending) -> None:
        """See `Observer`."""
        self.effects[pending.id] = (pending.stage, pending.effect)

    def stepped(self, run: Run, step: Step) -> None:
        """See `Observer`."""
        last = run.events[self.taken]
        self.taken += 1
        stage, effect = self.effects.get(str(last.id), ("", None))
        if isinstance(effect, Ask):
            self.answers += 1
        if len(self.lines) < max(self.answers, 1):
            self.lines.append([])
        lines, event = self.lines[-1], last.event
        if isinstance(event, Answered) and isinstance(effect, Ask):
            self.heading = stage
            lines += [stage, *(_said("objects", effect.turns[-1].objection) if effect.turns else ())]
            self.replies += _words(event.text) + "\n"
            self.usage += estimate_usage(effect.spelled_out().text, event.text, PRICES)
            lines += _said("reply", _spaced(event.text))
            if step.reading is not None and step.reading.refusal:
                lines += _said("refused", step.reading.refusal)
        elif isinstance(event, ToolReturned) and isinstance(effect, CallTool):
            arguments = {name: self._once(value) for name, value in effect.arguments.items()}
            lines += _said("calls", f"{effect.tool} {json.dumps(arguments, ensure_ascii=False)}")
            value = event.value
            returned = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines += _said("returns", returned)
            self.replies += _words(cut_at_word(returned, LONGEST["returns"])) + "\n"
        elif isinstance(event, Verified):
            lines += _said("verifier", f"{event.verdict}: {event.detail}" if event.detail else event.verdict)
        elif isinstance(event, Failed):
            lines += _said("fails", f"{event.code}: {event.message}")
        first = run.counts.thoughts - len(step.thoughts) + 1
        for number, thought in enumerate(step.thoughts, first):
            lines += self._notes(number, thought)

    def _notes(self, number: int, thought: Thought) -> Iterator[str]:
        """Yield a thought's lines, unless a reply or result has said the shown part."""
        title, *text = whole_thought(thought_title(number, thought), thought)
        title = f"{title.replace(f' · {self.heading}', '', 1)}: "
        lines = "\n".join(line.removeprefix("  ") for line in text)
        shown = cut_at_word(lines, LONGEST["notes"] - len(title))
        if text and not self._is_said(shown):
            yield from _said("notes", title + shown)

    def _is_said(self, text: str) -> bool:
        words = _words(text)
        # A note may put a word and a number before the reply, as in "Draft 1: …".
        return any(
            each in self.replies for each in (words, words.partition(" ")[2].partition(" ")[2]) if each
        )

    def _once(self, value: Any) -> Any:
        """Return an argument of a call, or its beginning if a reply has said it."""
        return cut_at_word(value, TEXT) if isinstance(value, str) and self._is_said(value) else value


def _said(who: str, text: str) -> Iterator[str]:
    """Yield lines of a bounded width, the first with who says it."""
    longest = LONGEST.get(who, 150)
    text = cut_at_word(text, longest)
    lines = [
        part
        for line in text.strip().splitlines()
        for part in textwrap.wrap(line, WIDTH, break_on_hyphens=False, subsequent_indent=_indent(line))
        or [""]
    ]
    for number, line in enumerate(lines):
        yield f"  {who if number == 0 else '':<9}{line}".rstrip()


def _words(text: str) -> str:
    return re.sub(r"[^\w.]+|\\n", " ", text).strip()


def _indent(line: str) -> str:
    return " " * (len(line) - len(line.lstrip(" -")))


def _spaced(reply: str) -> str:
    """Return a reply that is nothing but JSON with spaces, where lines may break, and with its long texts cut."""
    try:
        return json.dumps(_cut(json.loads(reply)), ensure_ascii=False)
    except ValueError:
        return reply


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_cut(one) for one in value]
    return cut_at_word(value, TEXT) if isinstance(value, str) else value


def cut_at_word(text: str, longest: int) -> str:
    """Return a text, or its beginning with an ellipsis."""
    return text if len(text) <= longest else f"{text[:longest].rsplit(maxsplit=1)[0]} …"


def _end(result: Result, usage: Usage) -> Iterator[str]:
    yield end_text(result.document())
    yield f"{_count(result.usage.calls, 'call')}, {_count(result.rounds, 'round')}"
    yield _cost(usage)
    for warning in result.warnings:
        yield from _said("warning", warning)
    yield from _said("answer", str(result.answer))
    yield from _said("why", result.why.text if result.why else "")


def priced_on() -> str:
    """Return the date of the price list."""
    listed = re.search(
        r'genai_prices-[\d.]+\.tar\.gz".*upload-time = "([\d-]+)', (ROOT / "uv.lock").read_text()
    )
    assert listed is not None
    return listed[1]


def _cost(usage: Usage) -> str:
    """Return the tokens of a run, counted from its texts, and their price."""
    assert usage.usd
    return f"about {usage.input_tokens:,} + {usage.output_tokens:,} tokens: ${usage.usd:.5f} with {PRICED}"


def _count(number: int, of: str) -> str:
    return f"{number} {of}" if number == 1 else f"{number} {of}s"


def _block(steps: list[list[str]]) -> str:
    return "```text\n" + "\n\n".join("\n".join(lines) for lines in steps) + "\n```"


def parts(page: str) -> dict[str, str]:
    """Return what stands between the markers of a page's worked example.

    Raises:
        ValueError: A step has no place on the page, or there is no such step.
    """
    command = command_of(page)
    if not command:
        return {}
    run = carry_out(command)
    found: dict[str, str] = {}
    shown: list[int] = []
    for name, one, first, last in MARKERS.findall(page):
        if name == "end":
            found[name] = _block([run.end])
            continue
        numbers = range(int(one or first), int(one or last) + 1)
        shown += numbers
        steps = [run.steps[number - 1] for number in numbers if number <= len(run.steps)]
        if len(steps) > 4:
            steps = [*steps[:2], [f"… {len(steps) - 3} more …"], steps[-1]]
        found[name] = _block(steps)
    if shown != list(range(1, len(run.steps) + 1)) or "end" not in found:
        raise ValueError(f"the worked example has {len(run.steps)} steps and an end; the page shows {shown}")
    return found
