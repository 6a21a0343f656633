"""Answers in a form: what a strategy has found, written as JSON that fits a schema its caller named.

A strategy reasons as it always does; its last stage then asks for the answer in that form, unless it has it already,
and a reply that does not fit is asked for again with what is wrong with it.

The schemas are those that callers send to language models. Known are the keywords of `fields` and `$ref` within the
document, `anyOf`, `oneOf` and `allOf` (one or all of them fit), `additionalProperties` and `prefixItems`; `pattern` and
`format` are put to the model and not checked, because a pattern of a stranger may take for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from ..reading.fit import Unreadable
from ..reading.json_in_text import json_values
from .effects import Ask
from .fields import faults
from .strategy import Body, Move, Stage, Strategy, Thought, request

MAX_DEPTH: Final = 60
MAX_FORM_CHARS: Final = 50_000

PROMPT = """{problem}

This answer has been found:
{answer}

Write it as JSON that fits this schema, and nothing else:
{schema}
Change nothing of what the answer says. What the schema asks for beyond that follows from the problem."""

_PARTS: Final = ("items", "prefixItems", "properties", "additionalProperties", "required")
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_KINDS: Final = ("string", "number", "integer", "boolean", "array", "object", "null")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast(list[Any], value))


def _are_kinds(value: Any) -> bool:
    return value in _KINDS or (_are_names(value) and all(kind in _KINDS for kind in value))


_BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength")
_FITS: Final[Mapping[str, tuple[str, Callable[[Any], bool]]]] = {
    "type": (f"one of {', '.join(_KINDS)}, or a list of them", _are_kinds),
    "required": ("a list of names", _are_names),
    **dict.fromkeys((*_BOUNDS, "minItems", "maxItems"), ("a number", _is_number)),
    **dict.fromkeys(("enum", *_LISTS), ("a list", _is_list)),
    **dict.fromkeys(
        ("properties", "$defs", "definitions"), ("an object", lambda value: isinstance(value, dict))
    ),
}
"""What a schema may have under its keywords."""


def check_form(form: Any) -> str | None:
    """Return what is wrong with a schema as the form of an answer; None if it can be used."""
    if not isinstance(form, dict):
        return "a schema is an object"
    try:
        if len(msgspec.json.encode(form)) > MAX_FORM_CHARS:
            return f"it has more than {MAX_FORM_CHARS:,} characters"
    except (TypeError, RecursionError):
        return "it is nested too deeply"
    return next(_form_faults(cast(dict[str, Any], form), cast(dict[str, Any], form), "$", 0), None)


def _form_faults(schema: Any, root: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        yield f"{path} must be a schema" if depth <= MAX_DEPTH else f"{path} is nested too deeply"
        return
    node = cast(dict[str, Any], schema)
    for name in node.keys() & _FITS.keys():
        wanted, fits = _FITS[name]
        if not fits(node[name]):
            yield f"{path}.{name} must be {wanted}"
            return
    if "$ref" in node and not isinstance(_resolve(node["$ref"], root), dict | bool):
        yield f"{path}.$ref must lead to a schema in the same document (#/$defs/NAME)"
    for name, part in _parts(node):
        yield from _form_faults(part, root, f"{path}.{name}", depth + 1)


def _parts(node: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the schemas inside a schema, each with its place."""
    for name in ("properties", "$defs", "definitions"):
        yield from ((f"{name}.{key}", part) for key, part in node.get(name, {}).items())
    for name in _LISTS:
        yield from ((f"{name}[{place}]", part) for place, part in enumerate(node.get(name, ())))
    yield from ((name, node[name]) for name in ("items", "additionalProperties") if name in node)


