"""Text that streams in, as it may be shown."""

from __future__ import annotations

import re
from typing import Final

from ..masking import SECRETS, Secrets
from ..patterns import lazy_pattern

HELD_CHARS: Final = 1_024
"""A key that takes at most so many characters never appears in streamed text."""

_TO_LAST_BREAK = lazy_pattern(r".*[^!-~]", re.DOTALL)
"""Text up to its last character that is blank or outside ASCII."""


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
