"""The MCP server's tools, resources and prompts, which are the same over stdio and HTTP."""

from dataclasses import replace

from ...core.registry import strategy_names
from ...guided.session_calls import ACTIONS
from ...guided.sessions import Sessions
from ...guided.thinking_tool import ThinkingReply, actions_schema, tool_schema
from .. import sequential_thinking
from .driven import run_tools
from .mcp_server import McpServer
from .page_tool import page_tool
from .run_tasks import RunTasks
from .tools import McpTool

_THINK = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False, "openWorldHint": False}
_UNTOLD = {"description", "minimum", "maximum", "exclusiveMinimum", "maxLength", "maxItems", "pattern"}
"""Schema keywords that short descriptions omit. If a call breaks a bound, the error names that bound."""
_EXPLAINED = {"branchId", "strategy", "sessionId", "verifier", "answers", "at", "run_id", "id"}
"""The parameters that keep the keywords of `_UNTOLD`, because the names of these parameters do not explain enough."""


def app_server(tasks: RunTasks, sessions: Sessions) -> McpServer:
    """Build the MCP server for the app of `tasks`."""
    app = tasks.app
    guided = [
        McpTool(
            name=sequential_thinking.THINKING,
            title=sequential_thinking.THINKING_TITLE,
            description=sequential_thinking.THINKING_DESCRIPTION,
            input_schema=sequential_thinking.thinking_input(strategy_names(app.strategies)),
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
    tools = [*guided, *run_tools(tasks), page_tool(app)]
    if app.rights.describes_briefly:
        tools = map(_describe_briefly, tools)
    return McpServer(tools, sessions, app.strategies, tasks if app.rights.has_model else None)


def _describe_briefly(tool: McpTool) -> McpTool:
    """Return a copy of a tool with fewer and shorter descriptions."""
    is_thinking = tool.name == sequential_thinking.THINKING
    members = {
        name: {key: value for key, value in member.items() if key not in _UNTOLD or name in _EXPLAINED}
        for name, member in tool.input_schema["properties"].items()
    }
    return replace(
        tool,
        description=sequential_thinking.THINKING_BRIEFLY if is_thinking else tool.description,
        input_schema={**tool.input_schema, "properties": members},
    )
