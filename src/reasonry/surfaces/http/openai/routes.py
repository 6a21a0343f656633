"""The HTTP operations of the Chat Completions and Responses APIs, and the events that report a run to the client."""

import asyncio
import itertools
import re
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, Literal, TypedDict
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct, UnsetType, structs
from starlette.responses import Response
from starlette.types import ASGIApp

from ....app.runs import delete_run
from ....engine.usage import estimate_tokens
from ....errors import NotFoundError, ReasonryError, UsageError
from ..context import RequestContext, stream_events
from ..documents import RUN, Document, error_body, note_error, reply
from ..operations import Operation
from ..runs import IDEMPOTENCY_KEY
from .completion import Completion, begin, reply_text
from .request import (
    ChatFields,
    InputItem,
    MadeCall,
    Message,
    ResponseFields,
    ResponseTool,
    TextOptions,
    messages_of,
    read_call_id,
    read_fields,
)

Events = AsyncGenerator[Document]
"""The events that report a run to the client of a request. The last event contains the complete reply."""

_RESPONSE_ID = re.compile(r"resp_([0-9a-f]{32})(?:_([e\d.-]+))?")


# -- the documents of replies


class ChatCompletionDocument(TypedDict):
    """The answer, or tool calls for the client to make. `reasonry` describes the run."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Document]
    usage: Document
    reasonry: Document


class ResponseDocument(Struct, kw_only=True):
    """The answer, tool calls for the client to make, or the status of a run in progress. `reasonry` describes it."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"] = "in_progress"
    error: Document | None = None
    incomplete_details: Document | None = None
    output: list[Document] = []
    reasoning: Document = msgspec.field(default_factory=lambda: {"effort": None, "summary": "detailed"})
    usage: Document | None = None
    metadata: Document = {}
    store: bool = True
    temperature: None = None
    top_p: None = None
    truncation: Literal["auto"] = "auto"
    reasonry: Document | UnsetType = UNSET
    model: str
    background: bool
    instructions: str | None
    max_output_tokens: int | None
    parallel_tool_calls: bool
    previous_response_id: str | None
    text: TextOptions
    tool_choice: Literal["auto", "none", "required"] | ResponseTool
    tools: tuple[ResponseTool, ...]


class DeletedResponseDocument(TypedDict):
    """Confirms that a response and its run were deleted."""

    id: str
    object: Literal["response"]
    deleted: bool


# -- completions and responses


async def create_chat_completion(context: RequestContext, body: ChatFields) -> ASGIApp:
    """Solve the last message of a conversation, and reply with the answer as a chat completion."""
    completion = await begin(context, body, ChatFields, background=False)
    return await _answer(completion, tell_chat(completion))


async def create_response(context: RequestContext, body: ResponseFields) -> ASGIApp:
    """Solve the input, and reply with the answer. With `background` but no `stream`, reply at once with the status."""
    if not isinstance(body.input, str):
        body = structs.replace(body, input=[await _resolve(context, item) for item in body.input])
    fields = body.as_chat(await _read_conversation(context, body.previous_response_id))
    completion = await begin(context, fields, ResponseFields, background=body.background)
    response = respond(completion.name, body)
    if body.background and not body.stream:
        response.status = "queued"
        return reply(response, headers={RUN: completion.run_id})
    return await _answer(completion, tell_response(completion, response), response)


async def _answer(
    completion: Completion, events: Events, response: ResponseDocument | None = None
) -> ASGIApp:
    """Reply with a stream of events if the request asks for a stream. Otherwise, wait for the complete reply."""
    context, headers = completion.context, {RUN: completion.run_id}
    if completion.fields.stream:
        return stream_events(context, _lines(context, events, response), headers)
    whole = asyncio.ensure_future(_whole(events))
    # The body has been read, so the next message can only report that the client has disconnected.
    hung_up = asyncio.ensure_future(context.request.receive())
    try:
        await asyncio.wait((whole, hung_up), return_when=asyncio.FIRST_COMPLETED)
        return reply(whole.result(), headers=headers) if whole.done() else Response(status_code=499)
    finally:
        whole.cancel()
        hung_up.cancel()


async def _lines(
    context: RequestContext, events: Events, response: ResponseDocument | None
) -> AsyncGenerator[Document]:
    """Convert the events of a reply to server-sent events."""
    numbers, scope = itertools.count(), context.request.scope

    def line_of(event: Document) -> Document:
        if event.get("object") == "chat.completion":
            return {"data": "[DONE]"}
        number = {"sequence_number": next(numbers)} if "type" in event else {}
        return {"event": event.get("type"), "data": msgspec.json.encode({**event, **number}).decode()}

    try:
        async with aclosing(events):
            async for event in events:
                yield line_of(event)
    except Exception as error:
        known = note_error(error, scope)
        yield line_of(fail_response(response, known) if response else error_body(known, scope))


