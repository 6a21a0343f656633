"""Evidence: a plan of tool calls that refer to each other's results by id, as in `#E1`.

Rule 1: the number of a reference is read as a whole, so `#E10` does not refer to `#E1`.
Rule 2: each reference in a call is replaced with its evidence once. References inside evidence are not replaced.
"""

import re
from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ..core.readings import Unreadable
from ..text import lazy_pattern
from .actions import has_markup
from .toolcard import ToolCard, arguments_for, card_named, matched_arguments, no_such_tool

_REFERENCE = lazy_pattern(r"#E(\d{1,4})(?!\d)", re.IGNORECASE)


class PlannedCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of the plan."""

    id: Annotated[str, Meta(description="#E1, #E2, …")] = ""
    plan: Annotated[str, Meta(description="The purpose of this call.")] = ""
    tool: Annotated[str, Meta(description="Name of a tool from the list.")]
    input: Annotated[str | dict[str, Any], Meta(description="Text or arguments; may contain #E ids.")] = ""


def evidence_id(written: str) -> str | None:
    """Convert a written id, such as `E1`, `e01` or `1`, to the form `#E1`. For other text, return None."""
    match = re.fullmatch(r"#?E?\s*(\d{1,4})", written.strip(), re.IGNORECASE)
    return f"#E{int(match[1])}" if match else None


def references(value: Any) -> tuple[str, ...]:
    """Return the references in a call's input in order, each reference once."""
    found = _REFERENCE.finditer(msgspec.json.encode(value).decode())
    return tuple(dict.fromkeys(f"#E{int(match[1])}" for match in found))


def substitute(value: Any, evidence: Mapping[str, Any]) -> Any:
    """Replace references with evidence.

    A text that consists of one reference becomes the evidence itself, even if the evidence is not text.
    """
    if isinstance(value, Mapping):
        return {key: substitute(item, evidence) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [substitute(item, evidence) for item in value]
    if not isinstance(value, str):
        return value
    whole = evidence_id(value) if _REFERENCE.fullmatch(value.strip()) else None
    if whole is not None and whole in evidence:
        return evidence[whole]

    def put(match: re.Match[str]) -> str:
        name = f"#E{int(match[1])}"
        return evidence_text(evidence[name]) if name in evidence else match[0]

    return _REFERENCE.sub(put, value)


def evidence_text(value: Any, shown: str = "") -> str:
    """Format evidence as text. Passages get numbers for citation.

    Args:
        shown: The part of the question before the evidence. If a passage is already there, only its place is given.
    """
    if isinstance(value, Mapping) and set(value) == {"passages"} and isinstance(value["passages"], list):
        return passages_text(value["passages"], shown)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def passages_text(passages: Sequence[Any], shown: str = "") -> str:
    """Format passages with their numbers and places: `[1] (policy.md, line 1) …`."""
    lines = (f"[{number}] {_passage(passage, shown)}" for number, passage in enumerate(passages, 1))
    return "\n".join(lines) or "(none fit)"


def _passage(passage: Any, shown: str) -> str:
    text = passage.get("text") if isinstance(passage, Mapping) else None
    if not isinstance(text, str):
        return evidence_text(passage)
    where, text = passage_place(passage), text.strip()
    named = f"({where}) {text}" if where else text
    return f"({where}) stands above" if where and named in shown else named


def passage_place(passage: Any) -> str:
    """Return the place of a passage, such as `policy.md, line 1`. Empty if the place is unknown."""
    if not isinstance(passage, Mapping):
        return ""
    return ", ".join(
        f"{name} {value}" if name != "source" else str(value)
        for name, value in passage.items()
        if name not in ("score", "text") and value is not None
    )


def plan_fault(calls: Sequence[PlannedCall], cards: Sequence[ToolCard]) -> str | None:
    """Return the fault that makes a plan unexecutable. If there is none, return None.

    Faults are an unknown tool, a malformed input, a repeated id, a dangling reference, or a cycle.
    """
    for call in calls:
        if fault := call_fault(call, cards):
            return f"{call.id}: {fault}"
    needs = {call.id: references(call.input) for call in calls}
    if len(needs) < len(calls):
        return "every call needs an id of its own"
    for name, wanted in needs.items():
        for reference in wanted:
            if reference not in needs:
                return f"{name} refers to {reference}, which is not in the plan ({', '.join(needs)})"
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle = ", ".join(name for name in needs if name in error.args[1])
        return f"these calls wait for one another in a circle: {circle}"
    return None


def call_arguments(
    card: ToolCard, call: PlannedCall, evidence: Mapping[str, Any]
) -> dict[str, Any] | Unreadable:
    """Replace references in a call's arguments with evidence. If the call has a fault, return `Unreadable`."""
    arguments = arguments_for(card, call.input) if isinstance(call.input, str) else call.input
    if isinstance(arguments, Unreadable):
        return arguments
    return matched_arguments(card, substitute(arguments, evidence))


def call_fault(call: PlannedCall, cards: Sequence[ToolCard]) -> str | None:
    """Check a call alone, without the rest of the plan. Return the fault that makes the call unexecutable, or None."""
    if evidence_id(call.id) is None:
        return "that is no id; ids are #E1, #E2, …"
    card = card_named(cards, call.tool)
    if card is None:
        return no_such_tool(cards, call.tool)
    arguments = call_arguments(card, call, {})
    if isinstance(arguments, Unreadable):
        return arguments.reason
    if has_markup(evidence_text(call.input)):
        return "its input has markup of a call; write the input alone"
    return None
