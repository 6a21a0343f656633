"""Runs whose processes died: they are driven apart from one another, with a pause after each death."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from ..errors import ConflictError

MAX_DEATHS: Final = 5
"""The number of processes that may die in succession while they drive a run; then the run is stopped."""

RESTS_S: Final = (1.0, 10.0, 60.0, 600.0)
"""The pause after each of these deaths. A crash loop with another cause ends, or continues without the run, which is
then not to blame."""


class DeadlyRuns:
    """The runs of this process whose earlier processes died."""

    def __init__(self) -> None:
        self._driven = list[int]()
        """The deaths of each such run that this process drives now."""
        self._rests = dict[str, tuple[int, float]]()
        """By run, its deaths and the end of its pause, by the monotonic clock."""

    @contextmanager
    def drive_apart(self, run_id: str, deaths: int) -> Generator[None]:
        """Register a run while it is driven; its last attempt excludes all other such runs, to identify the cause.

        Raises:
            ConflictError: The run must wait for another run, or for the end of its pause.
        """
        last = MAX_DEATHS - 1
        if not deaths:
            yield
            return
        if last in self._driven or (deaths == last and self._driven):
            message = f"the process of run {run_id} has died {deaths} times; another such run goes first"
            raise ConflictError(message, run_id=run_id, retryable=True)
        self.check_rested(run_id)
        self._driven.append(deaths)
        try:
            yield
        finally:
            self._driven.remove(deaths)

    def note_deaths(self, run_id: str, deaths: int, counted: int) -> bool:
        """Record a run's deaths; if there is a new death, start a pause and return True.

        Args:
            counted: The deaths at the run's current position.
        """
        if deaths <= self._rests.get(run_id, (0, 0.0))[0]:
            return False
        rest_s = 0.0 if counted >= MAX_DEATHS else RESTS_S[counted - 1]
        self._rests[run_id] = counted, time.monotonic() + rest_s
        return True

    def check_rested(self, run_id: str) -> None:
        """Raise ConflictError during a run's pause."""
        left_s = self._rests.get(run_id, (0, 0.0))[1] - time.monotonic()
        if left_s > 0:
            message = f"run {run_id} is retried in {left_s:.0f} s: its process has died"
            raise ConflictError(message, run_id=run_id, retryable=True)
