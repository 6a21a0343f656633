"""Events for followers of a run: a document for each line of its journal, and pieces of answers between the lines.

Rule 1: a process folds a run once, in its drive. The drive's feed gives all readers the same event for each line. The
        event builds its document for the first reader. A `Follower` folds lines of other processes or earlier drives.
Rule 2: between lines, the feed sends pieces of answers to its readers. Each reader has a queue of limited length. A
        full queue drops its oldest pieces.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final
from weakref import ref

import msgspec

from ..core.events import Answered, Closing, Failed, Stopped, ToolReturned, Usage, Verified
from ..core.machine import Step
from ..core.registry import Registry
from ..engine import journal
from ..engine.journal import Begun, CallIntended, Ended, Entry, Resumed, Settled, TermsChanged
from ..engine.observer import Observer, StreamedText
from ..engine.open_run import OpenRun
from ..engine.record import record_of
from ..engine.result import Result
from ..engine.run import Performed, Run
from ..errors import ReasonryError
from ..records import Line, RunRow, RunStore
from ..system.masking import SECRETS
from ..text import shorten

MAX_TEXT_CHARS: Final = 16_000
"""The length limit, in characters, of a text in an event. The run's trace has the whole text."""

MAX_ENTRIES: Final = 500
"""The length limit of a list in an event."""

KEPT_EVENTS: Final = 100
KEPT_PIECES: Final = 2_000

Data = dict[str, Any]


class RunEvent:
    """An event of a run.

    Args:
        id: The position in the journal, counted from 1 without gaps. None for an event outside the journal.
        kind: `begun`, `answered`, …
        result: The complete result, if the run has ended.
    """

    def __init__(
        self, id: int | None, kind: str, data: Data | Callable[[], Data], result: Result | None = None
    ) -> None:
        self.id, self.kind, self.result = id, kind, result
        self._data = data

    @cached_property
    def data(self) -> Data:
        """The document of the event."""
        return self._data() if callable(self._data) else self._data


class Follower:
    """Reads the events of a run after a position in its journal.

    If the run does not fit its strategy any more, or the strategy is missing, events hold only the data of the entries.
    """

    def __init__(self, store: RunStore, strategies: Registry, row: RunRow, after: int) -> None:
        self._store, self._strategies, self._row = store, strategies, row
        self.seq = after
        """The position of the last event returned."""
        self._chain = journal.Chain(row.run_id)
        """The chain of the journal up to the last line that this follower has folded."""
        self._run: Run | None = None
        """The folded run. None before the first line, and from the first line that does not fit the strategy."""

    def is_behind(self, feed: Feed | None) -> bool:
        """Whether the feed has events after the position `seq`."""
        return feed is not None and feed.seq > self.seq

    async def read_on(self, feed: Feed | None = None) -> list[RunEvent]:
        """Return the events after the position `seq`. With a `feed`, return no events after the feed's last line.

        Raises:
            NotFoundError: There is no such run.
            StoreError: `store_corrupt`: its journal is damaged.
        """
        events = None if feed is None else feed.events_after(self.seq)
        if events is None:
            lines = await self._store.lines(self._row.run_id, self._chain.seq)
            lines = lines if feed is None else lines[: feed.seq - self._chain.seq]
            read = partial(journal.decode, self._chain, lines)
            folded = await journal.offload(lines, lambda: [self._fold(entry) for entry in read()])
            events = [event for event in folded if (event.id or 0) > self.seq]
        self.seq += len(events)
        return events

    def _fold(self, entry: Entry) -> RunEvent:
        step = None
        try:
            if isinstance(entry, Begun):
                self._run = Run(entry, self._strategies)
            elif self._run is not None:
                step = self._run.apply(entry)
        except (ReasonryError, msgspec.ValidationError):
            self._run = None
        record = record_of(entry)
        return _event(self._row, self._chain.seq, entry, self._run, step, record and record.result)


