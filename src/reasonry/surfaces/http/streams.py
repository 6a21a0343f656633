"""Streams of server-sent events, of which each principal may have so many open."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping
from typing import Final

from sse_starlette.event import ServerSentEvent
from sse_starlette.sse import EventSourceResponse
from starlette.types import Receive, Scope, Send

from .context import RequestContext

PING_S: Final = 15
"""After so long without an event a comment is sent, so that nothing on the way takes the stream for dead."""


class EventStream(EventSourceResponse):
    """Events of one request, as they come."""

    def __init__(
        self, context: RequestContext, events: AsyncIterable[bytes], headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(
            events,
            headers=headers,
            ping=PING_S,
            ping_message_factory=lambda: ServerSentEvent(comment="still here", sep="\n"),
        )
        self._counted = context.wiring.stream(context.principal)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            OverloadedError: As many streams are open as may be.
        """
        with self._counted:
            await super().__call__(scope, receive, send)
