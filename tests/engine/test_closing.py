"""Runs that a limit closes: crashes, more calls afterwards, runs inside, and limits on tokens, dollars and seconds."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.core.budget import Budget
from reasonry.core.events import Answered, Closing, Stopped, Usage
from reasonry.core.machine import LAST_QUESTION
from reasonry.core.options import read_options
from reasonry.core.strategy import Strategy
from reasonry.engine import drive as driving
from reasonry.engine.coach import Coach
from reasonry.engine.engine import Engine
from reasonry.engine.journal import CALLER, CallIntended, Chain, Entry, ParticipantNames, Settled, decode
from reasonry.engine.policy import Performers
from reasonry.engine.ports import OnText, Question
from reasonry.engine.result import Result
from reasonry.records import Line
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES
from reasonry.strategies.react import REACT

from ..playing import World
from ..test_every_strategy import each_driven, options, world
from .answering import after_crash, engine, is_same, order, performers_of, record
from .playing import CountingModel, by
from .running import accept, drive, fork, order_and_solve, resume, take_over

pytestmark = pytest.mark.anyio

ENDLESS = '{"thought": "more", "actions": [{"tool": "echo", "arguments": {"text": "x"}}]}'
ANSWER = "It is known.\n<answer>7</answer>"


class Tools:
    """Return what they are given."""

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        return arguments


def endless(question: Question) -> str:
    return ANSWER if LAST_QUESTION in question.ask.question else ENDLESS.replace("x", question.id)


CARD = {"name": "echo", "description": "Echo.", "parameters": {"type": "object"}}


async def reacted(
    budget: Budget, usage: Usage | None = None, model: CountingModel | None = None, **options: Any
) -> tuple[Result, CountingModel]:
    """Drive a run that never comes to an answer by itself."""
    model, engines = model or CountingModel(usage=usage, reply=endless), engine()
    chosen = read_options(REACT, {"tools": [CARD], "max_steps": 1000, **options})
    run_id = await accept(engines, order(REACT, chosen, budget))
    return await drive(engines, run_id, Performers(model, tools=Tools())), model


async def closed(
    strategy: Strategy[Any, Any], answers: World, calls: int | None
) -> tuple[Engine, str, Result]:
    engines = engine()
    run_id = await accept(engines, order(strategy, options(strategy, 1), Budget(calls=calls)))
    return engines, run_id, await drive(engines, run_id, performers_of(answers))


async def closed_early(
    strategy: Strategy[Any, Any], answers: World, below: int
) -> AsyncIterator[tuple[int, Engine, str, Result, Result]]:
    """Yield each number of calls that ends a run early, its engine, its id, its result and the usual result."""
    *_, usual = await closed(strategy, answers, None)
    for calls in range(1, min(usual.usage.calls, below)):
        engines, run_id, early = await closed(strategy, answers, calls)
        if early.termination.reason == "max_calls":
            yield calls, engines, run_id, early, usual


def ending(result: Result) -> tuple[Any, ...]:
    return result.answer, result.outcome, result.termination


def cuts(run_id: str, lines: Sequence[Line]) -> list[int]:
    """Return after how many lines nothing is out that was paid for, and the run has not ended."""
    out, found = 0, list[int]()
    entries: list[Entry] = list(decode(Chain(run_id), lines))
    for number, entry in enumerate(entries[:-1], 1):
        if isinstance(entry, CallIntended):
            out += 1
        elif isinstance(entry, Settled):
            out -= getattr(getattr(entry.event, "usage", None), "calls", 0)
        if out <= 0 and number < len(entries) - 1:
            found.append(number)
    return found


@each_driven
async def test_a_crash_at_any_line_of_a_run_that_is_closed_changes_nothing(
    strategy: Strategy[Any, Any],
) -> None:
    answers = world(strategy, 1, 0.0)
    _, _, usual = await closed(strategy, answers, None)
    for calls in range(1, min(usual.usage.calls, 6) + 1):
        engines, run_id, _ = await closed(strategy, answers, calls)
        whole, lines = await record(engines, run_id), await engines.store.lines(run_id)
        for number in cuts(run_id, lines):
            after = await after_crash(engines.store, run_id, list(lines[:number]))
            await resume(after, run_id, performers_of(answers))
            assert is_same(await record(after, run_id), whole), (calls, number)


@each_driven
async def test_with_more_calls_a_closed_run_ends_as_one_that_always_had_them(
    strategy: Strategy[Any, Any],
) -> None:
    answers = world(strategy, 1, 0.0)
    async for _, engines, run_id, _, usual in closed_early(strategy, answers, 8):
        after = await resume(engines, run_id, performers_of(answers), budget=Budget())
        assert ending(after) == ending(usual)
        assert not any("by then" in warning for warning in after.warnings)


@each_driven
async def test_a_fork_before_the_closing_goes_its_own_way_and_one_after_it_is_closed_as_well(
    strategy: Strategy[Any, Any],
) -> None:
    answers = world(strategy, 1, 0.0)
    async for calls, engines, run_id, early, usual in closed_early(strategy, answers, 4):
        recorded = await engines.recorded_run(run_id)
        taken = [entry.event for entry in recorded.entries if isinstance(entry, Settled)]
        if isinstance(taken[-1], Stopped):
            continue
        first = next(place for place, event in enumerate(taken) if isinstance(event, Closing))
        last = max(place for place, event in enumerate(taken) if isinstance(event, Closing))
        for at in range(len(taken) + 1):
            forked = await fork(engines, run_id, replace(recorded.begun, budget=Budget()), at)
            result = await drive(engines, forked, performers_of(answers))
            if at <= first or at > last:
                assert ending(result) == ending(usual if at <= first else early), (calls, at)
            assert (await engines.replay(forked))["replay"]["identical"] is True


@each_driven
async def test_a_fork_of_a_run_whose_closing_was_lifted_takes_over_no_answer_of_it(
    strategy: Strategy[Any, Any],
) -> None:
    answers = world(strategy, 1, 0.0)
    async for _, engines, run_id, _, usual in closed_early(strategy, answers, 3):
        await resume(engines, run_id, performers_of(answers), budget=Budget())
        whole = await engines.record(run_id)
        places, count = whole.fork_points()
        lifted = {event["id"] for event in whole.entries("events") if event.get("lifted")}
        assert not lifted & places.keys()
        for effect_id, at in [*places.items(), ("", count)]:
            forked = await fork(engines, run_id, None, at)
            run = (await engines.read(forked)).run
            assert not effect_id or effect_id in [pending.id for pending in run.open_effects]
            assert ending(await drive(engines, forked, performers_of(answers))) == ending(usual)


async def test_a_vote_over_runs_that_use_tools_is_answered_within_its_calls() -> None:
    for name, calls in (("best_of_n", 6), ("best_of_n", 3), ("self_consistency", 5), ("council", 4)):
        strategy, model = STRATEGIES[name], CountingModel(reply=endless)
        inside = {"over": "react", "over_options": {"tools": [CARD]}}
        chosen = read_options(strategy, inside | ({"n": 4} if name == "best_of_n" else {}))
        engines = Engine(MemoryStore(), STRATEGIES)
        run_id = await accept(engines, order(strategy, chosen, Budget(calls=calls)))
        result = await drive(engines, run_id, Performers(model, tools=Tools()))
        assert (result.outcome, result.answer) == ("answered", "7"), name
        assert model.calls == result.usage.calls <= calls


@pytest.mark.parametrize(
    ("budget", "reason", "limit"),
    [
        *((Budget(tokens=most), "max_tokens", f"{most} tokens") for most in (600, 1_500, 4_000)),
        *((Budget(usd=most), "max_usd", f"{most:g} US dollars") for most in (0.03, 0.1)),
    ],
)
async def test_a_limit_on_tokens_or_dollars_leaves_room_for_the_answer(
    budget: Budget, reason: str, limit: str
) -> None:
    result, model = await reacted(budget, Usage(input_tokens=100, output_tokens=30, usd=0.004))
    assert (result.outcome, result.answer, result.termination.reason) == ("answered", "7", reason)
    assert f"the limit of {limit}" in result.termination.detail
    assert result.usage.tokens <= (budget.tokens or 10**9)
    assert (result.usage.usd or 0) <= (budget.usd or 10**9)
    assert model.calls > 1


async def test_where_the_last_question_cannot_be_paid_the_run_is_stopped() -> None:
    result, _ = await reacted(Budget(usd=0.002), Usage(input_tokens=100, output_tokens=30, usd=0.004))
    assert (result.outcome, result.answer, result.termination.reason) == ("stopped", None, "max_usd")
    assert result.best_answer is None


class Noting(CountingModel):
    """Never comes to an answer, and notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(reply=endless)
        self.asked, self.told = list[Question](), list[str]()

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        self.asked.append(question)
        self.told.append(question.ask.text)
        return await super().answer(question, on_text)


