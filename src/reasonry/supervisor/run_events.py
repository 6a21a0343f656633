"""What followers of a run are told: each line of its journal as a document, and what passes between the lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from ..core.budget import Usage
from ..core.events import Answered, Failed, Stopped, ToolReturned, Verified
from ..core.strategy import Thought
from ..core.text import beginning
from ..engine.follow import FoldedLine
from ..engine.journal import Begun, CallIntended, Ended, Entry, Performed, Resumed, Settled, Steered
from ..engine.record import record_of
from ..engine.result import Result

MAX_TEXT_CHARS: Final = 16_000
"""Of a text in an event; the run's trace has it whole."""

MAX_ENTRIES: Final = 500
"""Of a list in an event."""

Data = dict[str, Any]


class RunEvent(Struct, frozen=True):
    """Something that happened in a run.

    Args:
        id: The position in the journal, counted from 1 without gaps; None: it is not in the journal.
        kind: `begun`, `answered`, …
        result: What came of the run, whole, where it has just ended here; not in the document.
    """

    id: int | None
    kind: str
    data: Data
    result: Result | None = None

    def document(self) -> Data:
        """Return the event as JSON data."""
        return {"id": self.id, "kind": self.kind, "data": self.data}


def event_of(line: FoldedLine, run_id: str, session_id: str) -> RunEvent:
    """Return a line of a journal as an event, bounded."""
    kind, data = _entry_event(line.entry, line.result)
    if kind == "begun":
        data = {"run_id": run_id, "session_id": session_id, **data}
    came: Data = {
        "status": line.status,
        "stage": line.stage,
        "thoughts": [_thought(thought) for thought in line.thoughts],
        "edges": [list(edge) for edge in line.edges],
        "asked": [_asked_document(performed) for performed in line.asked],
        "dropped": list(line.dropped),
    }
    stands = {"at_ms": line.at_ms, "usage": _usage(line.usage)} if line.status else {}
    document = {**data, **stands, **{name: value for name, value in came.items() if value}}
    return RunEvent(line.seq, kind, _bound(document), line.result)


def _entry_event(entry: Entry, result: Result | None) -> tuple[str, Data]:
    match entry:
        case Begun():
            return "begun", _begun_document(entry)
        case CallIntended():
            return "sent", {"effect": entry.id}
        case Settled():
            return _settled_event(entry)
        case Resumed(budget=budget, participants=participants):
            model = None if participants is None else participants.model
            return "resumed", {"budget": msgspec.to_builtins(budget), "model": model}
        case Steered(budget=None, paused=paused):
            return "paused" if paused else "continued", {}
        case Steered(budget=budget):
            return "limits", {"budget": msgspec.to_builtins(budget)}
        case Ended():
            if result is None and (record := record_of(entry)) is not None:
                result = record.result
            return "ended", {"result": result and result.document(nodes=False)}


def _begun_document(begun: Begun) -> Data:
    return {
        "strategy": begun.strategy,
        "model": begun.participants.model,
        "problem": begun.problem,
        "options": begun.options,
        "budget": msgspec.to_builtins(begun.budget),
        "created_at_ms": begun.created_at_ms,
        "forked_from": begun.forked_from,
        "forked_at": begun.forked_at,
    }


def _settled_event(settled: Settled) -> tuple[str, Data]:
    event, effect = settled.event, {"effect": settled.id}
    match event:
        case Answered():
            reading = settled.reading
            data: Data = {**effect, "text": event.text, "took": _usage(event.usage)}
            read = {"read": reading.mode, "refused": reading.refusal} if reading else {}
            more = {**read, "model": event.model, "tried": list(event.tried)}
            return "answered", {**data, **{name: value for name, value in more.items() if value}}
        case ToolReturned():
            return "tool_returned", {**effect, "value": event.value}
        case Verified():
            data = {"verdict": event.verdict, "detail": event.detail, "answer": event.answer}
            return "verified", {**effect, **data, "failed": event.failed}
        case Failed():
            failure = {"code": event.code, "message": event.message, "took": _usage(event.usage)}
            return "failed", {**effect, **failure}
        case Stopped():
            return "stopped", {"reason": event.reason, "detail": event.detail}


def _usage(usage: Usage) -> Data:
    return {"calls": usage.calls, "tokens": usage.tokens, "usd": usage.usd}


def _thought(thought: Thought) -> Data:
    return msgspec.to_builtins(thought)


def _asked_document(performed: Performed) -> Data:
    document: Data = {
        "id": performed.id,
        "kind": performed.kind,
        "stage": performed.stage,
        "round": performed.round,
        "about": performed.about,
        "sample": performed.sample,
    }
    if performed.kind == "call_tool":
        return {**document, "tool": performed.text, "arguments": performed.arguments}
    return document


def _bound(value: Any) -> Any:
    match value:
        case str():
            return value if len(value) <= MAX_TEXT_CHARS else beginning(value, MAX_TEXT_CHARS)
        case list():
            return [_bound(entry) for entry in value[:MAX_ENTRIES]]
        case Mapping():
            return {name: _bound(entry) for name, entry in value.items()}
        case _:
            return value
