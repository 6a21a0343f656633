"""Observers: whoever wants to watch a run. What they see is never needed to resume it."""

from __future__ import annotations

from typing import Protocol

from ..core.machine import Pending, Step
from .journal import Run


class Observer(Protocol):
    """Told what happens, as it happens, on the loop that drives the run; must return quickly and not raise.

    Attributes:
        wants_text: Whether answers are to be streamed; streaming costs a little on each call.
    """

    wants_text: bool

    def began(self, run_id: str, run: Run) -> None:
        """The run is accepted and on disk, or was taken up again."""
        ...

    def asked(self, pending: Pending) -> None:
        """An effect is being performed."""
        ...

    def text(self, effect_id: str, piece: str) -> None:
        """A piece of an answer streamed in."""
        ...

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """An attempt failed and is made again after a pause."""
        ...

    def stepped(self, run: Run, step: Step) -> None:
        """An event was recorded and folded in."""
        ...

    def ended(self, run_id: str, run: Run) -> None:
        """The run has ended."""
        ...


class Unwatched:
    """Watches nothing; a base to override."""

    wants_text = False

    def began(self, run_id: str, run: Run) -> None:
        """See `Observer`."""

    def asked(self, pending: Pending) -> None:
        """See `Observer`."""

    def text(self, effect_id: str, piece: str) -> None:
        """See `Observer`."""

    def retrying(self, effect_id: str, reason: str, delay_s: float) -> None:
        """See `Observer`."""

    def stepped(self, run: Run, step: Step) -> None:
        """See `Observer`."""

    def ended(self, run_id: str, run: Run) -> None:
        """See `Observer`."""
