"""The MCP server.

Importing this package costs next to nothing; the SDK comes in when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...core.strategy import Strategy
    from .sdk import DeskServer
    from .tools import Tool


def build_server(
    sessions: Any, strategies: Iterable[Strategy[Any, Any]], *, extras: Sequence[Tool] = ()
) -> DeskServer:
    """Return an `mcp.server.MCPServer` with our tools, resources and prompts, for HTTP; nothing binds."""
    from .server import build_server as build

    return build(sessions, strategies, extras=extras)


async def run_stdio(
    sessions: Any,
    strategies: Iterable[Strategy[Any, Any]],
    *,
    extras: Sequence[Tool] = (),
    environ: Mapping[str, str] | None = None,
) -> None:
    """Serve standard input and output until the client leaves or a signal comes."""
    from .server import run_stdio as run

    await run(sessions, strategies, extras=extras, environ=environ)
