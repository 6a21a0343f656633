"""`reasonry runs start`: a run that the workers of the store drive."""

from __future__ import annotations

import asyncio
from typing import Annotated

from cyclopts import Parameter

from ...app import App
from ...core.budget import Budget
from ...engine.result import Result
from ...extras import check_extra
from ...queues import DEFAULT_QUEUE, PRIORITY
from ...strategies import DEFAULT_STRATEGY
from .candidates import StrategyName
from .output import print_document, print_line
from .settings import Common, Limits, Workers, pairs, run_async, with_app
from .solve import read_problem, show_result
from .submit import LOOK_EVERY_S, opened_queue, put, read_wait
from .whole_numbers import WholeNumber


def start_(
    problem: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    detach: Annotated[bool, Parameter(negative=())] = False,
    strategy: StrategyName = DEFAULT_STRATEGY,
    option: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    priority: WholeNumber = PRIORITY,
    at: str | None = None,
    queue: str = DEFAULT_QUEUE,
    workers: Workers = Workers(),
    limits: Limits = Limits(),
    common: Common = Common(),
) -> int:
    """Begin a run that the workers of the store drive, whatever becomes of this command.

    Parameters
    ----------
    problem
        What is to be solved; `-` reads it from standard input.
    detach
        Do not wait for its end.
    strategy
        The way of thinking; `reasonry strategies` lists them.
    option
        An option of the strategy, as NAME=VALUE; may be repeated.
    priority
        From 0, the first to be begun, to 9.
    at
        Not before this time, as 2026-12-24T18:00 (of your clock) or with an offset.
    queue
        The queue it waits in.
    """
    check_extra("server", "reasonry runs start")
    wait = read_wait(priority, at, queue)
    text = read_problem(problem) or ""

    async def work(app: App) -> str | Result:
        budget = limits.budget() or Budget()
        participants = await app.equip(workers.participants(), budget)
        order, _ = app.order(text, strategy, pairs(option), budget, participants)
        async with opened_queue(app) as opened:
            await opened.check_room()
            run_id, _ = await app.engine.accept_once(order, unattended=True)
            await put(opened, [run_id], wait)
        if detach:
            return run_id
        while (row := await app.store.run(run_id)).status == "active" and not row.paused:
            await asyncio.sleep(LOOK_EVERY_S)
        return await app.engine.result(run_id)

    begun = run_async(with_app(common.app(workers.policy()), work))
    if isinstance(begun, Result):
        return show_result(begun, common)
    if common.json:
        print_document({"run_id": begun})
    else:
        print_line(begun)
    return 0
