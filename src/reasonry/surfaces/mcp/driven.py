"""The tools of coached and driven runs, over the app."""

from __future__ import annotations

import asyncio
import itertools
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from msgspec import structs

from ...app.agent_calls import (
    COACH_ACTIONS,
    AnswerCoached,
    AskedQuestion,
    ForkRun,
    ListRuns,
    NewRun,
    OneRun,
    ReadTrace,
    RefuteClaims,
    ResumeRun,
    SolveCall,
    name_known_arguments,
    named_limits,
    read_coach_call,
)
from ...app.agent_runs import find_run, no_run_named, read_trace
from ...app.app import App
from ...app.runs import coach_answer, coach_take_over, list_runs
from ...engine.coach import Coach
from ...engine.result import Result
from ...errors import NotFoundError, UsageError
from ...guided.session_calls import read_form
from ...guided.thinking_tool import actions_schema, tool_schema
from ...supervisor import Supervisor
from .run_tasks import RunTasks, without_search
from .tools import CallContext, Document, McpTool, Report

BEAT_S: Final = 5.0
_MESSAGE_CHARS: Final = 200
_STEPS: Final = ("answered", "failed", "tool_returned", "verified")
"""The events that complete a step of a run."""

_RUNS = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False}
_STRING, _OBJECT = {"type": "string"}, {"type": "object"}
_OBJECTS = {"type": "array", "items": _OBJECT}
_COACH_OUTPUT = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("run_id", "status", "note", "id", "stage", "prompt"), _STRING),
        **dict.fromkeys(("shared", "progress", "result", "answer_schema"), _OBJECT),
        **dict.fromkeys(("questions", "refuted", "runs", "thoughts"), _OBJECTS),
        "next_cursor": {"type": ["string", "null"]},
    },
    "required": [],
}
_SOLVE_OUTPUT = {
    "type": "object",
    "properties": {"answer": {"type": ["string", "null"]}, "status": _STRING, "termination": _OBJECT},
    "required": ["answer", "status", "termination"],
}
_WORKS_ON = ("start", "refute", "answer", "resume", "fork")
"""Actions that make a run the connection's own."""

COACH_DESCRIPTION = (
    "Have a strategy run while you do its thinking: `start` with a problem returns questions; `answer` them all, each "
    "in its answer_schema, and get the next ones or the result. `refute`: questions for fresh sub-agents that try to "
    "refute your session, a plan (problem) or claims; each fetches its own by `question`. `status`, `cancel`, `read`; "
    "`list` runs, `resume` one, `fork` it. No run_id: your only open run."
)
CAME_TO_ITS_END = (
    "The run came to an end of its own, so there is nothing to continue; fork it to try another way."
)
OWN_RECORD = (
    "The run writes a session of its own, `session_id`; the thoughts it began with are those of `from_session`, which "
    "stays as it is."
)
STILL_AT_WORK = "The run continues here. `coach` with action `status` and this run's id waits for its end."
SOLVE_DESCRIPTION = "Have a model solve a problem with a strategy; returns the answer and what it took."


class RunWork:
    """Drives and follows runs through a supervisor.

    Rule 1: a waiting call reports progress at least every `BEAT_S`. For a client without support for progress, the call
            returns after `patience_s` with the run's id.
    Rule 2: a run ends with its call only if the protocol says that an abandoned call is cancelled.

    Args:
        supervisor: See `RunTasks`.
    """

    def __init__(self, app: App, supervisor: Supervisor | None = None) -> None:
        self.app, self.tasks = app, RunTasks(app, supervisor)

    async def status(self, run_id: str, context: CallContext) -> Document:
        """Return the state of a run. If this process drives it and calls must be short, wait for its end."""
        if context.patience_s is not None and self.tasks.supervisor.is_driven(run_id):
            await self._wait(run_id, context)
        return await Coach(self.app.engine, brief=True).status(run_id)

    async def see_through(self, run_id: str, context: CallContext) -> Document:
        """Return a run's result document, or its state if the call has waited long enough."""
        with self.tasks.supervisor.attending(self.app, run_id, leaves=not context.ends_when_left):
            result = await self._wait(run_id, context)
        if result is not None:
            return result.document(nodes=False)
        so_far = (await self.app.engine.result(run_id)).document(nodes=False)
        return {**so_far, "note": STILL_AT_WORK}

    async def _wait(self, run_id: str, context: CallContext) -> Result | None:
        """Wait for the end of the drive and return the run's state, or None if the caller has waited long enough."""
        telling = asyncio.ensure_future(self._tell(run_id, context.report)) if context.report else None
        try:
            async with asyncio.timeout(None if telling else context.patience_s):
                result = await self.tasks.supervisor.wait(self.app, run_id)
            if telling and result.status != "active":
                await asyncio.wait({telling})
            return result
        except TimeoutError:
            return None
        finally:
            if telling:
                telling.cancel()

    async def _tell(self, run_id: str, report: Report) -> None:
        """Report the run's id to the caller, then each step, and signs of life in between."""
        numbers, message = itertools.count(1), f"run {run_id}"

        async def beat() -> None:
            while True:
                await asyncio.sleep(BEAT_S)
                await report(float(next(numbers)), None, message)

        await report(float(next(numbers)), None, message)
        beating, message = asyncio.ensure_future(beat()), "at work"
        try:
            async with aclosing(self.tasks.supervisor.watch(self.app, run_id)) as events:
                async for event in events:
                    if event.kind in _STEPS:
                        thoughts = event.data.get("thoughts")
                        message = thoughts[-1]["text"][:_MESSAGE_CHARS] if thoughts else event.data["stage"]
                        await report(float(next(numbers)), None, message)
        finally:
            beating.cancel()


