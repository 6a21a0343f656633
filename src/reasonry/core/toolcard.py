"""Tool cards: what a run may call, as data, and how a thinker writes a call down.

A card says nothing about how the tool works; strategies get cards as an option and return `CallTool` effects.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from .fit import Unreadable

ANSWER = "finish"
"""What is written like a call, `finish[42]`, and hands in the answer."""

_ACTION = re.compile(r"^[ \t>*_`\-]*action(?:[ \t]*\d+)?[ \t*_`]*:[ \t*_`]*", re.IGNORECASE | re.MULTILINE)
_CALL = re.compile(r"([\w.\-]+)[ \t]*([\[(])")
_NO_TEXT = ("integer", "number", "boolean", "array", "object", "null")
_AROUND = " \t\r`*_.;,"
_BRACKETS = {"[": "]", "(": ")"}
_FORM = "write an action as `Action: tool[input]`, one to a line, with nothing after its bracket"


class ToolCard(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One tool, as shown to whoever may call it."""

    name: Annotated[str, Meta(min_length=1, description="What it is called by.")]
    description: Annotated[str, Meta(description="What it does, for the model.")] = ""
    parameters: Annotated[dict[str, Any], Meta(description="JSON schema of the arguments object.")] = {}


class Action(Struct, frozen=True):
    """One call, as a thinker wants it."""

    tool: Annotated[str, Meta(min_length=1, description="Name of a tool from the list.")]
    arguments: Annotated[dict[str, Any], Meta(description="Its arguments, by name.")] = {}

    @property
    def text(self) -> str:
        """The call in one line; the same for equal calls."""
        return f"{self.tool} {msgspec.json.encode(self.arguments, order='deterministic').decode()}"


class Written(Action, frozen=True, omit_defaults=True):
    """A call as it was written down; one with a fault cannot be made, and its `tool` is the line it was to be in."""

    fault: str = ""

    @property
    def text(self) -> str:
        """The call in one line, or the line that was to be one."""
        return self.tool if self.fault else super().text


def cards_text(cards: Sequence[ToolCard]) -> str:
    """Render cards for a prompt: a signature, the description, and what is known of each parameter."""
    if not cards:
        return "(no tools)"
    return "\n".join(_card_text(card) for card in cards)


def card_named(cards: Sequence[ToolCard], name: str) -> ToolCard | None:
    """Return the card of that name; failing that, the only one that differs in case alone."""
    alike = [card for card in cards if card.name.casefold() == name.strip().casefold()]
    exact = [card for card in alike if card.name == name]
    return exact[0] if exact else alike[0] if len(alike) == 1 else None


def no_such_tool(cards: Sequence[ToolCard], name: str) -> str:
    """Say that there is no such tool and which there are."""
    names = ", ".join(card.name for card in cards) or "none"
    return f"there is no tool {name[:80]!r}; the tools are: {names}"


def arguments_for(card: ToolCard, text: str) -> dict[str, Any] | Unreadable:
    """Read the input of a call written as `tool[input]`: a JSON object, or the text of the one argument."""
    properties = _properties(card)
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        value = text
    if isinstance(value, dict) and (not properties or value.keys() <= properties.keys()):
        return cast(dict[str, Any], value)
    required = [name for name in card.parameters.get("required", ()) if name in properties]
    names = required or list(properties)[:1]
    if not names:
        return {} if not text.strip() else Unreadable(f"{card.name} takes no arguments")
    if len(names) > 1:
        listed = ", ".join(names)
        return Unreadable(f"{card.name} takes several arguments ({listed}): write them as a JSON object")
    return {names[0]: text.strip()}


def one_text_fault(card: ToolCard) -> str | None:
    """Return why a tool cannot be called with one text; None: it can, or its card does not say what it takes."""
    if "properties" not in card.parameters:
        return None
    arguments = arguments_for(card, "text")
    if isinstance(arguments, Unreadable):
        return arguments.reason.partition(":")[0]
    (name,) = arguments
    kind = _properties(card)[name].get("type") if isinstance(_properties(card)[name], dict) else None
    return f"{card.name} takes {name}, which is {kind}" if kind in _NO_TEXT else None


def resolved(cards: Sequence[ToolCard], action: Written) -> Action | Unreadable:
    """Return the call an action comes down to: the tool's own name, the arguments as it wants them."""
    if action.fault:
        return Unreadable(action.fault)
    card = card_named(cards, action.tool)
    if card is None:
        return Unreadable(no_such_tool(cards, action.tool))
    return Action(card.name, typed(card, action.arguments))


