"""Tools of other MCP servers, over stdio or HTTP, through the official client.

Rule 1: which tools there are is fixed when the server is opened; what it says later changes nothing.
Rule 2: a server that dies, hangs, floods or answers nonsense is a `ToolError`, never more.
Rule 3: a connection lives in one task of its own, as the client wants it; calls come from anywhere.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from ..errors import ToolError, UsageError
from .mcp_transport import ServerProcess, http_transport
from .results import MAX_RESULT_BYTES, bounded

OPEN_TIMEOUT_S = 30.0
CALL_TIMEOUT_S = 30.0
MAX_TOOLS = 500
_MAX_MESSAGE = 2_000


class McpTarget(Struct, frozen=True, kw_only=True):
    """Where a server is: a command to start, or a URL."""

    name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}


def read_targets(spec: str) -> tuple[McpTarget, ...]:
    """Read what `--mcp` takes: a command line, a URL, or a JSON file with `mcpServers`.

    Raises:
        UsageError: It is none of these; the message says what is wrong with it.
    """
    spec = spec.strip()
    if not spec:
        raise UsageError("--mcp takes a command, a URL or a configuration file", option="mcp")
    if spec.startswith(("http://", "https://")):
        return (McpTarget(name=spec.split("/")[2], url=spec),)
    if spec.endswith(".json") and " " not in spec:
        return _read_config(Path(spec).expanduser())
    try:
        command = shlex.split(spec)
    except ValueError as error:
        raise UsageError(f"--mcp {spec[:200]!r} is no command line: {error}", option="mcp") from None
    return (McpTarget(name=Path(command[0]).stem, command=tuple(command)),)


def _read_config(path: Path) -> tuple[McpTarget, ...]:
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}", option="mcp", file=str(path)) from None
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise UsageError(f"{path} has no `mcpServers`", option="mcp", file=str(path))
    return tuple(_target(path, str(name), entry) for name, entry in cast(dict[str, Any], servers).items())


def _target(path: Path, name: str, entry: Any) -> McpTarget:
    entry = cast(dict[str, Any], entry) if isinstance(entry, dict) else {}
    command, url = entry.get("command"), entry.get("url")
    if not isinstance(command, str) and not isinstance(url, str):
        raise UsageError(
            f"{path}: server {name!r} has neither `command` nor `url`", option="mcp", file=str(path)
        )
    if isinstance(url, str):
        headers = cast(dict[str, Any], entry.get("headers") or {})
        return McpTarget(name=name, url=url, headers={key: str(value) for key, value in headers.items()})
    args = [str(one) for one in cast(list[Any], entry.get("args") or [])]
    env = {key: str(value) for key, value in cast(dict[str, Any], entry.get("env") or {}).items()}
    return McpTarget(name=name, command=(str(command), *args), env=env, cwd=entry.get("cwd"))


class McpTool:
    """One tool of a server."""

    def __init__(self, server: McpServer, name: str, remote: str, description: str, parameters: Any) -> None:
        self.server, self.name, self.remote = server, name, remote
        self.description = description
        self.parameters: Mapping[str, Any] = parameters

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call it on its server.

        Raises:
            ToolError: It failed, or the server did.
        """
        return await self.server.call(self.remote, dict(arguments))


