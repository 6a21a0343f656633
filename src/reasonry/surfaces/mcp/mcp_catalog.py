"""What the server offers, the same over standard input and output and over HTTP: its tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.registry import Registry, strategy_names
from ...extras import check_extra
from ...guided.read_calls import ACTIONS
from ...guided.sessions import Sessions
from ...guided.thinking_tool import ThinkingReply, actions_schema, tool_schema
from .. import sequential_thinking
from .driven import RunWork, run_tools
from .mcp_server import McpServer
from .page_tool import page_tool
from .tools import McpTool

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

_THINK = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}


def app_server(work: RunWork, sessions: Sessions) -> McpServer:
    """Return all that a server over an app offers.

    Args:
        work: Works on the app's runs.
    """
    app = work.app
    extras = [*run_tools(work), page_tool(app)]
    server = open_server(sessions, app.strategies, extras, is_brief=app.rights.describes_briefly)
    server.tasks = work.tasks if app.rights.has_model else None
    return server


def open_server(
    sessions: Sessions, strategies: Registry, extras: Sequence[McpTool] = (), *, is_brief: bool = False
) -> McpServer:
    """Return all that a server over some sessions offers: thinking, without runs.

    Args:
        is_brief: Whether the thinking tool has its short description.
    """
    guided = [
        McpTool(
            name=sequential_thinking.THINKING,
            title=sequential_thinking.THINKING_TITLE,
            description=sequential_thinking.THINKING_BRIEFLY
            if is_brief
            else sequential_thinking.THINKING_DESCRIPTION,
            input_schema=sequential_thinking.thinking_input(strategy_names(strategies), is_brief=is_brief),
            output_schema=sequential_thinking.in_camel_case(tool_schema(ThinkingReply)),
            annotations=_THINK,
            call=lambda arguments, context: sequential_thinking.think_in_camel_case(
                sessions, arguments, thinker=context.thinker, refuter="`coach` with action refute"
            ),
        ),
        McpTool(
            name=sequential_thinking.SESSIONS,
            title=sequential_thinking.SESSIONS_TITLE,
            description=sequential_thinking.SESSIONS_DESCRIPTION,
            input_schema=actions_schema(ACTIONS),
            output_schema=sequential_thinking.sessions_output(),
            annotations={**_THINK, "destructiveHint": True},
            call=lambda arguments, context: sessions.manage(arguments, context.thinker),
        ),
    ]
    return McpServer([*guided, *extras], sessions, strategies)


def build_server(sessions: Sessions, strategies: Registry) -> Server[Any]:
    """Return the official SDK's server over the same, for one user; its calls share no session."""
    check_extra("mcp", "MCP over HTTP")
    from .http_server import sdk_server

    server = open_server(sessions, strategies)
    return sdk_server(lambda _: server)
