"""What each line of a journal says and what came of it, for whoever follows a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ..core.budget import NOTHING, Usage
from ..core.machine import Status, Step
from ..core.registry import Registry
from ..core.strategy import Thought
from ..errors import ReasonryError
from ..records import Line, RunStore
from . import journal
from .collector import pause_collector
from .journal import Begun, Entry, Performed, Resumed, Run
from .result import Result

DIRECT_LINES: Final = 50
"""So many lines are folded on the event loop: that takes less than 5 ms."""


class FoldedLine(NamedTuple):
    """A line of the journal, and where the run stood after it.

    Args:
        asked: The effects that are wanted from now on.
        dropped: Effects nobody waits for any more.
        status: Empty where the run does not fit its strategy any more; then only the entry says something.
        result: What came of the run, where this is the drive that ended it.
    """

    seq: int
    entry: Entry
    status: Status | Literal[""]
    stage: str
    at_ms: int
    usage: Usage
    thoughts: tuple[Thought, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    asked: tuple[Performed, ...] = ()
    dropped: tuple[str, ...] = ()
    result: Result | None = None


def note_step(seq: int, entry: Entry, run: Run, step: Step | None) -> FoldedLine:
    """Return a line that has just been folded into a run, with the step that came of it."""
    snapshot = run.snapshot
    about = (seq, entry, snapshot.status, snapshot.stage, snapshot.at_ms, run.usage)
    if step is None:
        return FoldedLine(*about)
    asked = tuple(run.performed[pending.id] for pending in step.effects)
    return FoldedLine(*about, step.thoughts, step.edges, asked, step.cancelled)


def note_begun(run: Run) -> FoldedLine:
    """Return the first line of a run that is as it was begun."""
    return _note_all(1, run.begun, run)


class Follower:
    """Reads the journal of a run on from where it is.

    A run that does not fit its strategy any more, or whose strategy is missing, is followed by its entries alone.
    """

    def __init__(self, store: RunStore, strategies: Registry, run_id: str) -> None:
        self._store, self._strategies, self._run_id = store, strategies, run_id
        self._chain = journal.Chain(run_id)
        self._run: Run | None = None
        self._misfits = False

    @property
    def seq(self) -> int:
        """The position of the last line read; 0 before the first."""
        return self._chain.seq

    async def read_on(self) -> list[FoldedLine]:
        """Return the lines that have come since the last call.

        Raises:
            NotFoundError: There is no such run.
            StoreError: `store_corrupt`: its journal is damaged.
        """
        lines = await self._store.lines(self._run_id, self.seq)
        if len(lines) <= DIRECT_LINES:
            return list(self._fold(lines))

        def fold_undisturbed() -> list[FoldedLine]:
            with pause_collector():
                return list(self._fold(lines))

        return await asyncio.to_thread(fold_undisturbed)

    def _fold(self, lines: Iterable[Line]) -> Iterator[FoldedLine]:
        for entry in journal.decode(self._chain, self._run_id, lines):
            yield self._note(entry)

    def _note(self, entry: Entry) -> FoldedLine:
        if not self._misfits:
            try:
                return self._note_folded(entry)
            except (ReasonryError, msgspec.ValidationError):
                self._misfits = True
        event: Any = getattr(entry, "event", None)
        return FoldedLine(self.seq, entry, "", "", getattr(event, "at_ms", 0), NOTHING)

    def _note_folded(self, entry: Entry) -> FoldedLine:
        if isinstance(entry, Begun):
            run = self._run = Run(entry, self._strategies)
            return _note_all(self.seq, entry, run)
        assert self._run is not None, "the first line of a journal begins the run"
        run, had = self._run, (len(self._run.thoughts), len(self._run.edges))
        step = run.apply(entry)
        if isinstance(entry, Resumed):
            return _note_all(self.seq, entry, run, *had)
        return note_step(self.seq, entry, run, step)


def _note_all(seq: int, entry: Entry, run: Run, thoughts: int = 0, edges: int = 0) -> FoldedLine:
    """Return a line after which all that a run waits for is wanted anew, with what is recorded behind these."""
    return note_step(seq, entry, run, None)._replace(
        thoughts=tuple(run.thoughts[thoughts:]),
        edges=tuple(run.edges[edges:]),
        asked=tuple(run.performed[pending.id] for pending in run.open_effects),
    )
