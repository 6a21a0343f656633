"""The budget guard: no call goes out that the budget does not cover, however many want to at once."""

from __future__ import annotations

import asyncio

from ..core.budget import Ledger, Refusal, Usage
from .ports import Question

CHARS_PER_TOKEN = 4


class BudgetExhausted(Exception):
    """Ends an attempt, not the process: the engine turns it into the run's termination reason."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.detail)
        self.refusal = refusal


class BudgetGuard:
    """Holds the ledger of one run, with what it has spent before, a crash included."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self._changed = asyncio.Event()

    @property
    def limits_calls(self) -> bool:
        """Whether calls must be written down before they go out, so that a crash does not forget them."""
        budget = self.ledger.budget
        return (budget.calls, budget.tokens, budget.usd) != (None, None, None)

    async def reserve(self, question: Question) -> Usage:
        """Set an estimate aside for one call; waits while calls in flight may still leave room.

        Raises:
            BudgetExhausted: The budget does not cover the call.
        """
        prompt = len(question.ask.system) + len(question.ask.prompt)
        while True:
            estimate = self.ledger.estimate(prompt // CHARS_PER_TOKEN)
            outcome = self.ledger.reserve(estimate)
            if isinstance(outcome, Ledger):
                self.ledger = outcome
                return estimate
            if not outcome.wait:
                raise BudgetExhausted(outcome)
            self._changed.clear()
            await self._changed.wait()

    def settle(self, estimate: Usage, actual: Usage) -> None:
        """Book what a call really took; calls that wait for room look again."""
        self.ledger = self.ledger.settle(estimate, actual)
        self._changed.set()
