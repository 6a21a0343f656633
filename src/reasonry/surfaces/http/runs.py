"""HTTP operations on runs: start, read, follow, pause, resume, change and cancel them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs
from starlette.responses import Response
from starlette.types import ASGIApp

from ...app import runs
from ...core.pending import Status
from ...engine.drive import drive_run
from ...engine.engine import RecordedRun
from ...engine.fork import Fork
from ...engine.journal import CALLER, Begun
from ...engine.policy import Performers
from ...engine.run_diff import diff_runs
from ...errors import AnswerRefusedError, ConflictError, UsageError
from ...guided.session_calls import PAGE, Limit
from ...records import JobOptions, Outcome
from ..web.find_page import page_of_view
from ..web.page import PageDocument
from .context import RequestContext, stream_events
from .documents import MAX_KEY_CHARS, Document, page_headers, read_form, read_key, reply
from .operations import Operation
from .run_forms import (
    AnswersBody,
    ChangedLimits,
    DiffDocument,
    ForkBody,
    ReplayDocument,
    ResumeBody,
    RunDocument,
    RunListDocument,
    StartRun,
    limits_in,
    run_document,
)
from .sessions import IF_CHANGED, DeletedSessionDocument, Instant


class RunsQuery(Struct, frozen=True):
    """The query parameters that filter a list of runs."""

    status: Status | None = None
    outcome: Outcome | None = None
    reason: str | None = None
    strategy: str | None = None
    model: str | None = None
    query: str | None = None
    since_ms: Instant | None = None
    until_ms: Instant | None = None
    min_usd: Annotated[float, Meta(ge=0)] | None = None
    limit: Limit = PAGE
    cursor: str | None = None


class DiffQuery(Struct, frozen=True):
    """The ids of the two runs to compare."""

    a: str
    b: str


class EventsQuery(Struct, frozen=True):
    """The query parameters of a stream of a run's events."""

    after: Instant = 0
    text: bool = False


# -- starting


async def start_run(context: RequestContext, body: StartRun) -> Response:
    """Start a run. If `mode` is `coached`, the caller answers the questions of the run. Otherwise, a model does."""
    order, performers = await context.app.receive(body.request())
    return await _begin(context, order, performers, coached=body.mode == "coached")


async def fork_run(context: RequestContext, run_id: str, body: ForkBody) -> Response:
    """Start a run that copies another run up to the point `at`. The copied answers cost nothing."""
    app = context.app
    source = await app.engine.recorded_run(run_id)
    at, question = await _fork_point(context, source, body)
    reworded = {} if body.prompt is None or question is None else {question: body.prompt}
    is_coached = body.is_coached(source.participants.model == CALLER)
    named, limits = body.participants(), structs.replace(source.budget, **limits_in(body.budget))
    order, performers = await app.order_fork(source, named, body.options, limits, coached=is_coached)
    return await _begin(context, order, performers, source.fork(at, reworded), coached=is_coached)


async def _begin(
    context: RequestContext, order: Begun, performers: Performers, fork: Fork | None = None, *, coached: bool
) -> Response:
    """Accept a run, and reply with its state. A run that is not coached becomes a job."""
    app, key = context.app, await read_key(context.request)
    if coached:
        run_id, written = await app.engine.accept(order, fork, key=key, drive=True)
        if written is not None:
            async with app.engine.open(run_id, written):
                await drive_run(written, performers, coached=True)
    else:
        start = context.supervisor.start
        run_id, written = await start(app, order, performers, fork, key=key, job=JobOptions())
    location = {"Location": f"/api/runs/{run_id}"}
    return reply(await run_document(app, run_id, written), 200 if written is None else 201, location)


async def _fork_point(context: RequestContext, source: RecordedRun, body: ForkBody) -> tuple[int, str | None]:
    """Return how many answers to copy into a fork, and the id of the question to ask again, if any.

    Raises:
        UsageError: `at` names no effect of the run, or the request has a `prompt` and `at` does not name a question.
        ConflictError: The question was cancelled before it was answered.
    """
    question = body.at
    if isinstance(question, int):
        if body.prompt is not None:
            raise UsageError("prompt needs a question in `at`, not a number", field="prompt")
        return question, None
    record = (await context.app.engine.view_of(source.row, source.lines)).record
    kinds = {effect["id"]: effect["kind"] for effect in record.entries("effects")}
    if question not in kinds or (body.prompt is not None and kinds[question] != "ask"):
        raise UsageError(f"the run has no question {question!r}", field="at")
    places, count = record.fork_points()
    if question in places:
        return places[question], question
    if record.result.status == "done":
        message = f"the run did not wait for question {question} to its end; fork from an answered question"
        raise ConflictError(message, field="at")
    return count, question


# -- reading


async def list_runs(context: RequestContext, query: RunsQuery) -> Response:
    """List runs, newest first. `query` is a text to find in problems, answers, errors and thoughts."""
    return reply(await runs.list_runs(context.app, **structs.asdict(query)))


async def compare_runs(context: RequestContext, query: DiffQuery) -> Response:
    """Compare two runs: return the first point where they differ, and all other differences."""
    first, second = [await context.app.engine.record(run_id) for run_id in (query.a, query.b)]
    return reply(await asyncio.to_thread(diff_runs, first, second))


async def read_run(context: RequestContext, run_id: str) -> Response:
    """Return the state of a run."""
    return reply(await run_document(context.app, run_id))


async def read_page(context: RequestContext, run_id: str) -> Response:
    """Return the document from which the web page draws the current state of a run."""
    engine, known = context.app.engine, context.request.headers.get("if-none-match", "")
    if known and (headers := page_headers(*await engine.last_line(run_id)))["ETag"] in known:
        return Response(status_code=304, headers=headers)
    view = await engine.view(run_id)
    return reply(await page_of_view(context.app, view), headers=page_headers(view.last.seq, view.last.digest))


