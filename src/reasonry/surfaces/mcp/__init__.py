"""The MCP server.

Importing this package costs next to nothing; the SDK comes in when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...core.strategy import Strategy
    from .guided import GuidedSessions
    from .http_server import HttpServer
    from .tools import McpTool


def main(
    store_spec: str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    strategies: Mapping[str, Strategy[Any, Any]] | None = None,
    extras: Sequence[McpTool] = (),
) -> None:
    """Run the server over standard input and output until the client leaves.

    Args:
        store_spec: What `--store` takes; None: `REASONRY_STORE`, else the user's data folder.
        environ: None: that of the process.
        strategies: By canonical name; None: the registry.
        extras: Tools besides the guided ones.

    Raises:
        UsageError: A setting or the store's name is no legal one.
    """
    from .serve import main as run

    run(store_spec, environ, strategies=strategies, extras=extras)


def build_server(
    sessions: GuidedSessions, strategies: Iterable[Strategy[Any, Any]], *, extras: Sequence[McpTool] = ()
) -> HttpServer:
    """Return an `mcp.server.MCPServer` with our tools, resources and prompts, for HTTP; calls share no session."""
    from .serve import build_server as build

    return build(sessions, strategies, extras=extras)


async def run_stdio(
    sessions: GuidedSessions,
    strategies: Iterable[Strategy[Any, Any]],
    *,
    extras: Sequence[McpTool] = (),
    environ: Mapping[str, str] | None = None,
) -> None:
    """Serve standard input and output until the client leaves or a signal comes."""
    from .serve import run_stdio as run

    await run(sessions, strategies, extras=extras, environ=environ)
