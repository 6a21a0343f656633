"""Tools of other MCP servers, over stdio or HTTP, through the official client.

Rule 1: the list of tools is fixed when the server is opened. Later announcements of the server change nothing.
Rule 2: a server that dies, hangs, floods or sends invalid replies causes a `ToolError` and no other harm.
Rule 3: a connection lives in a task of its own, as the client requires; calls may come from any task.
Rule 4: a server's tool never has the name of a built-in tool, of a tool of the caller, or of a tool of another server.
Rule 5: only the name, description and input schema of a tool are read, each within bounds. Output schemas are ignored:
    they prove nothing about a server's results, and checks against them can take unbounded time.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..errors import ToolError
from ..system.plugins import check_extra
from ..text import escape_unseen
from .catalog import reserved_names
from .mcp_transport import McpTarget, ServerProcess, http_transport, read_targets
from .results import fit_result, json_data

OPEN_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 5.0
"""How many seconds closing a connection may take. A server that this process started is killed earlier."""
CLEANUP_S = 1.0
"""How many seconds a cancelled connection has to clean up."""
MAX_PAGES = 100
MAX_NAME_CHARS = 128
MAX_LISTING_BYTES = 1024 * 1024
"""The limit for names, descriptions and schemas of all tools of a server together."""
_MAX_MESSAGE = 2_000
_SERVER_NAME = re.compile(r"[^\w.-]")


class RemoteTool:
    """A tool of an MCP server."""

    def __init__(self, server: McpClient, name: str, description: str, parameters: dict[str, Any]) -> None:
        self.server, self.name, self.remote = server, name, name
        self.description = description
        self.parameters: Mapping[str, Any] = parameters

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call the tool on its server."""
        return await self.server.call(self.remote, dict(arguments))


