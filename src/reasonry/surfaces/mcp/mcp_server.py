"""The tools of the MCP server, its resources (each strategy and session), and its prompts (one for each strategy).

The stdio connection and the SDK's server for HTTP both get their replies from this module.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from ...app.strategy_table import describe
from ...core.registry import Registry, strategy_names
from ...core.strategy import Stage, Strategy
from ...errors import NotFoundError, ReasonryError
from ...guided.sessions import Sessions
from .frames import INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, RefusedError, read_params
from .page_tool import EXTENSION as PAGES
from .page_tool import MIME_TYPE, PAGE_LISTING, PAGE_URI, read_page_resource
from .run_tasks import TASK_METHODS, TASKS, RunTasks
from .tools import CallContext, Document, McpTool, TaskDocument, error_document, tool_result

NAME = "reasonry"
INSTRUCTIONS = (
    "Think in steps with `sequentialthinking`: history is kept durably under the `sessionId` of the reply. "
    "Name a `strategy` to be guided through its stages. Look back with `sessions`. `coach` "
    "asks you a strategy's questions, or has fresh eyes refute your thinking."
)
CAPABILITIES: Document = {
    "prompts": {"listChanged": False},
    "resources": {"subscribe": False, "listChanged": False},
    "tools": {"listChanged": False},
}
CACHE_HINTS = {
    "server/discover": 3_600_000,
    "tools/list": 3_600_000,
    "prompts/list": 3_600_000,
    "resources/templates/list": 3_600_000,
    "resources/list": 0,
    "resources/read": 0,
}
"""Maps a method to the milliseconds for which a client may cache the reply (protocol version 2026-07-28)."""
STRATEGY_URI = "reasonry://strategies/"
SESSION_URI = "reasonry://sessions/"
_LISTED_SESSIONS = 50
_JSON = "application/json"


class ListParams(Struct, frozen=True):
    """The parameters of a method that lists something. Each list has a single page."""

    cursor: str | None = None


class ToolCallParams(Struct, frozen=True):
    """The parameters of `tools/call`."""

    name: str
    arguments: dict[str, Any] | None = None


class ResourceParams(Struct, frozen=True):
    """The parameters of `resources/read`."""

    uri: str


class PromptParams(Struct, frozen=True):
    """The parameters of `prompts/get`."""

    name: str
    arguments: dict[str, str] | None = None


def note_abilities(
    context: CallContext, capabilities: Mapping[str, Any], *, is_stateless: bool
) -> CallContext:
    """Copy the context, and record the client's capabilities in the copy."""
    elicitation, extensions = capabilities.get("elicitation"), capabilities.get("extensions")
    extensions = extensions if isinstance(extensions, dict) else {}
    pages = extensions.get(PAGES)
    types = pages.get("mimeTypes") if isinstance(pages, dict) else None
    return replace(
        context,
        shows_pages=isinstance(types, list) and MIME_TYPE in types,
        takes_tasks=is_stateless and isinstance(extensions.get(TASKS), dict),
        can_ask=isinstance(elicitation, dict) and (not elicitation or "form" in elicitation),
    )


def server_info() -> Document:
    """Return the name and version of the server."""
    from importlib.metadata import version

    return {"name": NAME, "title": "Reasonry", "version": version("reasonry")}


