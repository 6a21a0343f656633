"""Budget guards refuse calls that a budget does not cover, and record the usage of each call.

Rule 1: each guard reserves an estimate of a call's usage. After the call, the actual usage replaces the estimate.
Rule 2: an allowance guards the dollars that all runs of an owner may spend in a day. Before a call, the allowance reads
        from the store how much the owner's runs have spent today, at most once in `LOOK_EVERY_MS`. An unfinished call
        in another process counts once that process has recorded the call.
Rule 3: a day begins at midnight, UTC. A call that is unfinished at midnight counts for the day of its answer.
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
"""How many real tokens an estimated token of a prompt stands for, until a provider has reported a prompt's tokens."""

LEAST_ROOM = 16
"""The smallest token limit of a reply, even if the budget leaves fewer tokens. Providers accept no smaller limit."""

Pause = Callable[[Awaitable[bool]], Awaitable[bool]]
"""A function that awaits an event. It raises `Halted` if the drive halts before the event."""

CLOSED_BY: Final = ("max_calls", "max_tokens", "max_usd", "max_seconds")
"""The limits at which the engine closes a run with a last question instead of stopping the run."""

CLOSING_SHARE: Final = 0.2
"""The smallest share of a run's time limit that is reserved for the last question."""
CLOSING_TIMES: Final = 1.5
"""The least time reserved for the last question, as a multiple of the time that the slowest request so far took."""

LOOK_EVERY_MS: Final = 1_000

ALLOWANCE_SPENT: Final = "max_usd_a_day"
"""The termination reason of a run that reaches its owner's daily limit."""