async def _whole(events: Events) -> Any:
    last = Document()
    async with aclosing(events):
        async for event in events:
            last = event
    return last.get("response", last)


# -- events


def respond(name: str, fields: ResponseFields, created: float | None = None) -> ResponseDocument:
    """Return a response with the id `resp_NAME`, some fields of the request, and no output yet."""
    names = {*ResponseDocument.__struct_fields__} & {*ResponseFields.__struct_fields__} - {"reasonry"}
    echoed = {each: getattr(fields, each) for each in names}
    return ResponseDocument(id=f"resp_{name}", created_at=int(created or time.time()), **echoed)


def fail_response(response: ResponseDocument, error: ReasonryError) -> Document:
    """Record an error in the response, and return the event that reports the failed response."""
    response.status = "cancelled" if error.code == "cancelled" else "failed"
    response.error = {"code": error.code, "message": error.message}
    return {"type": "response.failed", "response": response}


async def tell_chat(completion: Completion) -> AsyncGenerator[Document]:
    """Yield the chunks of a chat completion, then the complete chat completion."""
    fields, thoughts = completion.fields, list[str]()
    head = {"id": f"chatcmpl-{completion.name}", "created": int(time.time()), "model": fields.model}
    usage = {"usage": None} if fields.stream_options.get("include_usage") else {}

    def chunk(delta: Document, reason: str | None = None) -> Document:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**head, "object": "chat.completion.chunk", "choices": [choice], **usage}

    yield chunk({"role": "assistant", "content": ""})
    async with aclosing(completion.think()) as pieces:
        async for piece in pieces:
            thoughts.append(piece)
            yield chunk({"reasoning_content": piece})
    await completion.end()
    reasoning = {"reasoning_content": "".join(thoughts)} if thoughts else {}
    message: Document = {"role": "assistant", "content": completion.answer, "refusal": None, **reasoning}
    if completion.calls:
        calls = [{"type": "function", **msgspec.to_builtins(call)} for call in completion.calls]
        message |= {"content": None, "tool_calls": calls}
        yield chunk({"tool_calls": [{"index": place, **call} for place, call in enumerate(calls)]})
    elif completion.answer:
        yield chunk({"content": completion.answer})
    reason = "tool_calls" if completion.calls else "length" if completion.cut else "stop"
    yield chunk({}, reason)
    spent = {"usage": _usage(completion, "prompt", "completion"), "reasonry": {"runs": [completion.run]}}
    if usage:
        yield {**chunk({}), "choices": [], **spent}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    yield {**head, "object": "chat.completion", "choices": [choice], **spent}


async def tell_response(completion: Completion, response: ResponseDocument) -> AsyncGenerator[Document]:
    """Yield the Responses API events of a completion. The last event has the complete response."""
    for kind in ("created", "in_progress"):
        yield {"type": f"response.{kind}", "response": response}
    item: Document = {"id": f"rs_{response.id}", "type": "reasoning"}
    place, thoughts = {"item_id": item["id"], "output_index": 0, "summary_index": 0}, list[str]()
    async with aclosing(completion.think()) as pieces:
        async for piece in pieces:
            if not thoughts:
                yield _begin_item(response, {**item, "summary": []})
                part = {"type": "summary_text", "text": ""}
                yield {"type": "response.reasoning_summary_part.added", **place, "part": part}
            thoughts.append(piece)
            yield {"type": "response.reasoning_summary_text.delta", **place, "delta": piece}
    if thoughts:
        part = {"type": "summary_text", "text": "".join(thoughts)}
        yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
        yield {"type": "response.reasoning_summary_part.done", **place, "part": part}
        yield _end_item(response, {**item, "summary": [part]})
    await completion.end()
    response.status = "incomplete" if completion.cut else "completed"
    items = [_tell_call(response, call) for call in completion.calls]
    for event in itertools.chain(*(items or [_tell_answer(response, completion.answer)])):
        yield event
    response.incomplete_details = {"reason": "max_output_tokens"} if completion.cut else None
    response.usage, response.reasonry = _usage(completion, "input", "output"), {"runs": [completion.run]}
    yield {"type": f"response.{response.status}", "response": response}


