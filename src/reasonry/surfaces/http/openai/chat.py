"""Chat completions: how a request is read, and how runs are told as completions and as chunks of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ....core.budget import Usage
from ....core.metering import estimate_tokens
from .completion import Finish, FunctionCall, now_s
from .conversation import problem_of, read_messages
from .request import (
    MAX_CHOICES,
    CompletionRequest,
    Function,
    OwnFields,
    StreamOptions,
    read_answer_form,
    read_cards,
    read_stops,
)

Document = dict[str, Any]


class ChatTool(Struct, frozen=True, tag_field="type", tag="function"):
    """A tool of the caller."""

    function: Function


class ChatFields(Struct, frozen=True):
    """The fields of a request for a chat completion that are served."""

    model: str
    messages: Any
    n: Annotated[int, Meta(ge=1, le=MAX_CHOICES)] = 1
    stream: bool = False
    stream_options: StreamOptions = StreamOptions()
    stop: str | list[str] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    response_format: Any = None
    tools: list[ChatTool] = []
    tool_choice: Any = None
    parallel_tool_calls: bool = True
    reasonry: OwnFields = OwnFields()


def read_chat(fields: ChatFields) -> CompletionRequest:
    """Return what a request for a chat completion asks for.

    Raises:
        UsageError: A field is not as it must be; the message names it.
    """
    conversation = read_messages(fields.messages)
    form = read_answer_form(fields.response_format, "response_format")
    return CompletionRequest(
        model=fields.model,
        problem="" if conversation.results else problem_of(conversation, form),
        form=form,
        cards=read_cards([tool.function for tool in fields.tools], fields.tool_choice, "tools"),
        side_by_side=fields.parallel_tool_calls,
        n=1 if conversation.results else fields.n,
        stop=read_stops(fields.stop),
        max_tokens=fields.max_completion_tokens or fields.max_tokens,
        stream=fields.stream,
        include_usage=fields.stream_options.include_usage,
        own=fields.reasonry,
        results=conversation.results,
    )


def completion_of(completion_id: str, model: str, finishes: Sequence[tuple[str, Finish]]) -> Document:
    """Return a completion, from what each run thought and how it ended."""
    choices = [
        {
            "index": index,
            "message": {
                "role": "assistant",
                "content": None if finish.calls else finish.answer,
                "refusal": None,
                **({"reasoning_content": thoughts} if thoughts else {}),
                **({"tool_calls": [_call_document(call) for call in finish.calls]} if finish.calls else {}),
            },
            "logprobs": None,
            "finish_reason": _reason(finish),
        }
        for index, (thoughts, finish) in enumerate(finishes)
    ]
    return {
        "id": completion_id,
        "object": "chat.completion",
        "created": now_s(),
        "model": model,
        "choices": choices,
        "usage": usage_document([finish for _, finish in finishes]),
        "reasonry": {"runs": [finish.document for _, finish in finishes]},
    }


class ChatChunks:
    """The chunks of one completion.

    Args:
        include_usage: Whether a last chunk says what was used.
    """

    def __init__(self, completion_id: str, model: str, *, include_usage: bool) -> None:
        self._head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": now_s(),
            "model": model,
        }
        self._include_usage = include_usage

    def begin(self, index: int) -> Document:
        """Return the chunk a choice begins with."""
        return self._chunk(index, {"role": "assistant", "content": ""})

    def think(self, index: int, piece: str) -> Document:
        """Return a piece of what a choice thinks."""
        return self._chunk(index, {"reasoning_content": piece})

    def finish(self, index: int, finish: Finish) -> Iterator[Document]:
        """Yield how a choice ends."""
        if finish.calls:
            calls = [{"index": place, **_call_document(call)} for place, call in enumerate(finish.calls)]
            yield self._chunk(index, {"tool_calls": calls})
        elif finish.answer:
            yield self._chunk(index, {"content": finish.answer})
        yield self._chunk(index, {}, _reason(finish))

    def close(self, finishes: Sequence[Finish]) -> Iterator[Document]:
        """Yield what is said when all choices have ended."""
        runs = {"reasonry": {"runs": [finish.document for finish in finishes]}}
        if self._include_usage:
            yield {**self._head, "choices": [], "usage": usage_document(finishes), **runs}

    def _chunk(self, index: int, delta: Mapping[str, Any], reason: str | None = None) -> Document:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._include_usage else {}
        return {**self._head, "choices": [choice], **usage}


def usage_document(finishes: Sequence[Finish]) -> Document:
    """Return what a request took; all that was written and is no answer counts as reasoning."""
    used = sum((finish.usage for finish in finishes), Usage(calls=0))
    answers = sum(estimate_tokens(finish.answer) for finish in finishes if finish.answer)
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": max(0, used.output_tokens - answers)},
    }


def _call_document(call: FunctionCall) -> Document:
    arguments = msgspec.json.encode(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _reason(finish: Finish) -> str:
    return "tool_calls" if finish.calls else "length" if finish.cut else "stop"
