"""Runs: started, looked at, followed and steered."""

from __future__ import annotations

import asyncio
import functools
import hashlib
from typing import Annotated, Final, Literal

import msgspec
from fastapi import APIRouter, Header, Query, Request, Response

from ...engine.coach import Coach
from ...engine.journal import CALLER
from ...engine.run_diff import diff_runs
from ...errors import AnswerRefusedError, ConflictError, NotFoundError, UsageError
from ...guided.arguments import bad_cursor
from ...records import JobOptions
from ...supervisor.supervisor import request_key
from ..agent_calls import AnswerCoached, ForkRun, ResumeRun
from ..web.find_page import page_of_standing
from ..web.run_page import effect_of
from .context import Context, RequestContext
from .documents import describe_body, describe_reply, object_schema, read_body, reply
from .run_calls import AnswersBody, ChangedLimits, ForkBody, ListName, ResumeBody, StartRun, change_limits
from .run_documents import ROW_SCHEMA, RUN_SCHEMA, STRING, row_document, run_document, trace_page
from .run_events import EVENTS_SCHEMA, RunStream, position_after
from .schema import error_responses

router = APIRouter(prefix="/api", tags=["runs"])

RUNS_A_PAGE: Final = 50
MAX_RUNS_A_PAGE: Final = 200
ENTRIES_A_PAGE: Final = 100
MAX_ENTRIES_A_PAGE: Final = 500
MAX_NAME_CHARS: Final = 200
MAX_INSTANT_MS: Final = 2**53 - 1

_RUN = describe_reply(RUN_SCHEMA, "Where the run stands.")
_CURSOR = {"next_cursor": {"type": ["string", "null"]}}
_CONFLICT = error_responses({409: "The run does not allow this as it stands; the message says why."})

Name = Annotated[str | None, Query(min_length=1, max_length=MAX_NAME_CHARS)]
Instant = Annotated[int | None, Query(ge=0, le=MAX_INSTANT_MS)]
Key = Annotated[str | None, Header(alias="Idempotency-Key", min_length=1, max_length=MAX_NAME_CHARS)]


# -- begun


@router.post(
    "/runs",
    status_code=201,
    responses={
        201: _RUN,
        200: describe_reply(RUN_SCHEMA, "The run that the same request began before."),
        **_CONFLICT,
    },
    openapi_extra=describe_body(StartRun),
)
async def start_run(context: Context, request: Request, idempotency_key: Key = None) -> Response:
    """Begin a run; a model, or its caller, answers its questions."""
    body = await read_body(request, StartRun)
    is_coached = body.mode == "coached"
    order, performers = await context.access.order(body.request())
    digest = await _digest(request)
    if not is_coached:
        started = await context.supervisor.start(
            context.app, order, performers, key=idempotency_key, digest=digest, job=JobOptions()
        )
    else:
        key = request_key(idempotency_key, digest)
        run_id, written = await context.app.engine.accept_once(order, key=key)
        if written is not None:
            await Coach(context.app.engine).go_on(run_id, performers)
        started = run_id, written is not None
    return await _begun_reply(context, *started)


async def _digest(request: Request) -> bytes:
    return hashlib.sha256(request.url.path.encode() + b"\n" + await request.body()).digest()


async def _begun_reply(context: RequestContext, run_id: str, is_new: bool) -> Response:
    location = {"Location": f"/api/runs/{run_id}"}
    return reply(await run_document(context.app, run_id), 201 if is_new else 200, location)


