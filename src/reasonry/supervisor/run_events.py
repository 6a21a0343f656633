"""What followers of a run are told: each line of its journal as a document, and what passes between the lines.

Lines are read from the journal. What passes between them (pieces of answers) the feed of a drive tells to any number of
readers at their own pace: it is kept for each, up to a bound; beyond it the oldest is left out.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final
from weakref import WeakSet

import msgspec
from msgspec import Struct

from ..core.budget import Usage
from ..core.events import Answered, Closing, Failed, Stopped, ToolReturned, Verified
from ..core.registry import Registry
from ..engine import journal
from ..engine.follow import Observer, StreamedText
from ..engine.journal import Begun, CallIntended, Ended, Entry, Resumed, Settled, Steered
from ..engine.record import record_of
from ..engine.result import Result
from ..engine.run import Performed, Run
from ..errors import ReasonryError
from ..masking import SECRETS
from ..records import Line, RunRow, RunStore
from ..text import cut

MAX_TEXT_CHARS: Final = 16_000
"""Of a text in an event; the run's trace has it whole."""

MAX_ENTRIES: Final = 500
"""Of a list in an event."""

LOOK_EVERY_S: Final = 0.5
"""How often a run that nobody of this process drives is looked at for news."""

KEPT_LINES: Final = 100
KEPT_PIECES: Final = 2_000

Data = dict[str, Any]


class RunEvent(Struct, frozen=True):
    """Something that happened in a run.

    Args:
        id: The position in the journal, counted from 1 without gaps; None: it is not in the journal.
        kind: `begun`, `answered`, …
        result: What came of the run, whole, where it has ended.
    """

    id: int | None
    kind: str
    data: Data
    result: Result | None = None


class Follower:
    """Reads the journal of a run on from where it is, as events; those up to `after` are left out.

    A run that does not fit its strategy any more, or whose strategy is missing, is followed by its entries alone.
    """

    def __init__(self, store: RunStore, strategies: Registry, row: RunRow, after: int) -> None:
        self._store, self._strategies, self._row, self._after = store, strategies, row, after
        self._chain = journal.Chain(row.run_id)
        self._run: Run | None = None
        """None before the first line, and from the first that does not fit on."""

    @property
    def seq(self) -> int:
        """The position of the last line read; 0 before the first."""
        return self._chain.seq

    async def read_on(self, feed: Feed | None = None) -> list[RunEvent]:
        """Return what has come since the last call; of a run that is driven here, as far as its feed tells.

        Raises:
            NotFoundError: There is no such run.
            StoreError: `store_corrupt`: its journal is damaged.
        """
        lines = None if feed is None else feed.lines_after(self.seq)
        if lines is None:
            lines = await self._store.lines(self._row.run_id, self.seq)
            lines = lines if feed is None else lines[: max(feed.seq, self._after) - self.seq]
        read = partial(journal.decode, self._chain, lines)
        return await journal.aside(lines, lambda: [*filter(None, map(self._note, read()))])

    def _note(self, entry: Entry) -> RunEvent | None:
        try:
            came = self._fold(entry)
        except (ReasonryError, msgspec.ValidationError):
            self._run, came = None, {}
        if self.seq <= self._after:
            return None
        record = record_of(entry)
        result = None if record is None else record.result
        kind, data = _entry_event(entry, result)
        if kind == "begun":
            data = {"run_id": self._row.run_id, "session_id": self._row.session_id, **data}
        return RunEvent(self.seq, kind, _bound({**data, **came}), result)

    def _fold(self, entry: Entry) -> Data:
        """Fold an entry in; return where the run then stands, and what came of the entry."""
        thoughts, edges, step = 0, 0, None
        if isinstance(entry, Begun):
            run = self._run = Run(entry, self._strategies)
        elif run := self._run:
            thoughts, edges = len(run.thoughts), len(run.edges)
            step = run.apply(entry)
        else:
            return {}
        # After these all that the run waits for is wanted again.
        begins = isinstance(entry, Begun | Resumed)
        asked = run.open_effects if begins else step.effects if step else ()
        snapshot = run.snapshot
        came = {
            "status": snapshot.status,
            "stage": snapshot.stage,
            "thoughts": msgspec.to_builtins(run.thoughts[thoughts:]),
            "edges": [list(edge) for edge in run.edges[edges:]],
            "asked": [_asked_document(run.performed[pending.id]) for pending in asked],
            "dropped": list(step.cancelled) if step else [],
        }
        stands = {"at_ms": snapshot.at_ms, "usage": _usage(run.usage)}
        return {**stands, **{name: value for name, value in came.items() if value}}


