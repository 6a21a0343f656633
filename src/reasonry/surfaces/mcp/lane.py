"""The SDK's side of a stdio connection, brought in by the first request that needs it."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Any

from . import frames
from .desk import Desk
from .tools import Binding


class Lane:
    """The SDK serving the same client, on frames that the connection passes on.

    Args:
        send: Takes each line that goes out.
    """

    def __init__(self, desk: Desk, binding: Binding, send: Callable[[bytes], None]) -> None:
        self._desk, self._binding = desk, binding
        self._send = send
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._muted: Any = None
        self._asked: list[tuple[Any, str]] = []
        self._idle = asyncio.Event()
        self._idle.set()
        self.ready = asyncio.Event()
        """Set once the SDK has been brought in."""
        self.task = asyncio.ensure_future(self._run())
        self.task.add_done_callback(_log_failure)

    def feed(self, line: bytes) -> None:
        """Pass a frame on that is not to be answered."""
        self._frames.put_nowait(line)

    def ask(self, id: Any, what: str, line: bytes) -> None:
        """Pass a request on.

        Args:
            id: Of the request.
            what: Names it to people.
        """
        self._asked.append((id, what))
        self._idle.clear()
        self.feed(line)

    def settle(self, id: Any) -> None:
        """Take note that a request needs no answer any more."""
        at = next((at for at, (asked, _) in enumerate(self._asked) if asked == id), None)
        if at is not None:
            del self._asked[at]
        if not self._asked:
            self._idle.set()

    def greet(self, lines: list[bytes]) -> None:
        """Replay a handshake that was answered already; this answer to it is dropped."""
        self._muted = json.loads(lines[0])["id"]
        for line in lines:
            self.feed(line)

    def end(self) -> None:
        """Let the SDK finish."""
        self._frames.put_nowait(None)

    async def finish(self) -> None:
        """Return once every request is answered and the SDK has gone."""
        idle = asyncio.ensure_future(self._idle.wait())
        # The SDK gives up what it is at when its input ends.
        await asyncio.wait([idle, self.task], return_when=asyncio.FIRST_COMPLETED)
        idle.cancel()
        self.end()
        await asyncio.wait([self.task])

    def abandon(self) -> list[tuple[Any, str]]:
        """Let the SDK go as it is; return the requests that were not answered."""
        self.task.cancel()
        return self._asked

    async def _run(self) -> None:
        # Half a second of importing must not hold up the calls in flight.
        sdk = await asyncio.to_thread(_import_sdk)
        self.ready.set()
        from mcp.shared._context_streams import create_context_streams

        server = sdk.DeskServer(self._desk, self._binding)
        to_server, read_stream = create_context_streams[Any](0)
        write_stream, from_server = create_context_streams[Any](0)
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(read_stream, write_stream))
            group.create_task(self._take_out(sdk, from_server))
            async with to_server:
                while (line := await self._frames.get()) is not None:
                    try:
                        message = sdk.parse(line)
                    except ValueError:
                        self._refuse(line)
                    else:
                        await to_server.send(message)

    def _refuse(self, line: bytes) -> None:
        message = frames.read(line)
        if "id" in message and "method" in message:
            self.settle(message["id"])
            self._send(frames.error(message["id"], frames.INVALID_REQUEST, "Invalid request"))

    async def _take_out(self, sdk: Any, from_server: Any) -> None:
        async with from_server:
            async for message in from_server:
                id = getattr(message.message, "id", None)
                if self._muted is not None and id == self._muted:
                    self._muted = None
                    continue
                if not hasattr(message.message, "method"):
                    self.settle(id)
                self._send(sdk.dump(message))


def _import_sdk() -> Any:
    from . import sdk

    return sdk


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log = logging.getLogger("reasonry.mcp")
        log.error("the SDK's side of the connection failed", exc_info=task.exception())
