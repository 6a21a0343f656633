"""Tool cards: tools as data, and the arguments of a call.

Rule: no argument is dropped. An argument with an unknown name counts as the tool's only argument or as the only missing
argument. Otherwise, the call is refused.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from ..core.readings import Unreadable
from ..reading.json_in_text import is_whole
from ..text import find_name, find_named, plain_name

ANSWER = "finish"
"""The pseudo-call that gives the answer, as in `finish[42]`."""

PROVER = "check_claim"
_REASONERS = frozenset({PROVER, "py_executor"})
"""Tools that work with the problem alone and look nothing up."""
_PLAIN_TYPES = {"integer": int, "number": float, "boolean": bool}
_DATA_TYPES = {"array": list, "object": dict}
_ANY_NAME = frozenset({"input", "text", "query", "question", "argument", "arg", "arg1", "value", "q"})
"""Names, as `plain_name` returns them, that may stand for the only missing argument of a call."""


class ToolCard(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A tool, as shown to the model or agent that may call it."""

    name: Annotated[str, Meta(min_length=1, description="Its name.")]
    description: Annotated[str, Meta(description="Its purpose, for the model.")] = ""
    parameters: Annotated[dict[str, Any], Meta(description="JSON schema of the arguments object.")] = {}


def cards_text(cards: Sequence[ToolCard]) -> str:
    """Format cards for a prompt. Each card has a signature, a description, and a description of each parameter."""
    return "\n".join(map(_card_text, cards)) or "(no tools)"


def tools_data(cards: Sequence[ToolCard]) -> tuple[dict[str, Any], ...]:
    """Return cards as JSON data, for models with native tools."""
    whole = {"type": "object", "properties": {}}
    return tuple(
        {"name": card.name, "description": card.description, "parameters": whole | card.parameters}
        for card in cards
    )


def cards_that_serve(cards: Sequence[ToolCard]) -> tuple[ToolCard, ...]:
    """Return the cards to show. If a tool can look things up, the prover's long card is left out."""
    looks_up = any(card.name not in _REASONERS for card in cards)
    return tuple(card for card in cards if card.name != PROVER or not looks_up)


def card_named(cards: Sequence[ToolCard], name: str) -> ToolCard | None:
    """Find a card by its name or a similar spelling, such as `search.` for `search`. Otherwise, return None."""
    return find_named(name, {card.name: card for card in cards})


def no_such_tool(cards: Sequence[ToolCard], name: str) -> str:
    """Return an error message for an unknown tool. The message lists the existing tools."""
    names = ", ".join(card.name for card in cards) or "none"
    return f"there is no tool {name[:80]!r}; the tools are: {names}"


def arguments_for(card: ToolCard, text: str) -> dict[str, Any] | Unreadable:
    """Read the input of a call written as `tool[input]`: a JSON object, or the text of the only argument."""
    properties, value = properties_of(card), None
    with suppress(msgspec.DecodeError, RecursionError):
        # JSON with too many levels counts as text.
        value = msgspec.json.decode(text) if is_whole(text) else None
    if isinstance(value, dict) and (not properties or value.keys() <= properties.keys()):
        return cast(dict[str, Any], value)
    required = [name for name in card.parameters.get("required", ()) if name in properties]
    names = required or list(properties)[:1]
    if not names:
        return {} if not text.strip() else Unreadable(f"{card.name} takes no arguments")
    if len(names) > 1:
        listed = ", ".join(names)
        return Unreadable(f"{card.name} takes several arguments ({listed}): write them as a JSON object")
    if not text.strip():
        return Unreadable(f"{card.name} needs {names[0]}") if required else {}
    return {names[0]: text.strip()}


def matched_arguments(card: ToolCard, arguments: Mapping[str, Any]) -> dict[str, Any] | Unreadable:
    """Fit the names and types of a call's arguments to the tool's schema. If the call has a fault, return `Unreadable`.

    Case and underscores in a name do not matter. A tool's only argument may have any name. A call has a fault if an
    argument is unknown or a required argument is missing.
    """
    properties = properties_of(card)
    if "properties" not in card.parameters or card.parameters.get("additionalProperties"):
        return convert_types(card, arguments)
    found: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    for key, value in arguments.items():
        name = find_name(key, properties)
        if name is None or (name in found and found[name] != value):
            unknown[key] = value
        else:
            found[name] = value
    missing = [
        name for name in card.parameters.get("required", ()) if name in properties and name not in found
    ]
    if len(unknown) == 1:
        ((key, value),) = unknown.items()
        only = list(properties) if not found and len(properties) == 1 else []
        only = only or (missing if len(missing) == 1 and plain_name(key) in _ANY_NAME else [])
        if only:
            found, unknown, missing = {**found, only[0]: value}, {}, []
    if not unknown and not missing:
        return convert_types(card, found)
    fault = f"has no argument {', '.join(unknown)}" if unknown else f"needs {', '.join(missing)}"
    return Unreadable(f"{card.name} {fault}; it is called {signature(card)}")


def convert_types(card: ToolCard, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arguments that are text to the types in the card's schema, where possible."""
    converted = dict(arguments)
    for name, schema in properties_of(card).items():
        kind, value = schema.get("type") if isinstance(schema, dict) else None, arguments.get(name)
        if not (isinstance(value, str) and isinstance(kind, str)):
            continue
        with suppress(msgspec.MsgspecError, RecursionError):
            if kind in _PLAIN_TYPES:
                converted[name] = msgspec.convert(value.strip(), _PLAIN_TYPES[kind], strict=False)
            elif kind in _DATA_TYPES:
                converted[name] = msgspec.json.decode(value, type=_DATA_TYPES[kind])
    return converted


def properties_of(card: ToolCard) -> dict[str, Any]:
    """Map the name of each argument to its schema."""
    found = card.parameters.get("properties")
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def signature(card: ToolCard) -> str:
    """Return the signature of a tool, such as `search(query: string, limit?: integer)`."""
    required = card.parameters.get("required", ())
    parts = [
        f"{name}{'' if name in required else '?'}: {_type_text(schema if isinstance(schema, dict) else {})}"
        for name, schema in properties_of(card).items()
    ]
    return f"{card.name}({', '.join(parts)})"


def _card_text(card: ToolCard) -> str:
    notes = [
        f"\n    {name}: {schema['description']}"
        for name, schema in properties_of(card).items()
        if isinstance(schema, dict) and schema.get("description")
    ]
    description = " ".join(card.description.split())
    return f"- {signature(card)}" + (f": {description}" if description else "") + "".join(notes)


def _type_text(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, str) and kind not in ("object", "array") and "enum" not in schema:
        return kind
    rest = {key: value for key, value in schema.items() if key not in ("description", "title", "default")}
    return msgspec.json.encode(rest).decode() if rest else "any"