async def replay_run(context: RequestContext, run_id: str) -> Response:
    """Replay a run from its journal without a model. Compare the path, thoughts and outcome with the recorded run."""
    document = await context.app.engine.replay(run_id)
    return reply({name: document[name] for name in ReplayDocument.__annotations__})


# -- following


async def follow_run(context: RequestContext, run_id: str, query: EventsQuery) -> ASGIApp:
    """Stream the past and new events of a run after position `after`, each event once. `text` adds pieces of answers.

    In each event, `event` is the kind, `id` is the position in the run's journal, and `data` is a JSON document.
    """
    after = query.after
    if last_id := context.request.headers.get("last-event-id"):
        # A client that connects again names the last event that it received.
        after = read_form({"after": last_id}, EventsQuery, strict=False).after
    row, (last, _) = await context.app.store.run(run_id), await context.app.engine.last_line(run_id)
    if after > last:
        raise UsageError(f"run {run_id} has no event {after}; its last one is {last}", field="after")
    if after == last and row.status != "active":
        return Response(status_code=204)
    return stream_events(context, _pieces(context, run_id, after, text=query.text))


async def _pieces(
    context: RequestContext, run_id: str, after: int, *, text: bool
) -> AsyncGenerator[Document]:
    """Yield the events of a run after a position in the journal, until the run ends or the server drains."""
    ended = False
    async with aclosing(context.supervisor.watch(context.app, run_id, after, text=text)) as events:
        async for event in events:
            place = {} if event.id is None else {"id": str(event.id)}
            yield {**place, "event": event.kind, "data": msgspec.json.encode(event.data).decode()}
            ended = event.kind == "ended"
    if not ended and context.supervisor.draining:
        # A returning client continues after the last event with an id.
        yield {"event": "draining", "data": "{}"}


# -- commands


async def answer_questions(context: RequestContext, run_id: str, body: AnswersBody) -> Response:
    """Answer questions of a coached run. The reply contains the next questions.

    Readable answers are recorded. Unreadable answers cause the error `answer_refused`, with the run's state in `run`.
    """
    try:
        await runs.coach_answer(context.app, run_id, body.answers, body.participants())
    except AnswerRefusedError as error:
        error.status = {"run": await run_document(context.app, run_id)}
        raise
    return await read_run(context, run_id)


async def cancel_run(context: RequestContext, run_id: str) -> Response:
    """Cancel a run. You can resume it later."""
    await context.supervisor.cancel(context.app, run_id)
    return await read_run(context, run_id)


async def pause_run(context: RequestContext, run_id: str) -> Response:
    """Pause a run. No new calls start, and unfinished calls run to their end."""
    await context.supervisor.pause(context.app, run_id)
    return await read_run(context, run_id)


async def resume_run(context: RequestContext, run_id: str, body: ResumeBody) -> Response:
    """Resume a run after a pause, a cancellation, a limit or a failure. Answered questions are not asked again.

    A finished run does not change.
    """
    source = await context.app.engine.recorded_run(run_id)
    budget = None if body.budget is None else structs.replace(source.budget, **limits_in(body.budget))
    if body.is_coached(source.participants.model == CALLER):
        await runs.coach_take_over(context.app, run_id, body.participants(), budget)
    else:
        await context.supervisor.resume(context.app, run_id, body.participants(), budget, job=JobOptions())
    return await read_run(context, run_id)


async def set_limits(context: RequestContext, run_id: str, body: ChangedLimits) -> Response:  # pyright: ignore
    """Raise or lower the limits of a run that has not ended."""
    await context.supervisor.set_limits(context.app, run_id, limits_in(body))
    return await read_run(context, run_id)


async def delete_run(context: RequestContext, run_id: str) -> Response:
    """Delete a run that has ended, and the session with the thoughts of this run."""
    return reply(await runs.delete_run(context.app, run_id))


_BEGUN = {200: "The run that the same request began before."}
_CHANGED = {409: "The run's strategy has changed since, or is not installed."}
_OVER = {204: "The run has ended, and nothing comes after that event; do not come back."}
IDEMPOTENCY_KEY = {"Idempotency-Key": {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS}}
_LAST = {"Last-Event-ID": {"type": "string", "pattern": r"^[0-9]{1,15}$"}}
_RUN = "/api/runs/{run_id}"

OPERATIONS = (
    Operation("POST", "/api/runs", start_run, RunDocument, 201, _BEGUN, IDEMPOTENCY_KEY),
    Operation("GET", "/api/runs", list_runs, RunListDocument),
    Operation("GET", "/api/runs/diff", compare_runs, DiffDocument),
    Operation("GET", _RUN, read_run, RunDocument),
    Operation("DELETE", _RUN, delete_run, DeletedSessionDocument),
    Operation("GET", f"{_RUN}/page", read_page, PageDocument, *IF_CHANGED),
    Operation("GET", f"{_RUN}/replay", replay_run, ReplayDocument, others=_CHANGED),
    Operation("GET", f"{_RUN}/events", follow_run, str, 200, _OVER, _LAST, media_type="text/event-stream"),
    Operation("POST", f"{_RUN}/answers", answer_questions, RunDocument),
    Operation("POST", f"{_RUN}/cancel", cancel_run, RunDocument),
    Operation("POST", f"{_RUN}/pause", pause_run, RunDocument),
    Operation("POST", f"{_RUN}/resume", resume_run, RunDocument),
    Operation("PATCH", f"{_RUN}/budget", set_limits, RunDocument),
    Operation("POST", f"{_RUN}/fork", fork_run, RunDocument, 201, _BEGUN, IDEMPOTENCY_KEY),
)
