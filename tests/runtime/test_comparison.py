"""A comparison counts what its runs spend while they run."""

from __future__ import annotations

import asyncio

import pytest

from reasonry.app import App, Team
from reasonry.core.budget import Budget, Usage
from reasonry.core.events import Answered
from reasonry.core.judging import Item
from reasonry.runtime.comparison import Comparison, Crewed, Ordered, Terms
from reasonry.runtime.engine import Order
from reasonry.runtime.policy import Performers
from reasonry.runtime.ports import OnText, Question
from reasonry.runtime.result import Result


class Cashier:
    """Takes a dollar a sample; the last sample of a long problem is never answered while short ones come in."""

    name = "cashier"

    def __init__(self) -> None:
        self.short = asyncio.Event()

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        if "long" not in question.ask.prompt:
            self.short.set()
        elif question.ask.sample == 4:
            await self.short.wait()
            await asyncio.sleep(0.1)
        return Answered('{"reasoning": "", "answer": "4"}', usage=Usage(usd=1.0))

    async def close(self) -> None:
        pass


@pytest.mark.anyio
async def test_money_that_runs_in_flight_have_spent_begins_no_more_runs() -> None:
    async with App("memory") as app:
        team = Team(model=Cashier())
        options = {"samples": 5, "stop": "full"}

        def order(problem: str, strategy: str) -> Ordered:
            return app.order(problem, strategy, options, Budget(), team)

        async def solve(order: Order, who: Performers) -> Result:
            return await app.solve(order, who)

        async def resume(run_id: str) -> Result:
            return await app.resume(run_id, team)

        crewed = Crewed(order=order, judging=lambda text: order(text, ""), solve=solve, resume=resume)
        items = [
            Item(f"{kind} {at}", 4, str(at)) for at, kind in enumerate(["long", "short", "short", "short"])
        ]
        terms = Terms(parallel=2, total_usd=9.0)
        report = await Comparison(app.engine, items, ["self_consistency"], crewed, terms).run()
    # The long one has four dollars' worth of answers when the first short one has ended for five: that is nine.
    assert {trial.item for trial in report.trials} == {"0", "1"}
    assert report.spent.usd == 10.0
    assert not report.complete
