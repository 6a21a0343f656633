"""Responses: how a request is read, and how a run is told as a response and as the events of one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from ....core.toolcard import ToolCard
from ....errors import ReasonryError, UsageError
from .chat import usage_document
from .completion import Finish, FunctionCall, now_s
from .conversation import Conversation, Transcript, Utterance, take_text, text_of
from .request import CompletionRequest, Function, SharedFields, make_request, read_answer_form

Document = dict[str, Any]


class ResponseTool(Function, frozen=True, tag_field="type", tag="function"):
    """A tool of the caller."""


class TextOptions(Struct, frozen=True):
    """The field `text`."""

    format: Any = None


class ResponseFields(SharedFields, frozen=True, kw_only=True):
    """The fields of a request for a response that are served."""

    input: Any
    instructions: str | None = None
    previous_response_id: str | None = None
    max_output_tokens: Annotated[int, Meta(ge=1)] | None = None
    text: TextOptions = TextOptions()
    tools: tuple[ResponseTool, ...] = ()


def read_response(fields: ResponseFields, earlier: Sequence[Utterance]) -> CompletionRequest:
    """Return what a request for a response asks for.

    Args:
        earlier: What was said in the response that this one goes on from, and before it.

    Raises:
        UsageError: A field is not as it must be; the message names it.
    """
    conversation = read_input(fields.input)
    instructions = [fields.instructions, *conversation.instructions] if fields.instructions else None
    conversation = conversation._replace(
        turns=[*earlier, *conversation.turns], instructions=instructions or conversation.instructions
    )
    form = read_answer_form(fields.text.format, "text.format")
    return make_request(fields, conversation, fields.tools, form, fields.max_output_tokens)


def read_input(value: Any) -> Conversation:
    """Read the input of a response: text, or a list of items.

    Raises:
        UsageError: One is not as it must be; the message names it.
    """
    if isinstance(value, str):
        return Conversation([Utterance("user", value)])
    if not isinstance(value, list) or not value:
        raise UsageError("input must be text, or a list of items", field="input")
    transcript = Transcript()
    for place, item in enumerate(cast(list[Any], value)):
        where = f"input[{place}]"
        if not isinstance(item, dict):
            raise UsageError(f"{where} must be an object", field=where)
        _read_item(transcript, cast(dict[str, Any], item), where)
    return transcript.conversation()


def _read_item(transcript: Transcript, item: Mapping[str, Any], where: str) -> None:
    match item.get("type", "message"):
        case "message":
            role, text = item.get("role"), text_of(item.get("content"), f"{where}.content")
            if role in ("system", "developer"):
                transcript.instruct(text)
            elif role in ("user", "assistant"):
                transcript.say(role, text)
            else:
                raise UsageError(f"{where}.role: {str(role)[:40]!r} is not served", field=f"{where}.role")
        case "function_call":
            called = f"{take_text(item, 'name', where)}({item.get('arguments', '')})"
            transcript.call(take_text(item, "call_id", where), called)
        case "function_call_output":
            text = text_of(item.get("output"), f"{where}.output")
            transcript.bring(take_text(item, "call_id", where), text, f"{where}.call_id")
        case "reasoning":
            pass
        case kind:
            message = f"{where}.type: items of type {str(kind)[:40]!r} are not served"
            raise UsageError(message, field=f"{where}.type")


class ResponseTelling:
    """A response, told in events or whole; see `Telling`."""

    last_line = b""

    def __init__(self, suffix: str, fields: ResponseFields) -> None:
        self._id, self._fields = f"resp_{suffix}", fields
        self._created, self._number = now_s(), -1
        self._output: list[Document] = []
        self._thoughts: list[str] = []
        self._whole: Document = {}

    def begin(self) -> Iterator[Document]:
        """See `Telling`."""
        yield self._event("response.created", response=self._document("in_progress"))
        yield self._event("response.in_progress", response=self._document("in_progress"))

    def think(self, place: int, piece: str) -> Iterator[Document]:
        """See `Telling`."""
        if not self._thoughts:
            item = {"id": f"rs_{self._id}", "type": "reasoning", "summary": [], "status": "in_progress"}
            yield self._event("response.output_item.added", output_index=0, item=item)
            part = {"type": "summary_text", "text": ""}
            yield self._thinking("response.reasoning_summary_part.added", part=part)
        self._thoughts.append(piece)
        yield self._thinking("response.reasoning_summary_text.delta", delta=piece)

    def finish(self, place: int, finish: Finish) -> Iterator[Document]:
        """See `Telling`."""
        if self._thoughts:
            text = "".join(self._thoughts)
            part = {"type": "summary_text", "text": text}
            yield self._thinking("response.reasoning_summary_text.done", text=text)
            yield self._thinking("response.reasoning_summary_part.done", part=part)
            item = {"id": f"rs_{self._id}", "type": "reasoning", "summary": [part], "status": "completed"}
            yield self._add("response.output_item.done", item)
        for call in finish.calls:
            yield from self._call(call)
        if not finish.calls:
            yield from self._answer(finish)
        status = "incomplete" if finish.cut else "completed"
        runs = {"reasonry": {"runs": [finish.document]}}
        self._whole = {**self._document(status), "usage": _usage_document(finish), **runs}
        yield self._event(f"response.{status}", response=self._whole)

    def close(self) -> Iterator[Document]:
        """See `Telling`."""
        return iter(())

    def fail(self, error: ReasonryError, request_id: str) -> Iterator[Document]:
        """See `Telling`."""
        failure = {"code": error.code, "message": error.message}
        yield self._event("response.failed", response={**self._document("failed"), "error": failure})

    def whole(self) -> Document:
        """See `Telling`."""
        return self._whole

    def _document(self, status: str) -> Document:
        fields = self._fields
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": fields.instructions,
            "max_output_tokens": fields.max_output_tokens,
            "metadata": {},
            "model": fields.model,
            "output": self._output,
            "parallel_tool_calls": fields.parallel_tool_calls,
            "previous_response_id": fields.previous_response_id,
            "reasoning": {"effort": None, "summary": "detailed"},
            "store": True,
            "temperature": None,
            "text": {"format": fields.text.format or {"type": "text"}},
            "tool_choice": fields.tool_choice or "auto",
            "tools": [_tool_document(tool.card) for tool in fields.tools],
            "top_p": None,
            "truncation": "auto",
            "usage": None,
        }

    def _answer(self, finish: Finish) -> Iterator[Document]:
        item: Document = {"id": f"msg_{self._id}", "type": "message", "role": "assistant"}
        place = {"item_id": item["id"], "output_index": len(self._output), "content_index": 0}
        part = {"type": "output_text", "annotations": [], "logprobs": []}
        begun = {**item, "status": "in_progress", "content": []}
        yield self._event("response.output_item.added", output_index=len(self._output), item=begun)
        yield self._event("response.content_part.added", **place, part={**part, "text": ""})
        yield self._event("response.output_text.delta", **place, delta=finish.answer, logprobs=[])
        yield self._event("response.output_text.done", **place, text=finish.answer, logprobs=[])
        whole = {**part, "text": finish.answer}
        yield self._event("response.content_part.done", **place, part=whole)
        status = "incomplete" if finish.cut else "completed"
        yield self._add("response.output_item.done", {**item, "status": status, "content": [whole]})

    def _call(self, call: FunctionCall) -> Iterator[Document]:
        arguments = msgspec.json.encode(call.arguments).decode()
        item: Document = {
            "id": f"fc_{call.id}",
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
        }
        place = {"item_id": item["id"], "output_index": len(self._output)}
        begun = {**item, "arguments": "", "status": "in_progress"}
        yield self._event("response.output_item.added", output_index=len(self._output), item=begun)
        yield self._event("response.function_call_arguments.delta", **place, delta=arguments)
        yield self._event(
            "response.function_call_arguments.done", **place, arguments=arguments, name=call.name
        )
        done = {**item, "arguments": arguments, "status": "completed"}
        yield self._add("response.output_item.done", done)

    def _add(self, kind: str, item: Document) -> Document:
        self._output.append(item)
        return self._event(kind, output_index=len(self._output) - 1, item=item)

    def _thinking(self, kind: str, **data: Any) -> Document:
        return self._event(kind, item_id=f"rs_{self._id}", output_index=0, summary_index=0, **data)

    def _event(self, kind: str, **data: Any) -> Document:
        self._number += 1
        return {"type": kind, "sequence_number": self._number, **data}


def _usage_document(finish: Finish) -> Document:
    used: Mapping[str, Any] = usage_document([finish])
    return {
        "input_tokens": used["prompt_tokens"],
        "input_tokens_details": used["prompt_tokens_details"],
        "output_tokens": used["completion_tokens"],
        "output_tokens_details": used["completion_tokens_details"],
        "total_tokens": used["total_tokens"],
    }


def _tool_document(card: ToolCard) -> Document:
    return {
        "type": "function",
        "name": card.name,
        "description": card.description,
        "parameters": card.parameters,
        "strict": False,
    }
