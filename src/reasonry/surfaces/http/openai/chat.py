"""Runs told as chat completions, and as chunks of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec

from ....core.metering import estimate_tokens
from ....errors import ReasonryError
from ..documents import error_body
from .completion import Finish, FunctionCall
from .request import ChatFields

Document = dict[str, Any]


class ChatTelling:
    """A chat completion, told in chunks or whole.

    Attributes:
        last_line: What a stream that came to its end is closed with.
        whole: The reply, once it has ended.
    """

    last_line = b"data: [DONE]\n\n"

    def __init__(self, suffix: str, fields: ChatFields) -> None:
        self._model, self._says_usage = fields.model, fields.stream_options.include_usage
        self._id, self._created = f"chatcmpl-{suffix}", int(time.time())
        self._thoughts: list[str] = []
        self.whole: Document = {}

    def begin(self) -> Iterator[Document]:
        """Yield the events that a reply begins with."""
        yield self._chunk({"role": "assistant", "content": ""})

    def think(self, piece: str) -> Iterator[Document]:
        """Yield a piece of what the run thinks."""
        self._thoughts.append(piece)
        yield self._chunk({"reasoning_content": piece})

    def finish(self, finish: Finish) -> Iterator[Document]:
        """Yield how the reply ends."""
        calls, thoughts = [*map(_call_document, finish.calls)], "".join(self._thoughts)
        if calls:
            yield self._chunk(
                {"tool_calls": [{"index": number, **call} for number, call in enumerate(calls)]}
            )
        elif finish.answer:
            yield self._chunk({"content": finish.answer})
        reason = "tool_calls" if calls else "length" if finish.cut else "stop"
        yield self._chunk({}, reason)
        spent = {"usage": usage_document(finish), "reasonry": finish.document}
        if self._says_usage:
            yield self._document("chat.completion.chunk", choices=[], **spent)
        message: Document = {
            "role": "assistant",
            "content": None if calls else finish.answer,
            "refusal": None,
            **({"reasoning_content": thoughts} if thoughts else {}),
            **({"tool_calls": calls} if calls else {}),
        }
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        self.whole = self._document("chat.completion", choices=[choice], **spent)

    def fail(self, error: ReasonryError, request_id: str) -> Document:
        """Return how a reply ends of which nothing comes."""
        return error_body(error, request_id)

    def _chunk(self, delta: Document, reason: str | None = None) -> Document:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._says_usage else {}
        return self._document("chat.completion.chunk", choices=[choice], **usage)

    def _document(self, kind: str, **members: Any) -> Document:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model, **members}


def usage_document(finish: Finish) -> Document:
    """Return what a request took; all that was written and is no answer counts as reasoning."""
    used = finish.usage
    thought = used.output_tokens - (estimate_tokens(finish.answer) if finish.answer else 0)
    return {
        "prompt_tokens": used.input_tokens,
        "completion_tokens": used.output_tokens,
        "total_tokens": used.tokens,
        "prompt_tokens_details": {"cached_tokens": used.cached_input_tokens},
        "completion_tokens_details": {"reasoning_tokens": max(0, thought)},
    }


def _call_document(call: FunctionCall) -> Document:
    arguments = msgspec.json.encode(call.arguments).decode()
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}
