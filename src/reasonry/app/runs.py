"""List runs, continue paused runs, change the limits of runs, delete runs, and coach runs."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Unpack

from msgspec import structs

from ..core.budget import Budget
from ..engine.coach import CALLER, Coach
from ..engine.journal import TermsChanged
from ..engine.policy import Performers
from ..engine.prices import check_priced
from ..errors import ConflictError
from ..records import RunFilters, RunRow, Store
from .app import App
from .participants import Participants
from .requests import RunRequest
from .run_head import RunHead, run_head


async def list_runs(
    app: App, limit: int, cursor: str | None = None, **which: Unpack[RunFilters]
) -> dict[str, Any]:
    """Return a page of runs, newest first. `next_cursor` is the cursor of the next page, if there is one.

    Raises:
        UsageError: There is no such strategy.
        NotFoundError: The run that the cursor names does not exist.
    """
    if (name := which.get("strategy")) is not None:
        which["strategy"] = app.strategy(name).name
    rows = await app.store.runs(limit=limit + 1, before=cursor, **which)
    more = rows[limit - 1].run_id if len(rows) > limit else None
    return {"runs": await heads(app.store, rows[:limit]), "next_cursor": more}


async def heads(store: Store, rows: Sequence[RunRow]) -> list[RunHead]:
    """Return the heads of runs, see `RunHead`."""
    left = await resumable(store, rows)
    return [run_head(row, resumable=row.run_id in left) for row in rows]


async def resumable(store: Store, rows: Sequence[RunRow]) -> set[str]:
    """Return the ids of active runs that no process drives. Such a run continues only after someone resumes it.

    The process that drove such a run has died or released it. Jobs, paused runs and coached runs are excluded.
    """
    active = [row for row in rows if row.status == "active" and row.model != CALLER]
    left = {row.run_id for row in active if not (row.unattended or row.paused or row.outcome == "waiting")}
    return left - await store.find_driven(left) if left else left


async def continue_paused(
    app: App, run_id: str, participants: Participants | None, budget: Budget | None
) -> bool:
    """Continue a paused run in the process that already drives it. Return whether the run continues.

    If the function returns False (for example, for another model), the caller must open the run and drive it.
    """
    store, has_ended = app.store, False
    is_others = participants is not None and participants.model is not None
    while not is_others and (row := await store.run(run_id)).paused and row.status == "active":
        if not await store.find_driven([run_id]):
            return False
        # Another process may continue or end the run first.
        with suppress(ConflictError):
            await app.engine.command(run_id, TermsChanged(paused=False))
            has_ended = True
    if not (has_ended and await store.find_driven([run_id])):
        return False
    try:
        if budget is not None:
            await set_limits(app, run_id, structs.asdict(budget))
    except ConflictError:
        # The run has ended in the meantime.
        return False
    return True


async def set_limits(app: App, run_id: str, limits: Mapping[str, Any]) -> Budget:
    """Replace limits of an active run, and return its whole budget. None removes a limit.

    Raises:
        UsageError: The budget limits dollars, but a price is unknown.
        ConflictError: The run has ended.
    """
    source = await app.engine.recorded_run(run_id)
    budget, names = structs.replace(source.budget, **limits), source.participants
    if budget.usd is not None:

        def open_recorded() -> Performers:
            is_coached = names.model == CALLER
            return app.pool.open(app.pool.reopen(Participants(), names, coached=is_coached), "")

        performers = await app.pool.run_in_thread(open_recorded)
        check_priced("max_usd", performers.models, performers.prices)
    await app.engine.command(run_id, TermsChanged(budget))
    return budget


async def delete_run(app: App, run_id: str) -> dict[str, Any]:
    """Delete an ended run and the session of its thoughts. If the run is active, raise ConflictError."""
    row = await app.store.run(run_id)
    if row.status == "active":
        raise ConflictError(f"run {run_id} has not ended; cancel it first", run_id=run_id)
    return {"run_id": run_id, **await app.sessions().delete({"session_id": row.session_id})}


async def coach_start(app: App, request: RunRequest, *, brief: bool = False) -> dict[str, Any]:
    """Start a coached run. For `brief`, see `Coach`."""
    order, performers = await app.receive(structs.replace(request, coached=True))
    return await Coach(app.engine, brief).start(order, performers)


async def coach_take_over(
    app: App,
    run_id: str,
    named: Participants = Participants(),
    budget: Budget | None = None,
    *,
    brief: bool = False,
) -> dict[str, Any]:
    """Let the caller answer a run's questions from now on. For `named`, see `coach_answer`."""
    async with app.engine.open(run_id) as opened:
        performers = await app.reopen(opened, named, budget, coached=True)
        return await Coach(app.engine, brief).proceed(opened, performers)


async def coach_answer(
    app: App,
    run_id: str,
    answers: Any,
    named: Participants = Participants(),
    *,
    brief: bool = False,
    says_all: bool = False,
) -> dict[str, Any]:
    """Apply answers to a coached run, see `Coach.answer`. `named` may replace recorded participants."""
    return await Coach(app.engine, brief).answer(
        run_id, answers, lambda run: app.open_recorded(run, named, coached=True), says_all=says_all
    )
