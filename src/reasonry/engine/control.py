"""The handle of whoever has started a drive and goes on with other things."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .follow import FoldedLine

OnWritten = Callable[[Sequence[FoldedLine]], None]
"""Told of lines of the journal once they are durable; must return quickly and not raise."""


class Control:
    """The other end of one drive, on the same event loop."""

    def __init__(self, on_written: OnWritten = lambda lines: None) -> None:
        self.on_written = on_written