def answer_faults(value: Any, form: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a value as an answer in a form, each as a sentence that begins with its path."""
    return _faults(value, form, form, "the answer", 0)


def _faults(value: Any, schema: Any, root: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
    if isinstance(schema, bool) or depth > MAX_DEPTH:
        if schema is not True:
            yield f"{path} is not allowed" if schema is False else f"{path} is nested too deeply"
        return
    if "$ref" in schema:
        yield from _faults(value, _resolve(schema["$ref"], root), root, path, depth + 1)
    found = list(faults(value, {name: part for name, part in schema.items() if name not in _PARTS}, path))
    yield from found
    if found:
        return
    for part in schema.get("allOf", ()):
        yield from _faults(value, part, root, path, depth + 1)
    for name in ("anyOf", "oneOf"):
        tried = [next(_faults(value, part, root, path, depth + 1), None) for part in schema.get(name, ())]
        if tried and None not in tried:
            yield f"{path} fits none of the forms it may have: {'; '.join(filter(None, tried))[:500]}"
    if isinstance(value, list):
        yield from _item_faults(cast(list[Any], value), schema, root, path, depth)
    if isinstance(value, dict):
        yield from _member_faults(cast(dict[str, Any], value), schema, root, path, depth)


def _item_faults(
    value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int
) -> Iterator[str]:
    heads = schema.get("prefixItems", [])
    for place, item in enumerate(value):
        part = heads[place] if place < len(heads) else schema.get("items", True)
        yield from _faults(item, part, root, f"{path}[{place}]", depth + 1)


def _member_faults(
    value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int
) -> Iterator[str]:
    properties = schema.get("properties", {})
    yield from (f"{path}.{name} is missing" for name in schema.get("required", ()) if name not in value)
    for name, member in value.items():
        part = properties.get(name, schema.get("additionalProperties", True))
        if part is False:
            yield f"{path} may not have {name[:80]!r}"
        else:
            yield from _faults(member, part, root, f"{path}.{name}", depth + 1)


def _resolve(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return what a reference leads to; None if that is nowhere, or another reference without end."""
    found: Any = None
    for _ in range(MAX_DEPTH):
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found = root
        for name in filter(None, reference[1:].split("/")):
            name = name.replace("~1", "/").replace("~0", "~")
            found = cast(dict[str, Any], found).get(name) if isinstance(found, dict) else None
        if not isinstance(found, dict) or found.keys() != {"$ref"}:
            return cast(Any, found)
        reference = cast(dict[str, Any], found)["$ref"]
    return None


def form_stage(
    strategy: Strategy[Any, Any], last: Stage[Any], problem: str, form: Mapping[str, Any]
) -> Stage[Any]:
    """Return the last stage of a strategy as it is where the answer is wanted in a form; it moves to that answer."""

    def put_in_form(state: Any) -> Body:
        answer = strategy.outcome(state).answer
        value = _value_in(answer or "", form)
        if answer is None or value is not None:
            return Move(answer if value is None else value)
        schema = msgspec.json.encode(form).decode()
        prompt = PROMPT.format(problem=problem, answer=answer, schema=schema)
        facts = {"kind": "answer_form", "problem": problem, "answer": answer}
        (reply,) = yield request(state, Ask(prompt, facts=facts, form=dict(form)))
        text = msgspec.json.encode(reply.value).decode()
        return Move(text, thoughts=(Thought(text, data={"answer": text}),))

    def read(state: Any, ask: Ask, texts: Sequence[str]) -> tuple[Any, str] | Unreadable:
        return _read_in(texts[-1], form)

    return Stage(last.name, body=put_in_form, read=read, phase=last.phase)


def _value_in(answer: str, form: Mapping[str, Any]) -> str | None:
    """Return an answer that is JSON in the form as it stands."""
    try:
        value = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        return None
    return answer if next(answer_faults(value, form), None) is None else None


def _read_in(text: str, form: Mapping[str, Any]) -> tuple[Any, str] | Unreadable:
    first: str | None = None
    try:
        for value, rung in json_values(text):
            fault = next(answer_faults(value, form), None)
            if fault is None:
                return value, rung
            first = first or fault
    except RecursionError:
        return Unreadable("it is nested too deeply")
    return Unreadable(first or "reply with JSON that fits the schema, and nothing else")
