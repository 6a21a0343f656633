"""Observers of a driven run. A run can always be resumed without its observers."""

import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from ..core.machine import Step
from ..core.pending import Pending
from ..records import Line
from ..system.masking import SECRETS, Secrets
from ..text import lazy_pattern
from .journal import Entry
from .run import Run

_LOG = logging.getLogger("reasonry")

HELD_CHARS: Final = 1_024
"""A secret key of at most this length never appears in streamed text."""

_TO_LAST_BREAK = lazy_pattern(r".*[^!-~]", re.DOTALL)
"""Matches text up to its last character that is blank or outside ASCII."""


class Observer:
    """Receives the events of a run, on the event loop of its drive. Each method must return quickly and not raise."""

    wants_text = False
    """Whether to stream answers, which costs a little per call."""

    def began(self, run_id: str, run: Run) -> None:
        """A drive of the run begins. A new run is durable by then."""

    def asked(self, pending: Pending) -> None:
        """The drive begins to perform an effect."""

    def text(self, effect_id: str, piece: str) -> None:
        """A piece of an answer has streamed in."""

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """A request waits for `delay_s`, because an attempt failed or because of a rate limit."""

    def note_entry(self, run: Run, seq: int, entry: Entry, step: Step | None) -> None:
        """An entry was folded. The entry becomes line `seq` of the journal, unless another process writes first."""

    def note_lines(self, lines: Sequence[Line], entries: Sequence[Entry]) -> None:
        """Lines of the journal are durable, one line for each of the entries."""

    def stepped(self, run: Run, step: Step) -> None:
        """An event was recorded and folded in."""

    def ended(self, run_id: str, run: Run) -> None:
        """The run has ended."""


class ContainedObserver(Observer):
    """Forwards all calls to an observer and logs its exceptions, so that the observer cannot break the run."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        for name in ("began", "asked", "text", "retrying", "note_entry", "note_lines", "stepped", "ended"):
            setattr(self, name, partial(_tell, name, getattr(observer, name)))

    @property
    def wants_text(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether the observer wants text at present."""
        return self._observer.wants_text


def _tell(name: str, method: Callable[..., None], *arguments: Any) -> None:
    try:
        method(*arguments)
    except Exception:
        _LOG.exception("an observer failed when told `%s`; the run continues", name)


class StreamedText:
    """Masks secret keys in a text that streams in, even if a key is split between pieces.

    The last characters are held back while they may belong to a key, so that the end of a shown piece reveals nothing
    about keys in use.
    """

    def __init__(self, secrets: Secrets = SECRETS) -> None:
        self._secrets, self._held = secrets, ""

    def add(self, piece: str) -> str:
        """Add a piece. Return the text that can be shown now."""
        broken = _TO_LAST_BREAK.match(piece)
        end = len(self._held) + broken.end() if broken else 0
        self._held += piece
        # Many characters are released at a time, so that each character is scanned only a few times.
        if len(self._held) - end > 2 * HELD_CHARS:
            end = len(self._held) - HELD_CHARS
        if not end:
            return ""
        shown, self._held = self._secrets.mask_until(self._held, end)
        return shown

    def end(self) -> str:
        """End the text. Return its rest, with keys masked."""
        rest, self._held = self._held, ""
        return self._secrets.mask(rest)
