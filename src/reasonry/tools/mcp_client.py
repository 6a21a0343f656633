"""Tools of other MCP servers, over stdio or HTTP, through the official client.

Rule 1: which tools there are is fixed when the server is opened; what it says later changes nothing.
Rule 2: a server that dies, hangs, floods or answers nonsense is a `ToolError`, never more.
Rule 3: a connection lives in one task of its own, as the client wants it; calls come from anywhere.
Rule 4: a server's tool never has the name of a built-in tool, of a tool of the caller, or of a tool of another server.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

from msgspec.structs import replace

from ..core.text import inert
from ..errors import ToolError
from ..extras import check_extra
from .built_in import reserved_names
from .mcp_bounds import MAX_LISTING_BYTES, MAX_PAGES, MAX_TOOLS
from .mcp_targets import McpTarget, read_targets
from .mcp_transport import GRACE_S, ServerProcess, http_transport
from .results import fit_result

OPEN_TIMEOUT_S = 30.0
CLOSE_TIMEOUT_S = 30.0
LEAST_CLOSING_S = 0.2
"""What a server has for ending by itself, though the time of its run is up."""
CLEANUP_S = 1.0
"""What a connection that is cut has for cleaning up."""
_MAX_MESSAGE = 2_000
_SERVER_NAME = re.compile(r"[^\w.-]")


class RemoteTool:
    """One tool of a server."""

    def __init__(self, server: McpClient, listed: Any) -> None:
        self.server, self.name, self.remote = server, listed.name, listed.name
        self.description: str = listed.description or ""
        self.parameters: Mapping[str, Any] = listed.input_schema

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call it on its server.

        Raises:
            ToolError: It failed, or the server did.
        """
        return await self.server.call(self.remote, dict(arguments))


