"""A stage that has enough of what it asked: the rest is cut off, counted, and found again by every fold."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from reasonry.app.app import App
from reasonry.core.bodies import Body, Conclusion, go, request
from reasonry.core.budget import Budget
from reasonry.core.effects import Ask
from reasonry.core.events import Answered, Reply
from reasonry.core.strategy import Stage, Strategy
from reasonry.engine.journal import TermsChanged
from reasonry.engine.policy import Performers
from reasonry.strategies import STRATEGIES

from .running import order_of

pytestmark = pytest.mark.anyio


class State(Struct, frozen=True):
    problem: str
    options: Struct
    answers: tuple[str, ...] = ()


def race(s: State) -> Body:
    """Ask four times, and be content with the first two."""
    asks = (Ask(s.problem, sample=number) for number in range(4))
    answers = yield request(s, *asks, enough=lambda so_far: sum(one is not None for one in so_far) >= 2)
    texts = tuple(answer.text for answer in answers if isinstance(answer, Reply))
    return go(State(s.problem, s.options, texts), "look_again")


def look_again(s: State) -> Body:
    (reply,) = yield request(s, Ask("and now?"))
    return go(State(s.problem, s.options, (*s.answers, reply.text)), "final_response")


RACE = Strategy(
    name="race",
    title="Race",
    source="a test",
    summary="Takes the first two of four.",
    state=State,
    conclude=lambda s: Conclusion(" ".join(s.answers) or None),
    stages=(
        Stage("race", ("look_again",), body=race),
        Stage("look_again", ("final_response",), body=look_again),
        Stage("final_response"),
    ),
)


class Runner:
    """Answers the second and the fourth sample at once, the others never."""

    name = "runner"

    def __init__(self, late_s: float = 60) -> None:
        self.late_s, self.cut = late_s, 0

    async def answer(self, question, on_text=None) -> Answered:
        if question.ask.sample in (0, 2) and question.stage == "race":
            try:
                await asyncio.sleep(self.late_s)
            except asyncio.CancelledError:
                self.cut += 1
                raise
        return Answered(f"{question.stage}{question.ask.sample}", model=self.name)

    async def close(self) -> None: ...


@pytest.mark.parametrize("budget", [Budget(), Budget(calls=9)], ids=["no limit", "a limit"])
@pytest.mark.parametrize("late_s", [60, 0])
async def test_the_rest_is_cut_off_and_counted(tmp_path: Path, budget: Budget, late_s: float) -> None:
    model, started = Runner(late_s), time.monotonic()
    async with App(str(tmp_path / "store.db"), strategies={**STRATEGIES, "race": RACE}) as app:
        order = order_of(RACE, "go", RACE.options(), budget=budget)
        result = await app.solve(order, Performers(model))
        assert result.status == "done"
        assert result.usage.calls == 5
        if late_s:
            assert (result.answer, model.cut) == ("race1 race3 look_again0", 2)
            assert time.monotonic() - started < 20
        assert (await app.engine.replay(result.run_id))["replay"]["identical"] is True
        run = (await app.engine.read(result.run_id)).run
        assert run.usage.calls == 5


async def test_the_rest_is_counted_though_a_change_comes_while_it_is_cut_off(tmp_path: Path) -> None:
    store, strategies = str(tmp_path / "store.db"), {**STRATEGIES, "race": RACE}
    async with App(store, strategies=strategies) as app, App(store, strategies=strategies) as other:
        append = app.store.append

        async def append_after_a_change(run_id: str, *arguments: Any, **named: Any) -> None:
            app.store.append = append
            await other.engine.command(run_id, TermsChanged(Budget(seconds=3_600)))
            await append(run_id, *arguments, **named)

        app.store.append = append_after_a_change  # type: ignore[method-assign]
        result = await app.solve(order_of(RACE, "go", RACE.options()), Performers(Runner()))
        assert (result.answer, result.usage.calls) == ("race1 race3 look_again0", 5)
