"""Laws of reading over the registry: what keeps its meaning reads the same, what loses it is asked again.

Each form of each strategy is answered in a real question. The reply is then written in other clothes (other keys, YAML,
a fence, text for a list …), and has to be read at first sight, with the same result; or its meaning is broken (a field
is missing, two values contradict each other, it is cut off …), and it has to be asked again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
import pytest

from reasonry.core.effects import Ask
from reasonry.core.events import Answered
from reasonry.core.machine import Pending, Snapshot, read_reply
from reasonry.core.strategy import Strategy
from reasonry.strategies import STRATEGIES

from ..filling import fill
from .clothes import SAME_MEANING, Change, Schema, values
from .corpus import Line, Setting, ask

FORMS = [
    f"{name}.{stage.name}"
    for name, strategy in STRATEGIES.items()
    for stage in strategy.stages
    if strategy.is_driven and stage.reply is not None
]
SETTINGS = {
    "planned_thinking.conclude": Setting(options={"verify": True}, verdict="wrong"),
    "linear.solution_finalization": Setting(options={"verify": True}, verdict="wrong"),
    "skeleton.joining": Setting(options={"verify": True}, verdict="wrong"),
    "self_consistency.consistency_analysis": Setting(
        options={"group": True, "samples": 3}, said={"answer": "⟨turn⟩ apples"}
    ),
    "best_of_n.differential_testing": Setting(
        options={"tools": ["py_executor"]},
        said={"answer": "```python\ndef median(numbers):\n    return numbers[⟨turn⟩]\n```"},
    ),
    **{
        f"prove_and_refute.{stage}": Setting(options={"solvers": 1})
        for stage in ("proof_writing", "proof_attack", "proof_revision")
    },
    "analysis.focused_answer": Setting(options={"focused_answer_type": "choice: Python | JavaScript"}),
}
"""What it takes for a form to be asked for."""
REPLIES = 4
"""Replies tried for each form: its example, and made-up ones."""


@cache
def question(form: str) -> tuple[Strategy[Any, Any], Snapshot, Pending] | None:
    options = {"check": True, "decompose": True}
    usual = (Setting(options={"tools": ["search"], **options}), Setting(options=options))
    settings = (SETTINGS[form],) if form in SETTINGS else usual
    asked = (
        ask(Line("law", form, "Use 4, 9, 10 and 13 to make 24", "", each, reads={})) for each in settings
    )
    return next((found for found in asked if found is not None), None)


@cache
def plain_replies(form: str) -> tuple[tuple[dict[str, Any], Any], ...]:
    """Return replies that fit as they stand, and what is read in each."""
    asked = question(form)
    assert asked is not None
    strategy, _, pending = asked
    stage, schema = strategy.by_name[pending.stage], schema_of(form)
    made_up = (fill(schema, random.Random(seed), whole=True) for seed in range(30))
    found = []
    for data in (dict(stage.example or {}), *made_up):
        value, _ = read(form, json.dumps(data))
        if value is not None and len(found) < REPLIES:
            found.append((data, value))
    return tuple(found)


def schema_of(form: str) -> Schema:
    asked = question(form)
    assert asked is not None
    assert isinstance(asked[2].effect, Ask)
    return asked[2].effect.form or {}


def read(form: str, text: str, *, truncated: bool = False) -> tuple[Any, str]:
    """Return what is read in a reply, as data, and how; None and the reason if it is asked again."""
    asked = question(form)
    assert asked is not None
    strategy, snapshot, pending = asked
    assert isinstance(pending.effect, Ask)
    reply = Answered(text, truncated=truncated)
    reading = read_reply(strategy.by_name[pending.stage], snapshot.state, pending.effect, (reply,))
    if reading.refusal is not None:
        return None, reading.refusal
    return msgspec.to_builtins(reading.value), reading.mode


def changed(form: str, changes: Mapping[str, Change]) -> Iterator[tuple[str, str, Any]]:
    """Yield each change of each reply to a form: its name, the text, and what is read in the reply as it stands."""
    for name, change in changes.items():
        for data, value in plain_replies(form):
            text = change(data, schema_of(form))
            if text is not None:
                yield name, text, value


# All changes of a form are one test: each takes less time than a test of its own would, and names itself.


@pytest.mark.parametrize("form", FORMS)
def test_what_keeps_its_meaning_is_read_the_same(form: str) -> None:
    assert question(form) is not None, "no run asks this"
    assert plain_replies(form), "no reply fits"
    wrong = list[str]()
    for change, text, value in changed(form, SAME_MEANING):
        found, how = read(form, text)
        if found != value:
            wrong.append(f"{change}: {how}: {found!r}\n{text}")
    assert not wrong, "\n\n".join(wrong)


# -- broken


def required(data: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    """Yield the fields that a reply cannot do without: those that may not be null."""
    for name in data:
        part = schema["properties"].get(name, {})
        if {"type": "null"} not in part.get("anyOf", ()) and part.get("type") != "null":
            yield name


def without_a_field(data: Any, schema: Schema) -> str | None:
    names = [*required(data, schema)]
    return json.dumps({name: item for name, item in data.items() if name != names[0]}) if names else None


def said_twice(data: Any, schema: Schema) -> str | None:
    name = next((name for name in required(data, schema) if isinstance(data[name], str)), None)
    return None if name is None else json.dumps({**data, name.upper(): f"not {data[name]}"})


def broken(change: Callable[[Any, Schema], Any]) -> Change:
    return values(change)


OTHER_MEANING: dict[str, Change] = {
    "an empty object": lambda data, _: "{}",
    "a field missing": without_a_field,
    "a field given twice, with two values": said_twice,
    "neither true nor false": broken(lambda value, _: "perhaps" if isinstance(value, bool) else value),
    "no choice": broken(
        lambda value, schema: "something else" if "enum" in schema and value is not None else value
    ),
    "no number": broken(
        lambda value, schema: (
            "several"
            if isinstance(value, int | float)
            and not isinstance(value, bool)
            and schema.get("type") in ("integer", "number")
            else value
        )
    ),
    "cut off": lambda data, _: json.dumps(data)[: len(json.dumps(data)) // 2],
    "a polite refusal": lambda data, _: "I'm sorry, but I can't help with that.",
    "nothing but thinking": lambda data, _: f"<think>{json.dumps(data)}",
    "nothing": lambda data, _: "  \n",
    "something else": lambda data, _: json.dumps({"weather": {"city": "Oslo"}, "temperature": 4}),
}

TAKES_ANYTHING = {
    # Where it does not say how to go on, the next stage asks for that alone.
    ("linear.thought_evaluation", "no choice"),
    # An action without a thought beside it can be taken.
    ("react.initial_reasoning", "a field missing"),
    ("react.reasoning_update", "a field missing"),
    # One form for all kinds of task; what has to be there depends on the kind.
    ("analysis.task_execution", "a field missing"),
    # The value is what a program branches on; the reason before it is room to think.
    ("analysis.focused_answer", "a field missing"),
    # What a step of a plan finds out may be that it cannot be found out.
    ("rewoo.working_phase", "a polite refusal"),
    ("self_ask.sub_question_answering", "a polite refusal"),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_loses_its_meaning_is_asked_again(form: str) -> None:
    wrong = list[str]()
    for change, text, _ in changed(form, OTHER_MEANING):
        found, how = read(form, text, truncated=change == "cut off")
        if (form, change) not in TAKES_ANYTHING and (found is not None or not how):
            wrong.append(f"{change}: read {how}: {found!r}\n{text}")
    assert not wrong, "\n\n".join(wrong)