def _entry_event(entry: Entry, result: Result | None) -> tuple[str, Data]:
    match entry:
        case Begun():
            shown = ("strategy", "problem", "options", "created_at_ms", "forked_from", "forked_at")
            begun = {name: getattr(entry, name) for name in shown}
            budget = msgspec.to_builtins(entry.budget)
            return "begun", {**begun, "model": entry.participants.model, "budget": budget}
        case CallIntended():
            return "refused" if entry.refused else "sent", {"effect": entry.id}
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
            return "ended", {"result": result and result.document(nodes=False)}


_SHOWN: Final[Mapping[type, tuple[str, ...]]] = {
    Answered: ("text",),
    ToolReturned: ("value",),
    Verified: ("verdict", "detail", "answer", "failed"),
    Failed: ("code", "message"),
    Stopped: ("reason", "detail"),
    Closing: ("reason", "detail"),
}


def _settled_event(settled: Settled) -> tuple[str, Data]:
    event, reading = settled.event, settled.reading
    data: Data = {} if isinstance(event, Stopped | Closing) else {"effect": settled.id}
    data |= {name: getattr(event, name) for name in _SHOWN[type(event)]}
    if isinstance(event, Answered | Failed):
        data["took"] = _usage(event.usage)
    if isinstance(event, Answered):
        read = {"read": reading.mode, "refused": reading.refusal} if reading else {}
        more = {**read, "model": event.model, "tried": list(event.tried)}
        data |= {name: value for name, value in more.items() if value}
    return str(event.__struct_config__.tag), data


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
            return cut(value, MAX_TEXT_CHARS)
        case list():
            return [_bound(entry) for entry in value[:MAX_ENTRIES]]
        case Mapping():
            return {name: _bound(entry) for name, entry in value.items()}
        case _:
            return value


class Feed(Observer):
    """What passes between the lines of one drive's journal, told to those who read it.

    Args:
        seq: The number of the journal's last line.
        text: Whether somebody is about to read the pieces of answers: they are kept for the first who does.
    """

    def __init__(self, seq: int, *, text: bool = False) -> None:
        self.seq = seq
        self._lines = deque[Line](maxlen=KEPT_LINES)
        self._early = FeedReader(text=True) if text else None
        self._readers = WeakSet([self._early] if self._early is not None else [])
        self._streams: dict[str, StreamedText] = {}

    @property
    def wants_text(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """See `Observer`."""
        return any(reader.text for reader in self._readers)

    def note_lines(self, lines: Sequence[Line], entries: Sequence[Entry]) -> None:
        """See `Observer`."""
        for entry in entries:
            effect_id = getattr(entry, "id", None) or ""
            if stream := self._streams.pop(effect_id, None):
                self._pass_text(effect_id, stream.end())
        self._lines.extend(lines)
        self.seq = lines[-1].seq
        self.wake()

    def lines_after(self, seq: int) -> list[Line] | None:
        """Return the lines after a position, without a look into the store; None: not all of them are kept."""
        kept = [line for line in self._lines if line.seq > seq]
        return kept if len(kept) == self.seq - seq else None

    def text(self, effect_id: str, piece: str) -> None:
        """See `Observer`."""
        # Also where nobody reads: a reader who comes later must not see the end of a key that has begun already.
        self._pass_text(effect_id, self._streams.setdefault(effect_id, StreamedText()).add(piece))

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""
        self._streams.pop(effect_id, None)
        data = {"effect": effect_id, "reason": SECRETS.mask(reason), "delay_s": round(delay_s, 3)}
        self._pass(RunEvent(None, "retrying", data))

    def admit(self, reader: FeedReader) -> None:
        """Tell a reader what passes from now on; the first who reads text also what has passed before."""
        if reader.text and self._early is not None:
            reader.passing, self._early = self._early.passing, None
        self._readers.add(reader)

    def wake(self) -> None:
        """Have the readers look what has happened."""
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


class News:
    """Tells those who follow runs of other processes when to look at them."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    def tell(self) -> None:
        """Have everybody look now."""
        self._told.set()
        self._told = asyncio.Event()

    async def wait(self) -> None:
        """Return when there are news, or after `LOOK_EVERY_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY_S):
                await self._told.wait()


class FeedReader:
    """What passes, for one reader; each piece with the number of the line it came after."""

    def __init__(self, text: bool) -> None:
        self.text, self.news = text, asyncio.Event()
        self.passing: deque[tuple[int, RunEvent]] = deque(maxlen=KEPT_PIECES)

    def tell(self, events: Sequence[RunEvent]) -> Iterator[RunEvent]:
        """Yield events of the journal, each behind what came before it."""
        for event in events:
            yield from self.take_passing((event.id or 0) - 1)
            yield event

    def take_passing(self, after: int) -> Iterator[RunEvent]:
        """Yield, once, what came before the line after this one."""
        while self.passing and self.passing[0][0] <= after:
            yield self.passing.popleft()[1]
