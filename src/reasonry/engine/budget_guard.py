"""The budget guard: it refuses calls that the budget does not cover, and books the usage of each call.

An allowance guards the dollars that all runs of an owner may spend in a day.

Rule 1: an estimate is reserved before each call, and the call's usage is booked afterwards, for the run's limits
        (`core.budget`) and for the allowance.
Rule 2: before a call, the allowance reads from the store what the owner's runs in other processes have spent, at most
        once in `LOOK_EVERY_MS`. Calls in flight in other processes count once they are recorded.
Rule 3: a day begins at midnight, UTC. A call in flight at midnight counts for the day of its answer.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ..core.budget import HEADROOM, Budget, Ledger, Refusal
from ..core.events import NOTHING, Usage
from ..errors import StoreError
from ..records import DAY_MS, UsageTotal, now_ms
from .ports import Question
from .run import Run
from .usage import estimate_tokens

UNMEASURED = 1.5
"""The assumed count of real tokens per estimated token of a prompt, until the first measured prompt."""

LEAST_ROOM = 16
"""The smallest token limit of a reply, even if the budget leaves less. Providers accept no smaller limit."""

Pause = Callable[[Awaitable[bool]], Awaitable[bool]]
"""Awaits an event. Raises `Halted` if the drive halts first."""

CLOSED_BY: Final = ("max_calls", "max_tokens", "max_usd", "max_seconds")
"""The limits at which a run is closed by a last question instead of being stopped."""

KEPT_SHARE: Final = 0.2
"""The least share of a time limit that is reserved for the last question."""
KEPT_TIMES: Final = 1.5
"""The time reserved for the last question, as a multiple of the slowest question so far."""

LOOK_EVERY_MS: Final = 1_000

ALLOWANCE_SPENT: Final = "max_usd_a_day"
"""The termination reason of a run at its owner's daily limit."""


class BudgetExhausted(Exception):
    """Raised to end an attempt at a call. The engine turns its refusal into the termination reason of the run."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def limits_calls(budget: Budget) -> bool:
    """Whether a budget limits calls, tokens or dollars. If so, calls are recorded before they go out."""
    return (budget.calls, budget.tokens, budget.usd) != (None, None, None)


def limit_reached(run: Run) -> Refusal | None:
    """Return the limit on thoughts or nodes that a run has reached, if any."""
    budget = run.budget
    if budget.thoughts is not None and run.counts.thoughts >= budget.thoughts:
        return Refusal("max_thoughts", f"reached the limit of {budget.thoughts} thoughts")
    if budget.nodes is not None:
        tree = run.strategy.conclude(run.snapshot.state).document.get("tree", {})
        if tree.get("node_count", 0) >= budget.nodes:
            return Refusal("max_nodes", f"reached the limit of {budget.nodes} nodes")
    return None


def closing_reserve(run: Run) -> Usage:
    """Return the usage to reserve for closing a run: no usage if closing asks no question or is impossible."""
    asks = run.last_questions if limits_calls(run.budget) else None
    estimates = [run.ledger.estimate(estimate_tokens(ask.text)) for ask in asks or ()]
    kept = sum(estimates, NOTHING)
    usd = None if kept.usd is None else kept.usd * HEADROOM
    return replace(kept, input_tokens=math.ceil(kept.input_tokens * HEADROOM), usd=usd)


def refuse_call(run: Run, kept: Usage | None = None) -> Refusal | None:
    """Return the limit that forbids another call, if any. `kept`, the reserved usage, defaults to `closing_reserve`."""
    reserved = replace(run.ledger, kept=kept or closing_reserve(run)).reserve(Usage())
    return limit_reached(run) or (reserved if isinstance(reserved, Refusal) else None)


class BudgetGuard:
    """Books calls in a ledger: their estimates, their usage while they stream in, and their final usage."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.changed = asyncio.Event()
        """Set when a waiting call may have room again."""
        self._coming: dict[object, Usage] = {}
        """The estimated usage so far of each reply that streams in."""
        self._dearest: float | None = None
        """The largest ratio so far of a prompt's reported tokens to their estimate. None before the first report."""

    def set_budget(self, budget: Budget) -> None:
        """Set new limits; waiting calls check for room again."""
        self.ledger = replace(self.ledger, budget=budget)
        self.changed.set()

    def keep(self, usage: Usage) -> None:
        """Reserve usage for the end of the run; waiting calls check for room again."""
        if usage != self.ledger.kept:
            self.ledger = replace(self.ledger, kept=usage)
            self.changed.set()

    async def catch_up(self) -> None:
        """Read the spending of other processes that share a limit with this guard."""

    def describe(self, refusal: Refusal) -> Refusal:
        """Return a refusal with the reason and the detail that suit this guard."""
        return refusal

    def fitting(self, question: Question, samples: int) -> int:
        """Return how many samples of a question to draw in one request; see `Ledger.fitting`."""
        rooms = max(1.0, self._room(question, 1, 1.0) / LEAST_ROOM)
        return int(min(self.ledger.fitting(estimate_tokens(question.prompt), samples), rooms))

    async def reserve(self, question: Question, samples: int, pause: Pause) -> Usage:
        """Reserve an estimate for one request; wait while calls in flight may still leave room.

        Raises:
            BudgetExhausted: The budget does not cover the request.
        """
        while True:
            await self.catch_up()
            estimate = self.ledger.estimate(estimate_tokens(question.prompt), samples)
            outcome = self.ledger.reserve(estimate)
            if isinstance(outcome, Ledger) and self._room(question, samples, 1.0) < LEAST_ROOM:
                limit, in_flight = self.ledger.budget.tokens, self.ledger.reserved.calls > 0
                reason = f"the limit of {limit} tokens leaves no room for another reply"
                outcome = Refusal("max_tokens", reason, wait=in_flight)
            if isinstance(outcome, Ledger):
                self.ledger = outcome
                return estimate
            if not outcome.wait:
                raise BudgetExhausted(self.describe(outcome))
            self.changed.clear()
            await pause(self.changed.wait())

    def with_room(self, question: Question, reserved: Usage, samples: int) -> Question:
        """Return the question with its replies limited to the tokens that the budget leaves after the prompt."""
        wanted = question.ask.max_output_tokens
        room = self._room(question, samples, UNMEASURED, reserved.tokens)
        if wanted is None or wanted <= room:
            return question
        return replace(question, ask=replace(question.ask, max_output_tokens=int(max(room, LEAST_ROOM))))

    def watch(self, reply: object, so_far: Usage) -> Refusal | None:
        """Note the usage so far of a streaming reply. Return the limit, if any, that the streaming replies exceed."""
        self._coming[reply] = so_far
        passed = self.ledger.passed_by(sum(self._coming.values(), NOTHING))
        return passed and self.describe(passed)

    def settle(self, estimate: Usage, actual: Sequence[Usage], reply: object = None) -> None:
        """Book the usage of each sample in place of an estimate, and stop watching the reply."""
        self._coming.pop(reply, None)
        for usage in actual:
            self.ledger = self.ledger.settle(estimate, usage)
            estimate = NOTHING
        self.changed.set()

    def note_prompt(self, question: Question, spent: Usage) -> None:
        """Compare the reported tokens of a prompt with their estimate, to correct later estimates."""
        if spent.input_tokens and not spent.estimated_tokens:
            dear = spent.input_tokens / max(1, estimate_tokens(question.prompt))
            self._dearest = max(self._dearest or 0.0, dear)

    def _room(self, question: Question, samples: int, unmeasured: float, own_tokens: int = 0) -> float:
        """Return the tokens that the budget leaves for each reply to a question that has reserved `own_tokens`.

        Args:
            unmeasured: The assumed tokens per estimated token of a prompt, before a prompt was measured.
        """
        ledger, limit = self.ledger, self.ledger.budget.tokens
        if limit is None:
            return math.inf
        prompt = math.ceil(estimate_tokens(question.prompt) * (self._dearest or unmeasured))
        others = ledger.kept.tokens + ledger.spent.tokens + ledger.reserved.tokens - own_tokens
        return (limit - others - prompt) // samples


