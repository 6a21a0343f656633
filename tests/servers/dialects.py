"""The protocols of Anthropic and Google, as far as tests need them, to and from OpenAI's form."""

from collections.abc import Iterator
from typing import Any

from .speech import Event, Speech, Told, pieces_of

_ANTHROPIC_STOPS = {"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"}
_GOOGLE_STOPS = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}


def from_anthropic(body: dict[str, Any]) -> dict[str, Any]:
    """Return a Messages request as a chat completion request."""
    system = body.get("system")
    messages = [{"role": "system", "content": system}] if system else []
    wanted = _dict(_dict(body.get("output_config")).get("format")) or _dict(body.get("output_format"))
    more = {name: body[name] for name in ("model", "stream", "max_tokens", "tools") if name in body}
    return more | _wanting(wanted.get("schema")) | {"messages": messages + body.get("messages", [])}


def from_google(body: dict[str, Any], path: str) -> dict[str, Any]:
    """Return a generateContent request as a chat completion request; model and streaming stand in the path."""
    system = _dict(body.get("systemInstruction")).get("parts")
    messages = [{"role": "system", "content": system}] if system else []
    for one in body.get("contents", []):
        role = "assistant" if one.get("role") == "model" else "user"
        messages.append({"role": role, "content": one.get("parts")})
    settings = _dict(body.get("generationConfig"))
    schema = settings.get("responseJsonSchema") or settings.get("responseSchema")
    limit = settings.get("maxOutputTokens")
    name, _, verb = path.rpartition("/")[2].partition(":")
    more = {} if limit is None else {"max_tokens": limit}
    return (
        {"model": name, "stream": verb.startswith("stream"), "messages": messages} | more | _wanting(schema)
    )


def _wanting(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict):
        return {}
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _anthropic_message(told: Told, text: str | None = None) -> dict[str, Any]:
    text = told.said[0].text if text is None else text
    one, cached = told.said[0], told.figure("prompt_tokens_details", "cached_tokens")
    taken = told.figure("prompt_tokens")
    return {
        "id": f"msg_{told.call.number}",
        "type": "message",
        "role": "assistant",
        "model": told.model,
        "content": [{"type": "text", "text": text}] if text else [],
        "stop_reason": "refusal" if one.refusal else _ANTHROPIC_STOPS[one.finish],
        "stop_sequence": None,
        "usage": {
            "input_tokens": taken - cached if isinstance(taken, int) else taken,
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": 0,
            "output_tokens": told.figure("completion_tokens"),
        },
    }


def _anthropic_events(told: Told) -> Iterator[Event]:
    def event(name: str, **more: Any) -> Event:
        return name, {"type": name, **more}

    message = _anthropic_message(told, "")
    yield event("message_start", message=message | {"stop_reason": None})
    yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
    for piece in pieces_of(told.said[0].text, told.chunk_words):
        yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
    yield event("content_block_stop", index=0)
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=stop, usage=message["usage"])
    yield event("message_stop")


def _google_part(told: Told, text: str | None = None, *, last: bool = True) -> dict[str, Any]:
    one = told.said[0]
    parts = [{"text": one.text if text is None else text}]
    content: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if last:
        content["finishReason"] = "SAFETY" if one.refusal else _GOOGLE_STOPS[one.finish]
    return {
        "candidates": [content],
        "modelVersion": told.model,
        "responseId": f"reply-{told.call.number}",
        "usageMetadata": {
            "promptTokenCount": told.figure("prompt_tokens"),
            "candidatesTokenCount": told.figure("completion_tokens"),
            "cachedContentTokenCount": told.figure("prompt_tokens_details", "cached_tokens"),
            "totalTokenCount": told.figure("total_tokens"),
        },
    }


def _google_events(told: Told) -> Iterator[Event]:
    pieces = pieces_of(told.said[0].text, told.chunk_words) or [""]
    for at, piece in enumerate(pieces, start=1):
        yield "", _google_part(told, piece, last=at == len(pieces))


ANTHROPIC = Speech(_anthropic_message, _anthropic_events)
GOOGLE = Speech(_google_part, _google_events)
