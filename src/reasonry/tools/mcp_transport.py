"""Transports to MCP servers that bound what a server can make us hold in memory.

The SDK's own stdio transport keeps a line whole however long it grows; this one lets a server go that sends a message
over the limit. What the server writes to standard error is kept, its end only, for the message when it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
GRACE_S = 2.0
_STDERR_CHUNKS = 4


class ServerProcess:
    """A server started as a child, in a process group of its own.

    Args:
        command: The program and its arguments.
        env: Added to the few variables that servers are given.
    """

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str] | None = None, cwd: str | None = None
    ) -> None:
        self.command, self.env, self.cwd = tuple(command), dict(env or {}), cwd
        self.stderr: deque[bytes] = deque(maxlen=_STDERR_CHUNKS)
        self.fault = ""

    @property
    def last_words(self) -> str:
        """Why the server is gone, as far as it can be seen: what we found wrong, else what it wrote last."""
        lines = b"".join(self.stderr).decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return self.fault or (said[-1][-300:] if said else "")

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any, None]:
        """Start it and give the two message streams that the SDK wants of a transport."""
        import anyio
        from mcp.client.stdio import get_default_environment

        process = await asyncio.create_subprocess_exec(
            *self.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=get_default_environment() | self.env,
            cwd=self.cwd,
            limit=MAX_MESSAGE_BYTES,
            start_new_session=True,
        )
        to_session, from_server = anyio.create_memory_object_stream[Any](0)
        to_server, from_session = anyio.create_memory_object_stream[Any](0)
        workers = [
            asyncio.create_task(self._read(process, to_session)),
            asyncio.create_task(self._write(process, from_session, to_session)),
            asyncio.create_task(self._listen(process)),
        ]
        try:
            yield from_server, to_server
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for stream in (to_session, from_server, to_server, from_session):
                stream.close()
            await asyncio.shield(_end(process, 0 if self.fault else GRACE_S))

    async def _read(self, process: asyncio.subprocess.Process, to_session: Any) -> None:
        from mcp.shared.message import SessionMessage
        from mcp_types import jsonrpc_message_adapter

        assert process.stdout is not None
        with to_session, contextlib.suppress(Exception):
            while True:
                try:
                    line = await process.stdout.readline()
                except ValueError:
                    self.fault = f"it sent a message of over {MAX_MESSAGE_BYTES} bytes"
                    return
                if not line:
                    return
                with contextlib.suppress(ValueError):
                    # Banners and stray prints are no messages; they are passed over.
                    await to_session.send(
                        SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                    )

    async def _write(self, process: asyncio.subprocess.Process, from_session: Any, to_session: Any) -> None:
        assert process.stdin is not None
        with contextlib.suppress(Exception):
            async for one in from_session:
                text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()
        # With nobody to write to, requests must fail rather than wait for ever.
        to_session.close()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(4_096):
            self.stderr.append(chunk)


async def _end(process: asyncio.subprocess.Process, grace_s: float) -> None:
    assert process.stdin is not None
    process.stdin.close()
    for kill, patience_s in ((None, grace_s), (signal.SIGTERM, grace_s), (signal.SIGKILL, GRACE_S)):
        if kill is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, kill)
        if await _has_ended(process, patience_s):
            break
    # A grandchild may hold the pipes open; the transport must not wait for it.
    transport: Any = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()


async def _has_ended(process: asyncio.subprocess.Process, patience_s: float) -> bool:
    # Not process.wait(): it also waits for pipes that a grandchild may hold open.
    loop = asyncio.get_running_loop()
    deadline = loop.time() + patience_s
    while process.returncode is None and loop.time() < deadline:
        await asyncio.sleep(0.01)
    return process.returncode is not None


@asynccontextmanager
async def http_transport(url: str, headers: Mapping[str, str]) -> AsyncGenerator[Any, None]:
    """Connect over streamable HTTP, with bounded bodies."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    class Bounded(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream) -> None:
            self.stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            size = 0
            async for chunk in self.stream:
                size += len(chunk)
                if size > MAX_MESSAGE_BYTES:
                    raise httpx2.ReadError(f"the server sent over {MAX_MESSAGE_BYTES} bytes")
                yield chunk

        async def aclose(self) -> None:
            await self.stream.aclose()

    class Transport(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await super().handle_async_request(request)
            # An event stream may go on for long; the SDK bounds each event of it.
            if "text/event-stream" not in response.headers.get("content-type", ""):
                assert isinstance(response.stream, httpx2.AsyncByteStream)
                response.stream = Bounded(response.stream)
            return response

    timeout = httpx2.Timeout(30.0, read=300.0)
    async with (
        httpx2.AsyncClient(transport=Transport(), headers=dict(headers), timeout=timeout) as client,
        streamable_http_client(url, http_client=client) as streams,
    ):
        yield streams
