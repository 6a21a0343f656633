"""The corpus of replies, the questions they answer, and what the reader makes of them.

A line of `corpus.jsonl` is one reply in the manner of a model, written for this corpus. One of `small_model.jsonl` is
a reply of the model of `tests/servers/small_model.py`, held to no form, of which some are cut off shorter:

    id              of the line, for reports
    form            the question it answers: `strategy.stage`
    problem         what the run was about
    setting         what else the reading needs (may be left out):
                    options   of the strategy; `tools` are names of `TOOLS`
                    said      fields of the replies before this one: candidates, the answer under check, …;
                              `⟨turn⟩` in them is another number in each reply
                    nth       which question of the stage it answers, from 1
                    verdict   of the verifier, on every claim before; `unknown` if left out
                    cut       true: the provider cut the reply off at its limit
    reply           the reply; `⟨form⟩` in it is the form of a reply as the question shows it, quoted back
    reads           what a person reads in it, by field; only what matters. `{"any_of": […]}`: each of these will do.
                    `a.b` is field b of each item of field a. `calls` are the tool calls that the run makes next, and
                    `Calls` a field of that name.
                    `⟨reply⟩` is all of the reply: where one text is wanted, that is what it says, sense or not.
    asked_again     instead of `reads`: why a careful person would ask again

The question is a real one: the strategy is played, without a model, until its stage asks. So a line says as little as
possible of forms and of the order of stages; where a name has changed, `STAGES` or `FIELDS` says so. A line whose stage
asks nothing any more is left out, and counted as `not asked`.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from reasonry.core.effects import Ask, CallTool, Verify
from reasonry.core.events import Answered, Event, Failed, ToolReturned, Verified
from reasonry.core.machine import Pending, Snapshot, advance, begin, open_effects, read_reply
from reasonry.core.strategy import Strategy
from reasonry.core.toolcard import ToolCard
from reasonry.strategies import STRATEGIES

from ..filling import fill

STAGES: Mapping[str, str] = {
    "tree_of_thoughts.solution_formulation": "tree_of_thoughts.continuation_decision",
}
"""Stages of the corpus that go by another name now, or whose form went into another stage: `strategy.stage`."""

OPTIONS: Mapping[str, Any] = {"decompose": True, "check": True, "enforce_task_counts": False}
"""Options of every strategy that has them, where a line says nothing else, so that each stage asks."""

FIELDS: Mapping[str, tuple[str, ...]] = {
    "answer": ("answer", "text"),
    "next": ("next", "then"),
}
"""Names that a field of the corpus may go by; regardless of case and underscores."""

PROSE = frozenset(
    {"steps", "thoughts", "thought", "reasoning", "currentthinking", "generalprinciple", "result"}
)
"""Fields in which a heading or a few words more change nothing."""

EXACT = frozenset({"code"})
"""Fields in which every blank counts."""

TOOLS: Mapping[str, ToolCard] = {
    card.name: card
    for card in (
        ToolCard(
            "search",
            "Finds passages about something.",
            {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]},
        ),
        ToolCard(
            "python",
            "Runs a Python program and gives what it prints.",
            {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]},
        ),
        ToolCard("py_executor"),
        ToolCard(
            "weather",
            "Forecast for a town and a day.",
            {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days_ahead": {"type": "integer"}},
                "required": ["city"],
            },
        ),
    )
}

FORM = "⟨form⟩"
REPLY = "⟨reply⟩"
TURN = "⟨turn⟩"
MOST_QUESTIONS = 60
SAID: Mapping[str, Mapping[str, Any]] = {
    "chain_of_thought.solution_formulation": {"steps": ["9 - 4 = 5."], "answer": None, "done": True},
}
"""What is said before a stage of some lines that is asked only then."""

SEEDS = 12
"""Ways to play on, with made-up replies, where the examples of the stages do not lead to the question."""

Outcome = Literal["read", "wrong", "refused", "asked again", "not asked"]
"""Of a line with `reads`: read, wrong or refused; of one to be asked about again: asked again or wrong."""


class Setting(Struct, frozen=True, forbid_unknown_fields=True):
    """What was before the question."""

    options: dict[str, Any] = {}
    said: dict[str, Any] = {}
    nth: int = 1
    verdict: Literal["right", "wrong", "unknown"] = "unknown"
    cut: bool = False


class Line(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply, and what a person reads in it."""

    id: str
    form: str
    problem: str
    reply: str
    setting: Setting = field(default_factory=Setting)
    reads: dict[str, Any] | None = None
    asked_again: str | None = None

    def __post_init__(self) -> None:
        if (self.reads is None) is (self.asked_again is None):
            raise ValueError(f"line {self.id}: either `reads` or `asked_again`")

    @property
    def stage(self) -> str:
        """The question it answers, by the name it goes by now."""
        return STAGES.get(self.form, self.form)


