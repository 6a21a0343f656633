"""Running the server: over standard input and output until the client leaves, or as the SDK's, for HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...core.strategy import Strategy
from ...runtime.masking import SECRETS
from ..present import masked_output
from ..signals import on_ending
from .desk import Desk
from .guided import Sessions, guided_tools
from .resources import Shelf
from .tools import Binding, Tool

if TYPE_CHECKING:
    from .sdk import DeskServer
    from .stdio import Connection

MAX_LINE_BYTES = 32 << 20
GRACE_S = 3.0
"""How long calls in flight may take to finish once the input has ended."""
_LEAVING_S = 0.8
"""The same, once a signal has come."""
_DRAIN_S = 0.5
"""How long the client may take to read its last answers."""
_MAX_TOLD = 20


def build_server(
    sessions: Sessions, strategies: Iterable[Strategy[Any, Any]], *, extras: Sequence[Tool] = ()
) -> DeskServer:
    """Return the SDK's server over the same tools; its calls bind to nothing."""
    from .sdk import DeskServer

    return DeskServer(open_desk(sessions, strategies, extras))


def open_desk(
    sessions: Sessions, strategies: Iterable[Strategy[Any, Any]], extras: Sequence[Tool] = ()
) -> Desk:
    """Return the desk over some sessions: all that a server offers."""
    known = list(strategies)
    tools = guided_tools(sessions, [one.name for one in known])
    return Desk([*tools, *extras], Shelf(sessions, known))


async def run_stdio(
    sessions: Sessions,
    strategies: Iterable[Strategy[Any, Any]],
    *,
    extras: Sequence[Tool] = (),
    environ: Mapping[str, str] | None = None,
) -> None:
    """Serve the process's standard input and output until the client leaves or a signal comes.

    Meanwhile descriptor 0 is empty and descriptor 1 is standard error, so that nothing else can
    read from or write into the conversation.
    """
    from .. import present
    from .box import Watcher, tell, wants_boxes

    environ = os.environ if environ is None else environ
    desk = open_desk(sessions, strategies, extras)
    watcher = Watcher(2, environ) if wants_boxes(environ) else None
    desk.watch = watcher
    with _conversation() as (source, sink):
        left = await _Service(desk, source, sink).run()
    if watcher is not None:
        watcher.finish()
    if left:
        told = [present.clipped(one, 80) for one in left[:_MAX_TOLD]] + ["…"] * (len(left) > _MAX_TOLD)
        tell(2, f"reasonry mcp: {len(left)} requests were not done when it had to leave: {', '.join(told)}")


def main(
    store_spec: str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    strategies: Mapping[str, Strategy[Any, Any]] | None = None,
    extras: Sequence[Tool] = (),
) -> None:
    """Run the server over standard input and output until the client leaves.

    Args:
        store_spec: What `--store` takes; None: `REASONRY_STORE`, else the user's data folder.
        environ: None: that of the process.
        strategies: By canonical name; None: the registry.
        extras: Tools besides those for thinking and for runs.

    Raises:
        UsageError: A setting or the store's name is no legal one.
    """
    from ...app import App
    from ...strategies import STRATEGIES
    from .driven import run_tools

    environ = os.environ if environ is None else environ
    app = App(store_spec, environ=environ, strategies=strategies or STRATEGIES)
    tools = [*run_tools(app), *extras]

    async def serve() -> None:
        async with app:
            await run_stdio(app.sessions(), app.strategies.values(), extras=tools, environ=environ)

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


@dataclass
class _Service:
    desk: Desk
    source: int
    sink: int

    async def run(self) -> list[str]:
        """Serve until the input ends or a signal comes; return the requests that could not be done, for people."""
        from . import frames
        from .lane import Lane
        from .stdio import Connection
        from .wire import open_wire

        over, hurry = asyncio.Event(), asyncio.Event()

        def end_soon() -> None:
            hurry.set()
            over.set()

        binding = Binding()
        wire = open_wire(self.source, self.sink, max_line=MAX_LINE_BYTES, on_end=over.set)

        def send(line: bytes) -> None:
            wire.send(SECRETS.mask_line(line))

        connection = Connection(self.desk, binding, send, lambda send: Lane(self.desk, binding, send))
        on_ending(end_soon)
        wire.start(connection.receive, lambda head: connection.refuse(frames.oversized(head, MAX_LINE_BYTES)))
        await over.wait()
        wire.stop()
        left = await _finish(connection, hurry)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DRAIN_S):
                await wire.drained.wait()
        wire.close()
        return left


async def _finish(connection: Connection, hurry: asyncio.Event) -> list[str]:
    """Let calls in flight finish, within their grace, which a signal cuts short; return what was left."""
    hurried = asyncio.ensure_future(hurry.wait())
    for work, within_s in ((connection.prepared(), None), (connection.finish(), GRACE_S)):
        doing = asyncio.ensure_future(work)
        await asyncio.wait({doing, hurried}, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
        if hurry.is_set():
            await asyncio.wait({doing}, timeout=_LEAVING_S)
        doing.cancel()
    hurried.cancel()
    why = "a signal came" if hurry.is_set() else f"the input ended {GRACE_S:g} s ago"
    left = connection.abandon(f"this was not done when the server left: {why}; what was recorded is kept")
    if left:
        # What was given up is still to put its things away.
        ending = asyncio.ensure_future(connection.finish())
        await asyncio.wait({ending}, timeout=_LEAVING_S)
        ending.cancel()
    return left
