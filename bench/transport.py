"""Overhead of the transport: 86 calls in three rounds, at most 35 in flight, a server that takes 50 ms.

    uv run python bench/transport.py [--repeat 5]

Prints, for this package's models, the plain HTTP clients, the OpenAI SDK and plain sockets in one run: wall-clock as a
multiple of rounds × latency (1.00 is perfect), and processor time a call. The server is a process of its own that does
as little as it can. Plain sockets are the floor: where they are far from 1.00, the machine is busy with something else.
Target: an OpenAI-compatible model takes at most 1.2 × rounds × latency.
"""

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from plain_server import PlainServer

from reasonry.core.effects import Ask
from reasonry.engine.ports import Model, Question
from reasonry.models.openai_compatible import OpenAICompatibleModel
from reasonry.models.providers import ProviderModel

ROUNDS = (35, 35, 16)
LATENCY_MS = 50
TARGET = 1.2
PROMPT = "Propose the next step towards 24, using two of the numbers that are left. " * 12

Call = Callable[[int], Awaitable[Any]]


def body(number: int) -> dict[str, Any]:
    return {"model": "test-model", "messages": [{"role": "user", "content": f"{PROMPT} {number}"}]}


@asynccontextmanager
async def over_model(model: Model, watched: bool = False) -> AsyncIterator[Call]:
    on_text = (lambda text: None) if watched else None

    async def call(number: int) -> Any:
        ask = Ask(f"{PROMPT} {number}")
        return await model.answer(Question(str(number), "bench", ask, timeout_s=30), on_text)

    try:
        yield call
    finally:
        await model.close()


@asynccontextmanager
async def over_sockets(url: str) -> AsyncIterator[Call]:
    """The least any client takes here: ready bytes over a kept connection, and no look at what comes back."""
    host, _, port = url.removeprefix("http://").removesuffix("/v1").partition(":")
    idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    opened: list[asyncio.StreamWriter] = []

    async def call(number: int) -> Any:
        raw = msgspec.json.encode(body(number))
        if not idle:
            reader, writer = await asyncio.open_connection(host, int(port))
            opened.append(writer)
        else:
            reader, writer = idle.pop()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(raw)}\r\n\r\n"
        writer.write(head.encode() + raw)
        reply = await reader.read(65_536)
        idle.append((reader, writer))
        return reply

    try:
        yield call
    finally:
        for writer in opened:
            writer.close()


@asynccontextmanager
async def over_aiohttp(url: str) -> AsyncIterator[Call]:
    import aiohttp

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def call(number: int) -> Any:
            raw = msgspec.json.encode(body(number))
            headers = {"Content-Type": "application/json"}
            async with session.post(f"{url}/chat/completions", data=raw, headers=headers) as response:
                return msgspec.json.decode(await response.read())

        yield call


@asynccontextmanager
async def over_httpx2(url: str) -> AsyncIterator[Call]:
    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx2.AsyncClient(limits=limits, timeout=30) as client:

        async def call(number: int) -> Any:
            response = await client.post(f"{url}/chat/completions", json=body(number))
            return msgspec.json.decode(response.content)

        yield call


@asynccontextmanager
async def over_openai(url: str) -> AsyncIterator[Call]:
    from openai import AsyncOpenAI

    async with AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def call(number: int) -> Any:
            return await client.chat.completions.create(**body(number))

        yield call


def pydantic_ai_model(url: str) -> Model:
    import os

    os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="none")
    return ProviderModel("openai-chat:test-model")


async def measure(call: Call, repeat: int) -> tuple[float, float, float]:
    """Return median and best multiple of the critical path, and processor milliseconds a call."""
    await call(-1)
    multiples: list[float] = []
    began_cpu = time.process_time()
    for _ in range(repeat):
        began, number = time.perf_counter(), 0
        for size in ROUNDS:
            await asyncio.gather(*(call(number + at) for at in range(size)))
            number += size
        multiples.append((time.perf_counter() - began) * 1000 / (len(ROUNDS) * LATENCY_MS))
    cpu_ms = (time.process_time() - began_cpu) * 1000 / (repeat * sum(ROUNDS))
    return statistics.median(multiples), min(multiples), cpu_ms


async def main(repeat: int) -> int:
    medians: dict[str, float] = {}
    with PlainServer(LATENCY_MS) as server:
        url = server.url
        candidates: dict[str, Callable[[], Any]] = {
            "reasonry": lambda: over_model(OpenAICompatibleModel(url, "test-model")),
            "reasonry, streaming": lambda: over_model(OpenAICompatibleModel(url, "test-model"), watched=True),
            "aiohttp": lambda: over_aiohttp(url),
            "plain sockets": lambda: over_sockets(url),
            "httpx2": lambda: over_httpx2(url),
            "openai SDK": lambda: over_openai(url),
            "reasonry over pydantic-ai": lambda: over_model(pydantic_ai_model(url)),
        }
        print(f"{'client':36} {'median':>8} {'best':>8} {'cpu ms/call':>12}")
        for name, candidate in candidates.items():
            async with candidate() as call:
                medians[name], best, cpu_ms = await measure(call, repeat)
            print(f"{name:36} {medians[name]:8.3f} {best:8.3f} {cpu_ms:12.2f}")
    good = medians["reasonry"] <= TARGET
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeat", type=int, default=5)
    sys.exit(asyncio.run(main(parser.parse_args().repeat)))
