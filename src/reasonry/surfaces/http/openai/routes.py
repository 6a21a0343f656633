"""The routes under `/v1`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, TypeVar
from uuid import UUID

from fastapi import APIRouter, Request, Response

from ....errors import NotFoundError, ReasonryError, UsageError, WorldError
from ....models.nesting import HEADER, enter_nested
from ..context import Context, RequestContext
from ..documents import describe_body, describe_reply, object_schema, read_json, reply
from ..plain_route import PlainRoute
from ..schema import error_responses
from .attendance import Attendance
from .chat import ChatChunks, ChatFields, completion_of, read_chat
from .completion import CompletionChoice, Finish, begin, follow, go_on
from .conversation import Utterance, turns_of
from .names import model_ids, read_name
from .replies import DONE, KEY, error_body, event_lines, run_header, stream
from .request import CompletionRequest
from .responses import ResponseEvents, ResponseFields, ResponseRequest, read_response

router = APIRouter(prefix="/v1", tags=["openai"])
completing = APIRouter(prefix="/v1", tags=["openai"], route_class=PlainRoute)

T = TypeVar("T")

MAX_KEY_CHARS = 200
_GONE = Response(status_code=499)

_MODEL = object_schema({"id": {"type": "string"}, "object": {"const": "model"}})
_MODELS = object_schema({"object": {"const": "list"}, "data": {"type": "array", "items": _MODEL}})
_TEXT = {"type": "string"}
_COMPLETION = object_schema(
    {"id": _TEXT, "object": {"const": "chat.completion"}, "choices": {"type": "array"}}
)
_RESPONSE = object_schema({"id": _TEXT, "object": {"const": "response"}, "output": {"type": "array"}})
_FAILURES = error_responses(
    {
        404: "There is no such strategy, or the operator has not listed the model.",
        409: "The key stands for another request, or the run is at work for another.",
        499: "The run was cancelled.",
        501: "A part of the installation is missing.",
        502: "The model, a tool or what they said failed the run.",
        504: "The model or a tool did not answer in time.",
    }
)


@router.get("/models", responses={200: describe_reply(_MODELS, "The names.")})
async def list_models(context: Context) -> Response:
    """List what may be named as a model: each strategy, alone and with each model of this server."""
    names = model_ids(context.app.strategies, context.access.allowed)
    return reply({"object": "list", "data": [_model_document(name) for name in names]})


@router.get("/models/{name:path}", responses={200: describe_reply(_MODEL, "The name.")})
async def read_model(context: Context, name: str) -> Response:
    """Return what may be named as a model, or that it may not."""
    read_name(name, context.app.strategies, context.access.allowed)
    return reply(_model_document(name))


@completing.post(
    "/chat/completions",
    openapi_extra=describe_body(ChatFields),
    responses={200: describe_reply(_COMPLETION, "The answer, or the calls to make."), **_FAILURES},
)
async def create_chat_completion(context: Context, request: Request) -> Response:
    """Solve the last message of a conversation, and reply with the answer as a chat completion."""
    return await _chat(context, request)


@completing.post(
    "/responses",
    openapi_extra=describe_body(ResponseFields),
    responses={200: describe_reply(_RESPONSE, "The answer, or the calls to make."), **_FAILURES},
)
async def create_response(context: Context, request: Request) -> Response:
    """Solve what is put in, and reply with the answer as a response."""
    return await _respond(context, request)


async def _chat(context: RequestContext, request: Request) -> Response:
    body = await read_json(request)
    wanted = read_chat(body)
    choices = await _choices(context, request, wanted, body)
    attendance, runs = _attendance(request), [choice.run_id for choice in choices]
    completion_id = f"chatcmpl-{_suffix(choices[0])}"
    if wanted.stream:
        chunks = ChatChunks(completion_id, wanted.model, include_usage=wanted.include_usage)
        return _stream(context, _chat_events(context, wanted, choices, attendance, chunks), runs)
    ends = await _unless_gone(request, _tell_whole(context, wanted, choices, attendance))
    if ends is None:
        return _GONE
    document = completion_of(completion_id, wanted.model, ends)
    return reply(document, headers=run_header(runs))


async def _respond(context: RequestContext, request: Request) -> Response:
    body = await read_json(request)
    asked = read_response(body)
    wanted = asked.after(await _turns_before(context, asked))
    choices = await _choices(context, request, wanted, body)
    attendance, runs = _attendance(request), [choices[0].run_id]
    events = ResponseEvents(f"resp_{_suffix(choices[0])}", asked)
    if wanted.stream:
        return _stream(context, _response_events(context, wanted, choices, attendance, events), runs)
    ends = await _unless_gone(request, _tell_whole(context, wanted, choices, attendance))
    if ends is None:
        return _GONE
    thoughts, finish = ends[0]
    *_, last = [*events.begin(), *(events.think(thoughts) if thoughts else ()), *events.finish(finish)]
    return reply(last["response"], headers=run_header(runs))


async def _choices(
    context: RequestContext, request: Request, wanted: CompletionRequest, body: Mapping[str, Any]
) -> list[CompletionChoice]:
    enter_nested(request.headers.get(HEADER))
    if wanted.stream:
        # There must be room for one more before anything is begun.
        with context.wiring.stream(context.principal):
            pass
    if wanted.results:
        return [await go_on(context, wanted)]
    key = request.headers.get(KEY)
    if key is not None and not 0 < len(key) <= MAX_KEY_CHARS:
        raise UsageError(f"Idempotency-Key: from 1 to {MAX_KEY_CHARS} characters", field="Idempotency-Key")
    return await begin(context, wanted, key, body)


async def _turns_before(context: RequestContext, asked: ResponseRequest) -> Sequence[Utterance]:
    """Return what was said in the response that this one goes on from, and before it."""
    if asked.previous is None:
        return ()
    run_id = _run_of(asked.previous)
    try:
        begun, *_ = await context.app.engine.terms(run_id)
        return turns_of(begun.problem, (await context.app.engine.result(run_id)).answer)
    except NotFoundError:
        raise _no_response(asked.previous) from None


def _run_of(response_id: str) -> str:
    written = response_id.removeprefix("resp_").partition("_")[0]
    try:
        run_id = str(UUID(written))
    except ValueError:
        raise _no_response(response_id) from None
    if not response_id.startswith("resp_"):
        raise _no_response(response_id)
    return run_id


def _no_response(response_id: str) -> UsageError:
    message = f"previous_response_id: there is no response {response_id[:80]!r}"
    return UsageError(message, field="previous_response_id", code="previous_response_not_found")


def _suffix(choice: CompletionChoice) -> str:
    """Return what names a reply: its run, and the results it goes on with."""
    effects = "-".join(sorted(effect.replace("/", "-") for effect in choice.results))
    return UUID(choice.run_id).hex + (f"_{effects}"[:100] if effects else "")


def _attendance(request: Request) -> Attendance:
    state = request.app.state
    if not hasattr(state, "attendance"):
        state.attendance = Attendance()
    return state.attendance


# -- telling


def _stream(context: RequestContext, lines: AsyncGenerator[bytes], runs: Sequence[str]) -> Response:
    async def while_counted() -> AsyncGenerator[bytes]:
        with context.wiring.stream(context.principal):
            async with aclosing(lines):
                async for line in lines:
                    yield line

    return stream(while_counted(), runs)


async def _tell_whole(
    context: RequestContext,
    wanted: CompletionRequest,
    choices: Sequence[CompletionChoice],
    attendance: Attendance,
) -> list[tuple[str, Finish]]:
    """Return what each run thought, and how it ended."""

    async def tell(choice: CompletionChoice) -> tuple[str, Finish]:
        thoughts = list[str]()
        async with aclosing(follow(context, wanted, choice, attendance)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Finish):
                    return "".join(thoughts), piece
                thoughts.append(piece)
        raise AssertionError("a run that is followed ends")

    tasks = [asyncio.create_task(tell(choice)) for choice in choices]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await _drop(tasks)


async def _tell(
    context: RequestContext,
    wanted: CompletionRequest,
    choices: Sequence[CompletionChoice],
    attendance: Attendance,
) -> AsyncGenerator[tuple[int, str | Finish]]:
    """Yield what the runs think, and how each ends, as it comes, with the place of the choice."""
    queue = asyncio.Queue[tuple[int, str | Finish | Exception]](100)

    async def tell(place: int, choice: CompletionChoice) -> None:
        try:
            async with aclosing(follow(context, wanted, choice, attendance)) as pieces:
                async for piece in pieces:
                    await queue.put((place, piece))
        except Exception as error:
            await queue.put((place, error))

    tasks = [asyncio.create_task(tell(place, choice)) for place, choice in enumerate(choices)]
    open_choices = len(choices)
    try:
        while open_choices:
            place, piece = await queue.get()
            if isinstance(piece, Exception):
                raise piece
            yield place, piece
            open_choices -= isinstance(piece, Finish)
    finally:
        await _drop(tasks)


async def _drop(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _chat_events(
    context: RequestContext,
    wanted: CompletionRequest,
    choices: Sequence[CompletionChoice],
    attendance: Attendance,
    chunks: ChatChunks,
) -> AsyncGenerator[bytes]:
    finishes: dict[int, Finish] = {}
    for place in range(len(choices)):
        yield event_lines(chunks.begin(place))
    try:
        async with aclosing(_tell(context, wanted, choices, attendance)) as pieces:
            async for place, piece in pieces:
                if isinstance(piece, Finish):
                    finishes[place] = piece
                    for chunk in chunks.finish(place, piece):
                        yield event_lines(chunk)
                else:
                    yield event_lines(chunks.think(place, piece))
    except Exception as error:
        yield event_lines(error_body(_own_error(error), context.request_id))
        return
    for chunk in chunks.close([finish for _, finish in sorted(finishes.items())]):
        yield event_lines(chunk)
    yield DONE


async def _response_events(
    context: RequestContext,
    wanted: CompletionRequest,
    choices: Sequence[CompletionChoice],
    attendance: Attendance,
    events: ResponseEvents,
) -> AsyncGenerator[bytes]:
    def lines(documents: Iterator[dict[str, Any]]) -> Iterator[bytes]:
        return (event_lines(event, event["type"]) for event in documents)

    for line in lines(events.begin()):
        yield line
    try:
        async with aclosing(_tell(context, wanted, choices, attendance)) as pieces:
            async for _, piece in pieces:
                for line in lines(events.finish(piece) if isinstance(piece, Finish) else events.think(piece)):
                    yield line
    except Exception as error:
        for line in lines(events.fail(_own_error(error))):
            yield line


def _own_error(error: Exception) -> ReasonryError:
    if isinstance(error, ReasonryError):
        return error
    return WorldError("internal error; the server's log has it", code="internal_error")


async def _unless_gone(request: Request, work: Awaitable[T]) -> T | None:
    """Do work until the client hangs up; then the work is cancelled and nothing comes of it."""

    async def hang_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, gone = asyncio.ensure_future(work), asyncio.create_task(hang_up())
    try:
        await asyncio.wait([working, gone], return_when=asyncio.FIRST_COMPLETED)
        return await working if working.done() else None
    finally:
        await _drop([working, gone])


def _model_document(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "reasonry"}
