"""The targets of `--mcp`, and connections to MCP servers with a limit on the size of a message.

The SDK's own stdio transport accepts lines of any length. This transport disconnects a server whose message exceeds the
limit. If a reply is unreadable, its request fails. The end of the server's standard error is kept for error messages.
"""

import asyncio
import contextlib
import logging
import re
import shutil
from asyncio.subprocess import Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import UsageError
from ..system.masking import SECRETS
from ..system.processes import end, send_signal, split_words, start

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
GRACE_S = 1.0
"""How many seconds a server has to end after its input is closed, and again after SIGTERM."""
_STDERR_BYTES = 4_096
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18})\b')

# The error says the same as the SDK's log of a bad server, so the log is silent unless a program listens to it.
for _name in ("mcp.client", "mcp.shared"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class McpTarget(Struct, frozen=True, kw_only=True):
    """The target of a connection: the URL of a server, or the command that starts a server."""

    name: str = ""
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = {}


def read_targets(spec: str) -> tuple[McpTarget, ...]:
    """Read a value of `--mcp` (a command line, a URL, or a JSON file with `mcpServers`), or raise UsageError."""
    spec = spec.strip()
    if not spec:
        raise UsageError("--mcp takes a command, a URL or a configuration file", option="mcp")
    if spec.startswith(("http://", "https://")):
        SECRETS.keep_password(spec)
        return (McpTarget(name=spec.split("/")[2].rpartition("@")[2], url=spec),)
    if spec.endswith(".json") and " " not in spec:
        return _read_config(Path(spec).expanduser())
    command, *args = split_words(spec, "mcp")
    return (McpTarget(name=Path(command).stem, command=command, args=tuple(args)),)


class _Config(Struct, frozen=True):
    mcpServers: dict[str, msgspec.Raw] = {}


def _read_config(path: Path) -> tuple[McpTarget, ...]:
    def refusal(reason: str) -> UsageError:
        return UsageError(f"{path}{reason}", option="mcp", file=str(path))

    targets, name = list[McpTarget](), ""
    try:
        for name, entry in msgspec.json.decode(path.read_bytes(), type=_Config).mcpServers.items():
            targets.append(replace(msgspec.json.decode(entry, type=McpTarget), name=name))
    except (OSError, ValueError, RecursionError) as error:
        place = f": server {name!r} is not described rightly" if name else " cannot be read"
        raise refusal(f"{place}: {getattr(error, 'strerror', error)}") from None
    if not targets:
        raise refusal(" has no `mcpServers`")
    for target in targets:
        if not target.url and not target.command:
            raise refusal(f": server {target.name!r} has neither `command` nor `url`")
        SECRETS.keep_headers(target.headers)
        SECRETS.keep_environment(target.env)
        SECRETS.keep_password(target.url)
    return tuple(targets)


# -- connections


class ServerProcess:
    """A server that runs as a child process. It inherits only a few environment variables."""

    def __init__(self, target: McpTarget) -> None:
        self.target = target
        self.stderr = b""
        self.fault = ""
        self.child: Process | None = None

    @property
    def last_words(self) -> str:
        """The probable reason why the server ended: `fault`, or else the last line of standard error."""
        written = self.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return self.fault or written.strip()[-300:]

    def kill(self) -> None:
        """Kill the server at once."""
        if self.child is not None:
            send_signal(self.child, "SIGKILL")

    @asynccontextmanager
    async def connect(self) -> AsyncGenerator[Any, None]:
        """Start the server and provide the two message streams of an SDK transport."""
        import anyio
        from mcp.client.stdio import get_default_environment

        env = get_default_environment() | self.target.env
        # Windows starts `npx` only by its whole name, npx.cmd.
        program = shutil.which(self.target.command, path=env.get("PATH")) or self.target.command
        command = [program, *self.target.args]
        child = self.child = await start(command, env=env, cwd=self.target.cwd, limit=MAX_MESSAGE_BYTES)
        to_session, from_server = anyio.create_memory_object_stream[Any](0)
        to_server, from_session = anyio.create_memory_object_stream[Any](0)
        work = (
            self._read(child, to_session),
            self._write(child, from_session, to_session),
            self._listen(child),
        )
        workers = [asyncio.create_task(each) for each in work]
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
                await end(child, 0 if self.fault else GRACE_S)

    async def _read(self, child: Process, to_session: Any) -> None:
        assert child.stdout is not None
        with to_session, contextlib.suppress(Exception):
            try:
                while line := await child.stdout.readline():
                    if (message := _message(line)) is not None:
                        await to_session.send(message)
            except ValueError:
                self.fault = f"it sent a message of over {MAX_MESSAGE_BYTES} bytes"

    async def _write(self, child: Process, from_session: Any, to_session: Any) -> None:
        assert child.stdin is not None
        with contextlib.suppress(Exception):
            async for session_message in from_session:
                text = session_message.message.model_dump_json(by_alias=True, exclude_unset=True)
                child.stdin.write(text.encode() + b"\n")
                await child.stdin.drain()
        # Nobody reads requests any more, so they must fail instead of waiting forever.
        to_session.close()

    async def _listen(self, child: Process) -> None:
        assert child.stderr is not None
        while chunk := await child.stderr.read(_STDERR_BYTES):
            self.stderr = (self.stderr + chunk)[-_STDERR_BYTES:]


def _message(line: bytes) -> Any:
    """Return the message on a line, or None for a banner or stray output."""
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


@asynccontextmanager
async def http_transport(target: McpTarget) -> AsyncGenerator[Any, None]:
    """Connect over streamable HTTP, with a limit on the size of a response body."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def bound(response: httpx2.Response) -> None:
        # A compressed body may be a thousand times as large as the data that was sent.
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise httpx2.ReadError("the server packed its reply in a way that was not asked for")
        # An event stream may continue for long; the SDK bounds each event of it.
        if "text/event-stream" not in response.headers.get("content-type", ""):
            stream = response.stream
            assert isinstance(stream, httpx2.AsyncByteStream)
            body = bytearray()
            async for chunk in stream:
                body += chunk
                if len(body) > MAX_MESSAGE_BYTES:
                    raise httpx2.ReadError(f"the server sent over {MAX_MESSAGE_BYTES} bytes")
            await stream.aclose()
            response.stream = httpx2.ByteStream(bytes(body))

    client = httpx2.AsyncClient(
        headers={**target.headers, "accept-encoding": "identity"},
        timeout=httpx2.Timeout(30.0, read=300.0),
        # Plain HTTP needs no certificates, and reading them takes longer than an answer from this machine.
        transport=httpx2.AsyncHTTPTransport(verify=not target.url.lower().startswith("http://")),
        event_hooks={"response": [bound]},
    )
    connection = streamable_http_client(target.url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES)
    async with client, connection as streams:
        yield streams