@router.post(
    "/runs/{run_id}/fork",
    status_code=201,
    responses={
        201: _RUN,
        200: describe_reply(RUN_SCHEMA, "The run that the same request began before."),
        **_CONFLICT,
    },
    openapi_extra=describe_body(ForkBody),
)
async def fork_run(context: Context, request: Request, run_id: str, idempotency_key: Key = None) -> Response:
    """Begin a run from a point of another; what it takes over costs nothing."""
    body = await read_body(request, ForkBody)
    app = context.app
    _, recorded, names = await app.engine.terms(run_id)
    at, question = await _fork_point(context, run_id, body)
    reworded = {} if body.prompt is None or question is None else {question: body.prompt}
    limits = change_limits(recorded, body.budget)
    if body.is_coached(names.model == CALLER):
        call = ForkRun(at=at, options=body.options, **msgspec.structs.asdict(body.as_listed_parts()))
        key = request_key(idempotency_key, await _digest(request))
        document, is_new = await context.access.coach_fork(run_id, call, limits, reworded, key)
        return await _begun_reply(context, document["runId"], is_new)
    participants = await context.access.participants_again(run_id, body.as_listed_parts(), body.model)
    started = await context.supervisor.fork(
        app,
        run_id,
        at,
        participants,
        body.options,
        limits,
        reworded=reworded,
        key=idempotency_key,
        digest=await _digest(request),
        job=JobOptions(),
    )
    return await _begun_reply(context, *started)


async def _fork_point(context: RequestContext, run_id: str, body: ForkBody) -> tuple[int, str | None]:
    """Return how many answers a fork takes over, and the question that it asks anew, if one is meant.

    Raises:
        UsageError: There is no such question or node.
        ConflictError: The question was not waited for any longer.
    """
    if isinstance(body.start, int):
        if body.prompt is not None:
            raise UsageError("prompt needs a question or node in `from`, not a number", field="prompt")
        return body.start, None
    record, name = await context.app.engine.record(run_id), body.start
    is_asked = body.prompt is not None
    question = await asyncio.to_thread(lambda: effect_of(record, name, only_questions=is_asked))
    if question is None:
        message = (
            f"run {run_id} has no question {name!r}, and no node of that id that anything was asked about"
        )
        raise UsageError(message, field="from")
    settled = [event["id"] for event in record.entries("events") if event["id"] is not None]
    if question in settled:
        return len(settled) - 1 - settled[::-1].index(question), question
    if record.result.status == "done":
        message = f"question {question} was not waited for any longer; fork from one that was answered"
        raise ConflictError(message, field="from")
    return len(settled), question


# -- looked at


@router.get(
    "/runs",
    responses={
        200: describe_reply(
            object_schema({"runs": {"type": "array", "items": ROW_SCHEMA}, **_CURSOR}), "Runs, newest first."
        )
    },
)
async def list_runs(
    context: Context,
    status: Literal["active", "done", "failed", "cancelled"] | None = None,
    strategy: Name = None,
    model: Name = None,
    query: Name = None,
    since_ms: Instant = None,
    until_ms: Instant = None,
    limit: Annotated[int, Query(ge=1, le=MAX_RUNS_A_PAGE)] = RUNS_A_PAGE,
    cursor: Name = None,
) -> Response:
    """List runs, newest first; those whose problem, answer or thoughts contain `query`."""
    try:
        rows = await context.app.store.runs(
            status=status,
            strategy=strategy,
            model=model,
            query=query,
            since_ms=since_ms,
            until_ms=until_ms,
            limit=limit + 1,
            before=cursor,
        )
    except NotFoundError:
        raise bad_cursor(cursor or "") from None
    shown = rows[:limit]
    more = shown[-1].run_id if len(rows) > limit else None
    left = await context.app.resumable(shown)
    entries = [row_document(row, resumable=row.run_id in left) for row in shown]
    return reply({"runs": entries, "next_cursor": more})


