"""The budget guard: no call goes out that the budget does not cover, however many want to at once."""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from ..core.budget import NOTHING, Budget, Ledger, Refusal, Usage
from ..core.metering import estimate_tokens
from .ports import Question


class BudgetExhausted(Exception):
    """Ends an attempt, not the process: the engine turns it into the run's termination reason."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


def limits_calls(budget: Budget) -> bool:
    """Whether a budget limits what calls may take."""
    return (budget.calls, budget.tokens, budget.usd) != (None, None, None)


class BudgetGuard:
    """Holds the ledger of one run, with what it has spent before, a crash included."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._changed = asyncio.Event()
        self._coming: dict[str, Usage] = {}
        """What replies that stream in are estimated to have taken so far, by question."""

    def set_budget(self, budget: Budget) -> None:
        """Go on with other limits; calls that wait for room look again."""
        self.ledger = replace(self.ledger, budget=budget)
        self._changed.set()

    @property
    def limits_calls(self) -> bool:
        """Whether calls must be written down before they go out, so that a crash does not forget them."""
        return limits_calls(self.ledger.budget)

    def fitting(self, question: Question, samples: int) -> int:
        """Return how many samples of a question one request may draw; see `Ledger.fitting`."""
        return self.ledger.fitting(self._prompt_tokens(question), samples)

    def _prompt_tokens(self, question: Question) -> int:
        return estimate_tokens(question.prompt)

    async def reserve(self, question: Question, samples: int = 1) -> Usage:
        """Set an estimate aside for one call; waits while calls in flight may still leave room.

        Raises:
            BudgetExhausted: The budget does not cover the call.
        """
        while True:
            estimate = self.ledger.estimate(self._prompt_tokens(question), samples)
            outcome = self.ledger.reserve(estimate)
            if isinstance(outcome, Ledger):
                self.ledger = outcome
                return estimate
            if not outcome.wait:
                raise BudgetExhausted(outcome)
            self._changed.clear()
            await self._changed.wait()

    @property
    def limits_replies(self) -> bool:
        """Whether a reply that streams in may pass a limit."""
        return (self.ledger.budget.tokens, self.ledger.budget.usd) != (None, None)

    def watch(self, question_id: str, so_far: Usage) -> Refusal | None:
        """Note what a reply has taken so far; return the limit that is passed by now, if one is."""
        self._coming[question_id] = so_far
        return self.ledger.passed_by(sum(self._coming.values(), NOTHING))

    def forget(self, question_id: str) -> None:
        """Watch a reply no longer."""
        self._coming.pop(question_id, None)

    def settle(self, estimate: Usage, *actual: Usage) -> None:
        """Book what a call really took, sample by sample; calls that wait for room look again."""
        for usage in actual:
            self.ledger = self.ledger.settle(estimate, usage)
            estimate = NOTHING
        self._changed.set()
