"""What a shell may offer where a strategy, a run, a session or an agent is to be named.

The shell asks while somebody waits, so little is read, and what cannot be read offers nothing. No store is made for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ...core.text import clip

if TYPE_CHECKING:
    from ...app.wiring import App

MAX_OFFERED = 20
_TITLE_CHARS = 50

Candidates = dict[str, str]
"""What may be typed, and what is said about it."""


def list_strategies(context: Any) -> Candidates:
    """Return the strategies that come with Reasonry."""
    from ...strategies import STRATEGIES

    return {name: strategy.summary for name, strategy in STRATEGIES.items()}


def list_agents(context: Any) -> Candidates:
    """Return the agents that Reasonry can be set up in."""
    from ..setup.agent_table import AGENTS

    return {agent.name: agent.title for agent in AGENTS}


def list_runs(context: Any) -> Candidates:
    """Return the latest runs."""

    async def work(app: App) -> Candidates:
        from ...ids import shorten_ids

        rows = await app.store.runs(limit=MAX_OFFERED)
        short = await shorten_ids([row.run_id for row in rows], app.store.run_ids)
        return {short[row.run_id]: f"{row.status}, {clip(row.problem, _TITLE_CHARS)}" for row in rows}

    return _ask_store(context, work)


def list_sessions(context: Any) -> Candidates:
    """Return the latest sessions."""

    async def work(app: App) -> Candidates:
        from ...ids import shorten_ids

        rows = await app.store.sessions(limit=MAX_OFFERED)
        short = await shorten_ids([row.session_id for row in rows], app.store.session_ids)
        return {short[row.session_id]: clip(row.purpose, _TITLE_CHARS) for row in rows}

    return _ask_store(context, work)


def _ask_store(context: Any, work: Callable[[App], Awaitable[Candidates]]) -> Candidates:
    from ...app.wiring import App

    named = context.get("--store")
    app = App(named.raw if named is not None and named.provided else None)

    async def ask() -> Candidates:
        async with app:
            return await work(app)

    if not Path(app.store.name).is_file():
        return {}
    return {"last": "the latest one", **asyncio.run(ask())}


RunId = Annotated[str, Parameter(completer=list_runs)]
SessionId = Annotated[str, Parameter(completer=list_sessions)]
StrategyName = Annotated[str, Parameter(completer=list_strategies)]
AgentName = Annotated[str, Parameter(completer=list_agents)]
