"""How a run is performed, and by whom."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from msgspec import Struct, field

from ..core.effects import Ask
from ..core.pending import Pending
from ..errors import UsageError
from ..text import repeats_itself
from .journal import ParticipantNames
from .named_prices import Prices
from .ports import Model, Verifier, provider_of
from .run import Run
from .telemetry import Meter

REASONING_TOKENS = 24_576
"""What a model that reasons by itself may take besides its reply."""


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

    def close(self, policy: Policy, wait_s: float | None) -> None:
        """Note that a call was refused, and close; at least twice as long if none came through since it last did."""
        if time.monotonic() >= self._opens_s:
            self._refusals += 1
        if wait_s is not None and not 0 <= wait_s <= MOST_WAIT_S:
            wait_s = UNCLEAR_WAIT_S
        least_s = min(policy.backoff_s * 2 ** min(self._refusals - 1, 30), policy.max_backoff_s)
        wait_s = max(wait_s or 0.0, least_s) * random.uniform(1.0, 1.25)
        self._opens_s, self._room = max(self._opens_s, time.monotonic() + wait_s), 1


_gates = WeakKeyDictionary[asyncio.AbstractEventLoop, defaultdict[str, Gate]]()


def gate_of(model: str) -> Gate:
    """Return the gate of a model's provider; there is one for all runs of an event loop."""
    return _gates.setdefault(asyncio.get_running_loop(), defaultdict(Gate))[provider_of(model)]


class Policy(Struct, frozen=True, kw_only=True):
    """Concurrency, retries, time-outs and rate limits of runs.

    Args:
        max_concurrency: Effects of one run performed at once.
        max_attempts: Requests for one question, the first included, and without those refused for the provider's rate.
        call_timeout_s: Until a call to a model counts as lost.
        max_output_tokens: Of one reply, hidden reasoning included; None: as many as its stage has room for.
        tool_timeout_s: Until a tool counts as failed.
        backoff_s: First pause between attempts; doubles, with full jitter.
        max_backoff_s: No pause between attempts is longer, whatever `Retry-After` says.
        cache_warmup: Whether the first call of a fan-out with a long common prefix goes alone, so that the others find
            it in the provider's cache; None: where the model says that its provider has one.
        rates: Calls and tokens in any minute, over all runs of this process that share this policy.
        meter: Counts what these runs do.

    Raises:
        UsageError: A number is not above 0, or not a whole one where it counts something.
    """

    max_concurrency: int = 8
    max_attempts: int = 4
    call_timeout_s: float = 120.0
    max_output_tokens: int | None = None
    tool_timeout_s: float = 30.0
    backoff_s: float = 0.5
    max_backoff_s: float = 60.0
    cache_warmup: bool | None = None
    rates: RateLimits = field(default_factory=RateLimits)
    meter: Meter = field(default_factory=Meter)

    def __post_init__(self) -> None:
        counts = ("max_concurrency", "max_attempts", "max_output_tokens")
        named = () if self.max_output_tokens is None else ("max_output_tokens",)
        for name in ("max_concurrency", "max_attempts", "call_timeout_s", "tool_timeout_s", *named):
            value = getattr(self, name)
            # A program may hand over anything.
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise UsageError(f"{name} must be above 0, got {value!r:.60}", option=name)
            if name in counts and not isinstance(value, int):
                raise UsageError(f"{name} must be a whole number, got {value!r:.60}", option=name)

    def pause_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Return how long to pause after a failed attempt, counted from 1."""
        if retry_after_s is not None:
            return min(max(retry_after_s, 0.0), self.max_backoff_s)
        return random.uniform(0, min(self.backoff_s * 2 ** (attempt - 1), self.max_backoff_s))

    def output_limit(self, pending: Pending, ask: Ask, model: Model) -> int | None:
        """Return how many tokens a reply may take; after one that was cut off, twice as many."""
        limit = self.max_output_tokens or ask.max_output_tokens
        if limit is None:
            return None
        if self.max_output_tokens is None and getattr(model, "reasons", False):
            limit += REASONING_TOKENS
        was_cut = any(reply.truncated and not repeats_itself(reply.text) for reply in pending.replies)
        return limit * 2 if was_cut else limit


class Tools(Protocol):
    """The tools a run may call, fixed when it starts."""

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call one. Raises ToolError."""
        ...


class Performers(Struct, frozen=True):
    """Who does what in a run.

    Args:
        judge_model: Scores thoughts; None: the model does.
        draft_model: Proposes thoughts that are valued afterwards; None: the model does.
        seats: Answer side by side; none: the model does, each time again.
        prices: Those the user named.
        callers_tools: The tools that the caller of the run calls: the drive ends when nothing else is left to perform.
        opened_s: Seconds of the run's time that went into opening them.
        names: What they are recorded as.
    """

    model: Model
    judge_model: Model | None = None
    verifier: Verifier | None = None
    tools: Tools | None = None
    draft_model: Model | None = None
    prices: Prices = Prices()
    opened_s: float = 0.0
    callers_tools: frozenset[str] = frozenset()
    seats: tuple[Model, ...] = ()
    names: ParticipantNames = ParticipantNames()

    @property
    def models(self) -> list[Model]:
        """All who may be asked."""
        return [*filter(None, (self.model, self.judge_model, self.draft_model, *self.seats))]

    def answering(self, by: str) -> Model:
        """Return the model that answers what is asked `by` the writer, the judge, the drafter or a seat."""
        seats = {f"seat-{number}": model for number, model in enumerate(self.seats, 1)}
        return {"judge": self.judge_model, "drafter": self.draft_model, **seats}.get(by) or self.model


def rewind(performers: Performers, run: Run, known: ParticipantNames) -> None:
    """Tell models that keep their place in a file which questions of the run they have answered."""
    seats = {f"seat-{number}": name for number, name in enumerate(known.seats, 1)}
    names = {"writer": known.model, "judge": known.judge_model, "drafter": known.draft_model, **seats}
    for model in {id(model): model for model in map(performers.answering, names)}.values():
        rewind = getattr(model, "rewind", None)
        asked = [by for by in names if performers.answering(by) is model]
        if rewind is not None and model.name in [names[by] or known.model for by in asked]:
            rewind(run.asked_stages(asked))
