"""Connections to MCP servers that bound the size of a message.

The SDK's own stdio transport keeps a line whole however long it grows, and cannot be hurried; this one lets a server
go that sends a message over the limit. An answer that cannot be read fails the request it was for. The end of the
server's standard error is kept for the message when it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import shutil
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
GRACE_S = 1.0
"""How long a server may take to end by itself, and as long again when it is asked to."""
_REAPED_S = 5.0
"""How long the system may take to end a process that was killed."""
_STDERR_BYTES = 4_096
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')

# What the SDK logs of a bad server is told by the error; only a program that listens to the log hears it twice.
for _name in ("mcp.client", "mcp.shared"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


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
        self.stderr = b""
        self.fault = ""
        self._process: asyncio.subprocess.Process | None = None

    @property
    def last_words(self) -> str:
        """Why the server is gone, as far as it can be seen: what we found wrong, else what it wrote last."""
        written = self.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return self.fault or written.strip()[-300:]

    def kill(self) -> None:
        """End it without grace, and all that it has started in its group."""
        if self._process is not None and self._process.returncode is None:
            _signal(self._process, "SIGKILL")

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any, None]:
        """Start it and give the two message streams that the SDK wants of a transport."""
        import anyio
        from mcp.client.stdio import get_default_environment

        env = get_default_environment() | self.env
        # Windows starts `npx` only by its whole name, npx.cmd.
        program = shutil.which(self.command[0], path=env.get("PATH")) or self.command[0]
        process = await _start(
            asyncio.create_subprocess_exec(
                program,
                *self.command[1:],
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=env,
                cwd=self.cwd,
                limit=MAX_MESSAGE_BYTES,
                start_new_session=True,
            )
        )
        self._process = process
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
            try:
                await asyncio.gather(*workers, return_exceptions=True)
            finally:
                for stream in (to_session, from_server, to_server, from_session):
                    stream.close()
                await _end(process, 0 if self.fault else GRACE_S)

    async def _read(self, process: asyncio.subprocess.Process, to_session: Any) -> None:
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
                if (message := _message(line)) is not None:
                    await to_session.send(message)

    async def _write(self, process: asyncio.subprocess.Process, from_session: Any, to_session: Any) -> None:
        assert process.stdin is not None
        with contextlib.suppress(Exception):
            async for session_message in from_session:
                text = session_message.message.model_dump_json(by_alias=True, exclude_unset=True)
                process.stdin.write(text.encode() + b"\n")
                await process.stdin.drain()
        # With nobody to write to, requests must fail rather than wait for ever.
        to_session.close()

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while chunk := await process.stderr.read(_STDERR_BYTES):
            self.stderr = (self.stderr + chunk)[-_STDERR_BYTES:]


def _message(line: bytes) -> Any:
    """Return the message on a line; None: banners and stray prints are no messages and are passed over."""
    from mcp.shared.message import SessionMessage
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError:
        found = _ID.search(line) if b'"jsonrpc"' in line else None
        if found is None:
            return None
        error = ErrorData(code=PARSE_ERROR, message="")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=int(found[1]), error=error))


async def _start(starting: Coroutine[Any, Any, asyncio.subprocess.Process]) -> asyncio.subprocess.Process:
    """Wait for a process to start; if cancelled meanwhile, until it can be killed.

    asyncio never ends a start that is cancelled while its pipes are being connected.
    """
    task = asyncio.ensure_future(starting)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _end(await task, 0)
        raise


async def _end(process: asyncio.subprocess.Process, grace_s: float) -> None:
    """End a process, without grace from the moment at which this is cancelled."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        if not await _has_ended(process, grace_s):
            _signal(process, "SIGTERM")
            await _has_ended(process, grace_s)
    finally:
        try:
            if process.returncode is None:
                _signal(process, "SIGKILL")
                await _has_ended(process, _REAPED_S)
        finally:
            # A grandchild may hold the pipes open; the transport must not wait for it.
            transport: Any = getattr(process, "_transport", None)
            if transport is not None:
                transport.close()


def _signal(process: asyncio.subprocess.Process, name: Literal["SIGTERM", "SIGKILL"]) -> None:
    """End a server and those it started; where there are no process groups, the server alone, and at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, getattr(signal, name))
        else:
            process.kill()


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

    async def bound(response: httpx2.Response) -> None:
        # A packed body may be a thousand times what was sent.
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise httpx2.ReadError("the server packed its reply in a way that was not asked for")
        # An event stream may continue for long; the SDK bounds each event of it.
        if "text/event-stream" not in response.headers.get("content-type", ""):
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = Bounded(response.stream)

    client = httpx2.AsyncClient(
        headers={**headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(30.0, read=300.0),
        transport=httpx2.AsyncHTTPTransport(),
        event_hooks={"response": [bound]},
    )
    async with (
        client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES) as streams,
    ):
        yield streams
