"""What is written of a run in its session: how many thoughts it has had, and those it has had since the last time."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..core.strategy import Thought
from ..records import ThoughtRow, Use
from .journal import Run

Rows = Callable[[Iterable[Thought]], list[ThoughtRow]]
"""Turns the thoughts that come next into rows; begins with the first one of a run."""


class SessionUses:
    """The uses of a session by the run that writes it.

    Args:
        new_rows: Returns what turns the thoughts of a run into rows; None: no rows are written, so that a search reads
            the journal.
    """

    def __init__(self, new_rows: Callable[[], Rows] | None) -> None:
        self._new_rows = new_rows
        self._rows: Rows | None = None
        self._run: Run | None = None
        self._count = 0

    def at(self, at_ms: int, run: Run) -> Use:
        """Return the use at an instant; a run not folded from its first line leaves its thoughts to its end."""
        return Use(run.counts.thoughts, at_ms, self._new_thoughts(run))

    def _new_thoughts(self, run: Run) -> tuple[ThoughtRow, ...]:
        if self._new_rows is None or not run.is_whole:
            return ()
        if self._rows is None or self._run is not run:
            self._rows, self._run, self._count = self._new_rows(), run, 0
        added = self._rows(run.thoughts[self._count :])
        self._count += len(added)
        return tuple(added)
