"""The desk behind the official SDK's server: every transport, every protocol version, every odd request.

Importing this takes half a second; nothing at start-up does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from ...errors import ReasonryError
from ...runtime.masking import SECRETS
from .desk import CACHE_HINTS, INSTRUCTIONS, Desk, server_info
from .frames import INVALID_PARAMS, tool_text
from .tools import Binding, Caller, Document


class DeskServer(MCPServer[Any]):
    """The SDK's server, with a desk in place of its registries.

    Args:
        binding: Of the one connection that is served; None where there may be many.
    """

    def __init__(self, desk: Desk, binding: Binding | None = None) -> None:
        about = server_info()
        super().__init__(
            name=about["name"],
            title=about["title"],
            version=about["version"],
            instructions=INSTRUCTIONS,
            subscriptions=False,
            log_level="WARNING",
            cache_hints={method: CacheHint(ttl_ms=ttl_ms) for method, ttl_ms in CACHE_HINTS.items()},  # pyright: ignore[reportArgumentType]
        )
        self._desk = desk
        self._binding = binding

    async def serve(self, read_stream: Any, write_stream: Any) -> None:
        """Serve one connection whose frames someone else carries, until `read_stream` ends."""
        server = self._lowlevel_server
        await server.run(read_stream, write_stream, server.create_initialization_options())

    async def list_tools(self) -> list[types.Tool]:
        """Return the desk's tools."""
        return [types.Tool.model_validate(one) for one in await self._listing("tools/list", "tools")]

    async def call_tool(
        self, name: str, arguments: Document, context: Context[Any, Any] | None = None
    ) -> types.CallToolResult:
        """Call one of the desk's tools."""
        report = None if context is None else context.report_progress
        try:
            document, is_error = await self._desk.call(name, arguments, Caller(self._binding, report))
        except ReasonryError as error:
            raise _refused(error) from error
        document = SECRETS.masked(document)
        text = types.TextContent(type="text", text=tool_text(document))
        return types.CallToolResult(content=[text], structured_content=document, is_error=is_error)

    def _tool_input_schema(self, name: str) -> Document | None:
        tool = self._desk.tools.get(name)
        return None if tool is None else dict(tool.input_schema)

    async def list_resources(self) -> list[types.Resource]:
        """Return the desk's resources."""
        return [
            types.Resource.model_validate(one) for one in await self._listing("resources/list", "resources")
        ]

    async def list_resource_templates(self) -> list[types.ResourceTemplate]:
        """Return the forms of the desk's addresses."""
        found = await self._listing("resources/templates/list", "resourceTemplates")
        return [types.ResourceTemplate.model_validate(one) for one in found]

    async def read_resource(
        self, uri: Any, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents]:
        """Read one of the desk's resources."""
        found = await self._ask("resources/read", {"uri": str(uri)})
        return [ReadResourceContents(one["text"], one["mimeType"]) for one in found["contents"]]

    async def list_prompts(self) -> list[types.Prompt]:
        """Return the desk's prompts."""
        return [types.Prompt.model_validate(one) for one in await self._listing("prompts/list", "prompts")]

    async def get_prompt(
        self, name: str, arguments: Document | None = None, context: Context[Any, Any] | None = None
    ) -> types.GetPromptResult:
        """Return one of the desk's prompts."""
        found = await self._ask("prompts/get", {"name": name, "arguments": arguments})
        return types.GetPromptResult.model_validate(found)

    async def _listing(self, method: str, key: str) -> list[Document]:
        return (await self._ask(method, {}))[key]

    async def _ask(self, method: str, params: Document) -> Document:
        try:
            return SECRETS.masked(await self._desk.methods[method](params))
        except ReasonryError as error:
            raise _refused(error) from error


def _refused(error: ReasonryError) -> MCPError:
    return MCPError(
        code=INVALID_PARAMS, message=SECRETS.mask(error.message), data=SECRETS.masked(error.document())
    )


def parse(line: bytes) -> SessionMessage:
    """Return a line as the SDK's streams carry it.

    Raises:
        ValueError: It is no JSON-RPC message.
    """
    return SessionMessage(types.jsonrpc_message_adapter.validate_json(line, by_name=False))


def dump(message: SessionMessage) -> bytes:
    """Return the SDK's message as a line."""
    return message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
