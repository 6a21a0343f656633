"""The official SDK's server over the same tools, resources and prompts, for HTTP.

Importing this takes half a second; nothing over standard input and output does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError

from ...errors import ReasonryError
from ...masking import SECRETS
from .frames import INVALID_PARAMS, RefusedError, tool_text
from .mcp_server import CACHE_HINTS, INSTRUCTIONS, McpServer, server_info
from .tools import CallContext, Document


class HttpServer(MCPServer[Any]):
    """The SDK's server, which asks ours instead of its own registries; its calls share no session."""

    def __init__(self, server: McpServer) -> None:
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
        self._server = server

    async def list_tools(self) -> list[types.Tool]:
        """Return the tools."""
        return [types.Tool.model_validate(entry) for entry in await self._listing("tools/list", "tools")]

    async def call_tool(
        self, name: str, arguments: Document, context: Context[Any, Any] | None = None
    ) -> types.CallToolResult:
        """Call one of the tools."""
        report = None if context is None else context.report_progress
        params = {"name": name, "arguments": arguments}
        try:
            document, is_error = await self._server.call(params, CallContext(None, report))
        except ReasonryError as error:
            raise _protocol_error(INVALID_PARAMS, error.message, error.document()) from error
        document = SECRETS.mask_data(document)
        text = types.TextContent(type="text", text=tool_text(document))
        return types.CallToolResult(content=[text], structured_content=document, is_error=is_error)

    def _tool_input_schema(self, name: str) -> Document | None:
        tool = self._server.tools.get(name)
        return None if tool is None else dict(tool.input_schema)

    async def list_resources(self) -> list[types.Resource]:
        """Return the resources."""
        return [
            types.Resource.model_validate(entry)
            for entry in await self._listing("resources/list", "resources")
        ]

    async def list_resource_templates(self) -> list[types.ResourceTemplate]:
        """Return the forms of the resources' addresses."""
        found = await self._listing("resources/templates/list", "resourceTemplates")
        return [types.ResourceTemplate.model_validate(entry) for entry in found]

    async def read_resource(
        self, uri: Any, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents]:
        """Read one of the resources."""
        found = await self._answer("resources/read", {"uri": str(uri)})
        return [ReadResourceContents(entry["text"], entry["mimeType"]) for entry in found["contents"]]

    async def list_prompts(self) -> list[types.Prompt]:
        """Return the prompts."""
        return [
            types.Prompt.model_validate(entry) for entry in await self._listing("prompts/list", "prompts")
        ]

    async def get_prompt(
        self, name: str, arguments: Document | None = None, context: Context[Any, Any] | None = None
    ) -> types.GetPromptResult:
        """Return one of the prompts."""
        found = await self._answer("prompts/get", {"name": name, "arguments": arguments})
        return types.GetPromptResult.model_validate(found)

    async def _listing(self, method: str, key: str) -> list[Document]:
        return (await self._answer(method, {}))[key]

    async def _answer(self, method: str, params: Document) -> Document:
        try:
            return SECRETS.mask_data(await self._server.answer(method, params))
        except ReasonryError as error:
            raise _protocol_error(INVALID_PARAMS, error.message, error.document()) from error
        except RefusedError as error:
            raise _protocol_error(error.code, error.message, error.data) from error


def _protocol_error(code: int, message: str, data: Any) -> MCPError:
    return MCPError(code=code, message=SECRETS.mask(message), data=SECRETS.mask_data(data))
