"""What the server offers to read: a document per strategy and per session, and a prompt per strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ...core.describe import describe_stage
from ...core.registry import Registry, strategy_names
from ...core.strategy import Stage, Strategy
from ...errors import NotFoundError
from .tools import Document

if TYPE_CHECKING:
    from ...guided.sessions import Sessions

STRATEGY_URI = "reasonry://strategies/"
SESSION_URI = "reasonry://sessions/"
_LISTED_SESSIONS = 50
_JSON = "application/json"


class Resources:
    """The resources and prompts of the server.

    Args:
        strategies: By canonical name; aliases are known to the tools, not listed here.
    """

    def __init__(self, sessions: Sessions, strategies: Registry) -> None:
        self._sessions = sessions
        self._strategies = strategies

    async def listing(self) -> list[Document]:
        """Return the listing: every strategy, and the sessions used last."""
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
        return strategies + [_session_listing(session) for session in found["sessions"]]

    def templates(self) -> list[Document]:
        """Return the forms an address may take."""
        return [
            {
                "uriTemplate": STRATEGY_URI + "{name}",
                "name": "strategy",
                "description": "A way of thinking: its stages, what each is for, and what may follow.",
                "mimeType": _JSON,
            },
            {
                "uriTemplate": SESSION_URI + "{id}",
                "name": "session",
                "description": "A thinking session with all its thoughts.",
                "mimeType": _JSON,
            },
        ]

    async def read(self, uri: str) -> Document:
        """Return the document at an address, as data.

        Raises:
            NotFoundError: There is nothing there.
        """
        if uri.startswith(STRATEGY_URI):
            strategy = self._strategies.get(unquote(uri.removeprefix(STRATEGY_URI)))
            if strategy is not None:
                return strategy_document(strategy)
        elif uri.startswith(SESSION_URI):
            session_id = uri.removeprefix(SESSION_URI)
            return await self._sessions.export({"session_id": session_id, "format": "json"})
        raise NotFoundError(f"No resource at {uri[:200]!r}", uri=uri[:200])

    def prompts(self) -> list[Document]:
        """Return the listing: a prompt per strategy."""
        problem = {"name": "problem", "description": "What to think about.", "required": False}
        return [
            {
                "name": strategy.name,
                "title": strategy.title,
                "description": f"Think by {strategy.title}. {strategy.summary}",
                "arguments": [problem],
            }
            for strategy in self._strategies.values()
        ]

    def prompt(self, name: str, arguments: Mapping[str, str]) -> Document:
        """Return the prompt that teaches an agent to walk a strategy.

        Raises:
            NotFoundError: There is no such prompt; `choices` has the names.
        """
        strategy = self._strategies.get(name)
        if strategy is None:
            raise NotFoundError(
                f"No prompt is called {name[:200]!r}", choices=strategy_names(self._strategies)
            )
        text = lesson(strategy, arguments.get("problem", ""))
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


def strategy_document(strategy: Strategy[Any, Any]) -> Document:
    """Return a strategy's table as data."""
    return {
        "name": strategy.name,
        "title": strategy.title,
        "source": strategy.source,
        "summary": strategy.summary,
        "stages": [describe_stage(stage) for stage in strategy.stages],
    }


def lesson(strategy: Strategy[Any, Any], problem: str) -> str:
    """Return the text that teaches a strategy, built from its table alone."""
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
