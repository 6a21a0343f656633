"""Runs whose processes died: drive them one at a time, with a pause after each death."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from ..errors import ConflictError

MAX_DEATHS: Final = 5
"""The number of processes that may die in succession while they drive a run; then the run is stopped."""

RESTS_S: Final = (1.0, 10.0, 60.0, 600.0)
"""The pause after each of these deaths, the same for all processes of the store. A crash loop with another cause ends,
or continues without the run, which is then not to blame."""


class DeadlyRuns:
    """The runs of this process whose earlier processes died."""

    def __init__(self) -> None:
        self._driven = list[int]()
        """The deaths of each such run that this process drives now."""

    @contextmanager
    def drive_apart(self, run_id: str, deaths: int, since_s: float) -> Generator[None]:
        """Register a run while it is driven. Its last attempt excludes all other such runs, to identify the cause.

        Args:
            since_s: Seconds since the last death; infinite if the last process released the run.

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
        left_s = RESTS_S[deaths - 1] - since_s if deaths < MAX_DEATHS else 0.0
        if left_s > 0:
            message = f"run {run_id} is retried in {left_s:.0f} s: its process has died"
            raise ConflictError(message, run_id=run_id, retryable=True)
        self._driven.append(deaths)
        try:
            yield
        finally:
            self._driven.remove(deaths)
