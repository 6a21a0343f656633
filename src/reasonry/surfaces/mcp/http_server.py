"""The official SDK's server over the same tools, resources and prompts, for HTTP.

Importing this takes half a second; nothing over standard input and output does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from ...errors import ReasonryError
from ...masking import SECRETS
from .connection import STATELESS_VERSION
from .frames import INVALID_PARAMS, RefusedError, tool_text
from .mcp_server import CACHE_HINTS, INSTRUCTIONS, McpServer, server_info
from .page_tool import shows_pages
from .tools import CallContext, Document

RequestContext: TypeAlias = ServerRequestContext[Any, Any]


def sdk_server(
    server_for: Callable[[Any], McpServer], page_url: Callable[[Any], str | None] = lambda _: None
) -> Server[Any]:
    """Return the SDK's server, which asks ours for every answer. Its calls share no session.

    Args:
        server_for: The server of whoever made an HTTP request.
        page_url: Where the page is served to whoever made it; None: nowhere.
    """

    def handler(method: str) -> Any:
        async def answer(context: RequestContext, _: Any) -> Document:
            server, params = server_for(context.request), dict(context.params or {})
            try:
                result = await server.answer(method, params, shows_pages=_shows_pages(context))
            except (ReasonryError, RefusedError) as error:
                raise _protocol_error(error) from error
            return _complete(context, result)

        return answer

    async def call_tool(context: RequestContext, _: types.CallToolRequestParams) -> Any:
        server, params = server_for(context.request), dict(context.params or {})
        has_token = bool(context.meta) and "progress_token" in context.meta
        call = CallContext(
            report=context.session.report_progress if has_token else None,
            shows_pages=_shows_pages(context),
            page_url=page_url(context.request),
            ends_when_left=context.protocol_version == STATELESS_VERSION,
        )
        try:
            document, is_error = await server.call(params, call)
        except (ReasonryError, RefusedError) as error:
            raise _protocol_error(error) from error
        content = [{"type": "text", "text": tool_text(server.shorten(params, document, is_error))}]
        result = {"content": content, "structuredContent": document, "isError": is_error}
        return _complete(context, result)

    about = server_info()
    cache_hints: Any = {method: CacheHint(ttl_ms=ttl_ms) for method, ttl_ms in CACHE_HINTS.items()}
    return Server(
        name=about["name"],
        title=about["title"],
        version=about["version"],
        instructions=INSTRUCTIONS,
        cache_hints=cache_hints,
        get_tool_input_schema=lambda _: None,
        on_list_tools=handler("tools/list"),
        on_call_tool=call_tool,
        on_list_resources=handler("resources/list"),
        on_list_resource_templates=handler("resources/templates/list"),
        on_read_resource=handler("resources/read"),
        on_list_prompts=handler("prompts/list"),
        on_get_prompt=handler("prompts/get"),
    )


def _complete(context: RequestContext, result: Document) -> Document:
    is_stateless = context.protocol_version == STATELESS_VERSION
    return {"resultType": "complete", **result} if is_stateless else result


def _shows_pages(context: RequestContext) -> bool:
    declared = context.session.client_capabilities
    return declared is not None and shows_pages(declared.model_dump(by_alias=True, exclude_none=True))


def _protocol_error(error: ReasonryError | RefusedError) -> MCPError:
    if isinstance(error, RefusedError):
        code, data = error.code, error.data
    else:
        code, data = INVALID_PARAMS, error.document()
    return MCPError(code=code, message=SECRETS.mask(error.message), data=SECRETS.mask_data(data))
