"""The routes under `/v1`, and what comes of a request: told as a stream of events, or whole; the same for both APIs."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Literal, TypedDict
from uuid import UUID

import msgspec
from msgspec import structs
from starlette.requests import Request
from starlette.responses import Response

from ....errors import NotFoundError, ReasonryError, UsageError
from ....models.http_session import HEADER, enter_nested
from ..context import RequestContext
from ..documents import RUN, note_error, read_json, read_key, reply
from ..operations import Operation
from ..runs import IDEMPOTENCY_KEY
from ..streams import EventStream
from .completion import Completion, Finish, begin, follow, go_on
from .conversation import Message, messages_of, results_in
from .request import (
    ChatFields,
    Named,
    ResponseFields,
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
    """What may be named as a model."""

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
    named = read_name(body.model, context.app.strategies, context.app.allowed)
    asked = structs.replace(body, stream=False, stream_options=StreamOptions())
    completion = await _take(context, named, asked, body)
    return await _answer(context, body, completion, ChatTelling(_suffix(completion), body))


async def create_response(context: RequestContext, body: ResponseFields) -> Response:
    """Solve the input, and reply with the answer as a response; in the `background`, with its status."""
    named = read_name(body.model, context.app.strategies, context.app.allowed)
    wanted = body.as_chat(await _said_before(context, body.previous_response_id))
    asked = structs.replace(body, stream=False)
    completion = await _take(context, named, asked, wanted, background=body.background)
    telling = ResponseTelling(_suffix(completion), body)
    if body.background and not body.stream:
        return reply(telling.standing("queued"), headers={RUN: completion.run_id})
    return await _answer(context, wanted, completion, telling)


async def _take(
    context: RequestContext,
    named: Named,
    asked: ChatFields | ResponseFields,
    wanted: ChatFields,
    *,
    background: bool = False,
) -> Completion:
    """Begin the run of a request, or go on with the one for which it brings results.

    Args:
        asked: The same for the same request, however it is written down and whether it is streamed or not.
    """
    enter_nested(context.request.headers.get(HEADER))
    if wanted.stream:
        # There must be room for one more before anything is begun.
        with context.wiring.stream(context.principal):
            pass
    # An answer that must be a call is one of a run that begins now: what was called before is quoted in it.
    if brought := {} if wanted.forced else results_in(wanted.messages):
        return await go_on(context, wanted, brought)
    digest = hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).digest()
    warnings = passed_over(await read_json(context.request), type(asked))
    key = read_key(context.request)
    return await begin(context, named, wanted, key, digest, warnings, background=background)


async def _answer(
    context: RequestContext, wanted: ChatFields, completion: Completion, telling: Telling
) -> Response:
    """Return what comes of the run of a request: as a stream, or whole once it has ended."""
    headers, events = {RUN: completion.run_id}, _events(follow(context, wanted, completion), telling)
    if wanted.stream:
        return EventStream(context, _lines(context, events, telling), headers)
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
    try:
        async with aclosing(events):
            async for event in events:
                yield _event_lines(event)
    except Exception as error:
        scope = context.request.scope
        yield _event_lines(telling.fail(note_error(error, scope), scope))
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
    tasks = asyncio.ensure_future(_exhaust(events)), asyncio.ensure_future(request.receive())
    try:
        # The body has been read, so what is received is that the client hung up.
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if not tasks[0].done():
            return Response(status_code=499)
        tasks[0].result()
        return reply(telling.whole, headers=headers)
    finally:
        for task in tasks:
            task.cancel()


async def _exhaust(events: AsyncGenerator[Document]) -> None:
    async with aclosing(events):
        async for _ in events:
            pass


# -- responses that are kept


async def read_response(context: RequestContext, response_id: str) -> Response:
    """Return a response, or the status of its run."""
    completion, telling = await _find_response(context, response_id)
    row = await context.app.store.run(completion.run_id)
    if row.status == "active" and row.outcome != "waiting":
        is_queued = row.unattended and not context.supervisor.is_driven(row.run_id)
        return reply(telling.standing("queued" if is_queued else "in_progress"))
    try:
        await _exhaust(_events(follow(context, telling.fields.as_chat([]), completion), telling))
    except ReasonryError as error:
        telling.fail(error, context.request.scope)
    return reply(telling.whole)


async def cancel_response(context: RequestContext, response_id: str) -> Response:
    """End the run of a response."""
    completion, _ = await _find_response(context, response_id)
    await context.supervisor.cancel(context.app, completion.run_id)
    return await read_response(context, response_id)


async def delete_response(context: RequestContext, response_id: str) -> Response:
    """Delete a response, and its run."""
    completion, _ = await _find_response(context, response_id)
    await context.app.delete_run(completion.run_id)
    return reply({"id": response_id, "object": "response", "deleted": True})


async def _find_response(context: RequestContext, response_id: str) -> tuple[Completion, ResponseTelling]:
    """Return the run behind a response, and how it is told.

    Raises:
        NotFoundError: There is no such response.
    """
    run_id, results = _run_behind(response_id)
    run = await context.app.engine.recorded_run(run_id)
    names = {spec: f"@{name}" for name, spec in context.app.allowed.models.items()}
    model = run.begun.strategy + names.get(run.row.model, "")
    fields = ResponseFields(model=model, input="", background=run.row.unattended)
    created = run.row.created_at_ms / 1_000
    telling = ResponseTelling(response_id.removeprefix("resp_"), fields, created)
    return Completion(run_id, results, leaves=True), telling


def _suffix(completion: Completion) -> str:
    """Return what names a reply: its run, and the results it goes on with."""
    effects = "-".join(sorted(effect.replace("/", ".") for effect in completion.results))
    return UUID(completion.run_id).hex + (f"_{effects}" if effects else "")


def _run_behind(response_id: str) -> tuple[str, frozenset[str]]:
    """Return the run of a response, and the results it goes on with.

    Raises:
        NotFoundError: It is the id of none.
    """
    found = _RESPONSE_ID.fullmatch(response_id)
    if found is None:
        raise NotFoundError(f"there is no response {response_id[:80]!r}")
    return str(UUID(found[1])), frozenset((found[2] or "").replace(".", "/").split("-")) - {""}


async def _said_before(context: RequestContext, response_id: str | None) -> list[Message]:
    """Return what was said in a response, and before it."""
    if response_id is None:
        return []
    try:
        source = await context.app.engine.recorded_run(_run_behind(response_id)[0])
    except NotFoundError:
        raise UsageError(
            f"previous_response_id: there is no response {response_id[:80]!r}",
            field="previous_response_id",
            code="previous_response_not_found",
        ) from None
    standing = await context.app.engine.standing_of(source.row, source.lines)
    return messages_of(source.begun.problem, standing.record.result.answer)


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
