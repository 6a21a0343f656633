"""Which earlier thoughts a reply shows: the latest, whole, as many as are wanted and fit.

An agent has its own thoughts before it, so nothing is shown that was not asked for, but for the first time a connection
goes on with a session that was there before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ..records import SessionView, ThoughtRow
from .settings import SessionSettings

SHOWN_CHARS = 20_000
"""Characters of thoughts that a reply shows where no other bound is set, but for replies that show all by contract."""
_FIRST_READ = 20


class HistoryBound(Struct, frozen=True):
    """How much of a session a reply shows; None: all of it."""

    thoughts: int | None
    chars: int | None

    @staticmethod
    def of(
        asked: int | None, default: int | None, settings: SessionSettings, *, recalls: bool
    ) -> HistoryBound:
        """Return the bound of one reply.

        Args:
            asked: What the call says; None: nothing.
            default: What holds then; None: the whole history.
            recalls: Whether the caller sees an earlier session for the first time.
        """
        chars = settings.max_history_chars or (None if default is None else SHOWN_CHARS)
        thoughts = asked if asked is not None or (recalls and default == 0) else default
        return HistoryBound(thoughts, chars)

    def cut(self, thoughts: Sequence[ThoughtRow]) -> Sequence[ThoughtRow]:
        """Return the latest of the thoughts that fit; the latest one of all does, however long."""
        count = len(thoughts) if self.thoughts is None else min(self.thoughts, len(thoughts))
        if self.chars is None or count < 1:
            return thoughts[len(thoughts) - count :]
        room, start = self.chars - len(thoughts[-1].text), len(thoughts) - 1
        while start > len(thoughts) - count and room >= len(thoughts[start - 1].text):
            start -= 1
            room -= len(thoughts[start].text)
        return thoughts[start:]


def read_latest(view: SessionView, bound: HistoryBound, there: int) -> list[ThoughtRow]:
    """Return at least the thoughts that fit, reading on only while they do.

    Args:
        there: How many thoughts the session has.
    """
    wanted = there if bound.thoughts is None else min(bound.thoughts, there)
    count = min(wanted, _FIRST_READ)
    while True:
        thoughts = view.latest(count)
        if count >= wanted or (
            bound.chars is not None and sum(len(thought.text) for thought in thoughts) > bound.chars
        ):
            return thoughts
        count = min(wanted, 4 * count)
