"""Coached runs: the caller is the performer, and nothing else differs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reasonry.blocks.toolcard import ToolCard
from reasonry.core.budget import Budget
from reasonry.core.options import read_options
from reasonry.engine import engine as engine_module
from reasonry.engine.coach import CALLER, Coach
from reasonry.engine.coach_input import MAX_ANSWER_CHARS
from reasonry.engine.engine import Engine
from reasonry.engine.journal import Begun, ParticipantNames
from reasonry.engine.policy import Performers
from reasonry.errors import ConflictError, TooLargeError, UsageError
from reasonry.stores import open_store
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES

from ..playing import World
from .answering import after_crash, performers_of
from .playing import LOOP, CountingModel, by
from .running import accept, drive, order_of, take_over

pytestmark = pytest.mark.anyio

ALL = {**STRATEGIES, "loop": LOOP}
NOBODY = Performers(CountingModel(fault=lambda n: AssertionError("a coached run asks no model")))  # pyright: ignore


def coach() -> Coach:
    return Coach(Engine(MemoryStore(), ALL))


def order(budget: Budget | None = None, strategy: Any = LOOP, **options: Any) -> Begun:
    read = read_options(strategy, options)
    return order_of(strategy, "count", read, budget=budget or Budget(), participants=ParticipantNames(CALLER))


async def test_a_round_s_questions_come_together_and_the_answers_lead_to_the_result() -> None:
    coached = coach()
    shown = await coached.start(order(steps=2, width=3), NOBODY)
    assert [one["id"] for one in shown["questions"]] == ["e1", "e2", "e3"]
    answers = [{"id": one["id"], "answer": f"to {one['id']}"} for one in reversed(shown["questions"])]
    shown = await coached.answer(shown["run_id"], answers, by(NOBODY))
    assert [one["id"] for one in shown["questions"]] == ["e4", "e5", "e6"]
    answers = [{"id": one["id"], "answer": {"n": 1}} for one in shown["questions"]]
    shown = await coached.answer(shown["run_id"], answers, by(NOBODY))
    assert (shown["status"], shown["questions"]) == ("done", [])
    assert shown["result"]["answer"] == '{"n": 1}'
    assert await coached.status(shown["run_id"]) == shown


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        ("11", "11"),
        (" eleven balls\n", "eleven balls"),
        ({"answer": "11"}, "11"),
        ({"reasoning": "5 + 6 = 11.", "answer": 11}, "11"),
        ("They are <answer>11</answer> in all.", "11"),
        ("Answer: 11", "11"),
    ],
)
async def test_where_a_reply_reasons_the_answer_is_a_field_and_a_bare_line_is_taken_at_its_word(
    answer: Any, taken: str
) -> None:
    coached = coach()
    shown = await coached.start(order(strategy=STRATEGIES["chain_of_thought"]), NOBODY)
    (question,) = shown["questions"]
    assert "<answer>" not in question["prompt"]
    assert question["answer_schema"]["properties"].keys() == {"reasoning", "answer"}
    shown = await coached.answer(shown["run_id"], {question["id"]: answer}, by(NOBODY))
    assert (shown["status"], shown["result"]["answer"]) == ("done", taken)


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ([{"id": "e1", "answer": "a"}, {"id": "e1", "answer": "b"}], ConflictError),
        ([{"id": "e2", "answer": "a"}, {"id": "e9", "answer": "b"}], ConflictError),
        ([{"id": 1, "answer": "a"}], UsageError),
        ([{"id": "e1"}], UsageError),
        ([{"id": "e1", "answer": "\ud800"}], UsageError),
        ([{"id": "e1", "answer": object()}], UsageError),
        ([{"id": "e1", "answer": b"x"}], UsageError),
        ([{"id": "e1", "answer": {"n": float("nan")}}], UsageError),
        ([{"id": "e1", "answer": "x" * (MAX_ANSWER_CHARS + 1)}], TooLargeError),
    ],
)
async def test_a_refused_answer_takes_its_whole_batch_with_it(answers: Any, error: type[Exception]) -> None:
    coached = coach()
    shown = await coached.start(order(steps=1, width=2), NOBODY)
    with pytest.raises(error):
        await coached.answer(shown["run_id"], answers, by(NOBODY))
    assert await coached.status(shown["run_id"]) == shown


async def test_a_late_answer_is_refused() -> None:
    coached = coach()
    shown = await coached.start(order(), NOBODY)
    await coached.engine.cancel(shown["run_id"])
    assert (await coached.status(shown["run_id"]))["status"] == "cancelled"
    with pytest.raises(ConflictError, match="has ended"):
        await coached.answer(shown["run_id"], [{"id": "e1", "answer": "a"}], by(NOBODY))


@pytest.mark.parametrize("path", ["memory", "runs.db"])
async def test_answers_given_side_by_side_queue_up(path: str, tmp_path: Path) -> None:
    store = open_store(path if path == "memory" else str(tmp_path / path))
    coached = Coach(Engine(store, ALL))
    shown = await coached.start(order(steps=1, width=9), NOBODY)
    answers = [[{"id": one["id"], "answer": one["id"]}] for one in reversed(shown["questions"])]
    told = await asyncio.gather(*(coached.answer(shown["run_id"], one, by(NOBODY)) for one in answers))
    assert sorted(len(one["questions"]) for one in told) == list(range(9))
    assert (await coached.status(shown["run_id"]))["status"] == "done"
    await store.close()


async def test_answers_that_wait_too_long_may_be_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "QUEUE_S", 0.1)
    coached = coach()
    shown = await coached.start(order(steps=1), NOBODY)
    answers = [{"id": "e1", "answer": "x"}]
    async with coached.engine.store.drive(shown["run_id"]):
        with pytest.raises(ConflictError, match="try again later") as refused:
            await coached.answer(shown["run_id"], answers, by(NOBODY))
    assert refused.value.retryable
    assert (await coached.answer(shown["run_id"], answers, by(NOBODY)))["status"] == "done"


async def test_answers_to_a_run_that_a_model_drives_are_refused_at_once() -> None:
    coached = coach()
    engine = coached.engine
    run_id = await accept(engine, replace(order(steps=1), participants=ParticipantNames("counting")))
    driving = asyncio.create_task(drive(engine, run_id, Performers(CountingModel(latency_s=0.2))))
    await asyncio.sleep(0.05)
    with pytest.raises(ConflictError, match="being driven"):
        await coached.answer(run_id, [{"id": "e1", "answer": "x"}], by(NOBODY))
    assert not driving.done()
    assert (await driving).status == "done"


@pytest.mark.parametrize("go_on", ["answer", "take_over"])
async def test_a_run_killed_during_a_tool_call_says_so_and_goes_on(go_on: str) -> None:
    react, participants = STRATEGIES["react"], performers_of(World(0))
    coached = coach()
    card = ToolCard("search", "Finds things.", {"type": "object"})
    shown = await coached.start(order(strategy=react, tools=(card,)), participants)
    assert "note" not in shown
    run_id = shown["run_id"]
    action = {"thought": "t", "actions": [{"tool": "search", "arguments": {"query": "x"}}]}
    whole = await coached.answer(run_id, [{"id": "e1", "answer": action}], by(participants))
    lines = await coached.engine.store.lines(run_id)
    found = Coach(await after_crash(coached.engine.store, run_id, lines[:2]))
    shown = await found.status(run_id)
    assert (shown["status"], shown["questions"]) == ("active", [])
    assert "no answers continues" in shown["note"]
    shown = await (
        found.answer(run_id, [], by(participants))
        if go_on == "answer"
        else take_over(found.engine, run_id, participants)
    )
    assert shown == whole