class Stuck(CountingModel):
    """Answers nothing but the last question."""

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        if LAST_QUESTION not in question.ask.question:
            self.calls += 1
            await asyncio.Event().wait()
        return await super().answer(question, on_text)


async def test_a_limit_on_time_leaves_a_part_of_it_for_the_answer_and_counts_what_it_cuts_off() -> None:
    result, model = await reacted(Budget(seconds=4), model=Stuck(reply=endless))
    assert (result.outcome, result.answer, result.termination.reason) == ("answered", "7", "max_seconds")
    assert model.calls == result.usage.calls == 2


async def test_a_run_that_begins_in_the_time_for_its_answer_is_closed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driving, "CLOSING_SHARE", 1.0)
    result, model = await reacted(Budget(seconds=60))
    assert (result.outcome, result.answer, result.termination.reason) == ("answered", "7", "max_seconds")
    assert model.calls == 1


async def test_a_budget_that_closes_no_run_stops_it() -> None:
    result, model = await reacted(Budget(calls=3, closes=False))
    assert (result.outcome, result.answer, model.calls) == ("stopped", None, 3)


async def test_the_last_question_says_so_before_its_task_and_an_early_answer_says_so_first() -> None:
    model = Noting()
    result, _ = await reacted(Budget(calls=3), model=model)
    *before, last = model.told
    assert not any(LAST_QUESTION in text for text in before)
    assert LAST_QUESTION in last
    assert not last.endswith(LAST_QUESTION)
    assert model.asked[-1].id.startswith("c1e")
    assert result.warnings[0] == (
        "answered from what was known by then: reached the limit of 3 calls; to let it work further, resume it with "
        "a higher limit"
    )
    assert msgspec.json.decode(msgspec.json.encode(result.document()))["termination"]["reason"] == "max_calls"


