"""Rates of providers: the limits that the user sets, and the gate behind a provider that has refused a call."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

from ..errors import UsageError
from .ports import provider_of

WINDOW_S = 60.0

Limit = int | Mapping[str, int] | None
"""For each provider, or by provider, `*` for all others: `{"openai": 500, "*": 50}`; None: as many as there are."""


SharedLimits = Callable[[str, float, Callable[[float], None]], AbstractAsyncContextManager[object]]
"""Waits for a place under the limit of a provider that holds over all processes of a store, and keeps it meanwhile.

It takes the provider, how many seconds the place is kept if it is not given back, and a function that is told how many
seconds are to be waited.
"""


class RateLimits:
    """Rate limits of all runs of an app, or of a program that passes the same limits to each `solve`.

    Args:
        requests: Calls in any minute.
        tokens: Tokens in any minute: as estimated while a call is under way, and then as the provider states them.

    Raises:
        UsageError: A limit is below 1.
    """

    def __init__(self, requests: Limit = None, tokens: Limit = None) -> None:
        self._limits = (_by_provider(requests), _by_provider(tokens))
        self._windows: dict[str, RateLimit] = {}
        self.shared: SharedLimits | None = None

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

    async def wait(self, tokens: int, pausing: Callable[[float], None] = lambda pause_s: None) -> CountedCall:
        """Return when a call of about so many tokens may go out; calls go in the order they came.

        Args:
            tokens: An estimate.
            pausing: Told how many seconds are to be waited.
        """
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


MOST_AT_THE_GATE: Final = 64
"""Calls that are let through at once before the gate is open to all."""
MOST_WAIT_S: Final = 900.0
"""How long a call waits at a gate where its run has no limit in seconds."""
UNCLEAR_WAIT_S: Final = 60.0
"""Counts in place of a wait that a provider asks for and that is longer, negative or unreadable."""


class GateClosed(Exception):
    """Ends an attempt before it goes out: the gate of its provider has closed meanwhile."""


class Gate:
    """Keeps calls from a provider that has refused one for its rate: until then, and then all but one call at first.

    Each call that comes through makes room for one more, so calls go out as fast as the provider takes them.
    """

    def __init__(self) -> None:
        self._opens_s, self._refusals, self._out = 0.0, 0, 0
        self._room: int | None = None
        """How many calls may be out at once; None: the gate is open."""
        self._changed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether calls need not enter one by one."""
        return self._room is None

    async def enter(self, until_s: float, pausing: Callable[[float], None]) -> bool:
        """Return when a call may go out; whether the gate counts it, and has to be told when it is over.

        Args:
            until_s: By the monotonic clock.
            pausing: Told how many seconds are to be waited.

        Raises:
            TimeoutError: None may until then.
        """
        while self._room is not None:
            now = time.monotonic()
            wait_s = self._opens_s - now
            if wait_s <= 0 and self._out < self._room:
                self._out += 1
                return True
            if max(now, self._opens_s) >= until_s:
                raise TimeoutError
            pausing(max(wait_s, 0.0))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s if wait_s > 0 else until_s - now):
                    await self._changed.wait()
        return False

    def check(self, counted: bool) -> None:
        """Let through what may go out now, for it may have waited for other things since it entered.

        Raises:
            GateClosed: It has to enter again.
        """
        if self._room is not None and not (counted and time.monotonic() >= self._opens_s):
            raise GateClosed

    def leave(self, counted: bool, *, came_through: bool) -> None:
        """Note that a call is over."""
        self._out -= counted
        if counted and came_through and self._room is not None:
            self._refusals, self._room = 0, self._room + 1
            if self._room > MOST_AT_THE_GATE:
                self._room = None
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self, wait_s: float | None, *, backoff_s: float, max_backoff_s: float) -> None:
        """Close the gate because the provider refused a call; longer after each refusal without a success between.

        Args:
            wait_s: Seconds that the provider asks for. None where it names none.
            backoff_s: The least pause after the first refusal; it doubles after each further refusal.
            max_backoff_s: The longest pause that doubling leads to.
        """
        if time.monotonic() >= self._opens_s:
            self._refusals += 1
        if wait_s is not None and not 0 <= wait_s <= MOST_WAIT_S:
            wait_s = UNCLEAR_WAIT_S
        least_s = min(backoff_s * 2 ** min(self._refusals - 1, 30), max_backoff_s)
        wait_s = max(wait_s or 0.0, least_s) * random.uniform(1.0, 1.25)
        self._opens_s, self._room = max(self._opens_s, time.monotonic() + wait_s), 1


_gates = WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[str, Gate]]()


def gate_of(model: str) -> Gate:
    """Return the gate of a model's provider; there is one for all runs of an event loop."""
    return _gates.setdefault(asyncio.get_running_loop(), defaultdict(Gate))[provider_of(model)]
