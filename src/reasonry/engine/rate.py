"""Rate limits: how many calls and tokens a process sends to a provider in any minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..errors import UsageError
from .ports import provider_of

WINDOW_S = 60.0

Limit = int | Mapping[str, int] | None
"""For each provider, or by provider, `*` for all others: `{"openai": 500, "*": 50}`; None: as many as there are."""


class RateLimits:
    """The limits of whoever shares them: all runs of an app, or of a program that hands one to each `solve`.

    Args:
        requests: Calls in any minute.
        tokens: Tokens in any minute: as estimated while a call is under way, and then as the provider states them.

    Raises:
        UsageError: A limit is below 1.
    """

    def __init__(self, requests: Limit = None, tokens: Limit = None) -> None:
        self._limits = (_by_provider(requests), _by_provider(tokens))
        self._windows: dict[str, RateLimit] = {}

    def of(self, model: str) -> RateLimit:
        """Return the limit of the model's provider."""
        provider = provider_of(model)
        if provider not in self._windows:
            kind = provider.partition(":")[0]
            limits = (limit.get(provider, limit.get(kind, limit.get("*"))) for limit in self._limits)
            self._windows[provider] = RateLimit(*limits)
        return self._windows[provider]


def _by_provider(limit: Limit) -> Mapping[str, int]:
    limits = limit if isinstance(limit, Mapping) else {} if limit is None else {"*": limit}
    for provider, number in limits.items():
        # A program may hand over anything.
        if type(number) is not int or number < 1:
            raise UsageError(f"a rate limit is a whole number from 1 up, got {number!r} for {provider}")
    return limits


@dataclass
class CountedCall:
    """A call that counts; `tokens` may be set right once they are known."""

    instant_s: float
    tokens: int


class RateLimit:
    """A sliding window over the last minute; None means no limit."""

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        self.requests, self.tokens = requests, tokens
        self._sent: deque[CountedCall] = deque()
        self._turn = asyncio.Lock()

    @property
    def is_limited(self) -> bool:
        """Whether there is anything to wait for."""
        return self.requests is not None or self.tokens is not None

    async def wait(self, tokens: int, pausing: Callable[[float], None] = lambda pause_s: None) -> CountedCall:
        """Return when a call of about so many tokens may go out; calls go in the order they came.

        Args:
            tokens: An estimate.
            pausing: Told how many seconds are to be waited.
        """
        if not self.is_limited:
            return CountedCall(0, tokens)
        async with self._turn:
            while (pause_s := self._pause_s(tokens)) > 0:
                pausing(pause_s)
                await asyncio.sleep(pause_s)
            sent = CountedCall(time.monotonic(), tokens)
            self._sent.append(sent)
            return sent

    def _pause_s(self, tokens: int) -> float:
        now = time.monotonic()
        while self._sent and self._sent[0].instant_s <= now - WINDOW_S:
            self._sent.popleft()
        spent = sum(call.tokens for call in self._sent)
        full = self.requests is not None and len(self._sent) >= self.requests
        # A call larger than the whole limit goes out alone rather than never.
        dear = self.tokens is not None and bool(self._sent) and spent + tokens > self.tokens
        return self._sent[0].instant_s + WINDOW_S - now if full or dear else 0.0