class McpClient:
    """A connection to an MCP server."""

    def __init__(self, target: McpTarget) -> None:
        self.target = target
        self.process = None if target.url else ServerProcess(target)
        self._client: Any = None
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()

    async def open(self, timeout_s: float = OPEN_TIMEOUT_S) -> tuple[RemoteTool, ...]:
        """Connect to the server and list its tools, or raise ToolError."""
        ready: asyncio.Future[tuple[RemoteTool, ...]] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._live(ready))
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(ready)
        except Exception as error:
            # A server that never worked gets no time to end by itself.
            await self._cut()
            if isinstance(error, TimeoutError):
                raise self._fault(f"did not answer within {timeout_s:g} s", "tool_timeout") from None
            raise self._fault(f"could not be used: {_reason(error)}") from None

    async def _live(self, ready: asyncio.Future[tuple[RemoteTool, ...]]) -> None:
        from mcp import Client

        connection = self.process.connect() if self.process else http_transport(self.target)
        try:
            async with Client(connection) as self._client:
                ready.set_result(await self._list())
                await self._leave.wait()
        except Exception as error:
            if not ready.done():
                ready.set_exception(error)
        finally:
            self._client = None
            ready.cancel()

    async def _list(self) -> tuple[RemoteTool, ...]:
        from mcp_types import PaginatedRequestParams

        tools: dict[str, RemoteTool] = {}
        cursor, size = None, 0
        for _ in range(MAX_PAGES):
            page = await self._client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            size += sum(
                len(tool.model_dump_json(include={"name", "description", "input_schema"}))
                for tool in page.tools
            )
            if size > MAX_LISTING_BYTES:
                raise ToolError(f"its tools are described in over {MAX_LISTING_BYTES:,} bytes in all")
            for tool in page.tools:
                if tool.name in tools:
                    raise ToolError(f"it lists two tools named {tool.name}")
                described = read_tool(tool.name, tool.description, tool.input_schema)
                tools[tool.name] = RemoteTool(self, *described)
            cursor = page.next_cursor
            if not cursor:
                return tuple(tools.values())
        raise ToolError(f"its list of tools has over {MAX_PAGES} pages")

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool and return JSON data of bounded size.

        Raises:
            ToolError: The tool failed (the message is the tool's), or the server failed.
        """
        from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult

        if self._client is None:
            raise self._fault("is not connected any more")
        request = CallToolRequest(params=CallToolRequestParams(name=name, arguments=arguments))
        try:
            # `call_tool` would check the result against the output schema.
            result = await self._client.session.send_request(request, CallToolResult)
        except Exception as error:
            raise self._fault(f"failed in {name}: {_reason(error)}") from None
        text = "\n".join(getattr(part, "text", f"({part.type}, not shown)") for part in result.content)
        if result.is_error:
            raise ToolError((text or f"{name} failed without a reason")[:_MAX_MESSAGE])
        found = result.structured_content
        # The SDK's servers wrap a value that is not an object.
        return fit_result(text if found is None else found["result"] if found.keys() == {"result"} else found)

    async def close(self) -> None:
        """Close the connection. If this client started the server, end the server too."""
        self._leave.set()
        if self._task is not None and not (await asyncio.wait({self._task}, timeout=CLOSE_TIMEOUT_S))[0]:
            await self._cut()

    async def _cut(self) -> None:
        if self.process is not None:
            self.process.kill()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            # A task that hangs even then is abandoned. It has only a connection.
            await asyncio.wait({task}, timeout=CLEANUP_S)

    def _fault(self, reason: str, code: str = "tool_error") -> ToolError:
        words = self.process.last_words if self.process is not None else ""
        message = f"the MCP server {self.target.name} {reason}" + (f" ({words})" if words else "")
        return ToolError(escape_unseen(message[:_MAX_MESSAGE]), code=code, server=self.target.name)


@asynccontextmanager
async def mcp_tools(
    specs: Sequence[str],
    *,
    taken: Collection[str] = (),
    open_within_s: float = OPEN_TIMEOUT_S,
) -> AsyncGenerator[list[RemoteTool], None]:
    """Open servers in parallel, provide their tools, and close the servers at the end.

    If a tool's name is taken or two servers use it, the tool becomes `server.tool`. Servers of one name are numbered.

    Args:
        specs: Values of `--mcp`.
        taken: Names of the caller's other tools. The names of built-in tools are always taken.

    Raises:
        UsageError: A spec cannot be read.
        MissingExtraError: The MCP SDK is not installed.
        ToolError: A server cannot be used.
    """
    if specs:
        check_extra("mcp", "a tool server (--mcp)")
    targets = _number_equal_names([target for spec in specs for target in read_targets(spec)])
    servers = [McpClient(target) for target in targets]
    try:
        opening = [server.open(open_within_s) for server in servers]
        opened = await asyncio.gather(*opening, return_exceptions=True)
        tools = list[RemoteTool]()
        for found in opened:
            if isinstance(found, BaseException):
                raise found
            tools += found
        yield _qualify_clashing(tools, taken)
    finally:
        await asyncio.gather(*(server.close() for server in servers))


class _Arguments(Struct):
    properties: dict[str, dict[str, Any] | bool] = {}
    required: list[str] = []


def read_tool(name: str, description: str | None, schema: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """Check a tool that a server lists, or raise ToolError. Return its name, cleaned description, and schema."""
    if (
        not 0 < len(name) <= MAX_NAME_CHARS
        or not name.isprintable()
        or name != escape_unseen(name).strip(" ")
    ):
        raise ToolError(
            f"the name of a tool is 1 to {MAX_NAME_CHARS} characters that are seen, without a blank at an end, "
            f"not {name[:40]!a}"
        )
    try:
        msgspec.convert(schema, _Arguments)
    except msgspec.ValidationError as error:
        raise ToolError(f"the inputSchema of its tool {name} is no schema of arguments: {error}") from None
    return name, escape_unseen(description or ""), json_data(schema)


def _number_equal_names(targets: list[McpTarget]) -> list[McpTarget]:
    names = [target.name for target in targets]
    return [
        replace(target, name=f"{target.name}{names[:at].count(target.name) + 1}")
        if names.count(target.name) > 1
        else target
        for at, target in enumerate(targets)
    ]


def _qualify_clashing(tools: list[RemoteTool], taken: Collection[str]) -> list[RemoteTool]:
    names = [tool.remote for tool in tools]
    clashing = {*reserved_names(), *taken, *(name for name in names if names.count(name) > 1)}
    while written := [tool for tool in tools if tool.name == tool.remote and tool.name in clashing]:
        for tool in written:
            tool.name = f"{_SERVER_NAME.sub('_', tool.server.target.name)}.{tool.remote}"
            clashing.add(tool.name)
    return tools


def _reason(error: BaseException) -> str:
    from mcp import MCPError
    from mcp_types import PARSE_ERROR
    from pydantic import ValidationError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError) and error.code == PARSE_ERROR:
        # The SDK's message would quote the answer.
        return "its answer cannot be read"
    if isinstance(error, MCPError | ToolError):
        return error.message
    if isinstance(error, ValidationError):
        return "its answer is not of the protocol's form"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