def turns_told(asked: list[str]) -> list[str]:
    """Return what the last observation of each question says of the turns left."""
    return [text.rpartition("Turns left before the answer is due: ")[2][:1] for text in asked]


async def test_a_fork_is_told_how_many_calls_it_has_itself() -> None:
    model, engines, chosen = Noting(), engine(), read_options(REACT, {"tools": [CARD], "max_steps": 1000})
    run_id = await accept(engines, order(REACT, chosen, Budget(calls=6)))
    await drive(engines, run_id, Performers(CountingModel(reply=endless), tools=Tools()))
    forked = await fork(engines, run_id, None, 8)
    run = (await engines.read(forked)).run
    assert (run.usage.calls, run.reused.calls, run.snapshot.calls_left) == (0, 4, 6)
    result = await drive(engines, forked, Performers(model, tools=Tools()))
    assert len(model.told) == result.usage.calls == 6
    assert "Turns left" not in model.told[1]
    assert turns_told(model.told[3:5]) == ["2", "1"]


@pytest.mark.parametrize(
    ("limit", "outcome"), [(0.05, "answered"), (0.07, "answered"), (0.01, "stopped"), (100, "answered")]
)
async def test_an_analysis_closes_at_its_cost_limit_as_at_any_other(limit: float, outcome: str) -> None:
    async with App("memory", strategies=STRATEGIES, environ={}) as app:
        model, chosen = performers_of(world(STRATEGIES["analysis"], 1, 0.0)).model, {"cost_limit": limit}
        result = await order_and_solve(app, "2 + 2?", "analysis", model=model, options=chosen)
        assert result.outcome == outcome
        assert (result.usage.usd or 0) <= limit
        if limit < 1:
            assert result.termination.reason == "max_usd"
            assert any("by then" in warning for warning in result.warnings) is (outcome == "answered")
        if limit < 1 and outcome == "answered":
            reached = f"answered from what was known by then: reached the limit of {limit} US dollars"
            assert result.warnings[0].startswith(reached)
            assert result.warnings[0].endswith("; to let it work further, resume it with a higher limit")
            further = await app.resume(result.run_id, Participants(model=model), Budget(usd=100))
            assert further.usage.calls > result.usage.calls
            assert further.termination.reason != "max_usd"


@pytest.mark.parametrize("brief", [False, True])
async def test_a_caller_is_told_at_the_start_that_the_strategy_needs_more_calls(brief: bool) -> None:
    engines, performers = engine(), Performers(CountingModel(), tools=Tools())
    told = "react needs more calls"
    begun = replace(
        order(REACT, read_options(REACT, {"tools": [CARD]}), Budget(calls=3)),
        warnings=(told,),
        participants=ParticipantNames(CALLER),
    )
    coach = Coach(engines, brief)
    shown = await coach.start(begun, performers)
    assert told in shown["note"]
    shown = await coach.answer(shown["run_id"], {"e1": ENDLESS}, by(performers))
    assert shown["questions"]
    assert told not in shown.get("note", "")


async def test_a_coached_run_hands_out_its_last_question_and_ends_with_the_answer() -> None:
    engines = engine()
    chosen = read_options(REACT, {"tools": [CARD], "max_steps": 1000})
    run_id = await accept(engines, order(REACT, chosen, Budget(calls=3)))
    performers, coach, prompts = Performers(CountingModel(), tools=Tools()), Coach(engines), list[str]()
    shown = await take_over(engines, run_id, performers)
    while shown["questions"]:
        (question,) = shown["questions"]
        prompts.append(question["prompt"])
        text = ANSWER if LAST_QUESTION in question["prompt"] else ENDLESS.replace("x", question["id"])
        shown = await coach.answer(run_id, {question["id"]: text}, by(performers))
    assert [LAST_QUESTION in prompt for prompt in prompts] == [False, False, True]
    assert (shown["result"]["outcome"], shown["result"]["answer"]) == ("answered", "7")
    assert shown["result"]["termination"]["reason"] == "max_calls"
    assert shown["result"]["warnings"][0].startswith("answered from what was known by then")