class McpClient:
    """A connection to one server."""

    def __init__(self, target: McpTarget) -> None:
        self.target = target
        self.process = ServerProcess(target.command, target.env, target.cwd) if target.command else None
        self._client: Any = None
        self._task: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()

    async def open(self, timeout_s: float = OPEN_TIMEOUT_S) -> tuple[RemoteTool, ...]:
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
            await self._give_up()
            raise self._fault(f"did not answer within {timeout_s:g} s", "tool_timeout") from None
        except Exception as error:
            await self._give_up()
            raise self._fault(f"could not be used: {_reason(error)}") from None
        return tuple(RemoteTool(self, tool) for tool in listed)

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
        tools: dict[str, Any] = {}
        cursor, size = None, 0
        for _ in range(MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            for tool in page.tools:
                if tool.name in tools:
                    raise ToolError(f"it lists two tools named {tool.name}")
                tools[tool.name] = tool
                size += len(tool.model_dump_json())
            if len(tools) > MAX_TOOLS:
                raise ToolError(f"it lists over {MAX_TOOLS} tools")
            if size > MAX_LISTING_BYTES:
                raise ToolError(f"its tools are described in over {MAX_LISTING_BYTES:,} bytes in all")
            cursor = page.next_cursor
            if not cursor:
                return list(tools.values())
        raise ToolError(f"its list of tools has over {MAX_PAGES} pages")

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        """Call a tool; JSON data of bounded size comes back.

        Raises:
            ToolError: The tool failed (its own words), or the server did.
        """
        if self._client is None:
            raise self._fault("is not connected any more")
        try:
            result = await self._client.call_tool(name, arguments)
        except Exception as error:
            raise self._fault(f"failed in {name}: {_reason(error)}") from None
        if result.is_error:
            raise ToolError((_text(result) or f"{name} failed without a reason")[:_MAX_MESSAGE])
        return fit_result(_value(result))

    async def close(self, within_s: float = CLOSE_TIMEOUT_S) -> None:
        """End the connection, and with it a server that was started for it.

        Args:
            within_s: After so many seconds a server that has not ended by itself is killed.
        """
        if self.process is not None:
            self.process.grace_s = min(GRACE_S, within_s / 2)
        self._leave.set()
        if self._task is not None:
            done, _ = await asyncio.wait({self._task}, timeout=within_s if self._client else 0.1)
            if not done:
                if self.process is not None:
                    self.process.kill()
                self._task.cancel()
                # What still hangs then is left behind; it holds nothing but a connection.
                await asyncio.wait({self._task}, timeout=CLEANUP_S)
            self._task = None

    async def _give_up(self) -> None:
        """End a connection that never came to be; such a server is owed no grace."""
        if self.process is not None:
            self.process.kill()
        if self._task is not None:
            self._task.cancel()
        await self.close()

    def _fault(self, reason: str, code: str = "tool_error") -> ToolError:
        words = self.process.last_words if self.process is not None else ""
        message = f"the MCP server {self.target.name} {reason}" + (f" ({words})" if words else "")
        return ToolError(inert(message[:_MAX_MESSAGE]), code=code, server=self.target.name)


@asynccontextmanager
async def mcp_tools(
    specs: Sequence[str],
    *,
    taken: Collection[str] = (),
    open_within_s: float = OPEN_TIMEOUT_S,
    time_to_close: Callable[[], float] = lambda: CLOSE_TIMEOUT_S,
) -> AsyncGenerator[list[RemoteTool], None]:
    """Open servers side by side and give their tools; close them when done.

    A name that two servers use, or that is taken, is written `server.tool`; servers of one name are numbered.

    Args:
        specs: As `--mcp` takes them.
        taken: Names of other tools, besides those of the built-in ones.
        open_within_s: Until a server counts as one that does not answer.
        time_to_close: How many seconds are left when they are closed.

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
        opened = await asyncio.gather(
            *(server.open(open_within_s) for server in servers), return_exceptions=True
        )
        faults = [fault for fault in opened if isinstance(fault, BaseException)]
        if faults:
            raise faults[0]
        yield _qualify_clashing(
            [tool for tools in cast(list[tuple[RemoteTool, ...]], opened) for tool in tools], taken
        )
    finally:
        within_s = min(max(time_to_close(), LEAST_CLOSING_S), CLOSE_TIMEOUT_S)
        await asyncio.gather(*(server.close(within_s) for server in servers))


def _number_equal_names(targets: list[McpTarget]) -> list[McpTarget]:
    names = [target.name for target in targets]
    return [
        replace(target, name=f"{target.name}{names[:at].count(target.name) + 1}")
        if names.count(target.name) > 1
        else target
        for at, target in enumerate(targets)
    ]


def _qualify_clashing(tools: list[RemoteTool], taken: Collection[str]) -> list[RemoteTool]:
    """Write `server.tool` where a name is taken, or is what another tool is now called."""
    names = [_fold(tool.remote) for tool in tools]
    others = {_fold(name) for name in (*reserved_names(), *taken)}
    clashing = [
        tool for tool, name in zip(tools, names, strict=True) if name in others or names.count(name) > 1
    ]
    while clashing:
        for tool in clashing:
            tool.name = f"{_SERVER_NAME.sub('_', tool.server.target.name)}.{tool.remote}"
        written = {_fold(tool.name) for tool in clashing}
        clashing = [tool for tool in tools if tool.name == tool.remote and _fold(tool.name) in written]
    return tools


def _fold(name: str) -> str:
    """Return what a name is compared by: case and width make no difference to who reads it."""
    return unicodedata.normalize("NFKC", name).casefold()


def _value(result: Any) -> Any:
    structured = result.structured_content
    if structured is None:
        return _text(result)
    # The SDK's servers wrap what is no object.
    return (
        structured["result"] if isinstance(structured, dict) and set(structured) == {"result"} else structured
    )


def _text(result: Any) -> str:
    return "\n".join(getattr(part, "text", f"({part.type}, not shown)") for part in result.content)


def _reason(error: BaseException) -> str:
    from mcp import MCPError
    from pydantic import ValidationError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, MCPError | ToolError):
        return error.message
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        return f"its answer is not of the protocol's form: {place}: {first['msg']}"
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
