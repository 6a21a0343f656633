"""Chat completions: how a request is read, and how runs are told as completions and as chunks of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ....core.budget import Usage
from ....core.metering import estimate_tokens
from ....errors import ReasonryError
from .completion import Finish, FunctionCall, now_s
from .conversation import read_messages
from .replies import error_body
from .request import (
    MAX_CHOICES,
    CompletionRequest,
    Function,
    SharedFields,
    make_request,
    read_answer_form,
    read_stops,
)

Document = dict[str, Any]


class ChatTool(Struct, frozen=True, tag_field="type", tag="function"):
    """A tool of the caller."""

    function: Function


class ChatFields(SharedFields, frozen=True, kw_only=True):
    """The fields of a request for a chat completion that are served."""

    messages: Any
    n: Annotated[int, Meta(ge=1, le=MAX_CHOICES)] = 1
    stop: str | list[str] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Meta(ge=1)] | None = None
    response_format: Any = None
    tools: tuple[ChatTool, ...] = ()


def read_chat(fields: ChatFields) -> CompletionRequest:
    """Return what a request for a chat completion asks for.

    Raises:
        UsageError: A field is not as it must be; the message names it.
    """
    return make_request(
        fields,
        read_messages(fields.messages),
        [tool.function for tool in fields.tools],
        read_answer_form(fields.response_format, "response_format"),
        fields.max_completion_tokens or fields.max_tokens,
        n=fields.n,
        stop=read_stops(fields.stop),
    )


class ChatTelling:
    """A chat completion, told in chunks or whole; see `Telling`."""

    last_line = b"data: [DONE]\n\n"

    def __init__(self, suffix: str, wanted: CompletionRequest) -> None:
        self._wanted = wanted
        self._id, self._created = f"chatcmpl-{suffix}", now_s()
        self._thoughts: list[list[str]] = [[] for _ in range(wanted.n)]
        self._finishes: dict[int, Finish] = {}

    def begin(self) -> Iterator[Document]:
        """See `Telling`."""
        for place in range(self._wanted.n):
            yield self._chunk(place, {"role": "assistant", "content": ""})

    def think(self, place: int, piece: str) -> Iterator[Document]:
        """See `Telling`."""
        self._thoughts[place].append(piece)
        yield self._chunk(place, {"reasoning_content": piece})

    def finish(self, place: int, finish: Finish) -> Iterator[Document]:
        """See `Telling`."""
        self._finishes[place] = finish
        if finish.calls:
            calls = [{"index": number, **_call_document(call)} for number, call in enumerate(finish.calls)]
            yield self._chunk(place, {"tool_calls": calls})
        elif finish.answer:
            yield self._chunk(place, {"content": finish.answer})
        yield self._chunk(place, {}, _reason(finish))

    def close(self) -> Iterator[Document]:
        """See `Telling`."""
        if self._wanted.include_usage:
            yield self._document("chat.completion.chunk", choices=[], **self._usage())

    def fail(self, error: ReasonryError, request_id: str) -> Iterator[Document]:
        """See `Telling`."""
        yield error_body(error, request_id)

    def whole(self) -> Document:
        """See `Telling`."""
        choices = [self._choice(place) for place in sorted(self._finishes)]
        return self._document("chat.completion", choices=choices, **self._usage())

    def _choice(self, place: int) -> Document:
        finish, thoughts = self._finishes[place], "".join(self._thoughts[place])
        message: Document = {
            "role": "assistant",
            "content": None if finish.calls else finish.answer,
            "refusal": None,
            **({"reasoning_content": thoughts} if thoughts else {}),
            **({"tool_calls": [_call_document(call) for call in finish.calls]} if finish.calls else {}),
        }
        return {"index": place, "message": message, "logprobs": None, "finish_reason": _reason(finish)}

    def _chunk(self, place: int, delta: Document, reason: str | None = None) -> Document:
        choice = {"index": place, "delta": delta, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._wanted.include_usage else {}
        return self._document("chat.completion.chunk", choices=[choice], **usage)

    def _usage(self) -> Document:
        finishes = [finish for _, finish in sorted(self._finishes.items())]
        runs = {"runs": [finish.document for finish in finishes]}
        return {"usage": usage_document(finishes), "reasonry": runs}

    def _document(self, kind: str, **members: Any) -> Document:
        model = self._wanted.model
        return {"id": self._id, "object": kind, "created": self._created, "model": model, **members}


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
