"""Breaking requests: which ones, and how."""

import asyncio
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from .behaviour import Fault
from .echoes import echo
from .exchange import Exchange

HUGE_BYTES = 1_000_000_000
BOMB_BYTES = 200_000_000
_BLOCK = b" " * 1_000_000
DRIP_S = 0.02
_PAGE = b"<!doctype html><title>Sign in</title><p>Please sign in."
_GZIP = {"Content-Encoding": "gzip"}


class FaultPlan:
    """Picks the requests to break."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self._faults = [(fault, re.compile(fault.match or "", re.DOTALL)) for fault in faults]
        self._seen: Counter[int] = Counter()

    def pick(self, number: int, prompt: str) -> Fault | None:
        """Return the first fault that fits this request; all of them count it."""
        fitting = list[Fault]()
        for at, (fault, pattern) in enumerate(self._faults):
            if pattern.search(prompt):
                self._seen[at] += 1
                fits = not fault.requests or number in fault.requests
                fits &= fault.first is None or self._seen[at] <= fault.first
                fits &= fault.every is None or self._seen[at] % fault.every == 0
                fitting += [fault] * fits
        return fitting[0] if fitting else None


Perform = Callable[[Exchange, Fault, bytes], Awaitable[None]]
"""Breaks one request; gets the body that would have been the answer."""


def _status(status: int, code: str, message: str) -> Perform:
    body = msgspec.json.encode({"error": {"message": message, "type": code, "code": code, "param": None}})

    async def perform(exchange: Exchange, fault: Fault, whole: bytes) -> None:
        headers = {} if fault.retry_after is None else {"Retry-After": fault.retry_after}
        await exchange.send(status, body, headers=headers)

    return perform


def _sends(
    body: Callable[[Exchange, bytes], bytes],
    status: int = 200,
    content_type: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> Perform:
    """Send a whole body, which is made of the request and of the right answer."""

    async def perform(exchange: Exchange, fault: Fault, whole: bytes) -> None:
        await exchange.send(status, body(exchange, whole), content_type, headers)

    return perform


async def _reset(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    exchange.reset()


async def _hang(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    await asyncio.Event().wait()


async def _trickle(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    await exchange.start(length=len(whole))
    for byte in whole:
        await exchange.response.write(bytes((byte,)))
        await asyncio.sleep(1)


async def _half_body(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    await exchange.start(length=len(whole))
    await exchange.response.write(whole[: len(whole) // 2])
    exchange.close()


async def _huge(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    await exchange.start()
    await _flood(exchange, _BLOCK)


async def _flood(exchange: Exchange, block: bytes) -> None:
    for _ in range(HUGE_BYTES // len(block)):
        await exchange.response.write(block)
    await exchange.response.write_eof()


def _endless(begun: bytes, again: bytes) -> Perform:
    """Begin a stream of events and continue with the same bytes until the client has gone."""
    block = again * (len(_BLOCK) // 10 // len(again))

    async def perform(exchange: Exchange, fault: Fault, whole: bytes) -> None:
        await exchange.start_events()
        await exchange.response.write(begun)
        await _flood(exchange, block)

    return perform


async def _drip(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    await exchange.start_events()
    while True:
        await exchange.response.write(b": still here\n\n")
        await asyncio.sleep(DRIP_S)


@cache
def _bomb() -> bytes:
    packer = zlib.compressobj(1, wbits=zlib.MAX_WBITS | 16)
    return b"".join([*(packer.compress(_BLOCK) for _ in range(BOMB_BYTES // len(_BLOCK))), packer.flush()])


async def _bad_events(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    await exchange.start_events()
    await exchange.write_event(b'{"choices": [{"delta": {"content": "half of')
    await exchange.write_event(b"[DONE]")
    await exchange.response.write_eof()


async def _broken_stream(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    await exchange.start_events()
    await exchange.write_event(
        b'{"choices":[{"index":0,"delta":{"role":"assistant","content":"The answer"}}]}'
    )
    await asyncio.sleep(0.01)
    exchange.reset()


async def _key_in_event(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    await exchange.start_events()
    await exchange.write_event(echo(exchange.key), "error")
    await exchange.response.write_eof()


async def _key_in_reason(exchange: Exchange, fault: Fault, whole: bytes) -> None:
    await exchange.start(
        401, "text/plain", {"X-Echo": exchange.key}, length=0, reason=f"Bad key {exchange.key}"
    )
    await exchange.response.write_eof()


TRANSPORT: dict[str, Perform] = {
    "rate_limit": _status(429, "rate_limit_exceeded", "Rate limit reached; slow down."),
    "quota": _status(429, "insufficient_quota", "You exceeded your current quota."),
    "server_error": _status(500, "server_error", "The server had an error."),
    "unavailable": _status(503, "overloaded", "The server is overloaded."),
    "bad_request": _status(400, "invalid_request_error", "This request cannot be understood."),
    "unauthorized": _status(401, "invalid_api_key", "Incorrect API key provided: sk-wrong-0123456789abcdef."),
    "not_found": _status(404, "model_not_found", "The model does not exist."),
    "redirect": _sends(lambda *_: b"", 307, headers={"Location": "http://127.0.0.1:9/v1/chat/completions"}),
    "reset": _reset,
    "hang": _hang,
    "trickle": _trickle,
    "invalid_body": _sends(lambda _, whole: whole[: len(whole) // 2]),
    "half_body": _half_body,
    "html": _sends(lambda *_: _PAGE, content_type="text/html; charset=utf-8"),
    "wrong_charset": _sends(
        lambda _, whole: whole.replace(b'"content":"', b'"content":"\xff\xfe caf\xe9 '),
        content_type="application/json; charset=latin-1",
    ),
    "huge": _huge,
    "gzip": _sends(lambda _, whole: gzip.compress(whole), headers=_GZIP),
    "gzip_bomb": _sends(lambda *_: _bomb(), headers=_GZIP),
    "bad_events": _bad_events,
    "broken_stream": _broken_stream,
    "endless_line": _endless(b"data: ", b"x"),
    "endless_comments": _endless(b"", b": still here\n"),
    "endless_events": _endless(b"", b"data:\n\n"),
    "drip": _drip,
    "late_break": _half_body,
    "key_in_error": _sends(lambda exchange, _: echo(exchange.key), 401),
    "key_in_200": _sends(lambda exchange, _: echo(exchange.key)),
    "key_in_event": _key_in_event,
    "key_in_reason": _key_in_reason,
}
"""The faults in which no proper completion is sent."""


class Said(msgspec.Struct, frozen=True):
    """One choice of a completion."""

    text: str
    finish: str = "stop"
    refusal: str | None = None


def distort(kind: str, text: str) -> Said:
    """Return what is said instead under a fault of content; other kinds leave the text alone."""
    match kind:
        case "fenced":
            return Said(f"Sure, here it is:\n```json\n{text}\n```" if text.startswith(("{", "[")) else text)
        case "malformed":
            return Said(re.sub(r"([}\]])\s*$", r",\1", text.replace('"', "'", 2)) + " and no more.")
        case "truncated":
            return Said(text[: max(1, len(text) // 2)], finish="length")
        case "empty":
            return Said("")
        case "refusal":
            return Said("", refusal="I'm sorry, but I can't help with that.")
        case "content_filter":
            return Said("", finish="content_filter")
        case _:
            return Said(text)


SURPLUS_CHOICES = 39
"""How many choices nobody asked for come with the fault `surplus_choices`; the usage covers them."""

_FIGURES = ("prompt_tokens", "completion_tokens", "total_tokens")
_USAGES: dict[str, Any] = {
    "absurd_usage": {
        "prompt_tokens": -5,
        "completion_tokens": 1e300,
        "total_tokens": "many",
        "prompt_tokens_details": {"cached_tokens": 10**12},
        "cost": -3,
    },
    "no_usage": None,
    "null_usage": dict.fromkeys(_FIGURES),
    "negative_usage": dict.fromkeys(_FIGURES, -50_000),
    "text_usage": dict.fromkeys(_FIGURES, "12"),
    "list_usage": [7, 7, 14],
    "huge_usage": dict.fromkeys(_FIGURES, 10**15),
    "tiny_usage": dict.fromkeys(_FIGURES, 0) | {"completion_tokens": 1},
}


def distort_usage(kind: str, usage: dict[str, Any]) -> Any:
    """Return the usage figures as a fault of usage has them; None: they are left out."""
    return _USAGES.get(kind, usage)
