"""Runs the server over standard input and output until the client leaves, and logs thoughts to standard error."""

import asyncio
import contextlib
import os
import queue
import sys
import threading
from collections.abc import Generator, Mapping
from typing import Any

from ...app.app import App
from ...core.registry import Registry
from ...errors import ReasonryError
from ...system.masking import SECRETS
from ...text import display_line, escape_unseen, shorten
from ..present import masked_output
from ..signals import on_ending
from .connection import Connection
from .frames import MAX_LINE_BYTES
from .mcp_catalog import app_server
from .mcp_server import McpServer
from .run_tasks import RunTasks
from .stdio_transport import StdioTransport, write_whole
from .tools import Document

GRACE_S = 3.0
"""Seconds that unfinished calls may take after the input has ended or a signal has arrived."""
_LEAVING_S = 0.8
"""Seconds that abandoned calls may take to clean up."""
_LET_GO_S = 1.5
"""Seconds that runs may take to stop. A task remains a job in the store. The run of an abandoned call is cancelled."""
_DRAIN_S = 0.5
"""Seconds that the client may take to read its last replies."""
_MAX_TOLD = 20
_COLOURS = {"💭 Thought": "34", "🔄 Revision": "33", "🌿 Branch": "32"}
_MAX_CHARS = 20_000
_MAX_WAITING = 256
"""How many messages may wait to be written to the log."""
_FINISH_S = 0.2
"""Seconds that the log may take to write its last messages."""


async def run_stdio(server: McpServer, environ: Mapping[str, str]) -> None:
    """Serve standard input and output until the client leaves or a signal arrives.

    While the server runs, file descriptor 0 is an empty input and descriptor 1 is standard error, so that other code
    cannot disturb the conversation.
    """
    log, over = ThoughtLog(2, environ), asyncio.Event()
    if environ.get("DISABLE_THOUGHT_LOGGING", "").strip().lower() != "true":
        server.watch = log.add

    with _conversation() as (source, sink):
        transport = StdioTransport(source, sink, max_line=MAX_LINE_BYTES, on_end=over.set)
        connection = Connection(server, transport.send)
        on_ending(over.set)
        transport.start(connection.receive)
        await over.wait()
        transport.stop()
        await connection.finish(GRACE_S)
        why = f"this was not done {GRACE_S:g} s after the input ended or a signal came"
        left = connection.abandon(f"{why}; what was recorded is kept")
        await connection.finish(_LEAVING_S)
        await transport.close(_DRAIN_S)
    if left:
        names = [display_line(request, 80) for request in left[:_MAX_TOLD]] + ["…"] * (len(left) > _MAX_TOLD)
        listed = SECRETS.mask(", ".join(names))
        log.write(f"reasonry mcp: {len(left)} requests were not done when it had to leave: {listed}\n")
    log.finish()


def main(
    store_spec: str | None = None,
    environ: Mapping[str, str] | None = None,
    *,
    strategies: Registry | None = None,
) -> None:
    """Run the server over standard input and output until the client leaves.

    Args:
        store_spec: The store, as in the option `--store`. Defaults to `REASONRY_STORE`, or to the user's data folder.
        environ: The environment variables. Defaults to the variables of the process.
        strategies: Strategies by canonical name. Defaults to the built-in strategies and the installed plugins.

    Raises:
        UsageError: A setting or the name of the store is invalid.
    """
    environ = os.environ if environ is None else environ
    app = App(store_spec, environ=environ, strategies=strategies)
    agents = app.for_agents()

    async def serve() -> None:
        async with app:
            tasks = RunTasks(agents)
            try:
                await run_stdio(app_server(tasks, app.sessions()), environ)
            finally:
                await tasks.supervisor.drain(_LET_GO_S)

    with masked_output(environ):
        asyncio.run(serve())


@contextlib.contextmanager
def _conversation() -> Generator[tuple[int, int]]:
    source, sink = os.dup(0), os.dup(1)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    try:
        yield source, sink
    finally:
        os.dup2(source, 0)
        os.dup2(sink, 1)
        os.close(source)
        os.close(sink)


# -- the log


class ThoughtLog:
    """Writes thoughts to a file descriptor in a thread. If nobody reads the descriptor, the log drops thoughts.

    Args:
        environ: The environment variables, of which the log uses `NO_COLOR` and `FORCE_COLOR`.
    """

    def __init__(self, sink: int, environ: Mapping[str, str]) -> None:
        wants_colour = os.isatty(sink) or bool(environ.get("FORCE_COLOR"))
        self._colour = wants_colour and not environ.get("NO_COLOR")
        self._sink = sink
        self._waiting = queue.Queue[str | None](maxsize=_MAX_WAITING)
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def add(self, tool: str, arguments: Document, document: Document) -> None:
        """Log the thought that a call of `sequentialthinking` contains. Ignore calls of other tools."""
        if tool == "sequentialthinking":
            self.write(show_thought(SECRETS.mask_data(arguments), document, colour=self._colour))

    def write(self, text: str | None) -> None:
        """Queue a text for the log, or drop the text if the queue is full. A queued None ends the log."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(text)

    def finish(self) -> None:
        """End the log, and wait at most `_FINISH_S` seconds until the queued messages are written."""
        self.write(None)
        self._thread.join(_FINISH_S)

    def _work(self) -> None:
        with contextlib.suppress(OSError):
            while (text := self._waiting.get()) is not None:
                write_whole(self._sink, text.encode("utf-8", "backslashreplace"))


def show_thought(arguments: Mapping[str, Any], document: Document, *, colour: bool) -> str:
    """Format a thought for the log: a heading, and the text below it."""
    kind, title = heading(arguments, document)
    title = escape_unseen(title.replace("\n", " "))
    head = f"\x1b[{_COLOURS[kind]}m{title}\x1b[0m" if colour else title
    text = shorten(str(arguments.get("thought", "")).replace("\r\n", "\n"), _MAX_CHARS)
    return "\n".join(["", head, *(f"  {escape_unseen(line)}" for line in text.split("\n"))]) + "\n"


def heading(arguments: Mapping[str, Any], document: Document) -> tuple[str, str]:
    """Return the kind of a thought (a key of `_COLOURS`) and the thought's heading."""
    place = f"{document.get('thoughtNumber', '?')}/{document.get('totalThoughts', '?')}"
    if arguments.get("isRevision") or arguments.get("revisesThought") is not None:
        kind, about = "🔄 Revision", f" (revising thought {arguments.get('revisesThought', '?')})"
    elif arguments.get("branchFromThought") is not None:
        # If a call without a branch id starts a branch, that branch is the latest.
        branch = arguments.get("branchId") or (document.get("branches") or ["?"])[-1]
        kind, about = "🌿 Branch", f" (from thought {arguments['branchFromThought']}, ID: {branch})"
    else:
        kind, about = "💭 Thought", ""
    stage = document.get("stage")
    return kind, f"{kind} {place}{about}" + (f" · {stage}" if stage else "")


if __name__ == "__main__":
    try:
        main()
    except ReasonryError as error:
        sys.exit(f"reasonry: {error.message}")
