"""`reasonry runs start`: a run that goes on whatever becomes of the command."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ...app.use_cases import RunRequest
from ...app.wiring import App
from ...engine.result import Result
from ...errors import UsageError
from ...strategies import DEFAULT_STRATEGY
from .candidates import StrategyName
from .output import print_document, print_line
from .own_jobs import OwnJobs, note_who_drives, read_job
from .settings import Common, Limits, Shown, Workers, pairs, run_async, with_app
from .solve import read_problem, show_result
from .whole_numbers import WholeNumber


def start_(
    problem: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    detach: Annotated[bool, Parameter(negative=())] = False,
    strategy: StrategyName = DEFAULT_STRATEGY,
    option: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    priority: WholeNumber | None = None,
    at: str | None = None,
    queue: str | None = None,
    shown: Shown = Shown(),
    workers: Workers = Workers(),
    limits: Limits = Limits(),
    common: Common = Common(),
) -> int:
    """Begin a run that the server or the workers of the store drive, whatever becomes of this command.

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
        From 0, the first to be begun, to 9; with PostgreSQL, as are --at and --queue.
    at
        Not before this time, as 2026-12-24T18:00 (of your clock) or with an offset.
    queue
        The queue it waits in: workers that were started with --queues take it from there.
    """
    text = read_problem(problem) or ""

    async def work(app: App) -> str | Result:
        request = RunRequest(
            problem=text,
            strategy=strategy,
            options=pairs(option),
            budget=limits.budget(),
            participants=workers.participants(),
        )
        order, _ = await app.receive(request)
        job = read_job(app.store, priority, at, queue)
        if detach and not app.store.durable:
            raise UsageError("a store in memory ends with this command; give --store a path", option="store")
        run_id, _ = await app.engine.accept_once(order, job=job)
        await note_who_drives(app, here=not detach)
        if detach:
            return run_id
        jobs = OwnJobs(app)
        try:
            while (row := await app.store.run(run_id)).status == "active" and not row.paused:
                await jobs.drive([run_id])
        finally:
            await jobs.close()
        return await app.engine.result(run_id)

    begun = run_async(with_app(common.app(workers.policy()), work))
    if isinstance(begun, Result):
        return show_result(begun, common, shown)
    if common.json:
        print_document({"run_id": begun})
    else:
        print_line(begun)
    return 0