class Found(Struct, frozen=True):
    """What the reader made of a line."""

    line: Line
    outcome: Outcome
    detail: str = ""


@cache
def lines(file: str = "corpus.jsonl") -> tuple[Line, ...]:
    """Return the corpus."""
    text = Path(__file__).with_name(file).read_text("utf-8")
    return tuple(msgspec.json.decode(line, type=Line) for line in text.splitlines() if line.strip())


def measure(line: Line) -> Found:
    """Return what the reader makes of a line."""
    asked = ask(line)
    if asked is None:
        return Found(line, "not asked")
    strategy, snapshot, question = asked
    assert isinstance(question.effect, Ask), "as it was chosen"
    reply = Answered(_reply(line, question.effect), truncated=line.setting.cut)
    reading = read_reply(strategy.by_name[question.stage], snapshot.state, question.effect, (reply,))
    if reading.refusal is not None:
        return Found(line, "refused" if line.asked_again is None else "asked again", reading.refusal)
    if line.reads is None:
        return Found(line, "wrong", f"was read: {reading.value!r}")
    value = msgspec.to_builtins(reading.value)
    for name, expected in _with_reply(line.reads, line.reply).items():
        read = _calls(strategy, snapshot, question, reply) if name == "calls" else _field(value, name)
        if name == "calls" and expected and not read:
            return Found(line, "refused", "no call could be made of it")
        if not same(expected, read, name):
            return Found(line, "wrong", f"{name}: {read!r} for {expected!r}")
    return Found(line, "read", reading.mode)


def _with_reply(expected: Any, reply: str) -> Any:
    if isinstance(expected, dict):
        return {name: _with_reply(value, reply) for name, value in expected.items()}
    if isinstance(expected, list):
        return [_with_reply(value, reply) for value in expected]
    return reply if expected == REPLY else expected


def _reply(line: Line, question: Ask) -> str:
    if FORM not in line.reply:
        return line.reply
    rows = f"{question.system}\n{question.prompt}".splitlines()
    shown = [row for row in rows if '{"' in row]
    if not shown:
        sentences = [row for row in rows if "…" in row]
        assert sentences, f"line {line.id}: the question shows no form to quote"
        return line.reply.replace(FORM, sentences[-1])
    start, depth = shown[-1].index('{"'), 0
    for end, letter in enumerate(shown[-1][start:], start + 1):
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return line.reply.replace(FORM, shown[-1][start:end])
    raise AssertionError(f"line {line.id}: the form in the question has no end")


# -- the question


def ask(line: Line) -> tuple[Strategy[Any, Any], Snapshot, Pending] | None:
    """Return the question a line answers, and the strategy and the run that ask it; None: it is not asked."""
    name, _, stage = line.stage.partition(".")
    strategy = STRATEGIES[name]
    if stage not in strategy.by_name or strategy.by_name[stage].value_type is None:
        return None
    played = (_played(line, strategy, stage, seed) for seed in (None, *range(SEEDS)))
    return next((found for found in played if found is not None), None)


def _played(
    line: Line, strategy: Strategy[Any, Any], stage: str, seed: int | None
) -> tuple[Strategy[Any, Any], Snapshot, Pending] | None:
    wanted = {**OPTIONS, **line.setting.options}
    said = {**SAID.get(line.stage, {}), **line.setting.said}
    line = msgspec.structs.replace(line, setting=msgspec.structs.replace(line.setting, said=said))
    given = {name: value for name, value in wanted.items() if name in strategy.options.__struct_fields__}
    if "tools" in given:
        given["tools"] = [msgspec.to_builtins(TOOLS[name]) for name in given["tools"]]
    step = begin(strategy, line.problem, msgspec.convert(given, strategy.options), strategies=STRATEGIES)
    asked: set[str] = set()
    rng = None if seed is None else random.Random(seed)
    for turn in range(MOST_QUESTIONS):
        waiting = open_effects(step.snapshot)
        for question in waiting:
            if question.stage == stage and isinstance(question.effect, Ask):
                asked.add(question.id)
                if len(asked) == line.setting.nth:
                    return strategy, step.snapshot, question
        if not waiting:
            return None
        event = _event(strategy, step.snapshot, waiting[0], line.setting, rng, turn)
        step = advance(strategy, step.snapshot, waiting[0].id, event, strategies=STRATEGIES)
    return None


def _event(
    strategy: Strategy[Any, Any],
    snapshot: Snapshot,
    one: Pending,
    setting: Setting,
    rng: random.Random | None,
    turn: int,
) -> Event:
    match one.effect:
        case Ask():
            example = _example(strategy, snapshot, one) or {}
            form = one.effect.form or {}
            if form and rng is not None and rng.random() < 0.7:
                example = fill(form, rng, whole=rng.random() < 0.5)
            reply = json.dumps(_with(example, form, setting.said), ensure_ascii=False)
            return Answered(reply.replace(TURN, str(turn)))
        case CallTool():
            return ToolReturned("a passage")
        case Verify():
            return Verified(setting.verdict, detail="it does not hold")
        case _:
            return Failed("stopped", "not played")


