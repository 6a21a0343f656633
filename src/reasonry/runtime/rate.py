"""Rate limits: how many calls and tokens go out in any minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque

WINDOW_S = 60.0


class RateLimit:
    """A sliding window over the last minute; None means no limit."""

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        self.requests, self.tokens = requests, tokens
        self._sent: deque[tuple[float, int]] = deque()
        self._turn = asyncio.Lock()

    async def wait(self, tokens: int) -> None:
        """Return when a call of about so many tokens may go out; calls go in the order they came."""
        if self.requests is None and self.tokens is None:
            return
        async with self._turn:
            while (pause := self._pause(tokens)) > 0:
                await asyncio.sleep(pause)
            self._sent.append((time.monotonic(), tokens))

    def _pause(self, tokens: int) -> float:
        now = time.monotonic()
        while self._sent and self._sent[0][0] <= now - WINDOW_S:
            self._sent.popleft()
        spent = sum(one for _, one in self._sent)
        full = self.requests is not None and len(self._sent) >= self.requests
        # A call larger than the whole limit goes out alone rather than never.
        dear = self.tokens is not None and bool(self._sent) and spent + tokens > self.tokens
        return self._sent[0][0] + WINDOW_S - now if full or dear else 0.0
