"""Load on an HTTP server, made in a process of its own so that the server has the other one to itself.

Latencies of a closed loop count from when a client sends; those of an open loop from when the request was due, so that
a server that falls behind is not flattered.
"""

import asyncio
import json
import math
import multiprocessing
import re
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

from uvicorn.loops.auto import auto_loop_factory

_TEXT = re.compile(rb'content": ?"[^"]')
"""A piece of an answer or of reasoning, in an event of a stream."""

THOUGHTS = 500
"""So many go into one session; a session has a limit."""

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class Measured:
    """What a load met with: milliseconds and HTTP status of each request, 0 where the connection broke."""

    seconds: float = 0.0
    taken: list[tuple[float, int]] = field(default_factory=list)
    first_texts_ms: list[float] = field(default_factory=list)

    def ms(self, part: float, *, status: Callable[[int], bool] = lambda status: status < 400) -> float:
        """Return the quantile of the latencies of requests with such a status."""
        return quantile([ms for ms, code in self.taken if code and status(code)], part)

    def count(self, status: Callable[[int], bool]) -> int:
        """Return how many requests had such a status."""
        return sum(1 for _, code in self.taken if status(code))

    @property
    def served_per_s(self) -> float:
        """Requests that were answered as they should be, a second."""
        return self.count(lambda code: 200 <= code < 300) / self.seconds

    @property
    def errors(self) -> int:
        """Requests that broke off or were answered with an error."""
        return self.count(lambda code: not 200 <= code < 300)


def quantile(values: list[float], part: float) -> float:
    """Return a quantile; not a number where there are no values."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)] if values else math.nan


def elsewhere(work: Callable[P, Coroutine[Any, Any, T]], *args: P.args, **named: P.kwargs) -> T:
    """Return what a coroutine function returns in another process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_run, work, args, named).result()


def _run(work: Any, args: Any, named: Any) -> Any:
    # What the load costs is taken from the server, where there are only two cores.
    with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
        return runner.run(work(*args, **named))