class McpServer:
    """A connection to one server.

    Args:
        timeout_s: Until a call counts as failed.
        max_result_bytes: Longer results are cut.
    """

    def __init__(
        self,
        target: McpTarget,
        *,
        timeout_s: float = CALL_TIMEOUT_S,
        max_result_bytes: int = MAX_RESULT_BYTES,
    ) -> None:
        self.target, self.timeout_s, self.max_result_bytes = target, timeout_s, max_result_bytes
        self.process = ServerProcess(target.command, target.env, target.cwd) if target.command else None
        self._client: Any = None
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()

    async def open(self, timeout_s: float = OPEN_TIMEOUT_S) -> tuple[McpTool, ...]:
        """Connect and list the tools.

        Raises:
            ToolError: The server cannot be started or reached, or does not answer as an MCP server.
        """
        ready: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready))
        try:
            async with asyncio.timeout(timeout_s):
                listed = await asyncio.shield(ready)
        except TimeoutError:
            await self.close()
            raise self._fault(f"did not answer within {timeout_s:g} s", "tool_timeout") from None
        except Exception as error:
            await self.close()
            raise self._fault(f"could not be used: {_reason(error)}") from None
        return tuple(
            McpTool(self, one.name, one.name, one.description or "", one.input_schema) for one in listed
        )

    async def _live(self, ready: asyncio.Future[list[Any]]) -> None:
        from mcp import Client

        try:
            async with AsyncExitStack() as stack:
                self._client = await stack.enter_async_context(Client(self._transport()))
                ready.set_result(await self._list())
                await self._leave.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._client = None
            if not ready.done():
                ready.cancel()

    def _transport(self) -> Any:
        if self.process is not None:
            return self.process.connect()
        assert self.target.url is not None
        return http_transport(self.target.url, self.target.headers)

    async def _list(self) -> list[Any]:
        tools: list[Any] = []
        cursor: str | None = None
        while len(tools) <= MAX_TOOLS:
            page = await self._client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            if not cursor:
                return tools
        raise ToolError(f"it has over {MAX_TOOLS} tools")

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool; JSON data of bounded size comes back.

        Raises:
            ToolError: The tool failed (its own words), or the server did.
        """
        if self._client is None:
            raise self._fault("is not connected any more")
        try:
            async with asyncio.timeout(self.timeout_s):
                result = await self._client.call_tool(name, arguments)
        except TimeoutError:
            message = f"{name} did not return within {self.timeout_s:g} s"
            raise ToolError(message, code="tool_timeout") from None
        except Exception as error:
            raise self._fault(f"failed in {name}: {_reason(error)}") from None
        if result.is_error:
            raise ToolError((_text(result) or f"{name} failed without a reason")[:_MAX_MESSAGE])
        return bounded(_value(result), self.max_result_bytes)

    async def close(self) -> None:
        """End the connection, and with it a server that was started for it."""
        self._leave.set()
        if self._task is not None:
            done, _ = await asyncio.wait({self._task}, timeout=OPEN_TIMEOUT_S if self._client else 0.1)
            if not done:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def _fault(self, what: str, code: str = "tool_error") -> ToolError:
        words = self.process.last_words if self.process is not None else ""
        message = f"the MCP server {self.target.name} {what}" + (f" ({words})" if words else "")
        return ToolError(message[:_MAX_MESSAGE], code=code, server=self.target.name)


@asynccontextmanager
async def mcp_tools(
    specs: Sequence[str], *, timeout_s: float = CALL_TIMEOUT_S, max_result_bytes: int = MAX_RESULT_BYTES
) -> AsyncGenerator[list[McpTool], None]:
    """Open servers side by side and give their tools; close them when done.

    A name that two servers use is written `server.tool`; servers of one name are numbered.

    Args:
        specs: As `--mcp` takes them.

    Raises:
        UsageError: A spec cannot be read.
        ToolError: A server cannot be used.
    """
    targets = _numbered([target for spec in specs for target in read_targets(spec)])
    servers = [McpServer(one, timeout_s=timeout_s, max_result_bytes=max_result_bytes) for one in targets]
    try:
        opened = await asyncio.gather(*(server.open() for server in servers), return_exceptions=True)
        faults = [one for one in opened if isinstance(one, BaseException)]
        if faults:
            raise faults[0]
        yield _named([tool for tools in cast(list[tuple[McpTool, ...]], opened) for tool in tools])
    finally:
        await asyncio.gather(*(server.close() for server in servers))


def _numbered(targets: list[McpTarget]) -> list[McpTarget]:
    names = [target.name for target in targets]
    return [
        replace(one, name=f"{one.name}{names[:at].count(one.name) + 1}") if names.count(one.name) > 1 else one
        for at, one in enumerate(targets)
    ]


def _named(tools: list[McpTool]) -> list[McpTool]:
    names = [tool.remote for tool in tools]
    for tool in tools:
        if names.count(tool.remote) > 1:
            tool.name = f"{tool.server.target.name}.{tool.remote}"
    return tools


def _value(result: Any) -> Any:
    structured = result.structured_content
    if structured is None:
        return _text(result)
    # The SDK's servers wrap what is no object.
    return (
        structured["result"] if isinstance(structured, dict) and set(structured) == {"result"} else structured
    )


def _text(result: Any) -> str:
    return "\n".join(getattr(one, "text", None) or f"({one.type}, not shown)" for one in result.content)


def _reason(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
