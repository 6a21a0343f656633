"""Runs that a limit closes: crashes, more calls afterwards, runs inside, and limits on tokens, dollars and seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from reasonry.core.budget import Budget
from reasonry.core.events import Answered, Usage
from reasonry.core.machine import LAST_QUESTION
from reasonry.core.options import read_options
from reasonry.core.strategy import Strategy
from reasonry.engine.engine import Engine
from reasonry.engine.journal import CallIntended, Chain, Entry, Settled, decode
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
from .playing import CountingModel
from .running import accept, drive, resume

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


async def reacted(budget: Budget, usage: Usage | None = None) -> tuple[Result, CountingModel]:
    """Drive a run that never comes to an answer by itself."""
    model, engines = CountingModel(usage=usage, reply=endless), engine()
    chosen = read_options(REACT, {"tools": [CARD], "max_steps": 1000})
    run_id = await accept(engines, order(REACT, chosen, budget))
    return await drive(engines, run_id, Performers(model, tools=Tools())), model


async def closed(
    strategy: Strategy[Any, Any], answers: World, calls: int | None
) -> tuple[Engine, str, Result]:
    engines = engine()
    run_id = await accept(engines, order(strategy, options(strategy, 1), Budget(calls=calls)))
    return engines, run_id, await drive(engines, run_id, performers_of(answers))


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
    *_, usual = await closed(strategy, answers, None)
    for calls in range(1, min(usual.usage.calls, 8)):
        engines, run_id, early = await closed(strategy, answers, calls)
        if early.termination.reason != "max_calls":
            continue
        after = await resume(engines, run_id, performers_of(answers), budget=Budget())
        assert (after.answer, after.outcome, after.termination) == (
            usual.answer,
            usual.outcome,
            usual.termination,
        )
        assert not any("by then" in warning for warning in after.warnings)


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


@pytest.mark.parametrize("tokens", [600, 1_500, 4_000])
async def test_a_limit_on_tokens_leaves_room_for_the_answer(tokens: int) -> None:
    result, model = await reacted(Budget(tokens=tokens), Usage(input_tokens=100, output_tokens=30))
    assert (result.outcome, result.answer) == ("answered", "7")
    assert result.termination.reason == "max_tokens"
    assert f"the limit of {tokens} tokens" in result.termination.detail
    assert result.usage.tokens <= tokens
    assert model.calls > 1


@pytest.mark.parametrize("usd", [0.03, 0.1])
async def test_a_limit_on_dollars_leaves_room_for_the_answer(usd: float) -> None:
    result, _ = await reacted(Budget(usd=usd), Usage(input_tokens=100, output_tokens=30, usd=0.004))
    assert (result.outcome, result.answer, result.termination.reason) == ("answered", "7", "max_usd")
    assert f"the limit of {usd:g} US dollars" in result.termination.detail
    assert (result.usage.usd or 0) <= usd


async def test_where_the_last_question_cannot_be_paid_the_run_is_stopped() -> None:
    result, _ = await reacted(Budget(usd=0.002), Usage(input_tokens=100, output_tokens=30, usd=0.004))
    assert (result.outcome, result.answer, result.termination.reason) == ("stopped", None, "max_usd")
    assert result.best_answer is None


class Stuck(CountingModel):
    """Answers nothing but the last question."""

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        if LAST_QUESTION not in question.ask.question:
            self.calls += 1
            await asyncio.Event().wait()
        return await super().answer(question, on_text)


async def test_a_limit_on_time_leaves_a_part_of_it_for_the_answer_and_counts_what_it_cuts_off() -> None:
    model, engines = Stuck(reply=endless), engine()
    run_id = await accept(engines, order(REACT, read_options(REACT, {"tools": [CARD]}), Budget(seconds=4)))
    result = await drive(engines, run_id, Performers(model, tools=Tools()))
    assert (result.outcome, result.answer, result.termination.reason) == ("answered", "7", "max_seconds")
    assert model.calls == result.usage.calls == 2


async def test_a_budget_that_closes_no_run_stops_it() -> None:
    result, model = await reacted(Budget(calls=3, closes=False))
    assert (result.outcome, result.answer, model.calls) == ("stopped", None, 3)


async def test_the_last_question_says_so_before_its_task_and_an_early_answer_says_so_first() -> None:
    asked: list[Question] = []

    def reply(question: Question) -> str:
        asked.append(question)
        return endless(question)

    engines = engine()
    run_id = await accept(engines, order(REACT, read_options(REACT, {"tools": [CARD]}), Budget(calls=3)))
    result = await drive(engines, run_id, Performers(CountingModel(reply=reply), tools=Tools()))
    *before, last = [question.ask.text for question in asked]
    assert not any(LAST_QUESTION in text for text in before)
    assert LAST_QUESTION in last
    assert not last.endswith(LAST_QUESTION)
    assert asked[-1].id.startswith("c1e")
    assert result.warnings[0] == (
        "answered from what was known by then: the limit of 3 calls is reached; to let it work further, resume it with "
        "a higher limit"
    )
    assert msgspec.json.decode(msgspec.json.encode(result.document()))["termination"]["reason"] == "max_calls"
