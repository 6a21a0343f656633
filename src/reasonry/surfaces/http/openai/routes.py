"""The routes under `/v1`."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal, TypedDict
from uuid import UUID

import msgspec
from msgspec import structs
from starlette.responses import Response

from ....errors import NotFoundError, UsageError
from ....models.nesting import HEADER, enter_nested
from ..context import RequestContext
from ..documents import read_key, reply
from ..operations import Operation
from .chat import ChatFields, ChatTelling, read_chat
from .completion import CompletionChoice, begin, go_on
from .conversation import Utterance, turns_of
from .names import model_ids, read_name
from .request import CompletionRequest, SharedFields, StreamOptions, read_fields
from .responses import ResponseFields, ResponseTelling, read_response
from .telling import complete


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
    return await complete(context, wanted, choices, ChatTelling(_suffix(choices[0]), wanted))


async def create_response(context: RequestContext, body: ResponseFields) -> Response:
    """Solve what is put in, and reply with the answer as a response."""
    wanted = read_response(body, await _turns_before(context, body.previous_response_id))
    choices = await _choices(context, wanted, body)
    return await complete(context, wanted, choices, ResponseTelling(_suffix(choices[0]), body))


async def _choices(
    context: RequestContext, wanted: CompletionRequest, fields: SharedFields
) -> list[CompletionChoice]:
    enter_nested(context.request.headers.get(HEADER))
    if wanted.stream:
        # There must be room for one more before anything is begun.
        with context.wiring.stream(context.principal):
            pass
    if wanted.results:
        return [await go_on(context, wanted)]
    return await begin(context, wanted, read_key(context.request), _digest(fields))


def _digest(fields: SharedFields) -> bytes:
    """Return what is the same for the same request, however it is written down and whether it is streamed or not."""
    asked = structs.replace(fields, stream=False, stream_options=StreamOptions())
    return hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).digest()


async def _turns_before(context: RequestContext, response_id: str | None) -> Sequence[Utterance]:
    """Return what was said in a response, and before it."""
    if response_id is None:
        return ()
    run_id = _run_of(response_id)
    try:
        source = await context.app.engine.recorded_run(run_id)
        standing = await context.app.engine.standing_of(source.row, source.lines)
        return turns_of(source.begun.problem, standing.record.result.answer)
    except NotFoundError:
        raise _no_response(response_id) from None


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
