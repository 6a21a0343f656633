"""The tools of coached and driven runs, over the app."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import structs

from ...app.agent_app import AgentApp
from ...app.agent_calls import (
    COACH_ACTIONS,
    AnswerCoached,
    ForkRun,
    ListRuns,
    NewRun,
    OneRun,
    OpenedRun,
    ReadTrace,
    RefuteClaims,
    ResumeRun,
    SolveCall,
    name_known_arguments,
    named_limits,
    read_coach_call,
    read_run_call,
)
from ...app.agent_runs import find_run, list_runs, no_run_named, read_trace
from ...app.participants import Participants
from ...core.budget import Budget
from ...core.machine import Step
from ...engine.follow import Observer
from ...engine.journal import Begun
from ...engine.policy import Performers
from ...engine.result import Result
from ...engine.run import Run
from ...errors import UsageError
from ...guided.thinking_tool import actions_schema, tool_schema
from .run_tasks import RunTasks
from .tools import CallContext, Document, McpTool, Report

_RUNS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False}
_STRING = {"type": "string"}
_OBJECTS = {"type": "array", "items": {"type": "object"}}
_WORKS_ON = ("start", "refute", "answer", "resume", "fork")
"""Actions after which a run is one of the connection's."""

COACH_DESCRIPTION = (
    "Have a strategy run while you do its thinking: `start` with a problem returns questions; `answer` them all, each "
    "in its answer_schema, and get the next ones or the result. `refute`: questions for fresh sub-agents that try to "
    "refute your session, a plan (problem) or claims. `status`, `cancel`, `read`; `list` runs, `resume` one, `fork` "
    "it. No run_id: your only open run."
)
CAME_TO_ITS_END = (
    "The run came to an end of its own, so there is nothing to continue; fork it to try another way."
)
OWN_RECORD = (
    "The run writes a session of its own, `session_id`; the thoughts it began with are those of `from_session`, which "
    "stays as it is."
)
SOLVE_DESCRIPTION = "Have a model solve a problem with a strategy; returns the answer and what it took."


class RunWork:
    """Works on the runs that are begun and looked at: each in the call itself, or as a task.

    Args:
        tasks: Takes the runs of clients that take tasks; None: there are no tasks.
    """

    def __init__(self, app: AgentApp, tasks: RunTasks | None = None) -> None:
        self.app, self.tasks = app, tasks

    async def solve(self, order: Begun, performers: Performers, context: CallContext) -> Document:
        """Drive a run; return its result document, or where it stands when the call has waited long enough."""
        return await self._drive(context, lambda watch: self.app.solve(order, performers, watch))

    async def resume(
        self, run_id: str, participants: Participants, budget: Budget | None, context: CallContext
    ) -> Document:
        """Resume a run; return as `solve`."""
        return await self._drive(context, lambda watch: self.app.resume(run_id, participants, budget, watch))

    async def _drive(
        self, context: CallContext, drive: Callable[[Observer | None], Awaitable[Result]]
    ) -> Document:
        watch = _Reporter(context.report) if context.report else None
        result = await drive(watch)
        if watch is not None:
            await watch.wait()
        return result.document(nodes=False)

    async def cancel(self, run_id: str) -> Document:
        """End a run; return where it stands."""
        return await self.app.coach(brief=True).cancel(run_id)

    async def status(self, run_id: str, context: CallContext) -> Document:
        """Return where a run stands."""
        return await self.app.coach(brief=True).status(run_id)


def run_tools(work: RunWork) -> list[McpTool]:
    """Return the tools of runs: `coach` always, `solve` where a model is configured."""
    return [coach_tool(work), *([solve_tool(work)] if work.app.has_model else [])]


def coach_tool(work: RunWork) -> McpTool:
    """Return the tool of coached runs."""
    schema = work.app.complete(actions_schema(COACH_ACTIONS))
    return McpTool(
        name="coach",
        title="Coached Run",
        description=COACH_DESCRIPTION,
        input_schema=schema,
        output_schema=_object(
            {
                "run_id": _STRING,
                "status": _STRING,
                "shared": {"type": "object"},
                "questions": _OBJECTS,
                "progress": {"type": "object"},
                "note": _STRING,
                "refuted": _OBJECTS,
                "result": {"type": "object"},
                "runs": _OBJECTS,
                "thoughts": _OBJECTS,
                "next_cursor": {"type": ["string", "null"]},
            },
            [],
        ),
        annotations={**_RUNS, "openWorldHint": False},
        call=lambda arguments, context: _coach(work, schema, arguments, context),
    )


