"""How many requests a minute each principal may send."""

from __future__ import annotations

import time
from collections.abc import Callable

from ...errors import WorldError

BURST_S = 5.0
"""So many seconds' worth of requests may come at once."""
_MAX_KNOWN = 10_000


class RequestRates:
    """A token bucket for each of many names; None: any number of requests."""

    def __init__(
        self, per_minute: int | None, burst: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_s = None if per_minute is None else per_minute / 60
        self._most = max(1.0, (self._per_s or 0) * BURST_S) if burst is None else burst
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, name: str) -> None:
        """Make sure that a name may send a request now; does not count it.

        Raises:
            WorldError: `rate_limited`; it says when to try again.
        """
        if self._per_s is None or (left := self._left_of(name)) >= 1:
            return
        wait_s = (1 - left) / self._per_s
        raise WorldError(
            f"too many requests; try again in {wait_s:.1f} s",
            code="rate_limited",
            retryable=True,
            retry_after_s=wait_s,
        )

    def count(self, name: str) -> None:
        """Count a request of a name."""
        if self._per_s is None:
            return
        if name not in self._left and len(self._left) >= _MAX_KNOWN:
            # Forgotten is the one that was seen first; whoever sends many is counted anew at once.
            del self._left[next(iter(self._left))]
        self._left[name] = (self._left_of(name) - 1, self._clock())

    def _left_of(self, name: str) -> float:
        left, at = self._left.get(name, (self._most, 0.0))
        return min(self._most, left + (self._clock() - at) * (self._per_s or 0))
