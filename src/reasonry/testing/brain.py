"""What a loopback model server says: by script, by function, or data that fits the form of the reply."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from .behaviour import Behaviour

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jade")


class ChatRequest(Struct, frozen=True):
    """A request for a completion, opened up for whoever makes the reply.

    Args:
        prompt: The last user message.
        system: All system messages, joined.
        form: JSON schema of the wanted reply, if the request has one.
        number: Which request this is, counted from 1 in the order of arrival.
        sample: Which of the request's `n` samples, from 0.
        body: The whole request.
    """

    prompt: str
    system: str
    form: dict[str, Any] | None
    number: int
    sample: int
    body: dict[str, Any]


Reply = Callable[[ChatRequest], Any]
"""Makes a reply: text, or data that is sent as JSON, or None to leave it to the next in line."""


class Brain:
    """Decides what is said: the queue first, then the rules, the caller's function, last the form itself."""

    def __init__(self, behaviour: Behaviour, reply: Reply | None) -> None:
        self._queue = list(behaviour.replies)
        self._rules = [(re.compile(rule.match, re.DOTALL), rule) for rule in behaviour.rules]
        self._left = [rule.times for rule in behaviour.rules]
        self._reply = reply

    def say(self, request: ChatRequest) -> str:
        """Return the reply's text."""
        found = self._scripted(request)
        if found is None and self._reply is not None:
            found = self._reply(request)
        if found is None:
            found = by_form(request)
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    def _scripted(self, request: ChatRequest) -> Any:
        if self._queue:
            return self._queue.pop(0)
        for at, (pattern, rule) in enumerate(self._rules):
            left = self._left[at]
            if left != 0 and pattern.search(request.prompt):
                self._left[at] = None if left is None else left - 1
                return rule.reply
        return None


def open_request(body: Mapping[str, Any], number: int, sample: int) -> ChatRequest:
    """Open up a chat completion request. Parts that are not as they should be count as absent."""
    messages = [one for one in _as_list(body.get("messages")) if isinstance(one, dict)]
    users = [text_of(one.get("content")) for one in messages if one.get("role") == "user"]
    systems = [text_of(one.get("content")) for one in messages if one.get("role") in ("system", "developer")]
    wanted = body.get("response_format")
    schema = wanted.get("json_schema") if isinstance(wanted, dict) else None
    form = schema.get("schema") if isinstance(schema, dict) else None
    return ChatRequest(
        prompt=users[-1] if users else "",
        system="\n".join(systems),
        form=form if isinstance(form, dict) else None,
        number=number,
        sample=sample,
        body=dict(body),
    )


def text_of(content: Any) -> str:
    """Return a message's text, whether it came as a string or in parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in _as_list(content) if isinstance(part, dict))


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def by_form(request: ChatRequest) -> Any:
    """Return data that fits the request's form, or a sentence where it has none."""
    chance = random.Random(f"{request.system}\0{request.prompt}\0{request.sample}")
    if request.form is None:
        return f"The answer is {chance.randrange(100)}."
    return fill(request.form, chance)


def fill(schema: Mapping[str, Any], chance: random.Random, depth: int = 0) -> Any:
    """Return a value that fits a JSON schema, as far as schemas of replies go."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return chance.choice(schema["enum"])
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return fill(schema[key][0 if depth < 5 else -1], chance, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    return _FILLERS.get(kind, _fill_string)(schema, chance, depth)


def _fill_object(schema: Mapping[str, Any], chance: random.Random, depth: int) -> Any:
    properties: Mapping[str, Any] = schema.get("properties", {})
    wanted = set(schema.get("required", ())) if depth > 4 else set(properties)
    filled = {name: fill(part, chance, depth + 1) for name, part in properties.items() if name in wanted}
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and not properties:
        filled = {str(at): fill(more, chance, depth + 1) for at in (1, 2, 3)}
    return filled


def _fill_array(schema: Mapping[str, Any], chance: random.Random, depth: int) -> Any:
    count = 0 if depth > 6 else max(schema.get("minItems", 0), min(2, schema.get("maxItems", 2)))
    return [fill(schema.get("items", {}), chance, depth + 1) for _ in range(count)]


def _fill_number(schema: Mapping[str, Any], chance: random.Random, depth: int) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 1))
    return round(chance.uniform(low, high), 3)


def _fill_integer(schema: Mapping[str, Any], chance: random.Random, depth: int) -> Any:
    low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
    return chance.randint(int(low), int(schema.get("maximum", low + 9)))


def _fill_string(schema: Mapping[str, Any], chance: random.Random, depth: int) -> Any:
    text = " ".join(chance.choice(_WORDS) for _ in range(3))
    return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", 10_000)]


_FILLERS: dict[str, Callable[[Mapping[str, Any], random.Random, int], Any]] = {
    "object": _fill_object,
    "array": _fill_array,
    "number": _fill_number,
    "integer": _fill_integer,
    "string": _fill_string,
    "boolean": lambda schema, chance, depth: chance.random() < 0.5,
    "null": lambda schema, chance, depth: None,
}
