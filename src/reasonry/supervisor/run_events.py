"""What followers of a run are told: each line of its journal as a document, and what passes between the lines.

The feed of a drive tells it to any number of readers at their own pace. Lines are kept once for all readers, the latest
of them; who falls behind continues from the journal. What passes (pieces of answers) is kept for each reader, up to a
bound; beyond it the oldest is left out, and the reader is told how much.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from ..core.budget import Usage
from ..core.events import Answered, Failed, Stopped, ToolReturned, Verified
from ..core.text import beginning
from ..engine.follow import FoldedLine, Observer, StreamedText
from ..engine.journal import Begun, CallIntended, Ended, Entry, Resumed, Settled, Steered
from ..engine.record import record_of
from ..engine.result import Result
from ..engine.run import Performed
from ..masking import SECRETS

MAX_TEXT_CHARS: Final = 16_000
"""Of a text in an event; the run's trace has it whole."""

MAX_ENTRIES: Final = 500
"""Of a list in an event."""

KEPT_LINES: Final = 1_000
KEPT_PIECES: Final = 2_000

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
        "thoughts": msgspec.to_builtins(line.thoughts),
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
            shown = ("strategy", "problem", "options", "created_at_ms", "forked_from", "forked_at")
            begun = {name: getattr(entry, name) for name in shown}
            budget = msgspec.to_builtins(entry.budget)
            return "begun", {**begun, "model": entry.participants.model, "budget": budget}
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


def _asked_document(performed: Performed) -> Data:
    shown = ("id", "kind", "stage", "round", "about", "sample")
    is_call = performed.kind == "call_tool"
    call = {"tool": performed.text, "arguments": performed.arguments} if is_call else {}
    return {**{name: getattr(performed, name) for name in shown}, **call}


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


class Feed(Observer):
    """What happens in one drive, told to those who read it.

    Args:
        seq: The position of the last line before the drive.
        text: Whether somebody is about to read the pieces of answers: they are kept for the first who does.
    """

    def __init__(self, run_id: str, session_id: str, seq: int, *, text: bool = False) -> None:
        self.wants_text = text
        self._early = _FeedReader(text=True) if text else None
        self._about = run_id, session_id
        self._seq = seq
        self._lines: deque[FoldedLine] = deque(maxlen=KEPT_LINES)
        self._readers = {self._early} if self._early is not None else set[_FeedReader]()
        self._streams: dict[str, StreamedText] = {}
        self._closed = False

    def add(self, lines: Sequence[FoldedLine]) -> None:
        """Take lines that have been written."""
        for line in lines:
            effect_id = getattr(line.entry, "id", None) or ""
            if stream := self._streams.pop(effect_id, None):
                self._pass_text(effect_id, stream.end())
            self._lines.append(line)
            self._seq = line.seq
        self._wake()

    def text(self, effect_id: str, piece: str) -> None:
        """See `Observer`."""
        # Also where nobody reads: a reader who comes later must not see the end of a key that has begun already.
        self._pass_text(effect_id, self._streams.setdefault(effect_id, StreamedText()).add(piece))

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        self._streams.pop(effect_id, None)
        data = {"effect": effect_id, "reason": SECRETS.mask(reason), "delay_s": round(delay_s, 3)}
        self._pass(RunEvent(None, "retrying", data))

    def close(self) -> None:
        """Say that nothing more will come."""
        self._closed = True
        self._wake()

    async def read(self, after: int, *, text: bool = False) -> AsyncGenerator[RunEvent]:
        """Yield what comes after a position, until the drive ends or the reader has fallen behind what is kept."""
        reader = self._early if text and self._early is not None else _FeedReader(text)
        self._early = None if text else self._early
        self._readers.add(reader)
        self.wants_text = self.wants_text or text
        try:
            # As long as the line after that position is here, or is the next to come.
            while self._seq - len(self._lines) <= after <= self._seq:
                event = reader.next_passing(after)
                if event is None and after < self._seq:
                    event = event_of(self._lines[after - self._seq], *self._about)
                if event is not None:
                    after = event.id or after
                    yield event
                elif self._closed:
                    return
                else:
                    reader.news.clear()
                    await reader.news.wait()
        finally:
            self._readers.discard(reader)
            self.wants_text = any(reader.text for reader in self._readers)

    def _pass_text(self, effect_id: str, text: str) -> None:
        if text:
            self._pass(RunEvent(None, "text", {"effect": effect_id, "text": text}))

    def _pass(self, event: RunEvent) -> None:
        for reader in self._readers:
            if reader.text or event.kind != "text":
                reader.add(self._seq, event)

    def _wake(self) -> None:
        for reader in self._readers:
            reader.news.set()


class _FeedReader:
    """What passes, for one reader; each piece with the position of the line it came after."""

    def __init__(self, text: bool) -> None:
        self.text, self.news = text, asyncio.Event()
        self._passing: deque[tuple[int, RunEvent]] = deque(maxlen=KEPT_PIECES)
        self._skipped = 0

    def add(self, at: int, event: RunEvent) -> None:
        self._skipped += len(self._passing) == KEPT_PIECES
        self._passing.append((at, event))
        self.news.set()

    def next_passing(self, after: int) -> RunEvent | None:
        """Return what came before the line that is next to be read."""
        if self._skipped:
            skipped, self._skipped = self._skipped, 0
            return RunEvent(None, "skipped", {"pieces": skipped})
        if self._passing and self._passing[0][0] <= after:
            return self._passing.popleft()[1]
        return None
