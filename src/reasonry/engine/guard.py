"""The budget guard: no call goes out that the budget does not cover, and each is booked with what it took."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from ..core.budget import HEADROOM, Budget, Ledger, Refusal
from ..core.events import NOTHING, Answered, Usage
from ..errors import ModelError
from .metering import check_usage, estimate_tokens, guess, tokens_of, weigh
from .named_prices import Prices
from .ports import BrokenReplyError, Model, Question, is_rate_limit
from .run import Run

UNMEASURED = 1.5
"""How many tokens a prompt may take for each one it is thought to take, before one has been sent."""

LEAST_ROOM = 16
"""Tokens that a reply may take where less is left: no provider takes a smaller limit."""

Pause = Callable[[Awaitable[bool]], Awaitable[bool]]
"""Waits for something, unless it is not to be waited for any more."""

CLOSED_BY: Final = ("max_calls", "max_tokens", "max_usd", "max_seconds")
"""Limits before which a run is closed, rather than stopped."""

KEPT_SHARE: Final = 0.2
"""Of a limit on time, kept back for the last question of a run, where no question has taken longer."""
KEPT_TIMES: Final = 1.5
"""How many times as long as the slowest question so far the last one may take."""


class BudgetExhausted(Exception):
    """Ends an attempt, not the process: the engine turns it into the run's termination reason."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def limits_calls(budget: Budget) -> bool:
    """Whether a budget limits what calls may take: they are then written down before they go out."""
    return (budget.calls, budget.tokens, budget.usd) != (None, None, None)


def node_count(run: Run) -> int:
    """Return how many nodes the tree of a run has."""
    return run.strategy.conclude(run.snapshot.state).document.get("tree", {}).get("node_count", 0)


def limit_reached(run: Run) -> Refusal | None:
    """Return which limit on what a run may hold is reached, if one is."""
    budget = run.budget
    if budget.thoughts is not None and run.counts.thoughts >= budget.thoughts:
        return Refusal("max_thoughts", f"reached the limit of {budget.thoughts} thoughts")
    if budget.nodes is not None and node_count(run) >= budget.nodes:
        return Refusal("max_nodes", f"reached the limit of {budget.nodes} nodes")
    return None


def kept_for_the_end(run: Run) -> Usage:
    """Return what closing a run may take: nothing where it cannot be closed, or gives its answer unasked."""
    asks = run.last_questions if limits_calls(run.budget) else None
    estimates = [run.ledger.estimate(estimate_tokens(ask.text)) for ask in asks or ()]
    kept = sum(estimates, NOTHING)
    usd = None if kept.usd is None else kept.usd * HEADROOM
    return replace(kept, input_tokens=math.ceil(kept.input_tokens * HEADROOM), usd=usd)


def refuse_call(run: Run, kept: Usage | None = None) -> Refusal | None:
    """Return which limit keeps a run from one more call, if one does; `kept` as `kept_for_the_end` returns it."""
    reserved = replace(run.ledger, kept=kept or kept_for_the_end(run)).reserve(Usage())
    return limit_reached(run) or (reserved if isinstance(reserved, Refusal) else None)