def _event(
    row: RunRow, seq: int, entry: Entry, run: Run | None, step: Step | None, result: Result | None = None
) -> RunEvent:
    """Build the event of an entry. The entry is already folded into `run`."""
    begins = isinstance(entry, Begun)
    facts: Data = {"run_id": row.run_id, "session_id": row.session_id} if begins else {}
    if run is not None:
        step = step or Step(run.snapshot)
        # After these entries, all open effects are requested again.
        asked = run.open_effects if begins or isinstance(entry, Resumed) else step.effects
        facts |= {
            "at_ms": run.snapshot.at_ms,
            "usage": _usage(run.usage),
            "status": run.snapshot.status,
            "stage": run.snapshot.stage,
            "thoughts": [*run.thoughts] if begins else step.thoughts,
            "edges": [*run.edges] if begins else step.edges,
            "asked": [_asked_document(run.performed[pending.id]) for pending in asked],
            "dropped": step.cancelled,
        }

    def document() -> Data:
        shown = {name: value for name, value in facts.items() if value or name == "at_ms"}
        whole = msgspec.to_builtins({**_entry_document(entry, result), **shown})
        # A document with a list or a text beyond its limit is longer than this.
        return whole if len(msgspec.json.encode(whole)) <= 2 * MAX_ENTRIES else _bound(whole)

    return RunEvent(seq, _kind_of(entry), document, result)


def _kind_of(entry: Entry) -> str:
    match entry:
        case CallIntended(refused=True):
            return "refused"
        case Settled():
            return str(entry.event.__struct_config__.tag)
        case TermsChanged(budget=None, paused=paused):
            return "paused" if paused else "continued"
        case TermsChanged():
            return "limits"
        case _:
            return str(entry.__struct_config__.tag)


def _entry_document(entry: Entry, result: Result | None) -> Data:
    match entry:
        case Begun():
            shown = ("strategy", "problem", "options", "created_at_ms", "forked_from", "forked_at", "budget")
            return {**{name: getattr(entry, name) for name in shown}, "model": entry.participants.model}
        case CallIntended():
            return {"effect": entry.id}
        case Settled():
            return _settled_document(entry)
        case Resumed(budget=budget, participants=participants):
            return {"budget": budget, "model": None if participants is None else participants.model}
        case TermsChanged(budget=budget):
            return {} if budget is None else {"budget": budget}
        case Ended():
            return {"result": result and result.document(nodes=False)}


_SHOWN: Final[Mapping[type, tuple[str, ...]]] = {
    Answered: ("text",),
    ToolReturned: ("value",),
    Verified: ("verdict", "detail", "answer", "failed"),
    Failed: ("code", "message"),
    Stopped: ("reason", "detail"),
    Closing: ("reason", "detail"),
}


def _settled_document(settled: Settled) -> Data:
    event, reading = settled.event, settled.reading
    data: Data = {} if isinstance(event, Stopped | Closing) else {"effect": settled.id}
    data |= {name: getattr(event, name) for name in _SHOWN[type(event)]}
    if isinstance(event, Answered | Failed):
        data["took"] = _usage(event.usage)
    if isinstance(event, Answered):
        read = {"read": reading.mode, "refused": reading.refusal} if reading else {}
        more = {**read, "model": event.model, "tried": list(event.tried)}
        data |= {name: value for name, value in more.items() if value}
    return data


def _usage(usage: Usage) -> Data:
    return {"calls": usage.calls, "tokens": usage.tokens, "usd": usage.usd}


def _asked_document(performed: Performed) -> Data:
    shown = ("id", "kind", "stage", "round", "about", "sample")
    is_call = performed.kind == "call_tool"
    call = {"tool": performed.text, "arguments": performed.arguments} if is_call else {}
    return {**{name: getattr(performed, name) for name in shown}, **call}


def _bound(value: Any) -> Any:
    if isinstance(value, str):
        return shorten(value, MAX_TEXT_CHARS)
    if isinstance(value, dict):
        return {name: _bound(entry) for name, entry in value.items()}
    return [_bound(entry) for entry in value[:MAX_ENTRIES]] if isinstance(value, list | tuple) else value