def before_actions(text: str) -> str | None:
    """Return what stands before the first line that begins an action; None: there is no such line."""
    first = _ACTION.search(text)
    return None if first is None else text[: first.start()].strip()


def action_lines(cards: Sequence[ToolCard], text: str) -> tuple[tuple[Written, ...], str | None]:
    """Read actions written as `Action: search[who wrote Emma]`; `finish[…]` holds the answer.

    Every line that begins an action becomes one, with a fault where it cannot be carried out, or the answer.
    """
    actions: list[Written] = []
    answer: str | None = None
    heads = [*_ACTION.finditer(text)]
    for head, following in zip(heads, [*heads[1:], None], strict=False):
        one = _written(cards, text[head.end() : following and following.start()].strip())
        if isinstance(one, Written):
            actions.append(one)
        elif answer is None:
            answer = one
        else:
            actions.append(Written(f"{ANSWER}[{one}]", fault="there is one answer; this is the second"))
    return tuple(actions), answer


def _written(cards: Sequence[ToolCard], body: str) -> Written | str:
    """Read what follows `Action:`; a text is the answer."""
    line = body.partition("\n")[0].strip()[:500] or "(nothing)"
    call = _CALL.match(body)
    end = None if call is None else _input_end(body, call.end(), call[2])
    if call is None or end is None:
        return Written(line, fault=_FORM)
    given = body[call.end() : end]
    if call[1].casefold() == ANSWER:
        return given.strip()
    card = card_named(cards, call[1])
    arguments = arguments_for(card, given) if card else {"input": given}
    return (
        Written(line, fault=arguments.reason)
        if isinstance(arguments, Unreadable)
        else Written(call[1], arguments)
    )


def _input_end(text: str, start: int, opener: str) -> int | None:
    """Where the bracket is that closes an input, of which nothing may follow on its line; None: nowhere."""
    close = balanced(text[start:], opener)
    first = start if close is None else start + close + 1
    rest = text[first:].partition("\n")[0].rstrip(_AROUND)
    if close is not None and not rest.strip(_AROUND):
        return first - 1
    # A bracket too many, or one inside quotes: the line then ends with the bracket that is meant.
    odd = rest.endswith(_BRACKETS[opener]) and (close is None or balanced(rest, opener) == len(rest) - 1)
    return first + len(rest) - 1 if odd else None


def balanced(text: str, opener: str = "[") -> int | None:
    """Return where the bracket is closed that was opened just before the text."""
    closer, depth = _BRACKETS[opener], 1
    for index, char in enumerate(text):
        depth += (char == opener) - (char == closer)
        if depth == 0:
            return index
    return None


def typed(card: ToolCard, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Turn texts into the numbers and booleans that the card's schema wants, where they are such."""
    properties = _properties(card)
    return {name: _typed(properties.get(name, {}), value) for name, value in arguments.items()}


def _typed(schema: Any, value: Any) -> Any:
    kind = cast(dict[str, Any], schema).get("type") if isinstance(schema, dict) else None
    types: dict[Any, Any] = {"integer": int, "number": float, "boolean": bool}
    if not isinstance(value, str) or not isinstance(kind, str) or kind not in types:
        return value
    try:
        return msgspec.convert(value.strip(), types[kind], strict=False)
    except msgspec.ValidationError:
        return value


def _properties(card: ToolCard) -> dict[str, Any]:
    found = card.parameters.get("properties")
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _card_text(card: ToolCard) -> str:
    required = card.parameters.get("required", ())
    signature: list[str] = []
    notes: list[str] = []
    for name, schema in _properties(card).items():
        schema = schema if isinstance(schema, dict) else {}
        optional = "" if name in required else "?"
        signature.append(f"{name}{optional}: {_type_text(schema)}")
        if note := schema.get("description"):
            notes.append(f"\n    {name}: {note}")
    description = " ".join(card.description.split())
    head = f"- {card.name}({', '.join(signature)})" + (f": {description}" if description else "")
    return head + "".join(notes)


def _type_text(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, str) and kind not in ("object", "array") and "enum" not in schema:
        return kind
    rest = {key: value for key, value in schema.items() if key not in ("description", "title", "default")}
    return msgspec.json.encode(rest).decode() if rest else "any"
