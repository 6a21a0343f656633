"""The MCP tools `coach` and `solve`, for coached and driven runs."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import aclosing
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
from ...records import JobOptions
from .run_tasks import RunTasks, without_search
from .tools import CallContext, Document, McpTool, Report, TaskDocument

BEAT_S: Final = 5.0
_MESSAGE_CHARS: Final = 200
_STEPS: Final = ("answered", "failed", "tool_returned", "verified")
"""The kinds of events that complete a step of a run."""

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
}
_SOLVE_OUTPUT = {
    "type": "object",
    "properties": {"answer": {"type": ["string", "null"]}, "status": _STRING, "termination": _OBJECT},
}
_WORKS_ON = ("start", "refute", "answer", "resume", "fork")
"""The actions of `coach` that add a run to the list of the connection's runs."""

COACH_DESCRIPTION = (
    "Have a strategy run while you do its thinking: `start` with a problem returns questions; `answer` them all, each "
    "in its answer_schema, and get the next ones or the result. `refute`: questions for fresh sub-agents that try to "
    "refute your session, a plan (problem) or claims; each fetches its own by `question`. `status`, `cancel`, `read`; "
    "`list` runs, `resume` one, `fork` it. No run_id: your only open run."
)
STILL_AT_WORK = "The run continues here. `coach` with action `status` and this run's id waits for its end."
SOLVE_DESCRIPTION = "Have a model solve a problem with a strategy; returns the answer and what it took."


def run_tools(tasks: RunTasks) -> list[McpTool]:
    """Return the tools for runs: `coach`, and also `solve` if a model is configured."""
    coach = "coach", "Coached Run", COACH_DESCRIPTION, actions_schema(COACH_ACTIONS), _COACH_OUTPUT, _coach
    solve = "solve", "Solve", SOLVE_DESCRIPTION, tool_schema(SolveCall), _SOLVE_OUTPUT, _solve
    offered = [coach, solve] if tasks.app.rights.has_model else [coach]
    return [_run_tool(tasks, *each) for each in offered]


def _run_tool(
    tasks: RunTasks,
    name: str,
    title: str,
    description: str,
    schema: Document,
    output: Document,
    act: Callable[[RunTasks, Document, CallContext], Awaitable[Document]],
) -> McpTool:
    schema = tasks.app.rights.allowed.complete_schema(schema)

    async def call(arguments: Document, context: CallContext) -> Document:
        return await act(tasks, name_known_arguments(name, arguments, schema), context)

    hints = {**_RUNS, "openWorldHint": name == "solve"}
    return McpTool(name, title, description, schema, output, call, hints, shorten=without_search)


async def _coach(tasks: RunTasks, arguments: Document, context: CallContext) -> Document:
    app, engine, runs = tasks.app, tasks.app.engine, [*context.runs]
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
            named = call.run_id and await app.run_id(call.run_id, runs)
            run_id = named or await find_run(engine, runs, only_open=action in ("answer", "cancel"))
            document = await _on_run(tasks, action, call, run_id, context)
    if action in _WORKS_ON:
        context.add_run(document["run_id"])
    return document


async def _on_run(tasks: RunTasks, action: str, call: OneRun, run_id: str, context: CallContext) -> Document:
    app, coach = tasks.app, Coach(tasks.app.engine, brief=True)
    match call:
        case AnswerCoached():
            is_new = context.thinker is not None and run_id not in context.runs
            named = call.participants()
            return await coach_answer(app, run_id, call.answers, named, brief=True, says_all=is_new)
        case AskedQuestion():
            try:
                return await coach.question(run_id, call.id)
            except NotFoundError as error:
                raise await no_run_named(app.engine, error.message) from None
        case ForkRun():
            source = await app.engine.recorded_run(run_id)
            limits = call.budget_after(source.budget)
            order = await app.order_fork(source, call.participants(), call.options, limits, coached=True)
            return await coach.start(*order, source.fork(call.at))
        case ResumeRun():
            source = await app.engine.recorded_run(run_id)
            budget = call.budget_after(source.budget) if named_limits(call) else None
            return await coach_take_over(app, run_id, call.participants(), budget, brief=True)
        case ReadTrace():
            return await read_trace(app.engine, run_id, call)
        case _:
            if action == "cancel":
                await tasks.supervisor.cancel(app, run_id)
            elif context.patience_s is not None and tasks.supervisor.is_driven(run_id):
                await _wait(tasks, run_id, context)
            return await coach.status(run_id)


