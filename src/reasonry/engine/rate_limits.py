"""Rate limits of providers: the limits that the user sets, and the gate that closes when a provider refuses a call."""

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
"""One limit for every provider, or limits by provider, with `*` for all others: `{"openai": 500, "*": 50}`. None means
no limit."""

SharedLimits = Callable[[str, float, Callable[[float], None]], AbstractAsyncContextManager[object]]
"""Waits for, and then holds, a place under a provider's limit that all processes of a store share. Arguments:
the provider, the seconds until an unreleased place expires, and a function to call with the seconds to wait."""


class RateLimits:
    """Rate limits for all runs of an app, or for all calls of `solve` that receive this object.

    Args:
        requests: The most calls in any minute.
        tokens: The most tokens in any minute. A call counts with an estimate until the provider has counted its tokens.

    Raises:
        UsageError: A limit is not a whole number from 1 up.
    """

    def __init__(self, requests: Limit = None, tokens: Limit = None) -> None:
        self._limits = (_by_provider(requests), _by_provider(tokens))
        self._windows: dict[str, RateLimit] = {}
        self.shared: SharedLimits | None = None

    def of(self, model: str) -> RateLimit:
        """Return the limit for the provider of a model."""
        provider = provider_of(model)
        if provider not in self._windows:
            kind = provider.partition(":")[0]
            limits = (limit.get(provider, limit.get(kind, limit.get("*"))) for limit in self._limits)
            self._windows[provider] = RateLimit(*limits)
        return self._windows[provider]


def _by_provider(limit: Limit) -> Mapping[str, int]:
    limits = limit if isinstance(limit, Mapping) else {} if limit is None else {"*": limit}
    for provider, number in limits.items():
        # A program may pass a value of any type.
        if type(number) is not int or number < 1:
            raise UsageError(f"a rate limit is a whole number from 1 up, got {number!r} for {provider}")
    return limits


@dataclass
class CountedCall:
    """A call that counts against a limit. `tokens` may be corrected once the real tokens are known."""

    instant_s: float
    tokens: int


class RateLimit:
    """Limits calls and tokens in a sliding window of one minute."""

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        self.requests, self.tokens = requests, tokens
        self._sent: deque[CountedCall] = deque()
        self._turn = asyncio.Lock()

    async def wait(self, tokens: int, pausing: Callable[[float], None] = lambda pause_s: None) -> CountedCall:
        """Wait until a call may go out. Calls go out in order of arrival. `pausing` receives the seconds to wait."""
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
"""Once a gate has room for more than this many unfinished calls, the gate opens to all calls."""
MOST_WAIT_S: Final = 900.0
"""The longest wait of a call at a gate, in seconds. The time limit of a run may shorten the wait."""
UNCLEAR_WAIT_S: Final = 60.0
"""The wait, in seconds, if a provider asks for a negative or unreadable wait, or for more than `MOST_WAIT_S`."""


class GateClosed(Exception):
    """Raised to end an attempt before it sends a request, because the gate of the provider has closed."""


class Gate:
    """Holds back calls to a provider after a refusal due to a rate limit. The gate first reopens for a single call.

    Each successful call makes room for one more call in flight, so calls go out as fast as the provider accepts them.
    """

    def __init__(self) -> None:
        self._opens_s, self._refusals, self._out = 0.0, 0, set[object]()
        self._room: int | None = None
        """The most calls in flight at once. None while the gate is open to all calls."""
        self._changed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether calls may go out without entering the gate."""
        return self._room is None

    async def enter(self, call: object, until_s: float, pausing: Callable[[float], None]) -> None:
        """Wait until a call may go out. Each call has to `leave`, even if its wait was cancelled.

        Args:
            until_s: The time, by the monotonic clock, at which the wait ends with a TimeoutError.
            pausing: Called with the seconds to wait.
        """
        while self._room is not None:
            now = time.monotonic()
            wait_s = self._opens_s - now
            if wait_s <= 0 and len(self._out) < self._room:
                self._out.add(call)
                return
            if max(now, self._opens_s) >= until_s:
                raise TimeoutError
            pausing(max(wait_s, 0.0))
            with suppress(TimeoutError):
                async with asyncio.timeout(wait_s if wait_s > 0 else until_s - now):
                    await self._changed.wait()

    def check(self, call: object) -> None:
        """Raise GateClosed if the gate has closed while a call waited for other limits."""
        if self._room is not None and not (call in self._out and time.monotonic() >= self._opens_s):
            raise GateClosed

    def leave(self, call: object, *, came_through: bool) -> None:
        """Note the end of a call. A call that never entered the gate is ignored."""
        if call not in self._out:
            return
        self._out.remove(call)
        if came_through and self._room is not None:
            self._refusals, self._room = 0, self._room + 1
            if self._room > MOST_AT_THE_GATE:
                self._room = None
        self._changed.set()
        self._changed = asyncio.Event()

    def close(self, wait_s: float | None, backoff_s: Callable[[int], float]) -> None:
        """Close the gate because the provider refused a call.

        Args:
            wait_s: The wait, in seconds, that the provider asked for, if any.
            backoff_s: Returns the shortest wait, in seconds, after a count of consecutive refusals.
        """
        if time.monotonic() >= self._opens_s:
            self._refusals += 1
        if wait_s is not None and not 0 <= wait_s <= MOST_WAIT_S:
            wait_s = UNCLEAR_WAIT_S
        wait_s = max(wait_s or 0.0, backoff_s(self._refusals)) * random.uniform(1.0, 1.25)
        self._opens_s, self._room = max(self._opens_s, time.monotonic() + wait_s), 1


_gates = WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[str, Gate]]()


def gate_of(model: str) -> Gate:
    """Return the gate of a model's provider. All runs of an event loop share this gate."""
    return _gates.setdefault(asyncio.get_running_loop(), defaultdict(Gate))[provider_of(model)]