class BudgetExhausted(Exception):
    """Raised to end an attempt at a call. The engine turns the `refusal` into the termination reason of the run."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def limits_calls(budget: Budget) -> bool:
    """Whether a budget limits calls, tokens or dollars. If so, calls are recorded before they go out."""
    return (budget.calls, budget.tokens, budget.usd) != (None, None, None)


def limit_reached(run: Run) -> Refusal | None:
    """Return a refusal if a run has reached its limit on thoughts or nodes. Otherwise, return None."""
    budget = run.budget
    if budget.thoughts is not None and run.counts.thoughts >= budget.thoughts:
        return Refusal("max_thoughts", f"reached the limit of {budget.thoughts} thoughts")
    if budget.nodes is not None:
        tree = run.strategy.conclude(run.snapshot.state).document.get("tree", {})
        if tree.get("node_count", 0) >= budget.nodes:
            return Refusal("max_nodes", f"reached the limit of {budget.nodes} nodes")
    return None


def closing_reserve(run: Run) -> Usage:
    """Return the usage to reserve for the questions that would close a run now.

    Return `NOTHING` if no question would close the run, or if the budget limits neither calls, tokens nor dollars.
    """
    asks = run.last_questions if limits_calls(run.budget) else None
    estimates = [run.ledger.estimate(estimate_tokens(ask.text)) for ask in asks or ()]
    reserve = sum(estimates, NOTHING)
    usd = None if reserve.usd is None else reserve.usd * HEADROOM
    return replace(reserve, input_tokens=math.ceil(reserve.input_tokens * HEADROOM), usd=usd)


def refuse_call(run: Run, reserve: Usage | None = None) -> Refusal | None:
    """Return a refusal if a limit forbids another call. `reserve` is the usage that is reserved for closing the run."""
    reserved = replace(run.ledger, closing=reserve or closing_reserve(run)).reserve(Usage())
    return limit_reached(run) or (reserved if isinstance(reserved, Refusal) else None)


class BudgetGuard:
    """Enforces a budget. Tracks the usage of each call: the estimate, the usage while streaming, the final usage."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.changed = asyncio.Event()
        """Set when the budget may again have room for a waiting call."""
        self._coming: dict[object, Usage] = {}
        """Maps each reply that is streaming in to the estimated usage of the reply so far."""
        self._dearest: float | None = None
        """The largest ratio so far between a prompt's reported and estimated tokens. None before the first report."""

    def set_budget(self, budget: Budget) -> None:
        """Set new limits, and let waiting calls check for room again."""
        self.ledger = replace(self.ledger, budget=budget)
        self.changed.set()

    def set_closing_reserve(self, usage: Usage) -> None:
        """Reserve usage for the run's last questions, and let waiting calls check for room again."""
        if usage != self.ledger.closing:
            self.ledger = replace(self.ledger, closing=usage)
            self.changed.set()

    async def catch_up(self) -> None:
        """Read the spending of all processes that share this limit. In the base class, do nothing."""

    def describe(self, refusal: Refusal) -> Refusal:
        """Adapt a refusal's reason and detail to this guard. In the base class, return `refusal` unchanged."""
        return refusal

    def fitting(self, question: Question, samples: int) -> int:
        """Return how many samples the budget permits in one request; see `Ledger.fitting`."""
        rooms = max(1.0, self._room(question, 1, 1.0) / LEAST_ROOM)
        return int(min(self.ledger.fitting(estimate_tokens(question.prompt), samples), rooms))

    async def reserve(self, question: Question, samples: int, pause: Pause) -> Usage:
        """Reserve the estimated usage of one request. If there is no room yet, wait for unfinished calls to free some.

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
        """Return the question. If the budget leaves too few tokens for each reply, lower the question's token limit."""
        wanted = question.ask.max_output_tokens
        room = self._room(question, samples, UNMEASURED, reserved.tokens)
        if wanted is None or wanted <= room:
            return question
        return replace(question, ask=replace(question.ask, max_output_tokens=int(max(room, LEAST_ROOM))))

    def watch(self, reply: object, so_far: Usage) -> Refusal | None:
        """Note a streaming reply's usage so far. Return a refusal if all streaming replies together exceed a limit."""
        self._coming[reply] = so_far
        passed = self.ledger.passed_by(sum(self._coming.values(), NOTHING))
        return passed and self.describe(passed)

    def settle(self, estimate: Usage, actual: Sequence[Usage], reply: object = None) -> None:
        """Replace a reserved estimate with the actual usage of each sample, and stop watching the reply."""
        self._coming.pop(reply, None)
        for usage in actual:
            self.ledger = self.ledger.settle(estimate, usage)
            estimate = NOTHING
        self.changed.set()

    def note_prompt(self, question: Question, spent: Usage) -> None:
        """Compare the reported tokens of a prompt with the estimated tokens, to correct later estimates."""
        if spent.input_tokens and not spent.estimated_tokens:
            dear = spent.input_tokens / max(1, estimate_tokens(question.prompt))
            self._dearest = max(self._dearest or 0.0, dear)

    def _room(self, question: Question, samples: int, unmeasured: float, own_tokens: int = 0) -> float:
        """Return how many tokens each reply may use. `own_tokens` are already reserved for the question.

        Until a prompt was measured, `unmeasured` real tokens are assumed for each estimated token of a prompt.
        """
        ledger, limit = self.ledger, self.ledger.budget.tokens
        if limit is None:
            return math.inf
        prompt = math.ceil(estimate_tokens(question.prompt) * (self._dearest or unmeasured))
        others = ledger.closing.tokens + ledger.spent.tokens + ledger.reserved.tokens - own_tokens
        return (limit - others - prompt) // samples


class Allowance(BudgetGuard):
    """Enforces the daily limit on the dollars that the runs of an owner may spend.

    Args:
        usage_since: A function that reads from the store the usage of the owner's runs since a given time.
        clock_ms: A function that returns the current time. Both times are in milliseconds since 1970, UTC.
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
        """Read from the store how much the owner's runs in all processes have spent today.

        Raises:
            StoreError: The first read of the store on this day failed. Failures of later reads are ignored.
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
        """Return a refusal if the owner has already spent the daily limit, as far as this process knows."""
        reserved = replace(self.ledger, reserved=NOTHING).reserve(NOTHING)
        return self.describe(reserved) if isinstance(reserved, Refusal) else None

    def describe(self, refusal: Refusal) -> Refusal:
        """See `BudgetGuard`."""
        detail = refusal.detail.replace("US dollars", "US dollars a day")
        return replace(refusal, reason=ALLOWANCE_SPENT, detail=detail)
