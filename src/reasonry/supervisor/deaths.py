"""Runs that cost processes their lives: driven apart from one another, and left alone for a while after each death."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from ..errors import ConflictError

MAX_DEATHS: Final = 5
"""Processes that may die while they drive a run, one after the other, before it is set aside."""

RESTS_S: Final = (1.0, 10.0, 60.0, 600.0)
"""How long a run is left alone after each of these deaths: a crash loop of another cause is over, or it is not driven
meanwhile, and not to blame."""


class DeadlyRuns:
    """The runs driven by this process that have cost other processes their lives."""

    def __init__(self) -> None:
        self._driven = list[int]()
        """The deaths of each such run that is driven here."""
        self._rests = dict[str, tuple[int, float]]()
        """By run, its deaths and the end of its rest, by the monotonic clock."""

    @contextmanager
    def drive_apart(self, run_id: str, deaths: int) -> Generator[None]:
        """Note that a run is driven; before the last time it has to be alone, so that each is judged for itself.

        Raises:
            ConflictError: It has to wait for another one, or rests.
        """
        last = MAX_DEATHS - 1
        if not deaths:
            yield
            return
        if last in self._driven or (deaths == last and self._driven):
            message = f"run {run_id} has cost {deaths} processes their lives; another such run goes first"
            raise ConflictError(message, run_id=run_id, retryable=True)
        self.check_rested(run_id)
        self._driven.append(deaths)
        try:
            yield
        finally:
            self._driven.remove(deaths)

    def note_deaths(self, run_id: str, deaths: int, counted: int) -> bool:
        """Return whether a run has cost another process its life since it was last noted; then it rests.

        Args:
            counted: The deaths at the place that the run has reached.
        """
        if deaths <= self._rests.get(run_id, (0, 0.0))[0]:
            return False
        rest_s = 0.0 if counted >= MAX_DEATHS else RESTS_S[counted - 1]
        self._rests[run_id] = counted, time.monotonic() + rest_s
        return True

    def check_rested(self, run_id: str) -> None:
        """Raise ConflictError while a run rests."""
        left_s = self._rests.get(run_id, (0, 0.0))[1] - time.monotonic()
        if left_s > 0:
            message = f"run {run_id} is tried again in {left_s:.0f} s: a process has died while it drove it"
            raise ConflictError(message, run_id=run_id, retryable=True)
