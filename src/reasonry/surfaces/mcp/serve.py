"""Runs the server over standard input and output until the client leaves."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.registry import Registry
from ...core.text import clip
from ..present import masked_output
from ..signals import on_ending
from .mcp_catalog import app_server
from .mcp_server import McpServer
from .tools import McpTool

if TYPE_CHECKING:
    from .connection import Connection

MAX_LINE_BYTES = 32 << 20
GRACE_S = 3.0
"""How long calls in flight may take to finish once the input has ended."""
_LEAVING_S = 0.8
"""The same, once a signal has come."""
_DRAIN_S = 0.5
"""How long the client may take to read its last answers."""
_MAX_TOLD = 20


async def run_stdio(server: McpServer, environ: Mapping[str, str]) -> None:
    """Serve the process's standard input and output until the client leaves or a signal comes.

    Meanwhile descriptor 0 is empty and descriptor 1 is standard error, so that nothing else can
    read from or write into the conversation.
    """
    from .thought_log import ThoughtLog, tell, wants_log

    log = ThoughtLog(2, environ) if wants_log(environ) else None
    server.watch = log
    with _conversation() as (source, sink):
        left = await _serve(server, source, sink)
    if log is not None:
        log.finish()
    if left:
        names = [clip(request, 80) for request in left[:_MAX_TOLD]] + ["…"] * (len(left) > _MAX_TOLD)
        tell(2, f"reasonry mcp: {len(left)} requests were not done when it had to leave: {', '.join(names)}")


def main(
    store_spec: str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    strategies: Registry | None = None,
    extras: Sequence[McpTool] = (),
) -> None:
    """Run the server over standard input and output until the client leaves.

    Args:
        store_spec: What `--store` takes; None: `REASONRY_STORE`, else the user's data folder.
        environ: None: that of the process.
        strategies: By canonical name; None: the registry with those of installed packages.
        extras: Tools besides those for thinking and for runs.

    Raises:
        UsageError: A setting or the store's name is no legal one.
    """
    from ...app.agents import AgentAccess
    from ...app.wiring import App

    environ = os.environ if environ is None else environ
    app = App(store_spec, environ=environ, strategies=strategies)
    access = AgentAccess(app)

    async def serve() -> None:
        async with app:
            await run_stdio(app_server(access, app.sessions(), extras=extras), environ)

    with masked_output(environ):
        asyncio.run(serve())


@contextlib.contextmanager
def _conversation() -> Generator[tuple[int, int]]:
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    try:
        yield source, sink
    finally:
        os.dup2(source, 0)
        os.dup2(sink, 1)
        os.close(source)
        os.close(sink)


async def _serve(server: McpServer, source: int, sink: int) -> list[str]:
    """Serve until the input ends or a signal comes; return the requests that could not be done, for people."""
    from . import frames
    from .connection import Connection
    from .stdio_transport import open_transport

    over, hurry = asyncio.Event(), asyncio.Event()

    def end_soon() -> None:
        hurry.set()
        over.set()

    transport = open_transport(source, sink, max_line=MAX_LINE_BYTES, on_end=over.set)

    connection = Connection(server, transport.send)
    on_ending(end_soon)
    transport.start(
        connection.receive, lambda head: connection.refuse(frames.oversize_error(head, MAX_LINE_BYTES))
    )
    await over.wait()
    transport.stop()
    left = await _finish(connection, hurry)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_S):
            await transport.drained.wait()
    transport.close()
    return left


async def _finish(connection: Connection, hurry: asyncio.Event) -> list[str]:
    """Let calls in flight finish, within their grace, which a signal cuts short; return what was left."""
    hurried = asyncio.ensure_future(hurry.wait())
    finishing = asyncio.ensure_future(connection.finish())
    await asyncio.wait({finishing, hurried}, timeout=GRACE_S, return_when=asyncio.FIRST_COMPLETED)
    if hurry.is_set():
        await asyncio.wait({finishing}, timeout=_LEAVING_S)
    finishing.cancel()
    hurried.cancel()
    why = "a signal came" if hurry.is_set() else f"the input ended {GRACE_S:g} s ago"
    left = connection.abandon(f"this was not done when the server left: {why}; what was recorded is kept")
    if left:
        # What was given up is still to put its things away.
        ending = asyncio.ensure_future(connection.finish())
        await asyncio.wait({ending}, timeout=_LEAVING_S)
        ending.cancel()
    return left
