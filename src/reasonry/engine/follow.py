"""Following a run: told of what happens as it is driven, or told by its journal, line by line.

What a follower is told is never needed to resume the run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import msgspec

from ..core.bodies import Thought
from ..core.budget import NOTHING, Usage
from ..core.machine import Pending, Status, Step
from ..core.registry import Registry
from ..errors import ReasonryError
from ..masking import SECRETS, Secrets
from ..patterns import lazy_pattern
from ..records import RunStore
from . import journal
from .journal import Begun, Entry, Resumed
from .result import Result
from .run import Performed, Run

_LOG = logging.getLogger("reasonry")

HELD_CHARS: Final = 1_024
"""A key that takes at most so many characters never appears in streamed text."""

_TO_LAST_BREAK = lazy_pattern(r".*[^!-~]", re.DOTALL)
"""Text up to its last character that is blank or outside ASCII."""


class Observer:
    """Told what happens, as it happens, on the loop that drives the run; must return quickly and not raise.

    Attributes:
        wants_text: Whether answers are to be streamed; streaming costs a little on each call.
    """

    wants_text = False

    def began(self, run_id: str, run: Run) -> None:
        """The run is accepted and on disk, or was resumed."""

    def asked(self, pending: Pending) -> None:
        """An effect is being performed."""

    def text(self, effect_id: str, piece: str) -> None:
        """A piece of an answer streamed in."""

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """An attempt failed and is made again after a pause."""

    def stepped(self, run: Run, step: Step) -> None:
        """An event was recorded and folded in."""

    def ended(self, run_id: str, run: Run) -> None:
        """The run has ended."""


class ContainedObserver(Observer):
    """Tells an observer, and logs what it raises: it cannot break the run that it watches."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        for name in ("began", "asked", "text", "retrying", "stepped", "ended"):
            setattr(self, name, partial(_tell, name, getattr(observer, name)))

    @property
    def wants_text(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the observer wants text by now."""
        return self._observer.wants_text


def _tell(name: str, method: Callable[..., None], *arguments: Any) -> None:
    try:
        method(*arguments)
    except Exception:
        _LOG.exception("an observer failed when told `%s`; the run continues", name)


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
        return await journal.aside(
            lines, lambda: [self._note(entry) for entry in journal.decode(self._chain, lines)]
        )

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
            return note_all(self.seq, entry, run)
        assert self._run is not None, "the first line of a journal begins the run"
        run, had = self._run, (len(self._run.thoughts), len(self._run.edges))
        step = run.apply(entry)
        if isinstance(entry, Resumed):
            return note_all(self.seq, entry, run, *had)
        return note_step(self.seq, entry, run, step)


def note_all(seq: int, entry: Entry, run: Run, thoughts: int = 0, edges: int = 0) -> FoldedLine:
    """Return a line after which all that a run waits for is wanted again, with what is recorded behind these."""
    return note_step(seq, entry, run, None)._replace(
        thoughts=tuple(run.thoughts[thoughts:]),
        edges=tuple(run.edges[edges:]),
        asked=tuple(run.performed[pending.id] for pending in run.open_effects),
    )


class StreamedText:
    """A text that streams in, as it may be shown: without keys, wherever they are cut into pieces.

    The last run of characters that could belong to a key is held back, whichever keys are kept: how a text is cut tells
    nothing about them.
    """

    def __init__(self, secrets: Secrets = SECRETS) -> None:
        self._secrets, self._held = secrets, ""

    def add(self, piece: str) -> str:
        """Take a further piece; return what can be shown by now and has not been shown yet."""
        broken = _TO_LAST_BREAK.match(piece)
        end = len(self._held) + broken.end() if broken else 0
        self._held += piece
        # Letting go of many characters at a time looks at each of them a few times at most.
        if len(self._held) - end > 2 * HELD_CHARS:
            end = len(self._held) - HELD_CHARS
        if not end:
            return ""
        shown, self._held = self._secrets.mask_until(self._held, end)
        return shown

    def end(self) -> str:
        """Return the rest: nothing more comes."""
        rest, self._held = self._held, ""
        return self._secrets.mask(rest)
