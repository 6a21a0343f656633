"""Runs told as responses, and as the events of one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ....core.toolcard import ToolCard
from ....errors import ReasonryError
from .chat import usage_document
from .completion import Finish, FunctionCall
from .request import ResponseFields

Document = dict[str, Any]


class ResponseTelling:
    """A response, told in events or whole; see `ChatTelling`."""

    last_line = b""

    def __init__(self, suffix: str, fields: ResponseFields) -> None:
        self._id, self._fields = f"resp_{suffix}", fields
        self._created, self._number = int(time.time()), -1
        self._output: list[Document] = []
        self._thoughts: list[str] = []
        self.whole: Document = {}

    def begin(self) -> Iterator[Document]:
        """Yield the events that a reply begins with."""
        yield self._event("response.created", response=self._document("in_progress"))
        yield self._event("response.in_progress", response=self._document("in_progress"))

    def think(self, piece: str) -> Iterator[Document]:
        """Yield a piece of what the run thinks."""
        if not self._thoughts:
            item = {"id": f"rs_{self._id}", "type": "reasoning", "summary": [], "status": "in_progress"}
            yield self._event("response.output_item.added", output_index=0, item=item)
            part = {"type": "summary_text", "text": ""}
            yield self._thinking("response.reasoning_summary_part.added", part=part)
        self._thoughts.append(piece)
        yield self._thinking("response.reasoning_summary_text.delta", delta=piece)

    def finish(self, finish: Finish) -> Iterator[Document]:
        """Yield how the reply ends."""
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
        self.whole = {**self._document(status), "usage": _usage_document(finish), "reasonry": finish.document}
        yield self._event(f"response.{status}", response=self.whole)

    def fail(self, error: ReasonryError, request_id: str) -> Document:
        """Return how a reply ends of which nothing comes."""
        failure = {"code": error.code, "message": error.message}
        return self._event("response.failed", response={**self._document("failed"), "error": failure})

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
    used: Mapping[str, Any] = usage_document(finish)
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
