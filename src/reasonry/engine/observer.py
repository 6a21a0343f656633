"""Observers, which receive the events of a driven run. A run can always be resumed without its observers."""

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
"""A secret key of at most this many characters never appears in streamed text."""

_TO_LAST_BREAK = lazy_pattern(r".*[^!-~]", re.DOTALL)
"""Matches a text up to its last character that is blank, a control character or not ASCII."""


class Observer:
    """Receives the events of a run on the event loop of the drive. A method must return quickly and must not raise."""

    wants_text = False
    """Whether to stream the pieces of answers to this observer. Streaming costs a little time per call."""

    def began(self, run_id: str, run: Run) -> None:
        """Called when a drive of the run begins. At that time, the store already has the run."""

    def asked(self, pending: Pending) -> None:
        """Called when the drive begins to perform an effect."""

    def text(self, effect_id: str, piece: str) -> None:
        """Called when a piece of an answer has streamed in."""

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """Called when a request must wait for `delay_s` seconds, because an attempt failed or a rate limit applies."""

    def note_entry(self, run: Run, seq: int, entry: Entry, step: Step | None) -> None:
        """Called when an entry has been folded. `seq` is the position that the entry will have in the journal."""

    def note_lines(self, lines: Sequence[Line], entries: Sequence[Entry]) -> None:
        """Called when lines of the journal are durable. Each line holds one of `entries`, in the same order."""

    def stepped(self, run: Run, step: Step) -> None:
        """Called when an event was folded and recorded."""

    def ended(self, run_id: str, run: Run) -> None:
        """Called when a drive ends without an error. The run may still be active, for example because it is paused."""


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
    about a key.
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
        """End the text. Return the characters that were held back, with keys masked."""
        rest, self._held = self._held, ""
        return self._secrets.mask(rest)
