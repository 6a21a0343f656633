"""Answering one completion request: what is said, what it took, when it is sent, what breaks."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from .accounting import Call, Ledger, PrefixCache, count_tokens, first_tokens
from .behaviour import Behaviour, Fault
from .brain import Brain, Reply, open_request, text_of
from .exchange import Exchange
from .faults import SURPLUS_CHOICES, TRANSPORT, FaultPlan, Perform, Said, distort, distort_usage
from .speech import Speech, Told

_NO_SCHEMA = "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model."
_ONE_SAMPLE = "Invalid value: 'n' must be at most 1 with this model."
_NEVER_ENDING = ("hang", "trickle", "drip")
_LAST_EVENTS = 3
"""Events at the end of a stream that say how it ended and what it took."""


class ServerState:
    """What a reset of a server puts back: brain, faults, cache and books."""

    def __init__(self, behaviour: Behaviour, reply: Reply | None, hold: threading.Event | None) -> None:
        self.behaviour, self.hold = behaviour, hold
        self.brain = Brain(behaviour, reply)
        self.faults = FaultPlan(behaviour.faults)
        self.cache = PrefixCache(behaviour.cache_min_tokens, behaviour.cache_block_tokens)
        self.ledger = Ledger()
        self.bodies: list[dict[str, Any]] = []


async def complete(
    state: ServerState, call: Call, body: dict[str, Any], speech: Speech, exchange: Exchange
) -> None:
    """Answer or break one request, and book it.

    Args:
        body: The request in OpenAI's form.
        speech: How the reply is written down.
    """
    limit, most = _limit_of(body), state.behaviour.most_output_tokens
    if state.behaviour.samples == "refused" and body.get("n", 1) != 1:
        await _refuse(state, call, 400, _ONE_SAMPLE, exchange, param="n")
        return
    if most is not None and (limit or 0) > most:
        message = f"max_tokens is too large: {limit}. This model supports at most {most} completion tokens."
        await _refuse(state, call, 400, message, exchange, param="max_tokens")
        return
    try:
        fault, said = _composed(state, call, body)
    except Exception as error:  # the caller's own reply function
        await _refuse(state, call, 500, f"the reply function raised {error!r}", exchange)
        return
    usage, keys = _booked(state, call, body, said)
    stated = usage if fault is None else distort_usage(fault.kind, usage)
    told = Told(call, body, said, stated, state.behaviour.chunk_words)
    await _until(exchange.arrived_s + state.behaviour.latency_ms / 1000)
    if fault is not None:
        await asyncio.sleep(fault.delay_ms / 1000)
        if await _broken(state, fault, told, speech, exchange):
            return

    def settle() -> None:
        state.cache.keep(keys)
        state.ledger.settle(call, "answered", asyncio.get_running_loop().time())

    if body.get("stream") is True:
        await _stream(told, speech, state, settle, exchange)
    else:
        settle()
        await exchange.send(200, msgspec.json.encode(speech.whole(told)))


async def _refuse(
    state: ServerState, call: Call, status: int, message: str, exchange: Exchange, **where: str
) -> None:
    state.ledger.settle(call, "failed", asyncio.get_running_loop().time())
    error = {"message": message, "type": "invalid_request_error" if where else "server_error", **where}
    await exchange.send(status, msgspec.json.encode({"error": error}))


def _composed(state: ServerState, call: Call, body: dict[str, Any]) -> tuple[Fault | None, list[Said]]:
    first = open_request(body, call.number, 0)
    fault = state.faults.pick(call.number, first.prompt)
    if fault is not None and fault.kind == "no_json_schema" and first.form is None:
        fault = None
    call.fault = None if fault is None else fault.kind
    wanted = body.get("n") if state.behaviour.samples in ("served", "alike") else 1
    samples = max(1, min(wanted, 128)) if isinstance(wanted, int) else 1
    samples += SURPLUS_CHOICES if call.fault == "surplus_choices" else 0
    step = state.behaviour.samples != "alike"
    texts = [state.brain.say(replace(first, sample=place * step)) for place in range(samples)]
    return fault, [_limited(distort(call.fault or "", text), body) for text in texts]


async def _until(instant_s: float) -> None:
    pause = instant_s - asyncio.get_running_loop().time()
    if pause > 0:
        await asyncio.sleep(pause)


async def _broken(state: ServerState, fault: Fault, told: Told, speech: Speech, exchange: Exchange) -> bool:
    perform = TRANSPORT.get(fault.kind)
    if fault.kind == "late_break" and told.body.get("stream") is True:
        perform = _late_break(told, speech)
    if perform is None and fault.kind != "no_json_schema":
        return False
    if fault.kind not in _NEVER_ENDING:
        state.ledger.settle(told.call, "failed", asyncio.get_running_loop().time())
    if perform is None:
        error = {"message": _NO_SCHEMA, "type": "invalid_request_error", "param": "response_format"}
        await exchange.send(400, msgspec.json.encode({"error": error}))
    else:
        await perform(exchange, fault, msgspec.json.encode(speech.whole(told)))
    return True


def _limit_of(body: dict[str, Any]) -> int | None:
    return body.get("max_completion_tokens") or body.get("max_tokens")


def _limited(said: Said, body: dict[str, Any]) -> Said:
    limit = _limit_of(body)
    if not isinstance(limit, int) or count_tokens(said.text) <= limit:
        return said
    return Said(first_tokens(said.text, limit), finish="length")


def _booked(
    state: ServerState, call: Call, body: dict[str, Any], said: Sequence[Said]
) -> tuple[dict[str, Any], list[bytes]]:
    tools = msgspec.json.encode(body["tools"]).decode() + "\n" if body.get("tools") else ""
    messages = [one for one in body["messages"] if isinstance(one, dict)]
    prompt = tools + "\n".join(f"{one.get('role')}: {text_of(one.get('content'))}" for one in messages)
    call.samples = len(said)
    call.prompt_tokens = count_tokens(prompt)
    call.cached_tokens, keys = state.cache.look_up(prompt)
    call.completion_tokens = sum(count_tokens(one.refusal or one.text) for one in said)
    usage = {
        "prompt_tokens": call.prompt_tokens,
        "completion_tokens": call.completion_tokens,
        "total_tokens": call.prompt_tokens + call.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": call.cached_tokens},
    }
    return usage, keys


def _late_break(told: Told, speech: Speech) -> Perform:
    async def perform(exchange: Exchange, fault: Fault, whole: bytes) -> None:
        """Send the whole text and break off before anything says that it is whole, or what it took."""
        await exchange.start_events()
        for name, data in list(speech.events(told))[:-_LAST_EVENTS]:
            await exchange.write_event(msgspec.json.encode(data), name)
        await asyncio.sleep(0.01)
        exchange.reset()

    return perform


async def _stream(
    told: Told, speech: Speech, state: ServerState, settle: Callable[[], None], exchange: Exchange
) -> None:
    await exchange.start_events()
    events = list(speech.events(told))
    pause_s = state.behaviour.chunk_ms / 1000
    for at, (name, data) in enumerate(events, start=1):
        if at == len(events):
            while state.hold is not None and not state.hold.is_set():
                await asyncio.sleep(0.01)
            settle()
        await exchange.write_event(
            data.encode() if isinstance(data, str) else msgspec.json.encode(data), name
        )
        if pause_s:
            await asyncio.sleep(pause_s)
    await exchange.response.write_eof()
