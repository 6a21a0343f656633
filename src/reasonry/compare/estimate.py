"""How much a comparison is going to take: each strategy is rehearsed once, with the replies that its stages show.

Rule 1: nothing is asked, called, checked or written: a stand-in answers for every model, tool and verifier.
Rule 2: it is a guess: how long a real model thinks, and when it finds the answer, nobody knows before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ..app.wiring import App
from ..core.budget import NOTHING, Usage
from ..core.effects import Verify
from ..core.events import Answered, Verified
from ..core.metering import estimate_tokens
from ..core.options import nested_options
from ..engine.named_prices import Prices
from ..engine.policy import Performers
from ..engine.ports import OnText, Question
from .comparison import Comparison, Job

REPLY_TOKENS = 200
"""Of a reply, where the shown one is shorter."""


class Estimate(Struct, frozen=True):
    """What is missing of a comparison, and about how much that takes.

    Attributes:
        usd: None where the price is not known.
    """

    runs: int
    calls: int
    tokens: int
    usd: float | None


class StandIn:
    """Answers for a model as the stages show it, says yes for a verifier, and nothing for a tool."""

    name = "rehearsal"
    is_free = True

    def __init__(self, examples: Mapping[str, Any]) -> None:
        self.examples = examples

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        """Answer a question with the reply that its stage shows."""
        reply = msgspec.json.encode(self.examples.get(question.stage, {"answer": "4"})).decode()
        took = max(REPLY_TOKENS, estimate_tokens(reply))
        return Answered(
            reply, usage=Usage(input_tokens=estimate_tokens(question.ask.text), output_tokens=took)
        )

    async def verify(self, claim: Verify) -> Verified:
        """Find every answer right."""
        return Verified("right" if claim.final else "unknown")

    async def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Do nothing."""
        return ""

    async def close(self) -> None:
        """Do nothing: there is nothing to give back."""


async def estimate(comparison: Comparison) -> Estimate:
    """Return about how much is missing."""
    missing, total = await comparison.missing(), NOTHING
    firsts = {job.strategy: job for job in reversed(missing)}
    async with App("memory", environ={}, strategies=comparison.app.strategies) as app:
        for strategy, times in Counter(job.strategy for job in missing).items():
            total = sum([await _rehearse(app, firsts[strategy])] * times, total)
    if comparison.judge is None:
        total += Usage(len(missing), total.input_tokens // max(1, total.calls) * len(missing))
    return Estimate(len(missing), total.calls, total.tokens, _cost(missing, total))


async def _rehearse(app: App, job: Job) -> Usage:
    """Return what a run takes in which everybody says what the stages show."""
    order, performers = job.run.order, job.run.performers
    levels = nested_options(msgspec.to_builtins(order.options))
    inside = [app.strategy(str(options["over"])) for options in levels if "over" in options]
    stages = [stage for strategy in (*reversed(inside), order.strategy) for stage in strategy.stages]
    stand_in = StandIn({stage.name: dict(stage.example) for stage in stages if stage.example})
    rehearsed = Performers(
        stand_in,
        verifier=None if performers.verifier is None else stand_in,
        tools=performers.tools and stand_in,
        prices=Prices(),
        seats=tuple(stand_in for _ in performers.seats),
    )
    return (await app.solve(order, rehearsed)).usage


def _cost(missing: list[Job], total: Usage) -> float | None:
    if not missing or getattr(missing[0].run.performers.model, "is_free", False):
        return 0.0
    performers = missing[0].run.performers
    return performers.prices.price_of(performers.model)(total.input_tokens, total.output_tokens, 0)
