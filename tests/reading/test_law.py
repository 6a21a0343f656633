"""Laws of forms: what keeps its meaning reads the same, what loses it is asked again.

A reply to each form is written in other clothes (other keys, YAML, a fence, text for a list …), and has to be read at
first sight, with the same result; or its meaning is broken (a field is missing, two values contradict each other, it is
cut off …), and it has to be asked again.
"""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from reasonry.blocks.answers import AnswerReply, CheckReply, ReasonedAnswer
from reasonry.core.readings import Unreadable
from reasonry.core.type_schema import inlined_schema
from reasonry.reading.form import no_reply, read_form
from reasonry.reading.thinking import without_thinking

from ..filling import fill
from .clothes import SAME_MEANING, Change, Schema, values


class Part(Struct):
    task: str
    after: list[int]
    tool: str | None = None


class Plan(Struct):
    thought: str
    parts: list[Part]
    is_done: bool
    next_step: Literal["GO_ON", "GIVE_UP"]
    thoughts_needed: int | None = None


class Scored(Struct):
    reason: str
    score: Annotated[float, Meta(ge=0, le=10)]
    ideas: list[str]


class Rated(Struct):
    reason: str
    ratings: dict[str, float]


FORMS = {form.__name__: form for form in (AnswerReply, ReasonedAnswer, CheckReply, Plan, Scored, Rated)}
ANSWERS = ("AnswerReply", "ReasonedAnswer")
REPLIES = 4
"""Replies tried for each form."""


def replies(name: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield replies that fit as they stand, and what is read in each."""
    made_up = (fill(inlined_schema(FORMS[name]), random.Random(seed), whole=True) for seed in range(30))
    found = ((data, read(name, json.dumps(data))) for data in made_up)
    fitting = [(data, value) for data, value in found if not isinstance(value, Unreadable)]
    assert len(fitting) >= REPLIES
    yield from fitting[:REPLIES]


def read(name: str, text: str) -> Any:
    """Return what is read in a reply, as data, or why it is asked again."""
    text = without_thinking(text)
    if reason := no_reply(text, ""):
        return Unreadable(reason)
    reading = read_form(text, FORMS[name])
    return reading if isinstance(reading, Unreadable) else msgspec.to_builtins(reading[0])


def changed(name: str, changes: Mapping[str, Change]) -> Iterator[tuple[str, str, Any]]:
    """Yield each change of each reply to a form: its name, the text, and what is read in the reply as it stands."""
    for data, value in replies(name):
        for change, rewrite in changes.items():
            text = rewrite(data, inlined_schema(FORMS[name]))
            if text is not None:
                yield change, text, value


FRAMED = (
    "after a sentence",
    "before politeness",
    "in an object",
    "in a list",
    "as YAML",
    "as YAML in a fence",
)
"""Clothes in which data is read, and an answer may be: its writer is asked for the mark."""


@pytest.mark.parametrize("name", FORMS)
def test_what_keeps_its_meaning_is_read_the_same(name: str) -> None:
    wrong = list[str]()
    for change, text, value in changed(name, SAME_MEANING):
        found = read(name, text)
        is_asked = (
            isinstance(found, Unreadable) and found.is_unmarked and change in FRAMED and name in ANSWERS
        )
        if found != value and not is_asked:
            wrong.append(f"{change}: {found!r}\n{text}")
    assert not wrong, "\n\n".join(wrong)


# -- broken


def required(data: Mapping[str, Any], schema: Schema) -> Iterator[str]:
    """Yield the fields that a reply cannot do without."""
    yield from (name for name in data if name in schema.get("required", ()))


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
    "other keys": lambda data, _: json.dumps({f"my {key}": item for key, item in data.items()}),
    "cut off": lambda data, _: json.dumps(data)[: len(json.dumps(data)) // 2],
    "a polite refusal": lambda data, _: "I'm sorry, but I can't help with that.",
    "nothing but thinking": lambda data, _: f"<think>{json.dumps(data)}",
    "nothing": lambda data, _: "  \n",
    "something else": lambda data, _: json.dumps({"weather": {"city": "Oslo"}, "temperature": 4}),
    "a call of a tool": lambda data, _: (
        f"<tool_call>{json.dumps({'name': 'f', 'arguments': {}})}</tool_call>"
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_what_loses_its_meaning_is_asked_again(name: str) -> None:
    read_all = [(change, text, read(name, text)) for change, text, _ in changed(name, OTHER_MEANING)]
    wrong = [
        f"{change}: {found!r}\n{text}"
        for change, text, found in read_all
        if not isinstance(found, Unreadable)
    ]
    assert not wrong, "\n\n".join(wrong)
