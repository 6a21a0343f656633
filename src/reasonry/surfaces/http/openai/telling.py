"""How the two APIs tell a run: as events while it works, and whole in the end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ....core.metering import estimate_tokens
from ....errors import ReasonryError
from ..documents import error_body
from .completion import Finish
from .conversation import MadeCall
from .request import ChatFields, ResponseFields

Document = dict[str, Any]

_ECHOED = (
    *("model", "background", "instructions", "max_output_tokens", "parallel_tool_calls"),
    *("previous_response_id", "text", "tool_choice", "tools"),
)
"""The fields of a request that its response has again."""
_FIXED = {"metadata": {}, "store": True, "temperature": None, "top_p": None, "truncation": "auto"}


class ChatTelling:
    """A chat completion, in chunks or whole.

    Attributes:
        last_line: What a stream that came to its end is closed with.
        whole: The reply, once the run has ended.
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
        calls = [{"type": "function", **msgspec.to_builtins(call)} for call in finish.calls]
        message: Document = {
            "role": "assistant",
            "content": None if calls else finish.answer,
            "refusal": None,
        }
        if self._thoughts:
            message["reasoning_content"] = "".join(self._thoughts)
        if calls:
            message["tool_calls"] = calls
            yield self._chunk({"tool_calls": [{"index": place, **call} for place, call in enumerate(calls)]})
        elif finish.answer:
            yield self._chunk({"content": finish.answer})
        reason = "tool_calls" if calls else "length" if finish.cut else "stop"
        yield self._chunk({}, reason)
        spent = {"usage": _usage(finish, "prompt", "completion"), "reasonry": finish.document}
        if self._says_usage:
            yield self._document("chat.completion.chunk", choices=[], **spent)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
        self.whole = self._document("chat.completion", choices=[choice], **spent)

    def fail(self, error: ReasonryError, scope: Mapping[str, Any]) -> Document:
        """Return how a reply ends of which nothing comes."""
        return error_body(error, scope)

    def _chunk(self, delta: Document, reason: str | None = None) -> Document:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        usage = {"usage": None} if self._says_usage else {}
        return self._document("chat.completion.chunk", choices=[choice], **usage)

    def _document(self, kind: str, **members: Any) -> Document:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._model, **members}


class ResponseTelling:
    """A response, in events or whole; see `ChatTelling`."""

    last_line = b""

    def __init__(self, suffix: str, fields: ResponseFields, created: float | None = None) -> None:
        self._id, self._created = f"resp_{suffix}", int(created or time.time())
        self._asked = {name: msgspec.to_builtins(getattr(fields, name)) for name in _ECHOED}
        self._number = -1
        self._thoughts, self._output = list[str](), list[Document]()
        self._reasoning = {"id": f"rs_{self._id}", "type": "reasoning"}
        self._summary = {"item_id": f"rs_{self._id}", "output_index": 0, "summary_index": 0}
        self.whole: Document = {}

    def begin(self) -> Iterator[Document]:
        """See `ChatTelling`."""
        yield self._event("created", response=self.response("in_progress"))
        yield self._event("in_progress", response=self.response("in_progress"))

    def think(self, piece: str) -> Iterator[Document]:
        """See `ChatTelling`."""
        if not self._thoughts:
            yield self._item("added", {**self._reasoning, "summary": []}, "in_progress")
            part = {"type": "summary_text", "text": ""}
            yield self._event("reasoning_summary_part.added", **self._summary, part=part)
        self._thoughts.append(piece)
        yield self._event("reasoning_summary_text.delta", **self._summary, delta=piece)

    def finish(self, finish: Finish) -> Iterator[Document]:
        """See `ChatTelling`."""
        if self._thoughts:
            part = {"type": "summary_text", "text": "".join(self._thoughts)}
            yield self._event("reasoning_summary_text.done", **self._summary, text=part["text"])
            yield self._event("reasoning_summary_part.done", **self._summary, part=part)
            yield self._item("done", {**self._reasoning, "summary": [part]})
        for call in finish.calls:
            yield from self._call(call)
        status = "incomplete" if finish.cut else "completed"
        if not finish.calls:
            yield from self._answer(finish.answer, status)
        self.whole = self.response(status, usage=_usage(finish, "input", "output"), reasonry=finish.document)
        yield self._event(status, response=self.whole)

    def fail(self, error: ReasonryError, scope: Mapping[str, Any]) -> Document:
        """See `ChatTelling`."""
        status = "cancelled" if error.code == "cancelled" else "failed"
        self.whole = self.response(status, error={"code": error.code, "message": error.message})
        return self._event("failed", response=self.whole)

    def response(self, status: str, **members: Any) -> Document:
        """Return the response as it stands."""
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "output": self._output,
            "reasoning": {"effort": None, "summary": "detailed"},
            "usage": None,
            **_FIXED,
            **self._asked,
            **members,
        }

    def _answer(self, text: str, status: str) -> Iterator[Document]:
        item: Document = {"id": f"msg_{self._id}", "type": "message", "role": "assistant"}
        part = {"type": "output_text", "annotations": [], "logprobs": []}
        place = {"item_id": item["id"], "output_index": len(self._output), "content_index": 0}
        yield self._item("added", {**item, "content": []}, "in_progress")
        yield self._event("content_part.added", **place, part={**part, "text": ""})
        yield self._event("output_text.delta", **place, delta=text, logprobs=[])
        yield self._event("output_text.done", **place, text=text, logprobs=[])
        yield self._event("content_part.done", **place, part={**part, "text": text})
        yield self._item("done", {**item, "content": [{**part, "text": text}]}, status)

    def _call(self, call: MadeCall) -> Iterator[Document]:
        name, written = call.function.name, call.function.arguments
        item = {"id": f"fc_{call.id}", "type": "function_call", "call_id": call.id, "name": name}
        place = {"item_id": item["id"], "output_index": len(self._output)}
        yield self._item("added", {**item, "arguments": ""}, "in_progress")
        yield self._event("function_call_arguments.delta", **place, delta=written)
        yield self._event("function_call_arguments.done", **place, arguments=written, name=name)
        yield self._item("done", {**item, "arguments": written})

    def _item(self, step: str, item: Document, status: str = "completed") -> Document:
        """Return the event that an item is `added`, or `done` and part of the output."""
        item = {**item, "status": status}
        event = self._event(f"output_item.{step}", output_index=len(self._output), item=item)
        if step == "done":
            self._output.append(item)
        return event

    def _event(self, kind: str, **data: Any) -> Document:
        self._number += 1
        return {"type": f"response.{kind}", "sequence_number": self._number, **data}


def _usage(finish: Finish, read: str, written: str) -> Document:
    """Return the usage of a request in the words of an API; all output that is no answer counts as reasoning."""
    used = finish.usage
    thought = used.output_tokens - (estimate_tokens(finish.answer) if finish.answer else 0)
    return {
        f"{read}_tokens": used.input_tokens,
        f"{written}_tokens": used.output_tokens,
        "total_tokens": used.tokens,
        f"{read}_tokens_details": {"cached_tokens": used.cached_input_tokens},
        f"{written}_tokens_details": {"reasoning_tokens": max(0, thought)},
    }
