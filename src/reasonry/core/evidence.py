"""Evidence: a plan of tool calls that refer to one another's results (`#E1 = search[who wrote Emma]`).

Rule 1: `#E1` is not the head of `#E10`; a reference is a whole number.
Rule 2: brackets nest: the input of a call ends with its own bracket, not with the first one.
Rule 3: evidence is put in once; what it happens to contain is not looked at again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from .parse import Unreadable
from .toolcard import ToolCard, arguments_for, card_named, no_such_tool, typed

MAX_DEPTH = 50
"""How deep the input of a call may be nested."""

_REFERENCE = re.compile(r"#E(\d{1,4})(?!\d)", re.IGNORECASE)
_CALL = re.compile(
    r"^(?P<plan>[^\n#\[]*)#E(?P<id>\d{1,4})\s*=\s*(?P<tool>[\w.\-]+)\s*\[", re.IGNORECASE | re.MULTILINE
)
_PLAN = re.compile(r"^[\s*\-]*(?:\d+[.)]\s*)?plan(?:\s*\d+)?\s*[:.]\s*", re.IGNORECASE | re.MULTILINE)


class PlannedCall(Struct, frozen=True, omit_defaults=True):
    """One line of a plan: what is to be found out, and the call that finds it."""

    id: str
    """`#E1`, `#E2`, …"""
    tool: str
    input: str | dict[str, Any] = ""
    plan: str = ""


def evidence_id(written: str) -> str | None:
    """Return `#E1` for `#E1`, `E1`, `e01` or `1`; None if it is none of these."""
    match = re.fullmatch(r"#?E?\s*(\d{1,4})", written.strip(), re.IGNORECASE)
    return f"#E{int(match[1])}" if match else None


def parse_plan(text: str) -> tuple[PlannedCall, ...] | Unreadable:
    """Read a plan of `Plan: why` and `#E1 = tool[input]` lines; an input may run over several lines."""
    text = "\n".join(line for line in text.splitlines() if not line.strip().startswith("```"))
    heads = list(_CALL.finditer(text))
    if not heads:
        return Unreadable("no line of the form `#E1 = tool[input]` was found")
    calls: list[PlannedCall] = []
    start = 0
    for index, head in enumerate(heads):
        end = heads[index + 1].start() if index + 1 < len(heads) else len(text)
        block = text[head.end() : end]
        if following := _PLAN.search(block):
            end = head.end() + following.start()
        length = _input_length(text[head.end() : end])
        if length is None:
            return Unreadable(f"the input of #E{head['id']} has no closing bracket")
        why = _PLAN.split(text[start : head.start()] + head["plan"])[-1].strip(" \n\t-*")
        given = text[head.end() : head.end() + length].strip()
        calls.append(PlannedCall(f"#E{int(head['id'])}", head["tool"], given, " ".join(why.split())))
        start = end
    return tuple(calls)


def references(value: Any) -> tuple[str, ...]:
    """Return the evidence a call's input refers to, each once, in order."""
    if isinstance(value, str):
        found = [f"#E{int(match[1])}" for match in _REFERENCE.finditer(value)]
    elif isinstance(value, Mapping):
        found = [one for item in value.values() for one in references(item)]
    elif isinstance(value, list | tuple):
        found = [one for item in value for one in references(item)]
    else:
        found = []
    return tuple(dict.fromkeys(found))


def substitute(value: Any, evidence: Mapping[str, Any]) -> Any:
    """Put evidence in the place of its references.

    A text that is one reference and nothing else becomes the evidence itself, whatever its type.
    """
    if isinstance(value, Mapping):
        return {key: substitute(item, evidence) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [substitute(item, evidence) for item in value]
    if not isinstance(value, str):
        return value
    whole = _REFERENCE.fullmatch(value.strip())
    if whole and f"#E{int(whole[1])}" in evidence:
        return evidence[f"#E{int(whole[1])}"]

    def put(match: re.Match[str]) -> str:
        name = f"#E{int(match[1])}"
        return evidence_text(evidence[name]) if name in evidence else match[0]

    return _REFERENCE.sub(put, value)


def evidence_text(value: Any) -> str:
    """Return evidence as it is shown and put into texts."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def plan_fault(calls: Sequence[PlannedCall], cards: Sequence[ToolCard]) -> str | None:
    """Return why a plan cannot be carried out.

    An unknown tool, an input that is no input, an id twice, a reference to nothing, or a circle.
    """
    for call in calls:
        if fault := _call_fault(call, cards):
            return f"{call.id}: {fault}"
    needs = {call.id: references(call.input) for call in calls}
    if len(needs) < len(calls):
        return "every call needs an id of its own"
    for name, wanted in needs.items():
        for one in wanted:
            if one not in needs:
                return f"{name} refers to {one}, which is not in the plan ({', '.join(needs)})"
    settled: set[str] = set()
    while len(settled) < len(needs):
        free = [name for name, wanted in needs.items() if name not in settled and settled.issuperset(wanted)]
        if not free:
            circle = ", ".join(name for name in needs if name not in settled)
            return f"these calls wait for one another in a circle: {circle}"
        settled.update(free)
    return None


def call_arguments(card: ToolCard, call: PlannedCall, evidence: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call that has no fault, with evidence put in."""
    arguments = arguments_for(card, call.input) if isinstance(call.input, str) else call.input
    return {} if isinstance(arguments, Unreadable) else typed(card, substitute(arguments, evidence))


def _call_fault(call: PlannedCall, cards: Sequence[ToolCard]) -> str | None:
    if evidence_id(call.id) is None:
        return "that is no id; ids are #E1, #E2, …"
    card = card_named(cards, call.tool)
    if card is None:
        return no_such_tool(cards, call.tool)
    arguments = arguments_for(card, call.input) if isinstance(call.input, str) else call.input
    if isinstance(arguments, Unreadable):
        return arguments.reason
    return "the input is nested too deeply" if _is_deep(arguments) else None


def _is_deep(value: Any) -> bool:
    level, depth = [value], 0
    while level and depth <= MAX_DEPTH:
        inner = [list(one.values()) if isinstance(one, Mapping) else one for one in level]
        level = [item for part in inner if isinstance(part, list) for item in part]
        depth += 1
    return depth > MAX_DEPTH


def _input_length(block: str) -> int | None:
    """How much of the block is the input, up to its closing bracket."""
    end = _balanced(block)
    if end is not None and _balanced(f"{block[end + 1 :]}]") == len(block) - end - 1:
        return end
    last = block.rfind("]")
    return last if last >= 0 else None


def _balanced(block: str) -> int | None:
    depth = 1
    for index, char in enumerate(block):
        depth += (char == "[") - (char == "]")
        if depth == 0:
            return index
    return None