class Allowance(BudgetGuard):
    """Guards the dollars that the runs of one owner may spend in a day, for one process.

    Args:
        usage_since: Reads from the store the usage of the owner's runs since a time in milliseconds since 1970, UTC.
        clock_ms: Returns the time in milliseconds since 1970, UTC.
    """

    def __init__(
        self,
        usd: float,
        usage_since: Callable[[int], Awaitable[UsageTotal]],
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        super().__init__(Ledger(Budget(usd=usd)))
        self._usage_since, self._clock_ms = usage_since, clock_ms
        self._day, self._looked_at_ms = 0, 0

    async def catch_up(self) -> None:
        """Read today's spending of the owner's runs in all processes.

        Raises:
            StoreError: The first reading of the store on this day failed. Later failures are ignored.
        """
        now_ms = self._clock_ms()
        if now_ms // DAY_MS > self._day:
            self._day, self._looked_at_ms = now_ms // DAY_MS, 0
            self.ledger = replace(self.ledger, spent=NOTHING)
        if 0 <= now_ms - self._looked_at_ms < LOOK_EVERY_MS:
            return
        is_first, self._looked_at_ms = not self._looked_at_ms, now_ms
        try:
            recorded = await self._usage_since(self._day * DAY_MS)
        except StoreError:
            if is_first:
                self._looked_at_ms = 0
                raise
        else:
            usd = max(self.ledger.spent.usd or 0.0, recorded.usd)
            self.ledger = replace(self.ledger, spent=replace(self.ledger.spent, usd=usd))

    def refusal(self) -> Refusal | None:
        """Return the refusal of further runs today, if any, according to the last reading of the store."""
        reserved = replace(self.ledger, reserved=NOTHING).reserve(NOTHING)
        return self.describe(reserved) if isinstance(reserved, Refusal) else None

    def describe(self, refusal: Refusal) -> Refusal:
        """See `BudgetGuard`."""
        detail = refusal.detail.replace("US dollars", "US dollars a day")
        return replace(refusal, reason=ALLOWANCE_SPENT, detail=detail)
