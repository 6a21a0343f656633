"""The routes under `/v1`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Literal, TypedDict, TypeVar
from uuid import UUID

import msgspec
from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from ....errors import NotFoundError, ReasonryError, UsageError, WorldError
from ....models.nesting import HEADER, enter_nested
from ..context import RequestContext
from ..documents import read_key, reply
from ..operations import Operation
from .chat import ChatChunks, ChatFields, completion_of, read_chat
from .completion import CompletionChoice, Finish, begin, follow, go_on
from .conversation import Utterance, turns_of
from .names import model_ids, read_name
from .replies import DONE, error_body, event_lines, run_header, stream
from .request import CompletionRequest, StreamOptions, read_fields
from .responses import ResponseEvents, ResponseFields, ResponseRequest, read_response

T = TypeVar("T")

_GONE = Response(status_code=499)


class ModelDocument(TypedDict):
    """What may be named as a model."""

    id: str
    object: Literal["model"]


class ModelList(TypedDict):
    """All that may be named as a model."""

    object: Literal["list"]
    data: list[ModelDocument]


class ChatCompletion(TypedDict):
    """The answer, or the calls to make."""

    id: str
    object: Literal["chat.completion"]
    choices: list[Any]


class ResponseDocument(TypedDict):
    """The answer, or the calls to make."""

    id: str
    object: Literal["response"]
    output: list[Any]


async def list_models(context: RequestContext) -> Response:
    """List what may be named as a model: each strategy, alone and with each model of this server."""
    names = model_ids(context.app.strategies, context.access.allowed)
    return reply({"object": "list", "data": [_model_document(name) for name in names]})


async def read_model(context: RequestContext, name: str) -> Response:
    """Return what may be named as a model, or that it may not."""
    read_name(name, context.app.strategies, context.access.allowed)
    return reply(_model_document(name))


async def create_chat_completion(context: RequestContext, body: ChatFields) -> Response:
    """Solve the last message of a conversation, and reply with the answer as a chat completion."""
    wanted = read_chat(body)
    choices = await _choices(context, wanted, body)
    runs = [choice.run_id for choice in choices]
    completion_id = f"chatcmpl-{_suffix(choices[0])}"
    if wanted.stream:
        chunks = ChatChunks(completion_id, wanted.model, include_usage=wanted.include_usage)
        return _stream(context, _chat_events(context, wanted, choices, chunks), runs)
    ends = await _unless_gone(context.request, _tell_whole(context, wanted, choices))
    if ends is None:
        return _GONE
    document = completion_of(completion_id, wanted.model, ends)
    return reply(document, headers=run_header(runs))


async def create_response(context: RequestContext, body: ResponseFields) -> Response:
    """Solve what is put in, and reply with the answer as a response."""
    asked = read_response(body)
    wanted = asked.after(await _turns_before(context, asked))
    choices = await _choices(context, wanted, body)
    runs = [choices[0].run_id]
    events = ResponseEvents(f"resp_{_suffix(choices[0])}", asked)
    if wanted.stream:
        return _stream(context, _response_events(context, wanted, choices, events), runs)
    ends = await _unless_gone(context.request, _tell_whole(context, wanted, choices))
    if ends is None:
        return _GONE
    thoughts, finish = ends[0]
    *_, last = [*events.begin(), *(events.think(thoughts) if thoughts else ()), *events.finish(finish)]
    return reply(last["response"], headers=run_header(runs))


async def _choices(
    context: RequestContext, wanted: CompletionRequest, fields: ChatFields | ResponseFields
) -> list[CompletionChoice]:
    enter_nested(context.request.headers.get(HEADER))
    if wanted.stream:
        # There must be room for one more before anything is begun.
        with context.wiring.stream(context.principal):
            pass
    if wanted.results:
        return [await go_on(context, wanted)]
    return await begin(context, wanted, read_key(context.request), _digest(fields))


def _digest(fields: ChatFields | ResponseFields) -> bytes:
    """Return what is the same for the same request, however it is written down and whether it is streamed or not."""
    asked = structs.replace(fields, stream=False, stream_options=StreamOptions())
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).digest()


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
) -> list[tuple[str, Finish]]:
    """Return what each run thought, and how it ended."""

    async def tell(choice: CompletionChoice) -> tuple[str, Finish]:
        thoughts = list[str]()
        async with aclosing(follow(context, wanted, choice)) as pieces:
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
) -> AsyncGenerator[tuple[int, str | Finish]]:
    """Yield what the runs think, and how each ends, as it comes, with the place of the choice."""
    queue = asyncio.Queue[tuple[int, str | Finish | Exception]](100)

    async def tell(place: int, choice: CompletionChoice) -> None:
        try:
            async with aclosing(follow(context, wanted, choice)) as pieces:
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
    chunks: ChatChunks,
) -> AsyncGenerator[bytes]:
    finishes: dict[int, Finish] = {}
    for place in range(len(choices)):
        yield event_lines(chunks.begin(place))
    try:
        async with aclosing(_tell(context, wanted, choices)) as pieces:
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
    events: ResponseEvents,
) -> AsyncGenerator[bytes]:
    def lines(documents: Iterator[dict[str, Any]]) -> Iterator[bytes]:
        return (event_lines(event, event["type"]) for event in documents)

    for line in lines(events.begin()):
        yield line
    try:
        async with aclosing(_tell(context, wanted, choices)) as pieces:
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


_FAILURES = {
    404: "There is no such strategy, or the operator has not listed the model.",
    409: "The key stands for another request, or the run is at work for another.",
    499: "The run was cancelled.",
    501: "A part of the installation is missing.",
    502: "The model, a tool or what they said failed the run.",
    504: "The model or a tool did not answer in time.",
}

OPERATIONS = (
    Operation("GET", "/v1/models", list_models, ModelList),
    Operation("GET", "/v1/models/{name:path}", read_model, ModelDocument),
    Operation(
        "POST",
        "/v1/chat/completions",
        create_chat_completion,
        ChatCompletion,
        others=_FAILURES,
        headers=["Idempotency-Key"],
        reads=read_fields,
    ),
    Operation(
        "POST",
        "/v1/responses",
        create_response,
        ResponseDocument,
        others=_FAILURES,
        headers=["Idempotency-Key"],
        reads=read_fields,
    ),
)
