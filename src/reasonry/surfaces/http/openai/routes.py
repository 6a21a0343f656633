"""The routes under `/v1`, and what comes of a request: told as a stream of events, or whole; the same for both APIs."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Literal, TypedDict
from uuid import UUID

import msgspec
from msgspec import structs
from starlette.responses import Response

from ....errors import NotFoundError, ReasonryError, UsageError
from ....models.http_session import HEADER, enter_nested
from ..context import RequestContext
from ..documents import RUN, note_error, read_json, read_key, reply
from ..operations import Operation
from ..runs import IDEMPOTENCY_KEY
from ..streams import EventStream
from .completion import Completion, begin, go_on
from .conversation import Message, messages_of, results_in
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
from .telling import ChatTelling, Document, ResponseTelling

Telling = ChatTelling | ResponseTelling
"""How one of the two APIs tells what comes of a request, event by event."""

_RESPONSE_ID = re.compile(r"resp_([0-9a-f]{32})(?:_([e\d.-]+))?")


# -- shown


class ModelDocument(TypedDict):
    """The names that a request may have as its model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelListDocument(TypedDict):
    """All models."""

    object: Literal["list"]
    data: list[ModelDocument]


class ChatCompletionDocument(TypedDict):
    """The answer, or the calls to make; `reasonry` has the run behind it."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Document]
    usage: Document
    reasonry: Document


class ResponseDocument(TypedDict):
    """The answer, or the calls to make; or where the run stands that is to bring it."""

    id: str
    object: Literal["response"]
    created_at: int
    model: str
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
    background: bool
    error: Document | None
    output: list[Document]
    usage: Document | None


class DeletedResponseDocument(TypedDict):
    """A response that is gone, with its run."""

    id: str
    object: Literal["response"]
    deleted: bool


# -- models


async def list_models(context: RequestContext) -> Response:
    """List the models: each strategy, alone and with each model of this server."""
    names = model_ids(context.app.strategies, context.app.allowed)
    return reply({"object": "list", "data": [_model_document(name) for name in names]})


async def read_model(context: RequestContext, name: str) -> Response:
    """Return a model of the list."""
    read_name(name, context.app.strategies, context.app.allowed)
    return reply(_model_document(name))


def _model_document(name: str) -> Document:
    return {"id": name, "object": "model", "created": 0, "owned_by": "reasonry"}


# -- completions and responses


async def create_chat_completion(context: RequestContext, body: ChatFields) -> Response:
    """Solve the last message of a conversation, and reply with the answer as a chat completion."""
    completion = await _take(context, body, body)
    return await _answer(context, body, completion, ChatTelling(_suffix(completion), body))


async def create_response(context: RequestContext, body: ResponseFields) -> Response:
    """Solve the input, and reply with the answer as a response; in the `background`, with its status."""
    fields = body.as_chat(await _read_conversation(context, body.previous_response_id))
    completion = await _take(context, body, fields, background=body.background)
    telling = ResponseTelling(_suffix(completion), body)
    if body.background and not body.stream:
        return reply(telling.response("queued"), headers={RUN: completion.run_id})
    return await _answer(context, fields, completion, telling)


async def _take(
    context: RequestContext, body: SharedFields, fields: ChatFields, *, background: bool = False
) -> Completion:
    """Begin the run of a request, or resume the run for which it brings results."""
    named = read_name(body.model, context.app.strategies, context.app.allowed)
    enter_nested(context.request.headers.get(HEADER))
    if body.stream:
        # There must be room for one more before anything is begun.
        with context.wiring.stream(context.principal):
            pass
    # An answer that must be a call is one of a run that begins now: what was called before is quoted in it.
    if brought := {} if fields.forced else results_in(fields.messages):
        return await go_on(context, fields, brought)
    # The same request may be written differently, and streamed or not.
    asked = structs.replace(body, stream=False, stream_options=StreamOptions())
    return await begin(
        context,
        named,
        fields,
        passed_over(await read_json(context.request), type(body)),
        key=read_key(context.request),
        digest=hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).digest(),
        background=background,
    )


async def _answer(
    context: RequestContext, fields: ChatFields, completion: Completion, telling: Telling
) -> Response:
    """Return the reply to a request: as a stream, or whole once its run has ended."""
    headers, events = {RUN: completion.run_id}, _events(completion, telling)
    if fields.stream:
        return EventStream(context, _lines(context, events, telling), headers)
    whole = asyncio.ensure_future(_whole(events, telling))
    # The body has been read, so a message is that the client hung up.
    hung_up = asyncio.ensure_future(context.request.receive())
    try:
        await asyncio.wait((whole, hung_up), return_when=asyncio.FIRST_COMPLETED)
        return reply(whole.result(), headers=headers) if whole.done() else Response(status_code=499)
    finally:
        whole.cancel()
        hung_up.cancel()


async def _events(completion: Completion, telling: Telling) -> AsyncGenerator[Document]:
    for event in telling.begin():
        yield event
    async with aclosing(completion.follow()) as pieces:
        async for piece in pieces:
            for event in telling.think(piece) if isinstance(piece, str) else telling.finish(piece):
                yield event


async def _lines(
    context: RequestContext, events: AsyncGenerator[Document], telling: Telling
) -> AsyncGenerator[bytes]:
    """Yield events as a stream has them: each with the name of its type, where it has one."""

    def line_of(event: Document) -> bytes:
        head = f"event: {event['type']}\n".encode() if "type" in event else b""
        return head + b"data: " + msgspec.json.encode(event) + b"\n\n"

    try:
        async with aclosing(events):
            async for event in events:
                yield line_of(event)
        yield telling.last_line
    except Exception as error:
        scope = context.request.scope
        yield line_of(telling.fail(note_error(error, scope), scope))


async def _whole(events: AsyncGenerator[Document], telling: Telling) -> Document:
    async with aclosing(events):
        async for _ in events:
            pass
    return telling.whole


# -- responses that are kept


async def read_response(context: RequestContext, response_id: str) -> Response:
    """Return a response, or the status of its run."""
    run_id, results = _run_behind(response_id)
    run = await context.app.engine.recorded_run(run_id)
    names = {spec: f"@{name}" for name, spec in context.app.allowed.models.items()}
    model = run.begun.strategy + names.get(run.row.model, "")
    fields = ResponseFields(model=model, input="", background=run.row.unattended)
    telling = ResponseTelling(response_id.removeprefix("resp_"), fields, run.row.created_at_ms / 1_000)
    if run.row.status == "active" and run.row.outcome != "waiting":
        is_queued = run.row.unattended and not context.supervisor.is_driven(run_id)
        return reply(telling.response("queued" if is_queued else "in_progress"))
    completion = Completion(context, fields.as_chat([]), run_id, results=results, leaves=True)
    try:
        await _whole(_events(completion, telling), telling)
    except ReasonryError as error:
        telling.fail(error, context.request.scope)
    return reply(telling.whole)


async def cancel_response(context: RequestContext, response_id: str) -> Response:
    """End the run of a response."""
    await context.supervisor.cancel(context.app, _run_behind(response_id)[0])
    return await read_response(context, response_id)


async def delete_response(context: RequestContext, response_id: str) -> Response:
    """Delete a response, and its run."""
    await context.app.delete_run(_run_behind(response_id)[0])
    return reply({"id": response_id, "object": "response", "deleted": True})


def _suffix(completion: Completion) -> str:
    """Return the name of a reply: its run, and the results it continues with."""
    effects = "-".join(sorted(effect.replace("/", ".") for effect in completion.results))
    return UUID(completion.run_id).hex + (f"_{effects}" if effects else "")


def _run_behind(response_id: str) -> tuple[str, frozenset[str]]:
    """Return the run of a response, and the results it continues with.

    Raises:
        NotFoundError: It is the id of none.
    """
    found = _RESPONSE_ID.fullmatch(response_id)
    if found is None:
        raise NotFoundError(f"there is no response {response_id[:80]!r}")
    return str(UUID(found[1])), frozenset((found[2] or "").replace(".", "/").split("-")) - {""}


async def _read_conversation(context: RequestContext, response_id: str | None) -> list[Message]:
    """Return the conversation up to a response, its answer included."""
    if response_id is None:
        return []
    try:
        source = await context.app.engine.recorded_run(_run_behind(response_id)[0])
    except NotFoundError as error:
        field, code = "previous_response_id", "previous_response_not_found"
        raise UsageError(f"{field}: {error.message}", field=field, code=code) from None
    view = await context.app.engine.view_of(source.row, source.lines)
    return messages_of(source.begun.problem, view.record.result.answer)


_FAILURES = {
    409: "The key stands for another request, or the run is at work for another.",
    499: "The run was cancelled.",
    501: "A part of the installation is missing.",
    502: "The model, a tool or what they said failed the run.",
    504: "The model or a tool did not answer in time.",
}
_ENDED = {409: "The run has ended, or has not."}
_CHATS, _RESPONSES, _KEPT = "/v1/chat/completions", "/v1/responses", "/v1/responses/{response_id}"
_POSTED = 200, _FAILURES, IDEMPOTENCY_KEY, read_fields

OPERATIONS = (
    Operation("GET", "/v1/models", list_models, ModelListDocument),
    Operation("GET", "/v1/models/{name:path}", read_model, ModelDocument),
    Operation("POST", _CHATS, create_chat_completion, ChatCompletionDocument, *_POSTED),
    Operation("POST", _RESPONSES, create_response, ResponseDocument, *_POSTED),
    Operation("GET", _KEPT, read_response, ResponseDocument, checks_query=False),
    Operation("DELETE", _KEPT, delete_response, DeletedResponseDocument, others=_ENDED),
    Operation("POST", f"{_KEPT}/cancel", cancel_response, ResponseDocument, others=_ENDED),
)
