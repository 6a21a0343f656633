"""The routes under `/v1`, and what comes of a request: told as a stream of events, or whole; the same for both APIs."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Literal, TypedDict
from uuid import UUID

import msgspec
from starlette.responses import Response

from ....errors import NotFoundError, ReasonryError, UsageError
from ..context import RequestContext
from ..documents import RUN, error_body, note_error, reply
from ..operations import Operation
from ..runs import IDEMPOTENCY_KEY
from ..streams import EventStream
from .completion import Completion, begin
from .conversation import Message, messages_of
from .request import ChatFields, ResponseFields, model_ids, read_fields, read_name
from .telling import Document, ResponseDocument, fail_response, respond, tell_chat, tell_response

Events = AsyncGenerator[Document]
"""What comes of a request; the last of them has it whole."""

_RESPONSE_ID = re.compile(r"resp_([0-9a-f]{32})(?:_([e\d.-]+))?")


# -- shown


class ModelDocument(TypedDict):
    """A name that a request may have as its model."""

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


def _model_document(name: str) -> ModelDocument:
    return {"id": name, "object": "model", "created": 0, "owned_by": "reasonry"}


# -- completions and responses


async def create_chat_completion(context: RequestContext, body: ChatFields) -> Response:
    """Solve the last message of a conversation, and reply with the answer as a chat completion."""
    completion = await begin(context, body, ChatFields, background=False)
    scope = context.request.scope
    return await _answer(completion, tell_chat(completion), lambda error: error_body(error, scope))


async def create_response(context: RequestContext, body: ResponseFields) -> Response:
    """Solve the input, and reply with the answer as a response; in the `background`, with its status."""
    read_name(body.model, context.app.strategies, context.app.allowed)
    fields = body.as_chat(await _read_conversation(context, body.previous_response_id))
    completion = await begin(context, fields, ResponseFields, background=body.background)
    response = respond(completion.name, body)
    if body.background and not body.stream:
        response.status = "queued"
        return reply(response, headers={RUN: completion.run_id})
    events = tell_response(completion, response)
    return await _answer(completion, events, lambda error: fail_response(response, error))


async def _answer(
    completion: Completion, events: Events, fail: Callable[[ReasonryError], Document]
) -> Response:
    """Return the reply to a request: as a stream, or whole once its run has ended.

    Args:
        fail: Returns the last event of a stream of which nothing comes.
    """
    context, headers = completion.context, {RUN: completion.run_id}
    if completion.fields.stream:
        return EventStream(context, _lines(context, events, fail), headers)
    whole = asyncio.ensure_future(_whole(events))
    # The body has been read, so a message is that the client hung up.
    hung_up = asyncio.ensure_future(context.request.receive())
    try:
        await asyncio.wait((whole, hung_up), return_when=asyncio.FIRST_COMPLETED)
        return reply(whole.result(), headers=headers) if whole.done() else Response(status_code=499)
    finally:
        whole.cancel()
        hung_up.cancel()


async def _lines(
    context: RequestContext, events: Events, fail: Callable[[ReasonryError], Document]
) -> AsyncGenerator[bytes]:
    """Yield events as a stream has them: numbered where they have a type; the whole chat is but a mark at its end."""
    numbers = itertools.count()

    def line_of(event: Document) -> bytes:
        if event.get("object") == "chat.completion":
            return b"data: [DONE]\n\n"
        if "type" not in event:
            return b"data: " + msgspec.json.encode(event) + b"\n\n"
        numbered = msgspec.json.encode({**event, "sequence_number": next(numbers)})
        return f"event: {event['type']}\ndata: ".encode() + numbered + b"\n\n"

    try:
        async with aclosing(events):
            async for event in events:
                yield line_of(event)
    except Exception as error:
        yield line_of(fail(note_error(error, context.request.scope)))


async def _whole(events: Events) -> Any:
    last = Document()
    async with aclosing(events):
        async for event in events:
            last = event
    return last.get("response", last)


# -- responses that are kept


async def read_response(context: RequestContext, response_id: str) -> Response:
    """Return a response, or the status of its run."""
    run_id, results = _run_behind(response_id)
    run = await context.app.engine.recorded_run(run_id)
    names = {spec: f"@{name}" for name, spec in context.app.allowed.models.items()}
    model = run.begun.strategy + names.get(run.row.model, "")
    fields = ResponseFields(model=model, input="", background=run.row.unattended)
    response = respond(response_id.removeprefix("resp_"), fields, run.row.created_at_ms / 1_000)
    if run.row.status == "active" and run.row.outcome != "waiting":
        if run.row.unattended and not context.supervisor.is_driven(run_id):
            response.status = "queued"
        return reply(response)
    completion = Completion(context, fields.as_chat([]), run_id, results, leaves=True)
    try:
        await _whole(tell_response(completion, response))
    except ReasonryError as error:
        fail_response(response, error)
    return reply(response)


async def cancel_response(context: RequestContext, response_id: str) -> Response:
    """End the run of a response."""
    await context.supervisor.cancel(context.app, _run_behind(response_id)[0])
    return await read_response(context, response_id)


async def delete_response(context: RequestContext, response_id: str) -> Response:
    """Delete a response, and its run."""
    await context.app.delete_run(_run_behind(response_id)[0])
    return reply({"id": response_id, "object": "response", "deleted": True})


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