class Wire:
    """One connection to the server."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, method: str, path: str, body: Any) -> tuple[int, bytes, float]:
        """Return the status, the body, and when its first text came in; the status is 0 where the connection broke."""
        return await self.send_whole(self.whole(method, path, body))

    def whole(self, method: str, path: str, body: Any) -> bytes:
        """Return a request as it is sent."""
        content = b"" if body is None else json.dumps(body).encode()
        of_body = f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n" if content else ""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n{of_body}\r\n"
        return head.encode() + content

    async def send_whole(self, request: bytes) -> tuple[int, bytes, float]:
        """Send a request that is whole; otherwise as `send`."""
        try:
            return await self._exchange(request)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            return 0, b"", time.perf_counter()

    async def _exchange(self, request: bytes) -> tuple[int, bytes, float]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        _, is_sized, size = head.partition(b"content-length:")
        if is_sized:
            body = await reader.readexactly(int(size.partition(b"\r\n")[0]))
            first_at = time.perf_counter()
        else:
            pieces = list[bytes]()
            first_at = 0.0
            while length := int((await reader.readuntil(b"\r\n")).partition(b";")[0], 16):
                pieces.append((await reader.readexactly(length + 2))[:-2])
                if not first_at and _TEXT.search(pieces[-1]):
                    first_at = time.perf_counter()
            await reader.readexactly(2)
            body = b"".join(pieces)
        if b"connection: close" in head:
            self.close()
        return int(head[9:12]), body, first_at

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def think_in_turn(port: int, clients: int, seconds: float, path: str = "") -> Measured:
    """Have each client add thoughts to a session of its own, one after the other, and begin another when it is full.

    Args:
        path: Instead of the thoughts' address, for a floor that keeps nothing.
    """
    found = Measured()
    end = time.perf_counter() + seconds

    async def think() -> None:
        wire, address, number = Wire(port), path or "/api/sessions", 1
        while time.perf_counter() < end:
            began = time.perf_counter()
            status, body, _ = await wire.send("POST", address, thought(number))
            found.taken.append(((time.perf_counter() - began) * 1e3, status))
            if number == 1 and not path and status < 400:
                address = f"/api/sessions/{json.loads(body)['session_id']}/thoughts"
            number += 1
            if number > THOUGHTS and not path:
                address, number = "/api/sessions", 1
        wire.close()

    began = time.perf_counter()
    await asyncio.gather(*(think() for _ in range(clients)))
    found.seconds = time.perf_counter() - began
    return found


async def soak(port: int, per_s: float, seconds: float) -> Measured:
    """Add so many thoughts a second, ask for as many completions, a part of them streamed, and look at the lists."""
    found = Measured()
    began = time.perf_counter()

    async def repeat(interval_s: float, request: Callable[[int], tuple[str, str, Any]]) -> None:
        wire, number, address = Wire(port), 0, ""
        while (due := number * interval_s) < seconds:
            await asyncio.sleep(max(0.0, began + due - time.perf_counter()))
            method, path, body = request(number)
            path = path.replace("SESSION", address)
            sent = time.perf_counter()
            status, reply, _ = await wire.send(method, path, body)
            found.taken.append(((time.perf_counter() - sent) * 1e3, status))
            if path == "/api/sessions" and method == "POST" and status < 400:
                address = json.loads(reply)["session_id"]
            number += 1
        wire.close()

    def think(number: int) -> tuple[str, str, Any]:
        place = number % 100 + 1
        path = "/api/sessions/SESSION/thoughts" if place > 1 else "/api/sessions"
        return "POST", path, thought(place)

    def ask(number: int) -> tuple[str, str, Any]:
        messages = [{"role": "user", "content": f"What is {number} + 9?"}]
        body = {"model": "chain_of_thought", "messages": messages, "stream": number % 4 == 0}
        return "POST", "/v1/chat/completions", body

    def look(number: int) -> tuple[str, str, Any]:
        paths = (
            "/api/runs?limit=20",
            "/api/sessions?limit=20",
            "/api/runs?query=nine",
            "/metrics",
            "/healthz",
        )
        return "GET", paths[number % len(paths)], None

    each = 4
    await asyncio.gather(
        *(repeat(each / per_s, kind) for kind in (think, ask) for _ in range(each)), repeat(1, look)
    )
    found.seconds = time.perf_counter() - began
    return found


def thought(number: int) -> dict[str, Any]:
    """Return a thought of some 300 characters."""
    return {
        "thought": f"thought {number}: " + "the sum of two odd numbers is even. " * 8,
        "thought_number": number,
        "total_thoughts": max(number, 100),
        "next_thought_needed": True,
    }


async def ask_in_turn(port: int, clients: int, seconds: float, path: str, body: Any) -> Measured:
    """Have each client send the same request again and again."""
    found = Measured()
    end = time.perf_counter() + seconds

    async def ask() -> None:
        wire = Wire(port)
        while (began := time.perf_counter()) < end:
            status, _, first_at = await wire.send("POST", path, body)
            found.taken.append(((time.perf_counter() - began) * 1e3, status))
            found.first_texts_ms.append((first_at - began) * 1e3)
        wire.close()

    began = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(clients)))
    found.seconds = time.perf_counter() - began
    return found


async def ask_at_rate(port: int, per_s: float, seconds: float, path: str, body: Any) -> Measured:
    """Send the same request so many times a second, whatever has become of those before."""
    found, idle = Measured(), list[Wire]()
    asked = set[asyncio.Task[None]]()
    request = Wire(port).whole("POST", path, body)

    async def ask(due: float) -> None:
        wire = idle.pop() if idle else Wire(port)
        status, _, first_at = await wire.send_whole(request)
        found.taken.append(((time.perf_counter() - due) * 1e3, status))
        found.first_texts_ms.append((first_at - due) * 1e3)
        idle.append(wire)

    began = time.perf_counter()
    for number in range(int(per_s * seconds)):
        due = began + number / per_s
        if (early := due - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(ask(due))
        asked.add(task)
        task.add_done_callback(asked.discard)
    await asyncio.gather(*asked)
    found.seconds = time.perf_counter() - began
    for wire in idle:
        wire.close()
    return found