async def _begin(app: App, call: NewRun, context: CallContext) -> Document:
    if isinstance(call, RefuteClaims) and (call.problem, call.session_id, call.claims) == (None, None, ()):
        call = structs.replace(call, session_id=context.thinker and context.thinker.current)
    order, performers = await app.receive(structs.replace(call.request(), coached=True))
    return await Coach(app.engine, brief=True).start(order, performers)


async def _solve(tasks: RunTasks, arguments: Document, context: CallContext) -> Document:
    call, app = read_form(SolveCall, arguments), tasks.app
    job = JobOptions() if context.takes_tasks else None
    if call.run_id is None:
        run_id = await tasks.start(call.request(), job, can_ask=context.can_ask)
        context.add_run(run_id)
    else:
        for name in ("problem", "session_id", "strategy", "options"):
            if getattr(call, name) != getattr(SolveCall(), name):
                message = f"a run that is resumed keeps its {name}; leave it out, or run_id"
                raise UsageError(message, field=name)
        run_id = await app.run_id(call.run_id, [*context.runs])
        budget = call.budget_after((await app.engine.recorded_run(run_id)).budget)
        context.add_run(run_id)
        await tasks.supervisor.resume(app, run_id, call.participants(), budget, job=job)
    if job is not None:
        return TaskDocument(await tasks.read(run_id))
    return await _see_through(tasks, run_id, context)


# -- a call that waits for its run
#
# Rule 1: the call reports progress at least every `BEAT_S` seconds. If the client does not support progress, the call
#         returns after `patience_s` seconds, with the run's id.
# Rule 2: an abandoned call ends its run only if the protocol says that an abandoned call is cancelled.


async def _see_through(tasks: RunTasks, run_id: str, context: CallContext) -> Document:
    """Wait for a run and return its result document. If the wait takes too long, return the result so far."""
    with tasks.supervisor.attending(tasks.app, run_id, leaves=not context.ends_when_left):
        result = await _wait(tasks, run_id, context)
    if result is not None:
        return result.document(nodes=False)
    so_far = (await tasks.app.engine.result(run_id)).document(nodes=False)
    return {**so_far, "note": STILL_AT_WORK}


async def _wait(tasks: RunTasks, run_id: str, context: CallContext) -> Result | None:
    """Wait until a run ends, pauses or waits for its caller. Return None if the wait takes too long."""
    telling = asyncio.ensure_future(_tell(tasks, run_id, context.report)) if context.report else None
    try:
        async with asyncio.timeout(None if telling else context.patience_s):
            result = await tasks.supervisor.wait(tasks.app, run_id)
        if telling and result.status != "active":
            await asyncio.wait({telling})
        return result
    except TimeoutError:
        return None
    finally:
        if telling:
            telling.cancel()


async def _tell(tasks: RunTasks, run_id: str, report: Report) -> None:
    """Report the run's id and each step to the client. Repeat the last message every `BEAT_S` seconds."""
    numbers, message = itertools.count(1), f"run {run_id}"

    async def beat() -> None:
        while True:
            await asyncio.sleep(BEAT_S)
            await report(float(next(numbers)), None, message)

    await report(float(next(numbers)), None, message)
    beating, message = asyncio.ensure_future(beat()), "at work"
    try:
        async with aclosing(tasks.supervisor.watch(tasks.app, run_id)) as events:
            async for event in events:
                if event.kind in _STEPS:
                    thoughts = event.data.get("thoughts")
                    message = thoughts[-1]["text"][:_MESSAGE_CHARS] if thoughts else event.data["stage"]
                    await report(float(next(numbers)), None, message)
    finally:
        beating.cancel()
