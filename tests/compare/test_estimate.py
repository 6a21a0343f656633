"""An estimate rehearses each strategy with stand-ins, and counts what is missing."""

from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.compare.comparison import Comparison, estimate
from reasonry.compare.problem_set import open_dataset
from reasonry.strategies import STRATEGIES


class Untouched:
    """A model, a verifier and a tool that nobody may use."""

    name = "untouched"
    description = "Does harm."
    parameters: ClassVar = {"type": "object", "properties": {"text": {"type": "string"}}}

    @staticmethod
    def price(taken: int, made: int, cached: int) -> float:
        return (taken + made) / 1000

    async def answer(self, *_: object) -> Any:
        raise AssertionError

    verify = call = answer

    async def close(self) -> None:
        pass


DRIVEN = [name for name, strategy in STRATEGIES.items() if strategy.is_driven]


@pytest.mark.anyio
@pytest.mark.parametrize("name", DRIVEN)
async def test_every_strategy_is_rehearsed_and_nothing_is_asked_called_or_written(name: str) -> None:
    model = Untouched()
    panel = (model, Untouched()) if STRATEGIES[name].needs_models else ()
    asked = RunRequest(participants=Participants(model=model, verifier=model, tools=(model,), seats=panel))
    problems = open_dataset("stories:3")
    async with App("memory") as app:
        spelled = f"{name}(solvers=2)" if name == "prove_and_refute" else name
        comparison = Comparison(app, problems, [spelled], asked)
        runs, expected = await estimate(comparison)
        assert runs == 3
        assert expected.calls >= 3
        assert expected.calls % 3 == 0
        assert expected.tokens > 3 * 200
        assert expected.usd == pytest.approx(expected.tokens / 1000)
        assert await app.store.runs() == []


@pytest.mark.anyio
async def test_only_what_is_missing_is_counted_and_a_verdict_is_a_call_too() -> None:
    async with App("memory") as app:
        problems = open_dataset("game24:4")
        offline = RunRequest(participants=Participants(model="offline"))
        half = [app, replace(problems, items=problems.items[:2]), ["self_consistency"], offline]
        await Comparison(*half, judge="model").run()
        whole = Comparison(app, problems, ["self_consistency"], offline, judge="model")
        runs, expected = await estimate(whole)
    assert (runs, expected.usd) == (2, 0.0)
    assert expected.calls == 2 * (4 + 1)
