"""Serves MCP over HTTP with the official SDK. The tools, resources and prompts are the same as over stdio.

Importing this module takes half a second, so the stdio server does not import it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from ...errors import ReasonryError
from .connection import STATELESS_VERSION
from .frames import RefusedError
from .mcp_server import CACHE_HINTS, INSTRUCTIONS, McpServer, note_abilities, protocol_error, server_info
from .run_tasks import TASK_METHODS, TASKS
from .tools import CallContext

PATIENCE_S = 45.0
"""Seconds that a call waits at most for its run. Many clients abandon a call after a minute."""


def sdk_server(
    server_for: Callable[[Any], McpServer],
    context_for: Callable[[Any], CallContext],
    *,
    has_tasks: bool,
) -> Server[Any]:
    """Return the SDK's server, which passes every request on to our `McpServer`.

    Args:
        server_for: Returns the `McpServer` for the principal of an HTTP request.
        context_for: Returns the context of the calls in an HTTP request.
    """

    async def answer(context: ServerRequestContext[Any, Any], _: Any) -> Any:
        is_stateless = context.protocol_version == STATELESS_VERSION
        declared = context.session.client_capabilities
        capabilities = {} if declared is None else declared.model_dump(by_alias=True, exclude_none=True)
        has_token = bool(context.meta) and "progress_token" in context.meta
        call = replace(
            note_abilities(context_for(context.request), capabilities, is_stateless=is_stateless),
            report=context.session.report_progress if has_token else None,
            ends_when_left=is_stateless,
            patience_s=PATIENCE_S,
        )
        server, params = server_for(context.request), dict(context.params or {})
        try:
            result = await server.answer(context.method, params, call)
        except (RefusedError, ReasonryError) as error:
            refusal = protocol_error(error)
            raise MCPError(code=refusal.code, message=refusal.message, data=refusal.data) from error
        return {"resultType": "complete", **result} if is_stateless else result

    about = server_info()
    cache_hints: Any = {method: CacheHint(ttl_ms=ttl_ms) for method, ttl_ms in CACHE_HINTS.items()}
    server = Server[Any](
        name=about["name"],
        title=about["title"],
        version=about["version"],
        instructions=INSTRUCTIONS,
        cache_hints=cache_hints,
        get_tool_input_schema=lambda _: None,
        on_list_tools=answer,
        on_call_tool=answer,
        on_list_resources=answer,
        on_list_resource_templates=answer,
        on_read_resource=answer,
        on_list_prompts=answer,
        on_get_prompt=answer,
    )
    if has_tasks:
        server.extensions[TASKS] = {}
        for method in TASK_METHODS:
            server.add_request_handler(method, types.RequestParams, answer)
    return server
