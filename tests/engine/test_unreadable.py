"""A run that failed because a reply stayed unreadable continues like after any failure of the world."""

from typing import Any

import pytest
from msgspec.structs import replace

from reasonry.core.events import Answered, Event
from reasonry.core.machine import Pending
from reasonry.core.strategy import Strategy
from reasonry.engine import journal
from reasonry.engine.coach import Coach
from reasonry.engine.engine import Engine
from reasonry.engine.journal import ParticipantNames
from reasonry.engine.run import fold
from reasonry.strategies import STRATEGIES

from ..playing import World
from ..test_every_strategy import each_driven, options, world
from .answering import at_any_pace, coach_on, engine, order, performers_of, record_answers
from .running import accept, drive, fork, resume, take_over, trace_of

pytestmark = pytest.mark.anyio

SAME = ("status", "answer", "termination", "path", "thoughts", "best", "candidates", "tree")
HEARS_ALL = {"self_consistency", "best_of_n", "refine", "program_of_thought", "council", "cascade"}
"""Strategies of several drafts: each stage hears of a question that stays unanswered, and none ends the run."""


class Tireless(World):
    """Answers each try of a question alike, but for those that it never answers."""

    unanswered: tuple[str, ...] = ()

    def answer(self, one: Pending) -> Event:
        first = first_try(one.id)
        event = super().answer(replace(one, id=first))
        return Answered("", event.at_ms) if first in self.unanswered else event


def first_try(effect_id: str) -> str:
    outer, slash, own = effect_id.rpartition("/")
    return outer + slash + own.partition(".")[0]


def leaving_open(answers: World, *questions: str) -> Tireless:
    tireless = Tireless(answers.seed, 0.0, answers.examples)
    tireless.unanswered = questions
    return tireless


async def ended(engines: Engine, run_id: str) -> dict[str, Any]:
    trace = await trace_of(engines, run_id)
    return at_any_pace({name: trace[name] for name in SAME})


async def failing(strategy: Strategy[Any, Any], answers: World, question: str) -> tuple[Engine, str] | None:
    """Return a run that failed because this question was never answered."""
    engines = engine()
    run_id = await accept(engines, order(strategy, options(strategy, answers.seed)))
    result = await drive(engines, run_id, performers_of(leaving_open(answers, question), free=True))
    entries, _ = journal.read(run_id, await engines.store.lines(run_id))
    # A failure that its stage hears ends nothing; what comes of it later, in another stage, is another failure.
    before, after = (fold(entries[:-end], STRATEGIES).snapshot for end in (2, 1))
    ended_it = after.stage == before.stage and question in {first_try(one.id) for one in before.pending}
    return (engines, run_id) if result.termination.code == "output_invalid" and ended_it else None


@pytest.mark.slow
@each_driven
async def test_whatever_question_stayed_unanswered_the_run_goes_on_to_the_end_it_would_have_had(
    strategy: Strategy[Any, Any],
) -> None:
    taken_up = 0
    for seed in range(2):
        answers = world(strategy, seed, 0.0)
        engines = engine()
        run_id = await accept(engines, order(strategy, options(strategy, seed)))
        await drive(engines, run_id, performers_of(leaving_open(answers), free=True))
        whole = await ended(engines, run_id)
        asked = [
            (one["stage"], first_try(one["id"])) for one in (await trace_of(engines, run_id))["questions"]
        ]
        # The first and the last question of each stage.
        for question in {*dict(asked).values(), *dict(reversed(asked)).values()}:
            for coached in (False, True):
                failed = await failing(strategy, answers, question)
                if failed is None:
                    continue
                taken_up += 1
                engines, other = failed
                before = len((await trace_of(engines, other))["events"])
                if coached:
                    await coach_on(engines, other, leaving_open(answers))
                else:
                    await resume(
                        engines,
                        other,
                        performers_of(leaving_open(answers), free=True),
                        participants=ParticipantNames("world"),
                    )
                assert await ended(engines, other) == whole
                assert (await engines.replay(other))["replay"]["identical"] is True
                events = [one["id"] for one in (await trace_of(engines, other))["events"]]
                assert len(set(events)) == len(events)
                assert any(one.startswith(f"{question}.") for one in events[before:])
                forked = await fork(engines, other, None, len(events))
                assert await ended(engines, forked) == whole
    assert bool(taken_up) == (strategy.name not in HEARS_ALL)


async def test_each_time_it_is_taken_up_a_question_has_fresh_tries() -> None:
    strategy = STRATEGIES["scratchpad"]
    nobody, engines = performers_of(World(0)), engine()
    coach = Coach(engines)
    shown = await coach.start(order(strategy, strategy.options()), nobody)
    run_id = shown["run_id"]
    for number in range(1, 10):
        (question,) = shown["questions"]
        assert question["id"] == ("e1" if number == 1 else f"e1.{number}")
        tries = (number - 1) % 3 + 1
        assert question["prompt"].endswith(f"(This is try {tries} of 3.)") == (tries > 1)
        shown = await record_answers(engines, run_id, {question["id"]: f"typo {number}"}, nobody)
        assert shown["status"] == ("failed" if tries == 3 else "active")
        if tries == 3:
            shown = await take_over(engines, run_id, nobody)
    assert "Answer the question again" in shown["questions"][0]["prompt"]