class BudgetGuard:
    """Holds a ledger, with what was spent before, a crash included.

    It books what calls take: what is set aside, what streams in, and what came.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.changed = asyncio.Event()
        """Set when there may be room again for a call that waits."""
        self._coming: dict[object, Usage] = {}
        """What replies that stream in are estimated to have taken so far."""
        self._dearest: float | None = None
        """The most tokens that a prompt took for each one that it was thought to take."""

    def set_budget(self, budget: Budget) -> None:
        """Continue with other limits; calls that wait for room look again."""
        self.ledger = replace(self.ledger, budget=budget)
        self.changed.set()

    def keep(self, usage: Usage) -> None:
        """Keep so much back for the end of the run; calls that wait for room look again."""
        if usage != self.ledger.kept:
            self.ledger = replace(self.ledger, kept=usage)
            self.changed.set()

    async def catch_up(self) -> None:
        """Take in what is spent elsewhere."""

    def word(self, refusal: Refusal) -> Refusal:
        """Return a refusal as it is told."""
        return refusal

    def fitting(self, question: Question, samples: int) -> int:
        """Return how many samples of a question one request may draw: see `Ledger.fitting`; each needs some room."""
        rooms = max(1.0, self._room(question, 1, 1.0) / LEAST_ROOM)
        return int(min(self.ledger.fitting(estimate_tokens(question.prompt), samples), rooms))

    async def reserve(self, question: Question, samples: int, pause: Pause) -> Usage:
        """Set an estimate aside for one request; waits while calls in flight may still leave room.

        Raises:
            BudgetExhausted: The request is not covered.
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
                raise BudgetExhausted(self.word(outcome))
            self.changed.clear()
            await pause(self.changed.wait())

    def with_room(self, question: Question, reserved: Usage, samples: int) -> Question:
        """Return a question whose replies may take no more than the budget leaves besides the prompt.

        Args:
            reserved: What is set aside for it.
        """
        wanted = question.ask.max_output_tokens
        room = self._room(question, samples, UNMEASURED, reserved.tokens)
        if wanted is None or wanted <= room:
            return question
        return replace(question, ask=replace(question.ask, max_output_tokens=int(max(room, LEAST_ROOM))))

    def watch(self, reply: object, so_far: Usage) -> Refusal | None:
        """Note what a reply that streams in has taken so far; return the limit that is passed by now, if one is."""
        self._coming[reply] = so_far
        passed = self.ledger.passed_by(sum(self._coming.values(), NOTHING))
        return passed and self.word(passed)

    def settle(self, estimate: Usage, actual: Sequence[Usage], reply: object = None) -> None:
        """Book what was really spent, sample by sample, in place of an estimate; the reply is watched no longer."""
        self._coming.pop(reply, None)
        for usage in actual:
            self.ledger = self.ledger.settle(estimate, usage)
            estimate = NOTHING
        self.changed.set()

    def note_prompt(self, question: Question, spent: Usage) -> None:
        """Learn from what a prompt took how many tokens prompts take that look like so many."""
        if spent.input_tokens and not spent.estimated_tokens:
            dear = spent.input_tokens / max(1, estimate_tokens(question.prompt))
            self._dearest = max(self._dearest or 0.0, dear)

    def _room(self, question: Question, samples: int, unmeasured: float, own_tokens: int = 0) -> float:
        """Return how many tokens the budget leaves for each reply to a question.

        Args:
            unmeasured: How many tokens its prompt may take for each one it seems to take, where none was sent before.
            own_tokens: Those of what is reserved that are the question's own.
        """
        ledger, limit = self.ledger, self.ledger.budget.tokens
        if limit is None:
            return math.inf
        prompt = math.ceil(estimate_tokens(question.prompt) * (self._dearest or unmeasured))
        others = ledger.kept.tokens + ledger.spent.tokens + ledger.reserved.tokens - own_tokens
        return (limit - others - prompt) // samples


class Booking:
    """What one request is booked with: what its provider states, where that can be, else an estimate.

    Args:
        prices: Those the user named; they hold whatever the provider says.
        is_limited: Whether a limit depends on it. Without one a program's own model may keep its usage to itself.
    """

    def __init__(self, model: Model, question: Question, prices: Prices, is_limited: bool) -> None:
        self.prompt, self.is_limited = question.prompt, is_limited
        self._named, self._price = prices.of(model), prices.price_of(model)
        is_free = bool(getattr(model, "is_free", False))
        self._estimates = not is_free and (is_limited or hasattr(model, "price"))
        self._prompt_tokens = estimate_tokens(self.prompt) if self._estimates else 0
        self._weight = 0

    def hear(self, piece: str) -> None:
        """Note what streams in."""
        self._weight += weigh(piece)

    @property
    def so_far(self) -> Usage:
        """What the request is estimated to have taken until now."""
        if not self._estimates:
            return Usage()
        return guess(self._prompt_tokens, tokens_of(self._weight), self._price)

    def of_failure(self, error: BaseException) -> Usage:
        """Return what to book for a request that was sent and brought no answer.

        What a provider refuses costs nothing, and counts as no call where it was for the rate; what was cut off in time
        has cost its prompt, and what came until then.
        """
        stated = error.usage if isinstance(error, BrokenReplyError) else NOTHING
        if isinstance(error, ModelError) and not stated.tokens and not self._weight:
            return NOTHING if is_rate_limit(error) else Usage()
        so_far = self.so_far
        known = stated.tokens > 0 and (stated.estimated_tokens == 0 or stated.tokens >= so_far.tokens)
        return self._with_price(stated if known else so_far)

    def of_answers(self, answers: Sequence[Answered], wanted: int) -> list[Answered]:
        """Return the answers that were wanted, with the usage of all that came."""
        kept, surplus = list(answers[:wanted]), answers[wanted:]
        extra = sum((answer.usage for answer in surplus), NOTHING)
        kept[0] = replace(kept[0], usage=kept[0].usage + replace(extra, calls=0))
        if self._estimates:
            kept = self._correct_usage(kept, "".join(answer.text for answer in answers))
        beside = max(0, len(answers) - sum(answer.usage.calls for answer in answers[:wanted]))
        kept[0] = replace(kept[0], usage=replace(kept[0].usage, extra_samples=beside))
        return [replace(answer, usage=self._with_price(answer.usage)) for answer in kept]

    def _correct_usage(self, answers: list[Answered], text: str) -> list[Answered]:
        whole = sum((answer.usage for answer in answers), NOTHING)
        usage = check_usage(whole, self.prompt, text, self._price)
        if usage == whole:
            return answers
        first, *others = answers
        return [replace(first, usage=usage), *(replace(answer, usage=NOTHING) for answer in others)]

    def _with_price(self, usage: Usage) -> Usage:
        if self._named is None:
            return usage
        usd = self._named(usage.input_tokens, usage.output_tokens, usage.cached_input_tokens)
        return replace(usage, usd=usd)
