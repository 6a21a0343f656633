"""The server's side of HTTP/1.1, as much of it as a loopback test server needs, close to the socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

MAX_HEAD_BYTES = 65_536
MAX_BODY_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One request, whole. `headers` has lower-case names; `arrived_s` is loop time."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    arrived_s: float


class Exchange(asyncio.Protocol):
    """One connection: reads requests one by one and hands each to `handle`, which writes through it.

    Attributes:
        key: The key that came with the last request.
    """

    def __init__(
        self, handle: Callable[[HttpRequest, Exchange], Awaitable[None]], open_ones: set[Exchange]
    ) -> None:
        self._handle = handle
        self._open_ones = open_ones
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._task: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport | None = None
        self.key = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open_ones.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop working for a client that has gone."""
        self._transport = None
        self._open_ones.discard(self)
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Collect until a request is whole."""
        self._buffer += data
        if self._task is None:
            self._next()

    def _next(self) -> None:
        try:
            request = _take(self._buffer, self._loop.time())
        except ValueError:
            self.send(400, b'{"error": {"message": "not HTTP/1.1, or too long"}}', close=True)
            return
        if request is not None:
            self._task = self._loop.create_task(self._serve(request))

    async def _serve(self, request: HttpRequest) -> None:
        self.key = key_of(request)
        try:
            await self._handle(request, self)
        finally:
            self._task = None
        if self._buffer:
            self._next()

    def write(self, data: bytes) -> None:
        """Write raw bytes; nothing happens once the client has gone."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    async def drained(self) -> bool:
        """Wait until the client has taken nearly all that was written; False once it has gone."""
        await asyncio.sleep(0)
        while self._transport is not None and self._transport.get_write_buffer_size() > 1_000_000:
            await asyncio.sleep(0.002)
        return self._transport is not None and not self._transport.is_closing()

    def send(
        self,
        status: int,
        body: bytes,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        *,
        close: bool = False,
    ) -> None:
        """Write a whole response."""
        self.write(head(status, content_type, {"Content-Length": str(len(body)), **(headers or {})}) + body)
        if close:
            self.close()

    def start_events(self) -> None:
        """Begin a response of server-sent events; `write_event` writes, `end_events` ends it."""
        self.write(
            head(200, "text/event-stream", {"Transfer-Encoding": "chunked", "Cache-Control": "no-cache"})
        )

    def write_event(self, data: bytes, name: str = "") -> None:
        """Write one event."""
        self.write_chunk((f"event: {name}\n".encode() if name else b"") + b"data: " + data + b"\n\n")

    def write_chunk(self, data: bytes) -> None:
        """Write a piece of a response of server-sent events."""
        if data:
            self.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end_events(self) -> None:
        """End the response and keep the connection."""
        self.write(b"0\r\n\r\n")

    def close(self) -> None:
        """Close the connection once everything is written."""
        if self._transport is not None:
            self._transport.close()

    def reset(self) -> None:
        """Drop the connection at once; the client sees it reset or broken off."""
        if self._transport is not None:
            self._transport.abort()


def key_of(request: HttpRequest) -> str:
    """Return the key that came with a request, in whichever of the providers' headers; empty if there is none."""
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
    return bearer or request.headers.get("x-api-key", "") or request.headers.get("x-goog-api-key", "")


def head(status: int, content_type: str, headers: Mapping[str, str], phrase: str = "") -> bytes:
    """Return a response's status line and headers."""
    lines = [f"HTTP/1.1 {status} {phrase or HTTPStatus(status).phrase}", f"Content-Type: {content_type}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def _take(buffer: bytearray, now_s: float) -> HttpRequest | None:
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        if len(buffer) > MAX_HEAD_BYTES:
            raise ValueError("the head is too long")
        return None
    first, *rest = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    method, path, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    if "chunked" in headers.get("transfer-encoding", ""):
        found = _chunked(buffer, end + 4)
    else:
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= MAX_BODY_BYTES:
            raise ValueError("the body is too long")
        stop = end + 4 + length
        found = None if len(buffer) < stop else (bytes(buffer[end + 4 : stop]), stop)
    if found is None:
        return None
    body, stop = found
    del buffer[:stop]
    return HttpRequest(method, path.partition("?")[0], headers, body, now_s)


def _chunked(buffer: bytearray, at: int) -> tuple[bytes, int] | None:
    body = bytearray()
    while (line := buffer.find(b"\r\n", at)) >= 0:
        size = int(bytes(buffer[at:line]).partition(b";")[0], 16)
        start, stop = line + 2, line + 2 + size
        if len(body) + size > MAX_BODY_BYTES:
            raise ValueError("the body is too long")
        if len(buffer) < stop + 2:
            return None
        if size == 0:
            return bytes(body), stop + 2
        body += buffer[start:stop]
        at = stop + 2
    return None