def run_tools(work: RunWork) -> list[McpTool]:
    """Return the tools of runs: `coach` always, `solve` where a model is configured."""
    coach_schema = work.app.rights.allowed.complete_schema(actions_schema(COACH_ACTIONS))
    coach = McpTool(
        name="coach",
        title="Coached Run",
        description=COACH_DESCRIPTION,
        input_schema=coach_schema,
        output_schema=_COACH_OUTPUT,
        annotations={**_RUNS, "openWorldHint": False},
        call=lambda arguments, context: _coach(work, coach_schema, arguments, context),
        shorten=without_search,
    )
    if not work.app.rights.has_model:
        return [coach]
    solve_schema = work.app.rights.allowed.complete_schema(tool_schema(SolveCall))
    solve = McpTool(
        name="solve",
        title="Solve",
        description=SOLVE_DESCRIPTION,
        input_schema=solve_schema,
        output_schema=_SOLVE_OUTPUT,
        annotations={**_RUNS, "openWorldHint": True},
        call=lambda arguments, context: _solve(work, solve_schema, arguments, context),
        shorten=without_search,
    )
    return [coach, solve]


async def _coach(work: RunWork, schema: Document, arguments: Document, context: CallContext) -> Document:
    arguments = name_known_arguments("coach", arguments, schema)
    app, engine, runs = work.app, work.app.engine, [*context.runs]
    try:
        action, call = read_coach_call(arguments)
    except UsageError as error:
        if error.details.get("field") != "run_id":
            raise
        raise await no_run_named(engine, error.message) from None
    match call:
        case ListRuns():
            return await list_runs(app, call.limit, call.cursor)
        case NewRun():
            document = await _begin(app, call, context)
        case OneRun():
            only_open = action in ("answer", "cancel")
            named = call.run_id and await app.run_id(call.run_id, runs)
            run_id = named or await find_run(engine, runs, only_open=only_open)
            is_new = context.thinker is not None and run_id not in runs
            if isinstance(call, AnswerCoached):
                document = await coach_answer(
                    app, run_id, call.answers, call.participants(), brief=True, says_all=is_new
                )
            elif action == "cancel":
                await work.tasks.supervisor.cancel(app, run_id)
                document = await Coach(app.engine, brief=True).status(run_id)
            elif action == "status":
                document = await work.status(run_id, context)
            else:
                document = await _on_run(app, run_id, call)
    if action in _WORKS_ON:
        context.add_run(document["run_id"])
    return document


async def _on_run(app: App, run_id: str, call: OneRun) -> Document:
    match call:
        case AskedQuestion():
            try:
                return await Coach(app.engine).question(run_id, call.id)
            except NotFoundError as error:
                raise await no_run_named(app.engine, error.message) from None
        case ForkRun():
            source = await app.engine.recorded_run(run_id)
            limits = call.budget_after(source.budget)
            order = await app.order_fork(source, call.participants(), call.options, limits, coached=True)
            return await Coach(app.engine, brief=True).start(*order, source.fork(call.at))
        case ResumeRun():
            source = await app.engine.recorded_run(run_id)
            budget = call.budget_after(source.budget) if named_limits(call) else None
            document = await coach_take_over(app, run_id, call.participants(), budget, brief=True)
            return document if document["status"] != "done" else {**document, "note": CAME_TO_ITS_END}
        case _:
            assert isinstance(call, ReadTrace)
            return await read_trace(app.engine, run_id, call)


async def _begin(app: App, call: NewRun, context: CallContext) -> Document:
    if isinstance(call, RefuteClaims) and (call.problem, call.session_id, call.claims) == (None, None, ()):
        call = structs.replace(call, session_id=context.thinker and context.thinker.current)
    order, performers = await app.receive(replace(call.request(), coached=True))
    document = await Coach(app.engine, brief=True).start(order, performers)
    if call.session_id is None:
        return document
    notes = [*filter(None, [document.get("note")]), OWN_RECORD]
    return {**document, "note": " ".join(notes), "from_session": order.from_session}


async def _solve(work: RunWork, schema: Document, arguments: Document, context: CallContext) -> Document:
    call = read_form(SolveCall, name_known_arguments("solve", arguments, schema))
    app, tasks = work.app, work.tasks
    if call.run_id is None:
        if context.takes_tasks:
            document = await tasks.start(call.request(), can_ask=context.can_ask)
            context.add_run(document["taskId"])
            return document
        run_id, _ = await tasks.supervisor.start(app, *await app.receive(call.request()))
        context.add_run(run_id)
        return await work.see_through(run_id, context)
    for name in ("problem", "session_id", "strategy", "options"):
        if getattr(call, name) != getattr(SolveCall(), name):
            raise UsageError(f"a run that is resumed keeps its {name}; leave it out, or run_id", field=name)
    run_id = await app.run_id(call.run_id, [*context.runs])
    budget = call.budget_after((await app.engine.recorded_run(run_id)).budget)
    context.add_run(run_id)
    if context.takes_tasks:
        return await tasks.resume(run_id, call.participants(), budget)
    await tasks.supervisor.resume(app, run_id, call.participants(), budget)
    return await work.see_through(run_id, context)
