"""A coached run keeps the limits of a driven one, in whatever way its answers come in."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from reasonry.core.budget import Budget
from reasonry.core.events import Answered, Event
from reasonry.core.machine import Pending, Step
from reasonry.core.options import read_options
from reasonry.core.strategy import Strategy
from reasonry.engine.coach import Coach
from reasonry.engine.engine import Engine
from reasonry.engine.journal import CALLER, ParticipantNames
from reasonry.engine.observer import Observer
from reasonry.engine.policy import Policy
from reasonry.engine.ports import OnText, Question
from reasonry.engine.run import Run
from reasonry.errors import ConflictError
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES

from ..playing import World
from ..test_every_strategy import each_driven, options, world
from .answering import WorldModel, coach_on, engine, is_same, order, performers_of, record, record_answers
from .playing import LOOP, by
from .running import accept, drive

pytestmark = pytest.mark.anyio

Pick = Callable[[list[Any]], list[Any]]
"""Of the questions handed out, those answered in the next call, in this order."""

NOBODY = performers_of(World(0))

DELIVERIES: dict[str, Pick] = {
    "one by one": lambda asked: asked[:1],
    "all at once": lambda asked: asked,
    "all at once, the last first": lambda asked: asked[::-1],
    "two by two": lambda asked: asked[:2],
}
LIMITS = {name: [Budget(**{name: most}) for most in (1, 2, 4, 7)] for name in ("calls", "thoughts", "nodes")}


class Mumbling(World):
    """Replies that cannot be read now and then, and no other faults."""

    def answer(self, one: Pending) -> Event:
        rng = random.Random(f"{self.seed} mumbles {one.id}")
        event = World(self.seed, 0.0, self.examples).answer(one)
        mumbles = isinstance(event, Answered) and rng.random() < self.hostility
        return Answered("{{{[", event.at_ms) if mumbles else event


class Patient(WorldModel):
    """A model that answers once its answer before is recorded."""

    given = recorded = 0

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        while self.recorded < self.given:
            await asyncio.sleep(0)
        self.given += 1
        return await super().answer(question)


class Recorder(Observer):
    """Tells a model what is recorded."""

    def __init__(self, model: Patient) -> None:
        self.model = model

    def stepped(self, run: Run, step: Step) -> None:
        self.model.recorded = run.counts.answered


async def driven(strategy: Strategy[Any, Any], chosen: Any, answers: World, budget: Budget) -> dict[str, Any]:
    """Drive a run whose answers arrive one after the other: a limit cuts off what comes after it."""
    engines = Engine(MemoryStore(), STRATEGIES, Policy(max_concurrency=1))
    run_id = await accept(engines, order(strategy, chosen, budget))
    model = Patient(answers, free=True)
    await drive(engines, run_id, replace(performers_of(answers), model=model), Recorder(model))
    return await record(engines, run_id)


async def coached(
    strategy: Strategy[Any, Any], chosen: Any, answers: World, budget: Budget, pick: Pick
) -> dict[str, Any]:
    engines = engine()
    run_id = await accept(engines, order(strategy, chosen, budget))
    shown = await coach_on(engines, run_id, answers, pick=pick)
    assert shown["questions"] == []
    return await record(engines, run_id)


async def check_limits(strategy: Strategy[Any, Any], chosen: Any, answers: World) -> None:
    """Make sure that under each limit a coached run ends as a driven one."""
    for name, budgets in LIMITS.items():
        for budget in budgets:
            end = await driven(strategy, chosen, answers, budget)
            for pick in DELIVERIES.values():
                batches = Batches(pick)
                assert is_same(await coached(strategy, chosen, answers, budget, batches), end)
                if batches.most < 2 or (hasattr(chosen, "over") and chosen.verify):
                    # With one question at a time there is one way to deliver the answers. Where each draft is verified
                    # by itself, the answers of one call come before any verdict on them.
                    break
            if end["termination"]["reason"] != f"max_{name}":
                # What was not too much for this limit is not for a wider one.
                break


@pytest.mark.slow
@each_driven
async def test_with_the_same_answers_and_the_same_budget_a_coached_run_ends_as_a_driven_one(
    strategy: Strategy[Any, Any],
) -> None:
    for seed in range(2):
        answers = Mumbling(seed, 0.2 * seed, world(strategy, seed, 0.0).examples)
        await check_limits(strategy, options(strategy, seed), answers)


class Batches:
    """Picks, and remembers of how many questions at most."""

    most = 0

    def __init__(self, pick: Pick) -> None:
        self.pick = pick

    def __call__(self, asked: list[Any]) -> list[Any]:
        self.most = max(self.most, len(asked))
        return self.pick(asked)


async def test_only_as_many_questions_are_handed_out_as_the_calls_cover() -> None:
    coach = Coach(Engine(MemoryStore(), {"loop": LOOP}))
    shown = await coach.start(order(LOOP, LOOP.options(steps=2, width=3), Budget(calls=4)), NOBODY)
    assert [one["id"] for one in shown["questions"]] == ["e1", "e2", "e3"]
    answers = [{"id": one["id"], "answer": "x"} for one in shown["questions"]]
    shown = await coach.answer(shown["run_id"], answers, by(NOBODY))
    assert [one["id"] for one in shown["questions"]] == ["e4"]
    for not_handed_out in (["e5"], ["e4", "e5"]):
        answers = [{"id": one, "answer": "x"} for one in not_handed_out]
        with pytest.raises(ConflictError, match=r"e5 is not handed out.*questions waiting: e4"):
            await coach.answer(shown["run_id"], answers, by(NOBODY))
    assert await coach.status(shown["run_id"]) == shown
    shown = await coach.answer(shown["run_id"], [{"id": "e4", "answer": "x"}], by(NOBODY))
    assert (shown["status"], shown["questions"]) == ("done", [])
    assert (shown["result"]["termination"]["reason"], shown["result"]["usage"]["calls"]) == ("max_calls", 4)


async def test_a_question_handed_out_stays_so_when_another_is_asked_again() -> None:
    strategy = STRATEGIES["self_consistency"]
    engines = engine()
    begun = order(strategy, strategy.options(), Budget(calls=3))
    shown = await Coach(engines).start(replace(begun, participants=ParticipantNames(CALLER)), NOBODY)
    first, *others = [one["id"] for one in shown["questions"]]
    shown = await record_answers(engines, shown["run_id"], {first: "mumble"}, NOBODY)
    assert [one["id"] for one in shown["questions"]] == others


async def test_answers_beyond_a_limit_on_thoughts_are_not_taken() -> None:
    strategy = STRATEGIES["self_consistency"]
    read, coach = read_options(strategy, {"over": "scratchpad"}), Coach(engine())
    shown = await coach.start(order(strategy, read, Budget(thoughts=2)), NOBODY)
    begun = {"stateVariables": {"a": 1}}
    answers = [{"id": one["id"], "answer": begun} for one in reversed(shown["questions"])]
    shown = await coach.answer(shown["run_id"], answers, by(NOBODY))
    assert shown["result"]["termination"]["reason"] == "max_thoughts"
    assert (shown["progress"]["thoughts"], shown["progress"]["answered"]) == (2, 2)


async def test_limits_hold_alike_for_runs_inside_a_run() -> None:
    strategy = STRATEGIES["self_consistency"]
    chosen = read_options(strategy, {"over": "scratchpad", "samples": 4})
    await check_limits(strategy, chosen, world(STRATEGIES["scratchpad"], 1, 0.0))
