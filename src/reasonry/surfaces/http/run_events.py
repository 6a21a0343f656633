"""The events of a run as a stream of server-sent events, whose ids are positions in the run's journal."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Final

import anyio
import msgspec
from msgspec import Meta
from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.types import Message, Receive, Scope, Send

from ...errors import UsageError
from ...supervisor.run_events import RunEvent
from .context import RequestContext

HEARTBEAT_S: Final = 15
"""After so long without an event a comment is sent, so that nothing on the way takes the stream for dead."""

SEND_TIMEOUT_S: Final = 30
"""A client that takes nothing for so long is hung up on; it can come back where it was."""

DRAINING: Final = b"event: draining\ndata: {}\n\n"
"""The server is about to end; whoever comes back goes on after the last event with an id."""

_encode = msgspec.json.Encoder().encode


class RunStream(EventSourceResponse):
    """What happens in a run, from a position of its journal on, until it has ended or the server drains."""

    def __init__(self, context: RequestContext, run_id: str, after: int, *, text: bool) -> None:
        self._context = context
        super().__init__(
            _pieces(context, run_id, after, text=text),
            ping=HEARTBEAT_S,
            ping_message_factory=lambda: ServerSentEvent(comment="still here", sep="\n"),
            send_timeout=SEND_TIMEOUT_S,
            sep="\n",
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        is_open = False

        async def pass_on(message: Message) -> None:
            nonlocal is_open
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        with self._context.wiring.stream(self._context.principal):
            async with anyio.create_task_group() as group:
                group.start_soon(self._end_at_drain, group.cancel_scope)
                await super().__call__(scope, receive, pass_on)
                group.cancel_scope.cancel()
            if is_open and self._context.wiring.draining.is_set():
                await send({"type": "http.response.body", "body": DRAINING, "more_body": False})

    async def _end_at_drain(self, stream: anyio.CancelScope) -> None:
        await self._context.wiring.draining.wait()
        stream.cancel()


async def _pieces(context: RequestContext, run_id: str, after: int, *, text: bool) -> AsyncGenerator[bytes]:
    async with aclosing(context.supervisor.watch(context.app, run_id, after, text=text)) as events:
        async for event in events:
            yield _piece(event)


def _piece(event: RunEvent) -> bytes:
    place = b"" if event.id is None else b"id: %d\n" % event.id
    return b"%sevent: %s\ndata: %s\n\n" % (place, event.kind.encode(), _encode(event.data))


def position_after(last_event_id: str | None, after: int) -> int:
    """Return the position that a stream goes on behind: that of the header of a client that comes back, if it has one.

    Raises:
        UsageError: The header is no position.
    """
    if not last_event_id:
        return after
    if not (last_event_id.isascii() and last_event_id.isdecimal() and len(last_event_id) < 16):
        message = "Last-Event-ID must be the id of an event of this stream, a whole number"
        raise UsageError(message, field="Last-Event-ID")
    return int(last_event_id)


EventStream = Annotated[
    str,
    Meta(
        description="Server-sent events: `event` the kind, `id` the position in the journal, `data` a JSON document."
    ),
]
"""What a stream returns."""