def _example(strategy: Strategy[Any, Any], snapshot: Snapshot, one: Pending) -> Mapping[str, Any] | None:
    """Return the example of the stage that asks, in the run or in one inside it."""
    if one.stage in strategy.by_name:
        return strategy.by_name[one.stage].example
    inner = [waiting.child for waiting in snapshot.pending if waiting.child is not None]
    found = (_example(STRATEGIES[child.strategy], child, one) for child in inner)
    return next((example for example in found if example is not None), None)


def _with(example: Mapping[str, Any], form: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply with the fields in it that are said."""
    names = {_plain_name(name): name for name in (*form.get("properties", {}), *example)}
    given = {names[_plain_name(name)]: value for name, value in said.items() if _plain_name(name) in names}
    return {**example, **given}


def _calls(
    strategy: Strategy[Any, Any], snapshot: Snapshot, question: Pending, reply: Answered
) -> list[list[Any]]:
    """Return the tool calls that the run makes when it has the reply."""
    step = advance(strategy, snapshot, question.id, reply, strategies=STRATEGIES)
    effects = [one.effect for one in open_effects(step.snapshot)]
    return [[one.tool, one.arguments] for one in effects if isinstance(one, CallTool)]


# -- what was read


def _plain_name(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _field(value: Any, path: str) -> Any:
    """Return a field of what was read, wherever it stands in it; what is no object is the field itself."""
    name, _, rest = path.partition(".")
    names = {_plain_name(one) for one in FIELDS.get(name, (name,))}
    found = _found(value, names)
    if not rest:
        return found
    return [_field(item, rest) for item in found or ()]


def _found(value: Any, names: set[str]) -> Any:
    if not isinstance(value, dict):
        return value
    level = [value]
    while level:
        for part in level:
            for key, item in part.items():
                if _plain_name(str(key)) in names and not isinstance(item, dict):
                    return item
        for part in level:
            for key, item in part.items():
                if _plain_name(str(key)) in names:
                    return item
        level = [item for part in level for item in part.values() if isinstance(item, dict)]
    return None


def same(expected: Any, read: Any, name: str = "") -> bool:
    """Return whether a person would say that what was read in a field is what was expected."""
    match expected:
        case {"any_of": choices}:
            return any(same(choice, read, name) for choice in choices)
        case None | False | "" | []:
            return not read or (isinstance(read, str) and not read.strip())
        case bool():
            return read is expected
        case int() | float():
            number = _number(read)
            return number is not None and math.isclose(number, expected, rel_tol=1e-6, abs_tol=1e-9)
        case dict():
            return isinstance(read, dict) and _same_objects(expected, read)
        case list():
            return _same_lists(expected, read, name)
        case _:
            return _same_texts(str(expected), read, name)


def _number(read: Any) -> float | None:
    try:
        return None if isinstance(read, bool) else float(read)
    except (TypeError, ValueError):
        return None


def _same_objects(expected: Mapping[str, Any], read: Mapping[str, Any]) -> bool:
    given = {_plain_name(str(key)): value for key, value in read.items()}
    wanted_names = {_plain_name(key): value for key, value in expected.items()}
    return given.keys() == wanted_names.keys() and all(
        same(value, given[key], key) for key, value in wanted_names.items()
    )


def _same_lists(expected: Sequence[Any], read: Any, name: str) -> bool:
    if isinstance(read, str):
        places = [_plain(read).find(_plain(str(item))) for item in expected]
        return -1 not in places and places == sorted(places)
    return (
        isinstance(read, Sequence)
        and len(read) == len(expected)
        and all(same(one, other, name) for one, other in zip(expected, read, strict=True))
    )


def _same_texts(expected: str, read: Any, name: str) -> bool:
    if isinstance(read, list) and all(isinstance(item, str) for item in read):
        read = "\n".join(read)
    if isinstance(read, bool) or not isinstance(read, str | int | float):
        return False
    if _plain_name(name) in EXACT:
        return str(read).strip() == expected
    one, other = _plain(expected), _plain(str(read))
    if one == other or (_data(expected) is not None and _data(expected) == _data(str(read))):
        return True
    return _plain_name(name) in PROSE and one in other and len(other) <= 1.5 * len(one) + 24


def _data(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _plain(text: str) -> str:
    """Return a text without what only formats it."""
    text = re.sub(r"(?m)^[ \t]*(?:#{1,6} |[-*•] |(?:step )?\(?\d{1,2}[.):] )", "", text, flags=re.IGNORECASE)
    return " ".join(re.sub(r"[*_`]", "", text).casefold().split()).rstrip(".")
