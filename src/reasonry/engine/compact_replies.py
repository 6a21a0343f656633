"""Compact replies of coached runs, for agents that pay for each word: references replace the long texts of questions.

The member `shared` of a reply holds each long text once, under an id made from the text. `[#id]` in a question stands
for the text with this id. Equal questions are sent once, with their `count`.

Rule 1: `shared` leaves out only the texts of the questions just answered, since the caller has seen these texts. A
        caller that begins a run, takes a run over or asks for its status gets every text.
Rule 2: the references and their texts suffice to restore the whole reply.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..core.effects import Ask
from ..core.pending import Pending

LEAST_CHARS: Final = 60
"""The length, in characters, of the shortest text that a reference replaces. Shorter texts are repeated."""

HOW_TO_READ: Final = (
    "[#id] stands for the text of that id in `shared`, here or in an earlier reply; `status` repeats all."
)
ADVICE: Final = (
    "Asked {0} times, each to be answered independently: give it to {0} fresh sub-agents if you can; the answer to "
    "this id is the list of theirs."
)
_ANNOTATIONS: Final = frozenset({"title", "description", "default"})

Pieces = tuple[str, ...]


def pieces_of(pending: Pending) -> Pieces:
    """Return the paragraphs of a question in order. The last paragraph holds the instruction."""
    assert isinstance(pending.effect, Ask)
    text = pending.effect.spelled_out(has_fields=True).text
    if pending.tries:
        text += f"\n(This is try {pending.tries + 1} of {pending.effect.retries + 1}.)"
    return tuple(text.split("\n\n"))


def equal_questions(questions: Iterable[Pending]) -> dict[str, list[Pending]]:
    """Group equal questions. The key of each group joins the ids of its questions with commas."""
    groups: dict[tuple[str, Pieces, str], list[Pending]] = {}
    for pending in questions:
        key = pending.stage, pieces_of(pending), _schema_text(pending)
        groups.setdefault(key, []).append(pending)
    return {",".join(pending.id for pending in equal): equal for equal in groups.values()}


def compact_questions(
    questions: Mapping[str, Sequence[Pending]],
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Replace the long texts of questions by references. Return the questions as data, and the long texts by id."""
    shared: dict[str, Any] = {}
    briefs: list[dict[str, Any]] = []
    for joined, equal in questions.items():
        pieces, schema = pieces_of(equal[0]), _schema_text(equal[0])
        *lead, last = pieces
        shared |= {_id(text): text for text in lead if len(text) >= LEAST_CHARS}
        shared[_id(schema)] = json.loads(schema)
        prompt = [_reference(text) if len(text) >= LEAST_CHARS else text for text in lead]
        several = {"count": len(equal), "note": ADVICE.format(len(equal))} if len(equal) > 1 else {}
        briefs.append(
            {
                "id": joined,
                "stage": equal[0].stage,
                "prompt": "\n\n".join([*prompt, last]),
                "answer_schema": _reference(schema),
                **several,
            }
        )
    return briefs, shared


def compact_result(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the main members of a result, such as answer and warnings. `Coach.status` returns the whole result."""
    always = ("answer", "outcome", "status", "termination")
    wanted = ("why", "warnings", "claims", "refutation_rate", "ranking")
    found = [name for name in wanted if result.get(name) not in (None, [])]
    return {name: result[name] for name in (*always, *found)}


def _id(text: str) -> str:
    return base64.b32encode(hashlib.sha256(text.encode()).digest())[:6].decode().lower()


def _reference(text: str) -> str:
    return f"[#{_id(text)}]"


def _schema_text(pending: Pending) -> str:
    assert isinstance(pending.effect, Ask)
    return json.dumps(_compact(pending.effect.form or {"type": "string"}), ensure_ascii=False)


def _compact(schema: Any) -> Any:
    """Return a schema without titles, descriptions and defaults, to save words. Names and types remain."""
    if isinstance(schema, list):
        return [_compact(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: part if name in ("enum", "const") else _compact(part)
        for name, part in schema.items()
        # A property may have the name of an annotation.
        if name not in _ANNOTATIONS or (part and isinstance(part, dict))
    }