@router.get(
    "/runs/diff",
    responses={
        200: describe_reply(
            object_schema(
                {
                    "runs": {"type": "object"},
                    "parting": {"type": ["object", "null"]},
                    "spend": {"type": "array"},
                    "terms": {"type": "array"},
                }
            ),
            "Where two runs part and what differs between them; as `reasonry runs diff --json`.",
        ),
        **error_responses({404: "There is no such run, or it is another's."}),
    },
)
async def compare_runs(
    context: Context,
    a: Annotated[str, Query(min_length=1, max_length=MAX_NAME_CHARS)],
    b: Annotated[str, Query(min_length=1, max_length=MAX_NAME_CHARS)],
) -> Response:
    """Say where two runs part, and what came of it."""
    first, second = [await context.app.engine.record(run_id) for run_id in (a, b)]
    return reply(await asyncio.to_thread(lambda: diff_runs(first, second)))


@router.get("/runs/{run_id}", responses={200: _RUN})
async def read_run(context: Context, run_id: str) -> Response:
    """Return where a run stands."""
    return reply(await run_document(context.app, run_id))


@router.get(
    "/runs/{run_id}/page",
    responses={
        200: describe_reply(
            object_schema({"format": {"type": "integer"}, "id": STRING}), "What a page draws."
        ),
        304: {"description": "It is what the request says it has."},
    },
)
async def read_page(
    context: Context, run_id: str, if_none_match: Annotated[str | None, Header()] = None
) -> Response:
    """Return the page document of a run, as it stands."""
    engine = context.app.engine
    if if_none_match is not None:
        headers = _page_headers(*await engine.last_line(run_id))
        if headers["ETag"] in if_none_match:
            return Response(status_code=304, headers=headers)
    standing = await engine.standing(run_id)
    headers = _page_headers(standing.last.seq, standing.last.digest)
    return reply(await page_of_standing(context.app, standing), headers=headers)


def _page_headers(seq: int, digest: bytes) -> dict[str, str]:
    return {"ETag": f'"{seq}-{digest.hex()}"', "Cache-Control": "private, no-cache"}


@router.get(
    "/runs/{run_id}/trace",
    responses={
        200: describe_reply(
            object_schema(
                {"run_id": STRING, "status": STRING, "list": STRING, "entries": {"type": "array"}, **_CURSOR}
            ),
            "A page of a list of the run's trace; its entries as in `reasonry runs show --json`.",
        )
    },
)
async def read_trace(
    context: Context,
    run_id: str,
    list: ListName = "thoughts",
    limit: Annotated[int, Query(ge=1, le=MAX_ENTRIES_A_PAGE)] = ENTRIES_A_PAGE,
    cursor: Name = None,
) -> Response:
    """Return a page of what the trace of a run has many of."""
    standing = await context.app.engine.standing(run_id)
    return reply(await trace_page(standing, list, limit, cursor))


@router.get(
    "/runs/{run_id}/replay",
    responses={
        200: describe_reply(
            object_schema({"run_id": STRING, "status": STRING, "replay": {"type": "object"}}),
            "Whether the run's journal, walked again without a model, leads to what it left behind.",
        ),
        **_CONFLICT,
    },
)
async def replay_run(context: Context, run_id: str) -> Response:
    """Walk a run again from its journal, without a model, and compare its path, thoughts and outcome."""
    document = await context.app.engine.replay(run_id)
    return reply({name: document[name] for name in ("run_id", "status", "answer", "replay")})


# -- followed


