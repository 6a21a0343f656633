"""A model server that costs next to nothing: the same short answer to every request, after a latency.

    uv run python bench/plain_server.py LATENCY_MS [TEXT]

The first line on stdout is the base URL. It reads requests by their Content-Length alone, and does nothing else while
clients are measured on the same machine, so that what is measured is theirs.
"""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

import msgspec

TEXT = "4 + 9"
USAGE = {"prompt_tokens": 200, "completion_tokens": 2, "total_tokens": 202}
HEAD = {"id": "chatcmpl-1", "created": 1_800_000_000, "model": "test-model"}


def whole_reply(text: str) -> bytes:
    """Return the response to a request that is not streamed."""
    message = {"role": "assistant", "content": text}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = msgspec.json.encode({**HEAD, "object": "chat.completion", "choices": choices, "usage": USAGE})
    return _head("application/json", len(body)) + body


def streamed_reply(text: str) -> bytes:
    """Return the response to a request that is streamed: three events and the end."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": text[:2]}, {"content": text[2:]}, {}]
    events = [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"} for delta in deltas]
    chunk = {**HEAD, "object": "chat.completion.chunk"}
    chunks = [{**chunk, "choices": [event]} for event in events] + [{**chunk, "choices": [], "usage": USAGE}]
    body = b"".join(b"data: %b\n\n" % msgspec.json.encode(chunk) for chunk in chunks) + b"data: [DONE]\n\n"
    return _head("text/event-stream", len(body)) + body


def _head(content_type: str, length: int) -> bytes:
    return f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n".encode()


class Connection(asyncio.Protocol):
    """One client's connection; one request at a time."""

    def __init__(self, latency_s: float, text: str) -> None:
        self._latency_s = latency_s
        self._whole, self._streamed = whole_reply(text), streamed_reply(text)
        self._received = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer a request once it is whole."""
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        _, found, rest = head.lower().partition(b"content-length:")
        if end and found and len(body) >= int(rest.partition(b"\r\n")[0]):
            self._received = b""
            reply = self._streamed if b'"stream":true' in body.replace(b" ", b"") else self._whole
            asyncio.get_running_loop().call_later(self._latency_s, self._send, reply)

    def _send(self, reply: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(reply)


class PlainServer:
    """The server in a process of its own; a context manager.

    Attributes:
        url: The base URL that clients are given, `…/v1`.
    """

    def __init__(self, latency_ms: float, text: str = TEXT) -> None:
        command = [sys.executable, str(Path(__file__)), str(latency_ms), text]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.communicate()


async def serve(latency_ms: float, text: str) -> None:
    """Serve until the process ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(latency_ms / 1000, text), "127.0.0.1", 0, backlog=512
    )
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1]), *(sys.argv[2:] or [TEXT])))