class Feed(Observer):
    """Passes the events of a drive, and pieces of answers, to any number of readers.

    Args:
        text: Whether to keep the pieces of answers for the first reader of text.
    """

    def __init__(self, opened: OpenRun, *, text: bool = False) -> None:
        self._opened, self.seq = opened, opened.chain.seq
        self._folded = dict[int, RunEvent]()
        """Events of lines that may not be durable yet."""
        self._events = deque[RunEvent](maxlen=KEPT_EVENTS)
        if self.seq == 1:
            self._events.append(_event(opened.row, 1, opened.run.begun, opened.run, None))
        self._early = FeedReader(text=True) if text else None
        self._known = [ref(self._early)] if self._early is not None else []
        """Weak references to the readers, some of which are gone. To iterate over a `WeakSet` takes much longer."""
        self._streams: dict[str, StreamedText] = {}

    @property
    def _readers(self) -> list[FeedReader]:
        return [reader for known in self._known if (reader := known()) is not None]

    @property
    def wants_text(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `Observer`."""
        return any(reader.text for reader in self._readers)

    def note_entry(self, run: Run, seq: int, entry: Entry, step: Step | None) -> None:
        """See `Observer`."""
        self._folded[seq] = _event(self._opened.row, seq, entry, run, step)

    def note_lines(self, lines: Sequence[Line], entries: Sequence[Entry]) -> None:
        """See `Observer`."""
        for line, entry in zip(lines, entries, strict=True):
            if isinstance(entry, Ended):
                end = self._opened
                self._folded[line.seq] = _event(end.row, line.seq, entry, end.run, None, end.result)
            effect_id = getattr(entry, "id", None) or ""
            if stream := self._streams.pop(effect_id, None):
                self._pass_text(effect_id, stream.end())
        self._events += [self._folded.pop(line.seq) for line in lines]
        self.seq = lines[-1].seq
        self.wake()

    def events_after(self, seq: int) -> list[RunEvent] | None:
        """Return the events after a position in the journal. If some of the events are no longer kept, return None."""
        kept = [event for event in self._events if (event.id or 0) > seq]
        return kept if len(kept) == self.seq - seq else None

    def text(self, effect_id: str, piece: str) -> None:
        """See `Observer`."""
        # Text is masked even without readers: a later reader must not see the end of a secret key that began earlier.
        self._pass_text(effect_id, self._streams.setdefault(effect_id, StreamedText()).add(piece))

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        self._streams.pop(effect_id, None)
        data = {"effect": effect_id, "reason": SECRETS.mask(reason), "delay_s": round(delay_s, 3)}
        self._pass(RunEvent(None, "retrying", data))

    def admit(self, reader: FeedReader) -> None:
        """Add a reader. The first reader that wants streamed text also receives the earlier pieces."""
        if reader.text and self._early is not None:
            reader.passing, self._early = self._early.passing, None
        if reader not in (readers := self._readers):
            self._known = [ref(each) for each in (*readers, reader)]

    def wake(self) -> None:
        """Wake the readers."""
        for reader in self._readers:
            reader.news.set()

    def _pass_text(self, effect_id: str, text: str) -> None:
        if text:
            self._pass(RunEvent(None, "text", {"effect": effect_id, "text": text}))

    def _pass(self, event: RunEvent) -> None:
        for reader in self._readers:
            if reader.text or event.kind != "text":
                reader.passing.append((self.seq, event))
                reader.news.set()


class FeedReader:
    """A reader's queue of events between journal lines. Each event comes with the position of the preceding line."""

    def __init__(self, text: bool) -> None:
        self.text, self.news = text, asyncio.Event()
        self.passing: deque[tuple[int, RunEvent]] = deque(maxlen=KEPT_PIECES)

    def tell(self, events: Sequence[RunEvent]) -> Iterator[RunEvent]:
        """Yield events of the journal. Before each event, yield the queued events that precede it."""
        for event in events:
            yield from self.take_passing((event.id or 0) - 1)
            yield event

    def take_passing(self, after: int) -> Iterator[RunEvent]:
        """Yield and remove the queued events with a position up to `after`."""
        while self.passing and self.passing[0][0] <= after:
            yield self.passing.popleft()[1]
