"""The feed of one drive: what it writes down, and what passes between, to any number of readers at their own pace.

Lines are kept once for all readers, the latest of them; who falls behind goes on from the journal. What passes (pieces
of answers) is kept for each reader, up to a bound; beyond it the oldest is left out, and the reader is told how much.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import Final

from ..engine.follow import FoldedLine
from ..engine.observe import Unwatched
from ..engine.streamed_text import StreamedText
from ..masking import SECRETS
from .run_events import RunEvent, event_of

KEPT_LINES: Final = 1_000
KEPT_PIECES: Final = 2_000


class Feed(Unwatched):
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
        self._events: dict[int, RunEvent] = {}
        """The lines that somebody has read already."""
        self._readers: set[_FeedReader] = set()
        self._streams: dict[str, StreamedText] = {}
        self._closed = False

    def add(self, lines: Sequence[FoldedLine]) -> None:
        """Take lines that have been written."""
        for line in lines:
            if len(self._lines) == KEPT_LINES:
                self._events.pop(self._lines[0].seq, None)
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

    def follows(self, seq: int) -> bool:
        """Whether the line after that position is here, or is the next to come."""
        return self._seq - len(self._lines) <= seq <= self._seq

    async def read(self, after: int, *, text: bool = False) -> AsyncGenerator[RunEvent]:
        """Yield what comes after a position, until the drive ends or the reader has fallen behind what is kept."""
        reader = self._early if text and self._early is not None else _FeedReader(text)
        self._early = None if text else self._early
        self._readers.add(reader)
        self.wants_text = self.wants_text or text
        try:
            while self.follows(after):
                event = reader.next_passing(after) or self._event_after(after)
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
            self.wants_text = self._early is not None or any(reader.text for reader in self._readers)

    def _event_after(self, seq: int) -> RunEvent | None:
        if seq == self._seq:
            return None
        if seq + 1 not in self._events:
            self._events[seq + 1] = event_of(self._lines[seq - self._seq], *self._about)
        return self._events[seq + 1]

    def _pass_text(self, effect_id: str, text: str) -> None:
        if text:
            self._pass(RunEvent(None, "text", {"effect": effect_id, "text": text}))

    def _pass(self, event: RunEvent) -> None:
        for reader in (*self._readers, *([self._early] if self._early is not None else [])):
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
