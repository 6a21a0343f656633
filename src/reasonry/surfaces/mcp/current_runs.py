"""The coached runs that a connection's calls go on with when they name none."""

from __future__ import annotations

from collections.abc import Sequence

MAX_RUNS = 100


class CurrentRuns:
    """The runs that a connection has begun, taken up or answered; the oldest are forgotten beyond `MAX_RUNS`."""

    def __init__(self) -> None:
        self._ids: dict[str, None] = {}

    def add(self, run_id: str) -> None:
        """Take a run as the latest of the connection."""
        self._ids.pop(run_id, None)
        self._ids[run_id] = None
        if len(self._ids) > MAX_RUNS:
            del self._ids[next(iter(self._ids))]

    @property
    def ids(self) -> Sequence[str]:
        """The runs, latest last."""
        return list(self._ids)
