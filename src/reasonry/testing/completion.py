"""Answering one chat completion request: what is said, what it took, when it is sent, what breaks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from .accounting import Call, count_tokens, first_tokens
from .behaviour import Fault
from .brain import open_request, text_of
from .desk import Desk
from .exchange import Exchange, HttpRequest
from .faults import TRANSPORT, Said, distort, distort_usage

_encode = msgspec.json.encode
FAILING = {*TRANSPORT, "no_json_schema"}
_NO_SCHEMA = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."


async def complete(
    desk: Desk, call: Call, body: dict[str, Any], request: HttpRequest, exchange: Exchange
) -> None:
    """Answer or break one request, and book it."""
    first = open_request(body, call.number, 0)
    fault = desk.faults.pick(call.number, first.prompt, call.prompt_digest)
    kind = "" if fault is None else fault.kind
    if kind == "no_json_schema" and first.form is None:
        fault, kind = None, ""
    call.fault = kind or None
    samples = body.get("n") if isinstance(body.get("n"), int) else 1
    said = [
        _limited(distort(kind, desk.brain.say(replace(first, sample=sample))), body)
        for sample in range(max(1, min(samples or 1, 128)))
    ]
    usage, keys = _booked(desk, call, body, said)
    whole = _whole(call, body, said, distort_usage(kind, usage))
    await _until(request.arrived_s + desk.behaviour.latency_ms / 1000)
    if fault is not None:
        await asyncio.sleep(fault.delay_ms / 1000)
        if fault.kind in FAILING and fault.kind not in ("hang", "trickle"):
            desk.ledger.settle(call, "failed", asyncio.get_running_loop().time())
        if await _broken(fault, exchange, whole):
            return

    def settle() -> None:
        desk.cache.keep(keys)
        desk.ledger.settle(call, "answered", asyncio.get_running_loop().time())

    if body.get("stream") is True:
        pause_s = desk.behaviour.chunk_ms / 1000
        events = _events(call, body, said, distort_usage(kind, usage), desk.behaviour.chunk_words)
        await _stream(events, pause_s, settle, exchange)
    else:
        settle()
        exchange.send(200, whole)


async def _until(instant_s: float) -> None:
    pause = instant_s - asyncio.get_running_loop().time()
    if pause > 0:
        await asyncio.sleep(pause)


async def _broken(fault: Fault, exchange: Exchange, whole: bytes) -> bool:
    if fault.kind == "no_json_schema":
        error = {
            "message": _NO_SCHEMA,
            "type": "invalid_request_error",
            "code": None,
            "param": "response_format",
        }
        exchange.send(400, _encode({"error": error}))
        return True
    perform = TRANSPORT.get(fault.kind)
    if perform is None:
        return False
    await perform(exchange, fault, whole)
    return True


def _limited(said: Said, body: dict[str, Any]) -> Said:
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    if not isinstance(limit, int) or count_tokens(said.text) <= limit:
        return said
    return Said(first_tokens(said.text, limit), finish="length")


def _booked(
    desk: Desk, call: Call, body: dict[str, Any], said: Sequence[Said]
) -> tuple[dict[str, Any], list[bytes]]:
    tools = _encode(body["tools"]).decode() + "\n" if body.get("tools") else ""
    messages = [one for one in body["messages"] if isinstance(one, dict)]
    prompt = tools + "\n".join(f"{one.get('role')}: {text_of(one.get('content'))}" for one in messages)
    call.samples = len(said)
    call.prompt_tokens = count_tokens(prompt)
    call.cached_tokens, keys = desk.cache.look_up(prompt)
    call.completion_tokens = sum(count_tokens(one.refusal or one.text) for one in said)
    usage = {
        "prompt_tokens": call.prompt_tokens,
        "completion_tokens": call.completion_tokens,
        "total_tokens": call.prompt_tokens + call.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": call.cached_tokens},
    }
    return usage, keys


def _whole(call: Call, body: dict[str, Any], said: Sequence[Said], usage: dict[str, Any] | None) -> bytes:
    choices = [
        {
            "index": at,
            "message": _message(one),
            "finish_reason": one.finish,
            "logprobs": None,
        }
        for at, one in enumerate(said)
    ]
    return _encode(
        _frame(call, body, "chat.completion", choices) | ({} if usage is None else {"usage": usage})
    )


def _message(one: Said) -> dict[str, Any]:
    return {"role": "assistant", "content": None if one.refusal else one.text, "refusal": one.refusal}


def _frame(call: Call, body: dict[str, Any], kind: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
    model = body.get("model")
    return {
        "id": f"chatcmpl-{call.number}-{call.prompt_digest}",
        "object": kind,
        "created": 1_700_000_000,
        "model": model if isinstance(model, str) else "test-model",
        "choices": choices,
    }


async def _stream(
    events: Iterable[dict[str, Any]], pause_s: float, settle: Callable[[], None], exchange: Exchange
) -> None:
    exchange.start_events()
    for event in events:
        exchange.write_event(_encode(event))
        if pause_s:
            await asyncio.sleep(pause_s)
    settle()
    exchange.write_event(b"[DONE]")
    exchange.end_events()


def _events(
    call: Call, body: dict[str, Any], said: Sequence[Said], usage: dict[str, Any] | None, chunk_words: int
) -> Iterator[dict[str, Any]]:
    def event(choices: list[dict[str, Any]]) -> dict[str, Any]:
        return _frame(call, body, "chat.completion.chunk", choices)

    for at, one in enumerate(said):
        yield event([{"index": at, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        for delta in _deltas(one, chunk_words):
            yield event([{"index": at, "delta": delta, "finish_reason": None}])
        yield event([{"index": at, "delta": {}, "finish_reason": one.finish}])
    options = body.get("stream_options")
    if usage is not None and isinstance(options, dict) and options.get("include_usage"):
        yield event([]) | {"usage": usage}


def _deltas(one: Said, chunk_words: int) -> list[dict[str, str]]:
    if one.refusal:
        return [{"refusal": one.refusal}]
    words = re.findall(r"\s*\S+|\s+\Z", one.text)
    chunks = ["".join(words[at : at + chunk_words]) for at in range(0, len(words), chunk_words)]
    return [{"content": chunk} for chunk in chunks]