class McpServer:
    """The tools, resources and prompts of one server.

    Args:
        strategies: The strategies by canonical name, without aliases. The tools accept aliases, too.

    Attributes:
        guard: Returns a context manager that surrounds a tool call and may cancel the call.
        watch: Called after every successful tool call, with the tool's name, the arguments and the document.
    """

    def __init__(
        self,
        tools: Iterable[McpTool],
        sessions: Sessions,
        strategies: Registry,
        tasks: RunTasks | None = None,
    ) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._sessions, self._strategies = sessions, strategies
        self.watch: Callable[[str, Document, Document], None] | None = None
        self.guard: Callable[[], AbstractAsyncContextManager[Any]] = nullcontext
        self.tasks = tasks
        self.methods: dict[str, tuple[type[Struct], Callable[[Any, CallContext], Any]]] = {
            "tools/list": (ListParams, self._list_tools),
            "tools/call": (ToolCallParams, self._call_tool),
            "resources/list": (ListParams, self._list_resources),
            "resources/templates/list": (ListParams, self._list_templates),
            "resources/read": (ResourceParams, self._read_resource),
            "prompts/list": (ListParams, self._list_prompts),
            "prompts/get": (PromptParams, self._get_prompt),
            **(tasks.methods if tasks else {}),
        }

    async def answer(self, method: str, params: Document, context: CallContext) -> Document:
        """Call a method of the protocol, and return the result of the method.

        Raises:
            RefusedError: The parameters do not fit the method, or the client lacks a required capability.
            NotFoundError: There is no such tool, resource or prompt. `choices` has the names of tools or prompts.
        """
        if method in TASK_METHODS and not context.takes_tasks:
            needed = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
            raise RefusedError(MISSING_CAPABILITY, f"Missing required client capability: {TASKS}", needed)
        form, handler = self.methods[method]
        return await handler(read_params(form, params), context)

    async def _call_tool(self, wanted: ToolCallParams, context: CallContext) -> Document:
        """Return the result of a tool call, or a task that will have the result."""
        tool = self.tools.get(wanted.name)
        if tool is None:
            message = f"Unknown tool {wanted.name[:200]!r}; there are: {', '.join(self.tools)}"
            raise NotFoundError(message, choices=list(self.tools))
        arguments = wanted.arguments or {}
        try:
            async with self.guard():
                document = await tool.call(arguments, context)
        except Exception as error:
            return tool_result(error_document(error), is_error=True)
        if self.watch is not None:
            # This is called after the reply has been sent, so that no client waits for the log.
            asyncio.get_running_loop().call_soon(self.watch, tool.name, arguments, document)
        if isinstance(document, TaskDocument):
            return {**document, "resultType": "task"}
        return tool_result(document, shown=tool.shorten(document))

    async def _list_tools(self, _: ListParams, context: CallContext) -> Document:
        return {"tools": [tool.listing(shows_pages=context.shows_pages) for tool in self.tools.values()]}

    async def _list_resources(self, _: ListParams, context: CallContext) -> Document:
        """List all strategies, the latest sessions and, if the client can show pages, the page for the tool `show`."""
        found = await self._sessions.list({"limit": _LISTED_SESSIONS})
        strategies = [
            {
                "uri": STRATEGY_URI + strategy.name,
                "name": strategy.name,
                "title": strategy.title,
                "description": strategy.summary,
                "mimeType": _JSON,
            }
            for strategy in self._strategies.values()
        ]
        sessions = [_session_listing(session) for session in found["sessions"]]
        return {"resources": [*([PAGE_LISTING] if context.shows_pages else []), *strategies, *sessions]}

    async def _list_templates(self, _: ListParams, context: CallContext) -> Document:
        about = "A way of thinking: its stages, what each is for, and what may follow."
        strategy = {"uriTemplate": STRATEGY_URI + "{name}", "name": "strategy", "description": about}
        about = "A thinking session with all its thoughts."
        session = {"uriTemplate": SESSION_URI + "{id}", "name": "session", "description": about}
        return {"resourceTemplates": [{**form, "mimeType": _JSON} for form in (strategy, session)]}

    async def _read_resource(self, params: ResourceParams, context: CallContext) -> Document:
        uri = params.uri
        name = unquote(uri.removeprefix(STRATEGY_URI)) if uri.startswith(STRATEGY_URI) else ""
        if uri == PAGE_URI:
            return {"contents": [read_page_resource()]}
        if name in self._strategies:
            document = describe(self._strategies[name])
        elif uri.startswith(SESSION_URI):
            session_id = uri.removeprefix(SESSION_URI)
            document = await self._sessions.export({"session_id": session_id, "format": "json"})
        else:
            raise NotFoundError(f"No resource at {uri[:200]!r}", uri=uri[:200])
        text = msgspec.json.encode(document).decode()
        return {"contents": [{"uri": uri, "mimeType": _JSON, "text": text}]}

    async def _list_prompts(self, _: ListParams, context: CallContext) -> Document:
        problem = {"name": "problem", "description": "The problem to think about.", "required": False}
        prompts = [
            {
                "name": strategy.name,
                "title": strategy.title,
                "description": f"Think by {strategy.title}. {strategy.summary}",
                "arguments": [problem],
            }
            for strategy in self._strategies.values()
        ]
        return {"prompts": prompts}

    async def _get_prompt(self, params: PromptParams, context: CallContext) -> Document:
        """Return the prompt that teaches an agent to follow a strategy."""
        strategy = self._strategies.get(params.name)
        if strategy is None:
            raise NotFoundError(
                f"No prompt is called {params.name[:200]!r}", choices=strategy_names(self._strategies)
            )
        text = lesson(strategy, (params.arguments or {}).get("problem", ""))
        return {
            "description": strategy.summary,
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        }


def _session_listing(session: Document) -> Document:
    listing = {
        "uri": SESSION_URI + session["session_id"],
        "name": session["session_id"],
        "description": f"{session.get('strategy', '')}: {session.get('purpose', '')}".strip(": "),
        "mimeType": _JSON,
    }
    return {key: value for key, value in listing.items() if value}


def lesson(strategy: Strategy[Any, Any], problem: str) -> str:
    """Build the text that teaches a strategy to an agent. The text describes each stage of the strategy."""
    task = f"Think about this problem:\n\n{problem}\n\n" if problem else "Think about the problem at hand. "
    head = (
        f"{task}Work by the strategy **{strategy.title}** ({strategy.source}). {strategy.summary}\n\n"
        f"Record each thought with the tool `sequentialthinking`. On the first call give "
        f'`strategy: "{strategy.name}"`; on every call give `stage`: the present one to think on in it, or '
        f"one of the reply's `nextStages` to move. Put a stage's fields into `data`. Keep the `sessionId` of "
        f"the first reply. Set `nextThoughtNeeded` to false only in `{strategy.stages[-1].name}` or "
        f"when done.\n\nThe stages:\n\n"
    )
    return head + "\n".join(_stage_lesson(stage) for stage in strategy.stages) + "\n"


def _stage_lesson(stage: Stage[Any]) -> str:
    lines = [f"- **{stage.name}**: {stage.description} {stage.guidance}".rstrip()]
    for field in stage.fields:
        need = "required" if field.required else "optional"
        about = field.schema.get("description", field.schema.get("type", ""))
        lines.append(f"  - `data.{field.name}` ({need}): {about}")
    lines.append(f"  - next: {', '.join(stage.ways)}" if stage.to else "  - the end")
    return "\n".join(lines)


def protocol_error(error: Exception) -> RefusedError:
    """Convert an error to a protocol error. The details of an unexpected error go to the log, not to the client."""
    if isinstance(error, RefusedError):
        return error
    code = INVALID_PARAMS if isinstance(error, ReasonryError) else INTERNAL_ERROR
    document = error_document(error)["error"]
    return RefusedError(code, document["message"], document)
