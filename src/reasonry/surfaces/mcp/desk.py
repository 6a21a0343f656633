"""The desk: everything the server offers, as plain protocol documents, whoever carries them.

Both the SDK's server and the short way over stdio answer from here, so that they cannot disagree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from ...errors import NotFoundError
from .resources import Shelf
from .tools import Caller, Document, Tool, error_document

NAME = "reasonry"
INSTRUCTIONS = (
    "Think in steps with `sequentialthinking`: history is kept durably under the `sessionId` of the reply. "
    "Name a `strategy` to be guided through its stages. Look back with `sessions`."
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
"""How long, in milliseconds, a client may take an answer for fresh (protocol 2026-07-28)."""


def server_info() -> Document:
    """Return who the server is."""
    from importlib.metadata import version

    return {"name": NAME, "title": "Reasonry", "version": version("reasonry")}


class Desk:
    """The tools, resources and prompts of one server.

    Args:
        watch: Told of every successful tool call: tool, arguments, document.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        shelf: Shelf,
        watch: Callable[[str, Document, Document], None] | None = None,
    ) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self.shelf = shelf
        self.watch = watch
        self.methods: dict[str, Callable[[Document], Awaitable[Document]]] = {
            "tools/list": self._list_tools,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
        }

    async def call(self, name: str, arguments: Document, caller: Caller) -> tuple[Document, bool]:
        """Call a tool; return its document and whether that describes an error.

        Raises:
            NotFoundError: There is no such tool; `choices` has the names.
        """
        tool = self.tools.get(name)
        if tool is None:
            raise NotFoundError(
                f"Unknown tool {name[:200]!r}; there are: {', '.join(self.tools)}", choices=list(self.tools)
            )
        try:
            document = await tool.call(arguments, caller)
        except Exception as error:
            return error_document(error), True
        if self.watch is not None:
            # Only after the reply has gone out: nobody waits for what is drawn.
            asyncio.get_running_loop().call_soon(self.watch, name, arguments, document)
        return document, False

    async def _list_tools(self, _: Document) -> Document:
        return {"tools": [tool.listing() for tool in self.tools.values()]}

    async def _list_resources(self, _: Document) -> Document:
        return {"resources": await self.shelf.resources()}

    async def _list_templates(self, _: Document) -> Document:
        return {"resourceTemplates": self.shelf.templates()}

    async def _read_resource(self, params: Document) -> Document:
        document = await self.shelf.read(params["uri"])
        text = msgspec.json.format(msgspec.json.encode(document)).decode()
        return {"contents": [{"uri": params["uri"], "mimeType": "application/json", "text": text}]}

    async def _list_prompts(self, _: Document) -> Document:
        return {"prompts": self.shelf.prompts()}

    async def _get_prompt(self, params: Document) -> Document:
        return self.shelf.prompt(params["name"], params.get("arguments") or {})
