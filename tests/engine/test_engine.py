"""The engine over the memory store: runs end, limits are hard, nothing recorded is asked again."""

import dataclasses
from collections.abc import Generator
from typing import Any

import pytest
from msgspec import structs

from reasonry.core.bodies import Conclusion, Move, Request, Thought
from reasonry.core.budget import Budget
from reasonry.core.options import read_options
from reasonry.core.strategy import Stage
from reasonry.engine.engine import Engine
from reasonry.engine.journal import Begun, ParticipantNames
from reasonry.engine.policy import Performers, Policy
from reasonry.errors import ConflictError, ModelError
from reasonry.stores.sqlite import MemoryStore

from .playing import LOOP, STRATEGIES, CountingModel, Seen
from .running import accept, drive, order_of, resume

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


async def test_independent_calls_run_side_by_side_up_to_the_bound() -> None:
    model, engines = CountingModel(latency_s=0.01), engine(Policy(max_concurrency=5))
    result = await drive(engines, await accept(engines, order(steps=1, width=12)), Performers(model))
    assert (model.most_in_flight, model.calls, result.rounds) == (5, 12, 1)


async def test_attempts_count_against_the_limit() -> None:
    always = CountingModel(fault=lambda number: ModelError("busy", retryable=True))
    engines = engine(Policy(max_attempts=9, backoff_s=0.001))
    result = await drive(engines, await accept(engines, order(Budget(calls=3))), Performers(always))
    assert (result.termination.reason, always.calls, result.usage.calls) == ("max_calls", 3, 3)


@pytest.mark.parametrize(
    ("error", "code"),
    [(ModelError("no key", code="provider_auth"), "provider_auth"), (RuntimeError("bug"), "provider_error")],
)
async def test_an_error_of_the_model_ends_the_run_as_failed_with_its_code(error: Any, code: str) -> None:
    model, engines = CountingModel(fault={3: error}.get), engine()
    result = await drive(engines, await accept(engines, order()), Performers(model))
    ending = result.termination
    assert (result.status, ending.reason, ending.code) == ("failed", "error", code)
    assert (model.calls, result.usage.calls) == (3, 3)


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