def _tell_answer(response: ResponseDocument, text: str) -> Iterator[Document]:
    item: Document = {"id": f"msg_{response.id}", "type": "message", "role": "assistant"}
    part = {"type": "output_text", "annotations": [], "logprobs": []}
    place = {"item_id": item["id"], "output_index": len(response.output), "content_index": 0}
    yield _begin_item(response, {**item, "content": []})
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    yield {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": text, "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": {**part, "text": text}}
    yield _end_item(response, {**item, "content": [{**part, "text": text}]}, response.status)


def _tell_call(response: ResponseDocument, call: MadeCall) -> Iterator[Document]:
    name, written = call.function.name, call.function.arguments
    item = {"id": f"fc_{call.id}", "type": "function_call", "call_id": call.id, "name": name}
    place = {"item_id": item["id"], "output_index": len(response.output)}
    yield _begin_item(response, {**item, "arguments": ""})
    yield {"type": "response.function_call_arguments.delta", **place, "delta": written}
    yield {"type": "response.function_call_arguments.done", **place, "arguments": written, "name": name}
    yield _end_item(response, {**item, "arguments": written})


def _begin_item(response: ResponseDocument, item: Document) -> Document:
    begun = {**item, "status": "in_progress"}
    return {"type": "response.output_item.added", "output_index": len(response.output), "item": begun}


def _end_item(response: ResponseDocument, item: Document, status: str = "completed") -> Document:
    response.output.append(done := {**item, "status": status})
    return {"type": "response.output_item.done", "output_index": len(response.output) - 1, "item": done}


def _usage(completion: Completion, read: str, written: str) -> Document:
    """Return a request's usage. `read` and `written` are the API's words for input and output, such as `prompt`."""
    used = completion.usage
    thought = used.output_tokens - estimate_tokens(completion.answer)
    return {
        f"{read}_tokens": used.input_tokens,
        f"{written}_tokens": used.output_tokens,
        "total_tokens": used.tokens,
        f"{read}_tokens_details": {"cached_tokens": used.cached_input_tokens},
        f"{written}_tokens_details": {"reasoning_tokens": max(0, thought)},
    }


# -- stored responses


async def read_response(context: RequestContext, response_id: str) -> Response:
    """Return a stored response. Until the run ends or waits for tool results, the response has only a status."""
    run_id, results = _run_behind(response_id)
    run = await context.app.engine.recorded_run(run_id)
    names = {spec: f"@{name}" for name, spec in context.app.rights.allowed.models.items()}
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
    """Cancel the run of a response, and return the response."""
    await context.supervisor.cancel(context.app, _run_behind(response_id)[0])
    return await read_response(context, response_id)


async def delete_response(context: RequestContext, response_id: str) -> Response:
    """Delete a response, and its run."""
    await delete_run(context.app, _run_behind(response_id)[0])
    return reply({"id": response_id, "object": "response", "deleted": True})


def _run_behind(response_id: str) -> tuple[str, frozenset[str]]:
    """Split a response id into `Completion.run_id` and `Completion.results`, or raise NotFoundError."""
    found = _RESPONSE_ID.fullmatch(response_id)
    if found is None:
        raise NotFoundError(f"there is no response {response_id[:80]!r}")
    return str(UUID(found[1])), frozenset((found[2] or "").replace(".", "/").split("-")) - {""}


async def _resolve(context: RequestContext, item: InputItem) -> InputItem:
    """If `item` refers to an item of an earlier response, return the earlier item. Otherwise, return `item` itself.

    Raises:
        UsageError: The item of the earlier response does not exist.
    """
    if item.type != "item_reference":
        return item
    kind, _, name = item.id.partition("_")
    try:
        if kind == "msg":
            result = await context.app.engine.result(_run_behind(name)[0])
            return InputItem(content=reply_text(result))
        if kind == "fc":
            await context.app.store.run(read_call_id(name, "input").run_id)
            return InputItem(type="function_call", call_id=name, name="function")
        _run_behind(name if kind == "rs" else item.id)
    except (NotFoundError, UsageError):
        raise UsageError(f"there is no item {item.id[:80]!r} here; send it whole", field="input") from None
    return InputItem(type="reasoning")


async def _read_conversation(context: RequestContext, response_id: str | None) -> list[Message]:
    """Return the conversation up to and including a response. If there is no response id, return an empty list."""
    if response_id is None:
        return []
    try:
        source = await context.app.engine.recorded_run(_run_behind(response_id)[0])
    except NotFoundError as error:
        field = "previous_response_id"
        raise UsageError(error.message, field=field, code="previous_response_not_found") from None
    view = await context.app.engine.view_of(source.row, source.lines)
    return messages_of(source.begun.problem, reply_text(view.record.result))


_FAILURES = {
    409: "The key stands for another request, or the run is at work for another.",
    499: "The run was cancelled.",
    501: "A part of the installation is missing.",
    502: "The model, a tool or what they said failed the run.",
    504: "The model or a tool did not answer in time.",
}
_CHATS, _RESPONSES, _KEPT = "/v1/chat/completions", "/v1/responses", "/v1/responses/{response_id}"
_POSTED = 200, _FAILURES, IDEMPOTENCY_KEY, read_fields

OPERATIONS = (
    Operation("POST", _CHATS, create_chat_completion, ChatCompletionDocument, *_POSTED),
    Operation("POST", _RESPONSES, create_response, ResponseDocument, *_POSTED),
    Operation("GET", _KEPT, read_response, ResponseDocument, checks_query=False),
    Operation("DELETE", _KEPT, delete_response, DeletedResponseDocument),
    Operation("POST", f"{_KEPT}/cancel", cancel_response, ResponseDocument),
)
