"""The routes under `/v1`, and what comes of a request: told as a stream of events, or whole; the same for both APIs."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, Literal, TypedDict
from uuid import UUID

import msgspec
from msgspec import structs
from sse_starlette.sse import EventSourceResponse
from starlette.requests import Request
from starlette.responses import Response

from ....errors import NotFoundError, ReasonryError, UsageError, WorldError
from ....models.http_session import HEADER, enter_nested
from ..context import RequestContext
from ..documents import read_json, read_key, reply, run_header
from ..operations import Operation
from .chat import ChatTelling
from .completion import Completion, Finish, begin, follow, go_on
from .conversation import Message, messages_of, read_messages, results_in
from .request import (
    ChatFields,
    ResponseFields,
    SharedFields,
    StreamOptions,
    model_ids,
    passed_over,
    read_fields,
    read_name,
)
from .responses import ResponseTelling

Document = dict[str, Any]

PING_S: Final = 15
"""A stream in which nothing happens says so that often, for proxies that give up on silence."""


Telling = ChatTelling | ResponseTelling
"""How one of the two APIs tells what comes of a request, event by event."""


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
    names = model_ids(context.app.strategies, context.app.allowed)
    return reply({"object": "list", "data": [_model_document(name) for name in names]})


async def read_model(context: RequestContext, name: str) -> Response:
    """Return what may be named as a model, or that it may not."""
    read_name(name, context.app.strategies, context.app.allowed)
    return reply(_model_document(name))


async def create_chat_completion(context: RequestContext, body: ChatFields) -> Response:
    """Solve the last message of a conversation, and reply with the answer as a chat completion."""
    return await _complete(context, body, body, lambda suffix: ChatTelling(suffix, body))


async def create_response(context: RequestContext, body: ResponseFields) -> Response:
    """Solve what is put in, and reply with the answer as a response."""
    wanted = body.as_chat(await _said_before(context, body.previous_response_id))
    return await _complete(context, body, wanted, lambda suffix: ResponseTelling(suffix, body))


async def _complete(
    context: RequestContext,
    fields: SharedFields,
    wanted: ChatFields,
    telling_of: Callable[[str], Telling],
) -> Response:
    """Return what comes of the run of a request: as a stream, or whole once it has ended."""
    enter_nested(context.request.headers.get(HEADER))
    if wanted.stream:
        # There must be room for one more before anything is begun.
        with context.wiring.stream(context.principal):
            pass
    conversation = read_messages(wanted.messages)
    # An answer that must be a call is one of a run that begins now: what was called before is quoted in it.
    if brought := {} if wanted.forced else results_in(conversation.turns):
        completion = await go_on(context, wanted, brought)
    else:
        # The same for the same request, however it is written down and whether it is streamed or not.
        asked = structs.replace(fields, stream=False, stream_options=StreamOptions())
        digest = hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).digest()
        warnings = passed_over(await read_json(context.request), type(fields))
        key = read_key(context.request)
        completion = await begin(context, wanted, conversation, key, digest, warnings)
    telling, headers = telling_of(_suffix(completion)), run_header(completion.run_id)
    events = _events(follow(context, wanted, completion), telling)
    if wanted.stream:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no", **headers}
        return EventSourceResponse(_lines(context, events, telling), headers=headers, ping=PING_S)
    return await _whole(context.request, events, telling, headers)


async def _events(pieces: AsyncGenerator[str | Finish], telling: Telling) -> AsyncGenerator[Document]:
    for event in telling.begin():
        yield event
    async with aclosing(pieces):
        async for piece in pieces:
            for event in telling.think(piece) if isinstance(piece, str) else telling.finish(piece):
                yield event


async def _lines(
    context: RequestContext, events: AsyncGenerator[Document], telling: Telling
) -> AsyncGenerator[bytes]:
    with context.wiring.stream(context.principal):
        try:
            async with aclosing(events):
                async for event in events:
                    yield _event_lines(event)
        except Exception as error:
            if not isinstance(error, ReasonryError):
                error = WorldError("internal error; the server's log has it", code="internal_error")
            yield _event_lines(telling.fail(error, context.request_id))
            return
        if telling.last_line:
            yield telling.last_line


def _event_lines(document: Document) -> bytes:
    """Return a document as one event of a stream, which has the name of its type."""
    head = f"event: {document['type']}\n".encode() if "type" in document else b""
    return head + b"data: " + msgspec.json.encode(document) + b"\n\n"


async def _whole(
    request: Request, events: AsyncGenerator[Document], telling: Telling, headers: Mapping[str, str]
) -> Response:
    """Return the whole reply; nothing comes of it where the client hangs up before."""

    async def tell() -> Response:
        async with aclosing(events):
            async for _ in events:
                pass
        return reply(telling.whole, headers=headers)

    async def hang_up() -> Response:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        return Response(status_code=499)

    tasks = [asyncio.create_task(tell()), asyncio.create_task(hang_up())]
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return await min(ended, key=tasks.index)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _said_before(context: RequestContext, response_id: str | None) -> list[Message]:
    """Return what was said in a response, and before it."""
    if response_id is None:
        return []
    written = response_id.removeprefix("resp_").partition("_")[0]
    try:
        source = await context.app.engine.recorded_run(str(UUID(written)))
    except (ValueError, NotFoundError):
        raise UsageError(
            f"previous_response_id: there is no response {response_id[:80]!r}",
            field="previous_response_id",
            code="previous_response_not_found",
        ) from None
    standing = await context.app.engine.standing_of(source.row, source.lines)
    return messages_of(source.begun.problem, standing.record.result.answer)


def _suffix(completion: Completion) -> str:
    """Return what names a reply: its run, and the results it goes on with."""
    effects = "-".join(sorted(effect.replace("/", "-") for effect in completion.results))
    return UUID(completion.run_id).hex + (f"_{effects}"[:100] if effects else "")


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
