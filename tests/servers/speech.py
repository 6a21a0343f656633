"""How a completion is written down on the wire: whole, or as events; here as the OpenAI protocol has it."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from .accounting import Call
from .faults import Said

Event = tuple[str, Any]
"""Name of a server-sent event (empty: none), and its data: a document, or text sent as it is."""


class Told(Struct, frozen=True):
    """All that goes into a completion. `usage` has OpenAI's names, or is broken; None: it is left out."""

    call: Call
    body: dict[str, Any]
    said: Sequence[Said]
    usage: Any
    chunk_words: int

    @property
    def model(self) -> str:
        """The model as the request has it."""
        model = self.body.get("model")
        return model if isinstance(model, str) else "test-model"

    def figure(self, *names: str) -> Any:
        """Return one of the usage figures, 0 if there is none."""
        found: Any = self.usage or {}
        for name in names:
            found = found.get(name, 0) if isinstance(found, dict) else 0
        return found


class Speech(Struct, frozen=True):
    """A protocol: how completions look whole, and how as events."""

    whole: Callable[[Told], dict[str, Any]]
    events: Callable[[Told], Iterator[Event]]


def pieces_of(text: str, chunk_words: int) -> list[str]:
    """Cut a text into chunks of so many words; nothing of it is lost."""
    words = re.findall(r"\s*\S+|\s+\Z", text)
    return ["".join(words[at : at + chunk_words]) for at in range(0, len(words), chunk_words)]


def _whole(told: Told) -> dict[str, Any]:
    choices = [
        {"index": at, "message": _message(one), "finish_reason": one.finish, "logprobs": None}
        for at, one in enumerate(told.said)
    ]
    frame = _frame(told, "chat.completion", choices)
    return frame if told.usage is None else frame | {"usage": told.usage}


def _message(one: Said) -> dict[str, Any]:
    return {"role": "assistant", "content": None if one.refusal else one.text, "refusal": one.refusal}


def _frame(told: Told, kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{told.call.number}",
        "object": kind,
        "created": 1_700_000_000,
        "model": told.model,
        "choices": choices,
    }


def _events(told: Told) -> Iterator[Event]:
    def event(choices: list[dict[str, Any]]) -> Event:
        return "", _frame(told, "chat.completion.chunk", choices)

    for at, one in enumerate(told.said):
        yield event([{"index": at, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        for delta in _deltas(one, told.chunk_words):
            yield event([{"index": at, "delta": delta, "finish_reason": None}])
        yield event([{"index": at, "delta": {}, "finish_reason": one.finish}])
    options = told.body.get("stream_options")
    if told.usage is not None and isinstance(options, dict) and options.get("include_usage"):
        yield "", _frame(told, "chat.completion.chunk", []) | {"usage": told.usage}
    yield "", "[DONE]"


def _deltas(one: Said, chunk_words: int) -> list[dict[str, str]]:
    if one.refusal:
        return [{"refusal": one.refusal}]
    return [{"content": piece} for piece in pieces_of(one.text, chunk_words)]


OPENAI = Speech(_whole, _events)
