"""How the two APIs tell a run: as events while it works, the last of which has the whole reply."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ....core.metering import estimate_tokens
from ....errors import ReasonryError
from .completion import Completion
from .conversation import MadeCall
from .request import ResponseFields, ResponseTool, TextOptions, ToolChoice

Document = dict[str, Any]


class ResponseDocument(Struct, kw_only=True):
    """The answer, or the calls to make; or where the run stands that is to bring it."""

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
    tool_choice: Literal["auto", "none", "required"] | ToolChoice
    tools: tuple[ResponseTool, ...]


def respond(name: str, fields: ResponseFields, created: float | None = None) -> ResponseDocument:
    """Return the response to a request as it begins; `name` is that of the completion."""
    echoed = {each: getattr(fields, each) for each in _ECHOED}
    return ResponseDocument(id=f"resp_{name}", created_at=int(created or time.time()), **echoed)


_ECHOED = ({*ResponseDocument.__struct_fields__} & {*ResponseFields.__struct_fields__}) - {"reasonry"}


def fail_response(response: ResponseDocument, error: ReasonryError) -> Document:
    """Return the event that ends a response of which nothing comes."""
    response.status = "cancelled" if error.code == "cancelled" else "failed"
    response.error = {"code": error.code, "message": error.message}
    return {"type": "response.failed", "response": response}


async def tell_chat(completion: Completion) -> AsyncGenerator[Document]:
    """Yield a chat completion in chunks, and last whole."""
    fields, thoughts = completion.fields, list[str]()
    head = {"id": f"chatcmpl-{completion.name}", "created": int(time.time()), "model": fields.model}
    usage = {"usage": None} if fields.stream_options.include_usage else {}

    def chunk(delta: Document, reason: str | None = None) -> Document:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return {**head, "object": "chat.completion.chunk", "choices": [choice], **usage}

    yield chunk({"role": "assistant", "content": ""})
    async with aclosing(completion.think()) as pieces:
        async for piece in pieces:
            thoughts.append(piece)
            yield chunk({"reasoning_content": piece})
    await completion.end()
    message: Document = {"role": "assistant", "content": completion.answer, "refusal": None}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
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
    """Yield the events of a response; the last of them has it whole."""
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
    for call in completion.calls:
        for event in _tell_call(response, call):
            yield event
    for event in () if completion.calls else _tell_answer(response, completion.answer):
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
    """Return the usage of a request in the words of an API; all output that is no answer counts as reasoning."""
    used = completion.usage
    thought = used.output_tokens - (estimate_tokens(completion.answer) if completion.answer else 0)
    return {
        f"{read}_tokens": used.input_tokens,
        f"{written}_tokens": used.output_tokens,
        "total_tokens": used.tokens,
        f"{read}_tokens_details": {"cached_tokens": used.cached_input_tokens},
        f"{written}_tokens_details": {"reasoning_tokens": max(0, thought)},
    }
