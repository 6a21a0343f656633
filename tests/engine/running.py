"""Runs from beginning to end: ordered of an app, or on an engine alone accepted, driven, resumed, forked."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from reasonry.core.strategy import Strategy
from reasonry.engine.coach import Coach
from reasonry.engine.control import Control
from reasonry.engine.drive import drive_run
from reasonry.engine.engine import Engine
from reasonry.engine.journal import CALLER, Begun, ParticipantNames
from reasonry.engine.observer import Observer
from reasonry.engine.policy import Performers
from reasonry.engine.ports import Model
from reasonry.engine.result import Result


def order_of(strategy: Strategy[Any, Any], problem: str, options: Any = None, **terms: Any) -> Begun:
    """Return an order for a run of a strategy."""
    return Begun(strategy.name, problem, to_builtins(options or strategy.options()), **terms)


def request_of(
    problem: str,
    strategy: str | Strategy[Any, Any],
    *,
    model: Any = None,
    budget: Budget | None = None,
    **request: Any,
) -> RunRequest:
    """Return a request for a run.

    Args:
        model: The only participant.
        budget: Defaults to no limit.
        request: Other members of a `RunRequest`.
    """
    given = {"participants": Participants(model=model)} if model is not None else {}
    return RunRequest(problem=problem, strategy=strategy, budget=budget or Budget(), **given, **request)


async def order_and_solve(
    app: App,
    problem: str,
    strategy: str | Strategy[Any, Any],
    *,
    observer: Observer | None = None,
    **request: Any,
) -> Result:
    """Drive a run of an app to its end; for `request` see `request_of`."""
    return await app.solve(*app.order(request_of(problem, strategy, **request)), observer)


async def accept(engine: Engine, order: Begun) -> str:
    """Write a run down and return its id."""
    return (await engine.accept(order)).run_id


async def drive(
    engine: Engine, run_id: str, performers: Performers, observer: Observer | None = None
) -> Result:
    """Perform a run until it ends."""
    async with engine.open(run_id) as opened:
        return await drive_run(opened, performers, observer)


@asynccontextmanager
async def driven(
    engine: Engine, run_id: str, model: Model
) -> AsyncGenerator[tuple[Control, asyncio.Task[Result]]]:
    """Drive a run in the background; yield its control, and its result to come."""
    control = Control()
    async with asyncio.timeout(60), engine.open(run_id) as opened:
        yield control, asyncio.create_task(drive_run(opened, Performers(model), control=control))


async def resume(
    engine: Engine,
    run_id: str,
    performers: Performers,
    *,
    budget: Budget | None = None,
    participants: ParticipantNames | None = None,
) -> Result:
    """Reopen a run and drive it."""
    async with engine.open(run_id) as opened:
        await opened.reopen(budget, participants)
        return await drive_run(opened, performers)


async def take_over(engine: Engine, run_id: str, performers: Performers) -> dict[str, Any]:
    """Hand a run over to its caller."""
    async with engine.open(run_id) as opened:
        await opened.reopen(None, replace(opened.run.participants, model=CALLER))
        return await Coach(engine).proceed(opened, performers)


async def fork(
    engine: Engine, run_id: str, order: Begun | None, at: int, reworded: Mapping[str, str] | None = None
) -> str:
    """Fork a run with another order, or with its own, and return the id of the fork."""
    source = await engine.recorded_run(run_id)
    own = replace(source.begun, budget=source.budget, participants=source.participants)
    return (await engine.accept(order or own, source.fork(at, reworded))).run_id


async def trace_of(engine: Engine, run_id: str) -> dict[str, Any]:
    """Return all there is to see of a run, as one document."""
    return (await engine.record(run_id)).document()
