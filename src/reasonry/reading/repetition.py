"""Texts that repeat themselves without end, as models write them that find no way out of a sentence."""

from __future__ import annotations

from typing import Final

REPEATED_CHARS: Final = 300
"""At the end of a text that was cut off: if so many repeat themselves, more room would have brought more of them."""

ENDLESS_CHARS: Final = 6_000
"""At the end of a text that still grows: if so many repeat themselves, it is not going to end."""

_TIMES: Final = 4
"""How often a piece stands there at least."""


def repeats_itself(text: str, chars: int = REPEATED_CHARS) -> bool:
    """Whether the last characters of a text are one piece of text over and over."""
    end, longest = text[-chars:], chars // _TIMES
    if len(end) < chars:
        return False
    period = chars - longest - end.rfind(end[-longest:], 0, -1)
    return period <= longest and end[period:] == end[:-period]


class Endless:
    """Listens to a text that streams in until it repeats itself without end."""

    def __init__(self) -> None:
        self.is_heard = False
        self._end, self._new = "", list[str]()

    def hear(self, piece: str) -> bool:
        """Take in a piece; whether the text is endless by now."""
        self._new.append(piece)
        if len(self._new) >= 100 and not self.is_heard:
            self._end = (self._end + "".join(self._new))[-ENDLESS_CHARS:]
            self._new.clear()
            self.is_heard = repeats_itself(self._end, ENDLESS_CHARS)
        return self.is_heard
