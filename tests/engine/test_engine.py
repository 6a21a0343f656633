"""The engine over the memory store: runs end, limits are hard, nothing recorded is asked again."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Generator
from typing import Any

import pytest
from msgspec import structs

from reasonry.core.bodies import Conclusion, Move, Request, Thought
from reasonry.core.budget import Budget
from reasonry.core.events import Usage
from reasonry.core.options import read_options
from reasonry.core.strategy import Stage
from reasonry.engine.engine import Engine
from reasonry.engine.journal import Begun, ParticipantNames
from reasonry.engine.policy import Performers, Policy
from reasonry.errors import ConflictError, ModelError, NotFoundError, StoreError
from reasonry.stores.sqlite import MemoryStore

from .playing import LOOP, STRATEGIES, CountingModel, Seen
from .running import accept, drive, fork, order_of, resume, trace_of

pytestmark = pytest.mark.anyio

QUICK = Policy(backoff_s=0.001, max_backoff_s=0.002)


def order(budget: Budget | None = None, **options: Any) -> Begun:
    return order_of(
        LOOP,
        "count",
        read_options(LOOP, options),
        budget=budget or Budget(),
        participants=ParticipantNames("counting"),
    )


def engine(policy: Policy = QUICK) -> Engine:
    return Engine(MemoryStore(), STRATEGIES, policy)


async def test_a_run_ends_with_its_last_text_and_says_what_it_took() -> None:
    model, engines = CountingModel(usage=Usage(input_tokens=3, output_tokens=2)), engine()
    run_id = await accept(engines, order(steps=20))
    result = await drive(engines, run_id, Performers(model))
    assert (result.status, result.answer) == ("done", "count 19 of e20")
    assert result.usage == Usage(calls=20, input_tokens=60, output_tokens=40)
    assert result.rounds == 20
    assert (await engines.store.run(run_id)).status == "done"


async def test_independent_calls_run_side_by_side_up_to_the_bound() -> None:
    model, engines = CountingModel(latency_s=0.01), engine(Policy(max_concurrency=5))
    result = await drive(engines, await accept(engines, order(steps=1, width=12)), Performers(model))
    assert (model.most_in_flight, model.calls, result.rounds) == (5, 12, 1)


async def test_a_limit_of_ten_calls_with_thirty_wanted_at_once_sends_exactly_ten() -> None:
    model, engines = CountingModel(latency_s=0.005), engine(Policy(max_concurrency=30))
    run_id = await accept(engines, order(Budget(calls=10), steps=1, width=30))
    result = await drive(engines, run_id, Performers(model))
    assert (model.calls, result.usage.calls) == (10, 10)
    assert (result.status, result.termination.reason) == ("failed", "max_calls")


async def test_a_limit_ends_the_run_with_the_best_so_far() -> None:
    model, engines = CountingModel(), engine()
    result = await drive(engines, await accept(engines, order(Budget(calls=7), steps=20)), Performers(model))
    assert (result.status, result.termination.reason, model.calls) == ("done", "max_calls", 7)
    assert (result.outcome, result.answer, result.best_answer) == ("stopped", None, "count 6 of e7")


@pytest.mark.parametrize(
    ("budget", "usage", "reason", "calls"),
    [
        (Budget(tokens=100), Usage(output_tokens=30), "max_tokens", 3),
        (Budget(usd=0.25), Usage(usd=0.1), "max_usd", 3),
    ],
)
async def test_tokens_and_dollars_are_passed_by_one_call_at_most(
    budget: Budget, usage: Usage, reason: str, calls: int
) -> None:
    model, engines = CountingModel(latency_s=0.002, usage=usage), engine(Policy(max_concurrency=30))
    result = await drive(engines, await accept(engines, order(budget, steps=1, width=30)), Performers(model))
    assert (result.termination.reason, model.calls) == (reason, calls)


async def test_seconds_cut_a_call_in_flight() -> None:
    model, engines = CountingModel(latency_s=5), engine()
    run_id = await accept(engines, order(Budget(seconds=0.05)))
    result = await asyncio.wait_for(drive(engines, run_id, Performers(model)), 2)
    assert (result.status, result.termination.reason) == ("failed", "max_seconds")
    assert result.usage.calls == 1
    assert model.in_flight == 0


async def test_thoughts_are_limited() -> None:
    engines = engine()
    result = await drive(
        engines, await accept(engines, order(Budget(thoughts=3))), Performers(CountingModel())
    )
    assert (result.termination.reason, result.usage.calls) == ("max_thoughts", 3)


async def test_what_can_be_tried_again_is_and_every_attempt_counts() -> None:
    fault = {1: ModelError("busy", retryable=True), 2: ModelError("reset", retryable=True)}
    model, engines = CountingModel(fault=fault.get), engine()
    result = await drive(engines, await accept(engines, order(steps=2)), Performers(model))
    assert (result.status, result.usage.calls, model.calls) == ("done", 4, 4)


async def test_attempts_count_against_the_limit() -> None:
    always = CountingModel(fault=lambda number: ModelError("busy", retryable=True))
    engines = engine(Policy(max_attempts=9, backoff_s=0.001))
    result = await drive(engines, await accept(engines, order(Budget(calls=3))), Performers(always))
    assert (result.termination.reason, always.calls, result.usage.calls) == ("max_calls", 3, 3)


async def test_a_model_error_ends_the_run_as_failed_with_its_code() -> None:
    model = CountingModel(fault=lambda n: ModelError("no key", code="provider_auth") if n == 3 else None)
    engines = engine()
    result = await drive(engines, await accept(engines, order()), Performers(model))
    assert (result.status, result.termination.reason, result.termination.code) == (
        "failed",
        "error",
        "provider_auth",
    )
    assert (model.calls, result.usage.calls) == (3, 3)


async def test_a_model_that_breaks_is_a_failed_run_not_a_crash() -> None:
    def broken(_: object) -> str:
        raise RuntimeError("bug")

    engines = engine()
    result = await drive(engines, await accept(engines, order()), Performers(CountingModel(reply=broken)))
    assert (result.status, result.termination.code) == ("failed", "provider_error")


async def test_a_cancelled_drive_is_recorded_and_can_be_resumed() -> None:
    slow, engines = CountingModel(latency_s=0.01), engine()
    run_id = await accept(engines, order(steps=20))
    task = asyncio.create_task(drive(engines, run_id, Performers(slow)))
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await engines.result(run_id)).status == "cancelled"
    recorded = len((await trace_of(engines, run_id))["events"]) - 1
    fast = CountingModel()
    result = await resume(engines, run_id, Performers(fast))
    assert result.status == "done"
    assert fast.calls == 20 - recorded


async def test_a_run_cancelled_from_outside_stops_its_drive() -> None:
    slow, engines = CountingModel(latency_s=30), engine()
    run_id = await accept(engines, order())
    task = asyncio.create_task(drive(engines, run_id, Performers(slow)))
    await asyncio.sleep(0.05)
    await engines.cancel(run_id)
    result = await asyncio.wait_for(task, 5)
    assert (result.status, result.termination.reason, slow.in_flight) == ("cancelled", "cancelled", 0)


async def test_a_run_that_met_a_limit_goes_on_under_another() -> None:
    model, engines = CountingModel(), engine()
    run_id = await accept(engines, order(Budget(calls=5), steps=8))
    await drive(engines, run_id, Performers(model))
    result = await resume(engines, run_id, Performers(model), budget=Budget(calls=20))
    assert (result.status, result.termination.reason, model.calls) == ("done", "success", 8)


async def test_replay_arrives_at_the_same_outcome_without_a_model() -> None:
    engines = engine()
    run_id = await accept(engines, order(steps=5))
    result = await drive(engines, run_id, Performers(CountingModel()))
    replayed = await engines.replay(run_id)
    assert replayed["replay"] == {"identical": True, "events": 5, "differs": []}
    assert replayed["answer"] == result.answer


THINK, END = LOOP.stages


def _think(state: Seen) -> Generator[Request, Any, Move]:
    assert THINK.run is not None
    body = THINK.run(state)
    return body if isinstance(body, Move) else (yield from body)


def _shouts(state: Seen) -> Generator[Request, Any, Move]:
    move = yield from _think(state)
    return structs.replace(move, thoughts=tuple(Thought(one.text.upper()) for one in move.thoughts))


def _looks(state: Seen) -> Generator[Request, Any, Move]:
    move = yield from _think(state)
    return structs.replace(move, to="look" if move.to else None)


LATER = {
    "state": dataclasses.replace(
        LOOP, begin=lambda problem, options: Seen(problem.upper(), options.steps, options.width)
    ),
    "thoughts": dataclasses.replace(LOOP, stages=(Stage("think", ("end",), body=_shouts), END)),
    "outcome": dataclasses.replace(LOOP, conclude=lambda state: Conclusion("something else")),
    "path": dataclasses.replace(
        LOOP, stages=(Stage("think", ("look",), body=_looks), Stage("look", ("end",)), END)
    ),
}


@pytest.mark.parametrize(
    ("changed", "differs"), [(name, [] if name == "state" else [name]) for name in LATER]
)
async def test_replay_says_what_a_later_version_of_the_strategy_does_otherwise(
    changed: str, differs: list[str]
) -> None:
    engines = engine()
    run_id = await accept(engines, order(steps=5))
    await drive(engines, run_id, Performers(CountingModel()))
    replayed = await Engine(engines.store, {"loop": LATER[changed]}).replay(run_id)
    assert replayed["replay"] == {"identical": not differs, "events": 5, "differs": differs}


async def test_a_whole_journal_that_does_not_fit_its_strategy_is_not_said_to_be_damaged() -> None:
    engines = engine()
    run_id = await accept(engines, order(steps=5))
    await drive(engines, run_id, Performers(CountingModel()))
    shorter = dataclasses.replace(
        LOOP, begin=lambda problem, options: Seen(problem, options.steps - 1, options.width)
    )
    later = Engine(engines.store, {"loop": shorter})
    with pytest.raises(ConflictError, match="does not fit version 1 as it is here") as caught:
        await later.replay(run_id)
    assert caught.value.code == "strategy_changed"
    assert (await later.result(run_id)).answer == "count 4 of e5"


async def test_a_fork_starts_with_the_answers_before_it() -> None:
    engines, model = engine(), CountingModel(reply=lambda question: "other")
    run_id = await accept(engines, order(steps=5))
    await drive(engines, run_id, Performers(CountingModel()))
    forked = await fork(engines, run_id, None, at=3)
    result = await drive(engines, forked, Performers(model))
    assert model.calls == 2
    assert [one["reply"] for one in (await trace_of(engines, forked))["questions"]][:3] == [
        "count 0 of e1",
        "count 1 of e2",
        "count 2 of e3",
    ]
    assert result.answer == "other"
    with pytest.raises(ConflictError, match="a number from 0 to 5, not at"):
        await fork(engines, run_id, None, at=6)


async def test_a_run_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFoundError):
        await engine().result("../../x")


async def test_a_changed_line_is_found() -> None:
    engines = engine()
    run_id = await accept(engines, order(steps=3))
    await drive(engines, run_id, Performers(CountingModel()))
    lines = await engines.store.lines(run_id)
    forged = lines[1].body.replace(b"count 0", b"count 9")
    assert forged != lines[1].body
    from msgspec.structs import replace

    from reasonry.engine import journal

    with pytest.raises(StoreError, match="damaged at line 2"):
        journal.read(run_id, [lines[0], replace(lines[1], body=forged), *lines[2:]])
    with pytest.raises(StoreError, match="damaged"):
        journal.read(run_id, [lines[0], *lines[2:]])
    with pytest.raises(StoreError, match="damaged"):
        journal.read("another run", lines)


async def test_a_run_that_a_failure_ended_goes_on_without_asking_again() -> None:
    def fault(number: int) -> ModelError | None:
        return ModelError("down", code="provider_auth") if number == 5 else None

    engines, broken, mended = engine(), CountingModel(fault=fault), CountingModel()
    run_id = await accept(engines, order(steps=3, width=3))
    failed = await drive(engines, run_id, Performers(broken))
    assert (failed.status, broken.calls) == ("failed", 6)
    result = await resume(engines, run_id, Performers(mended))
    assert (result.status, mended.calls) == ("done", 4)
    assert result.usage.calls == 10
    assert (await engines.replay(run_id))["replay"]["identical"] is True
    again = await resume(engines, run_id, Performers(mended))
    assert (again.status, mended.calls) == ("done", 4)