@router.get(
    "/runs/{run_id}/events",
    response_class=Response,
    responses={
        200: {
            "description": "Until the run has ended.",
            "content": {"text/event-stream": {"schema": EVENTS_SCHEMA}},
        },
        204: {"description": "The run has ended, and nothing comes after that event; do not come back."},
    },
)
async def follow_run(
    context: Context,
    run_id: str,
    after: Annotated[int, Query(ge=0, le=MAX_INSTANT_MS)] = 0,
    text: bool = False,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Stream what has happened in a run and what happens, each event once; with `text` answers as they come in."""
    after = position_after(last_event_id, after)
    row, (last, _) = await context.app.store.run(run_id), await context.app.engine.last_line(run_id)
    if after > last:
        message = f"run {run_id} has no event {after}; its last one is {last}"
        raise UsageError(message, field="after")
    if after == last and row.status != "active":
        return Response(status_code=204)
    return RunStream(context, run_id, after, text=text)


# -- steered


@router.post(
    "/runs/{run_id}/answers",
    responses={200: _RUN, **_CONFLICT},
    openapi_extra=describe_body(AnswersBody),
)
async def answer_questions(context: Context, request: Request, run_id: str) -> Response:
    """Answer questions of a coached run; the reply has the next ones.

    Of answers that cannot be read (`answer_refused`) nothing is taken; the error's `run` says where the run stands.
    """
    body = await read_body(request, AnswersBody)
    call = AnswerCoached(answers=body.answers, **msgspec.structs.asdict(body.as_listed_parts()))
    try:
        take = functools.partial(context.supervisor.answer, context.app)
        await context.access.coach_answer(run_id, call, take=take)
    except AnswerRefusedError as error:
        error.standing = {"run": await run_document(context.app, run_id)}
        raise
    return reply(await run_document(context.app, run_id))


@router.post("/runs/{run_id}/cancel", responses={200: _RUN, **_CONFLICT})
async def cancel_run(context: Context, run_id: str) -> Response:
    """End a run; it can be resumed."""
    await context.supervisor.cancel(context.app, run_id)
    return reply(await run_document(context.app, run_id))


@router.post("/runs/{run_id}/pause", responses={200: _RUN, **_CONFLICT})
async def pause_run(context: Context, run_id: str) -> Response:
    """Begin nothing new in a run; what is in flight still comes in."""
    await context.supervisor.pause(context.app, run_id)
    return reply(await run_document(context.app, run_id))


@router.post(
    "/runs/{run_id}/resume", responses={200: _RUN, **_CONFLICT}, openapi_extra=describe_body(ResumeBody)
)
async def resume_run(context: Context, request: Request, run_id: str) -> Response:
    """Go on with a run after a pause, a cancellation, a limit or a failure; nothing recorded is asked again."""
    body = await read_body(request, ResumeBody) if await request.body() else ResumeBody()
    _, recorded, names = await context.app.engine.terms(run_id)
    budget = None if body.budget is None else change_limits(recorded, body.budget)
    if body.is_coached(names.model == CALLER):
        call = ResumeRun(**msgspec.structs.asdict(body.as_listed_parts()))
        await context.access.coach_resume(run_id, call, budget)
    else:
        vetted = await context.access.participants_again(run_id, body.as_listed_parts(), body.model)
        is_as_it_was = names.model != CALLER and body == ResumeBody(mode=body.mode, budget=body.budget)
        named = None if is_as_it_was else vetted
        await context.supervisor.resume(context.app, run_id, named, budget, job=JobOptions())
    return reply(await run_document(context.app, run_id))


@router.patch(
    "/runs/{run_id}/budget", responses={200: _RUN, **_CONFLICT}, openapi_extra=describe_body(ChangedLimits)
)
async def set_limits(context: Context, request: Request, run_id: str) -> Response:
    """Raise or lower the limits of a run that has not ended."""
    changed = await read_body(request, ChangedLimits)
    _, recorded, _ = await context.app.engine.terms(run_id)
    await context.supervisor.set_budget(context.app, run_id, change_limits(recorded, changed))
    return reply(await run_document(context.app, run_id))


@router.delete(
    "/runs/{run_id}",
    responses={
        200: describe_reply(object_schema({"run_id": STRING, "session_id": STRING}), "It is gone, for good."),
        **_CONFLICT,
    },
)
async def delete_run(context: Context, run_id: str) -> Response:
    """Forget a run that has ended, and the session of its thoughts."""
    row = await context.app.store.run(run_id)
    if row.status == "active":
        raise ConflictError(f"run {run_id} has not ended; cancel it first", run_id=run_id)
    await context.sessions.manage({"action": "delete", "sessionId": row.session_id})
    return reply({"run_id": run_id, "session_id": row.session_id})
