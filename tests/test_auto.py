"""`strategy="auto"`: a strategy is chosen by rule, and every face of the run says why."""

from __future__ import annotations

import pytest

from reasonry.app import App
from reasonry.core.budget import Budget
from reasonry.errors import UsageError
from reasonry.models.scripted import ScriptedModel
from reasonry.participants import Participants
from reasonry.strategies import STRATEGIES
from reasonry.strategies.choice import choose_strategy

pytestmark = pytest.mark.anyio

PUZZLE = "Use 4, 9, 10 and 13 to make 24"


async def test_auto_runs_the_strategy_the_rule_names_and_the_result_says_why() -> None:
    async with App("memory") as app:
        order, performers = app.order(PUZZLE, "Auto", {}, Budget(), Participants(model="offline"))
        document = (await app.solve(order, performers)).document()
    name, why = choose_strategy(PUZZLE, STRATEGIES.values(), has_tools=False)
    assert document["strategy"] == name == "tree_of_thoughts"
    assert document["diagnostics"]["strategy_chosen"] == why
    assert document["answer"] == "(9 - (13 - 10)) * 4 = 24"


async def test_a_strategy_that_was_named_needs_no_reason() -> None:
    async with App("memory") as app:
        order, performers = app.order(PUZZLE, "tree_of_thoughts", {}, Budget(), Participants(model="offline"))
        document = (await app.solve(order, performers)).document()
    assert "strategy_chosen" not in document["diagnostics"]


async def test_the_reason_is_kept_with_the_run() -> None:
    async with App("memory") as app:
        order, _ = app.order(PUZZLE, "auto", {}, Budget(), Participants(model="offline"))
        run_id = await app.engine.accept(order)
        run = (await app.engine.read(run_id)).run
    assert run.begun.why == order.why != ""


async def test_tools_lead_to_a_strategy_that_calls_them() -> None:
    def look_up(name: str) -> str:
        """Look a name up."""
        return name

    async with App("memory") as app:
        participants = Participants(model=ScriptedModel.of(), tools=[look_up])
        order, _ = app.order("In which county is Steventon?", "auto", {}, Budget(), participants)
        assert order.strategy.name == "react"


async def test_an_option_that_the_chosen_strategy_has_not_is_refused_by_its_name() -> None:
    async with App("memory") as app:
        with pytest.raises(UsageError, match="tree_of_thoughts has no option 'samples'"):
            app.order(PUZZLE, "auto", {"samples": 3}, Budget(), Participants(model="offline"))