def solve_tool(work: RunWork) -> McpTool:
    """Return the tool of driven runs."""
    schema = work.app.complete(tool_schema(SolveCall))
    return McpTool(
        name="solve",
        title="Solve",
        description=SOLVE_DESCRIPTION,
        input_schema=schema,
        output_schema=_object(
            {"answer": {"type": ["string", "null"]}, "status": _STRING, "termination": {"type": "object"}},
            ["answer", "status", "termination"],
        ),
        annotations={**_RUNS, "openWorldHint": True},
        call=lambda arguments, context: _solve(work, schema, arguments, context),
    )


def _object(properties: Mapping[str, Any], required: list[str]) -> Document:
    return {"type": "object", "properties": dict(properties), "required": required}


async def _coach(work: RunWork, schema: Document, arguments: Document, context: CallContext) -> Document:
    arguments = name_known_arguments("coach", arguments, schema)
    app, engine, runs = work.app, work.app.engine, context.runs
    try:
        action, call = read_coach_call(arguments)
    except UsageError as error:
        if error.details.get("field") != "run_id":
            raise
        raise await no_run_named(engine, error.message) from None
    match call:
        case ListRuns():
            return await list_runs(engine, call)
        case NewRun():
            document = await _begin(app, call, context)
        case OneRun() | OpenedRun():
            only_open = action in ("answer", "cancel")
            named = call.run_id and await app.run_id(call.run_id, runs.ids)
            run_id = named or await find_run(engine, runs.ids, only_open=only_open)
            is_new = context.thinker is not None and run_id not in runs.ids
            if isinstance(call, AnswerCoached):
                document = await app.coach_answer(
                    run_id, call.answers, call.participants(), brief=True, says_all=is_new
                )
            elif action == "cancel":
                document = await work.cancel(run_id)
            elif action == "status":
                document = await work.status(run_id, context)
            else:
                document = await _on_run(app, run_id, call)
    if action in _WORKS_ON:
        runs.add(document["run_id"])
    return document


async def _on_run(app: AgentApp, run_id: str, call: OneRun | OpenedRun) -> Document:
    match call:
        case ForkRun():
            source = await app.engine.recorded_run(run_id)
            limits = call.budget_after(source.budget)
            order = await app.order_fork(source, call.participants(), call.options, limits, coached=True)
            return await app.coach(brief=True).start(*order, source.fork(call.at))
        case ResumeRun():
            source = await app.engine.recorded_run(run_id)
            budget = call.budget_after(source.budget) if named_limits(call) else None
            document = await app.coach_take_over(run_id, call.participants(), budget, brief=True)
            return document if document["status"] != "done" else {**document, "note": CAME_TO_ITS_END}
        case _:
            assert isinstance(call, ReadTrace)
            return await read_trace(app.engine, run_id, call)


async def _begin(app: AgentApp, call: NewRun, context: CallContext) -> Document:
    if isinstance(call, RefuteClaims) and not call.names_a_text() and context.thinker is not None:
        call = structs.replace(call, session_id=context.thinker.current)
    document = await app.coach_start(call.request(), brief=True)
    if call.session_id is None:
        return document
    notes = [*filter(None, [document.get("note")]), OWN_RECORD]
    row = await app.engine.recorded_run(document["run_id"])
    return {**document, "note": " ".join(notes), "from_session": row.begun.from_session}


async def _solve(work: RunWork, schema: Document, arguments: Document, context: CallContext) -> Document:
    call = read_run_call(SolveCall, name_known_arguments("solve", arguments, schema))
    app, runs, tasks = work.app, context.runs, work.tasks if context.takes_tasks else None
    if call.run_id is None:
        if tasks is None:
            return await work.solve(*await app.receive(call.request()), context)
        document = await tasks.start(call.request(), can_ask=context.can_ask)
        runs.add(document["taskId"])
        return document
    for name in ("problem", "session_id", "strategy", "options"):
        if getattr(call, name) != getattr(SolveCall(), name):
            raise UsageError(f"a run that is resumed keeps its {name}; leave it out, or run_id", field=name)
    run_id = await app.run_id(call.run_id, runs.ids)
    source = await app.engine.recorded_run(run_id)
    participants = await app.participants_again(source, call, call.model)
    budget = call.budget_after(source.budget)
    runs.add(run_id)
    if tasks is None:
        return await work.resume(run_id, participants, budget, context)
    return await tasks.resume(run_id, participants, budget)


class _Reporter(Observer):
    """Tells the caller of each thought as it is recorded."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._telling = list[asyncio.Future[None]]()

    def stepped(self, run: Run, step: Step) -> None:
        """See `Observer`."""
        message = step.thoughts[-1].text[:200] if step.thoughts else run.snapshot.stage
        number = len(self._telling) + 1
        self._telling.append(asyncio.ensure_future(self._report(float(number), None, message)))

    async def wait(self) -> None:
        """Return when every report has been sent."""
        await asyncio.gather(*self._telling, return_exceptions=True)
