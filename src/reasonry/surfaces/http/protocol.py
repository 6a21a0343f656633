"""Extends uvicorn's HTTP protocol with limits on open connections, slow requests and unread replies."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from ...errors import OverloadedError, ReasonryError, TooLargeError, UsageError
from ..present import error_document, http_status
from .server_settings import ServerSettings

MAX_HEAD_BYTES = 64 << 10
"""The limit in bytes for the request line and the headers together."""
_LINGER_S = 0.5


def make_protocol(settings: ServerSettings) -> type[HttpToolsProtocol]:
    """Return a new protocol class for uvicorn that applies the limits in the settings."""
    return type("SettingsProtocol", (BoundedProtocol,), {"bounds": settings, "in_turn": {}})


class BoundedProtocol(HttpToolsProtocol):
    """An HTTP connection with the limits in `bounds`."""

    bounds: ServerSettings
    in_turn: dict[BoundedProtocol, None]
    """All open connections. The connection whose last activity is longest ago comes first."""

    _in_request = _is_refused = False
    _head_bytes: int | None = None
    """How many bytes of unfinished headers have arrived. The first piece may hold earlier requests and is ignored."""
    _piece_bytes = 0
    _answered: RequestResponseCycle | None = None
    """The request that is being answered. `cycle` is the latest request that has arrived."""
    _coming: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    # -- receiving

    def connection_made(self, transport: Any) -> None:
        """Accept a connection. At the limit, replace an idle connection, or refuse the new one if none is idle."""
        super().connection_made(transport)
        has_place = len(self.in_turn) < self.bounds.max_connections or self._end_longest_waiting()
        self._go_last()
        if has_place:
            self._await_request()
        else:
            self._refuse(OverloadedError("too many connections"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after a connection has been closed."""
        self._coming, self._unread = _cancel(self._coming), _cancel(self._unread)
        self.in_turn.pop(self, None)
        # If the client disconnects, uvicorn tells only the last request of the connection.
        self.pipeline.clear()
        if self._answered is not None:
            self._answered.disconnected = True
            self._answered.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Process received data."""
        if self._is_refused or self.transport.is_closing():
            return
        self._piece_bytes = len(data)
        super().data_received(data)
        if self._head_bytes is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                message = "the headers are too long"
                self._refuse(TooLargeError(message, code="headers_too_large", limit=MAX_HEAD_BYTES))
                return
        if self._in_request and self._coming is None:
            self._await_request()

    def on_message_begin(self) -> None:
        """Record that a request has begun to arrive."""
        super().on_message_begin()
        self._go_last()
        self._in_request, self._head_bytes = True, -self._piece_bytes

    def on_headers_complete(self) -> None:
        """Record that the headers of a request are complete."""
        self._head_bytes = None
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Record that a request has arrived completely."""
        self._in_request, self._coming = False, _cancel(self._coming)
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse data that is not HTTP."""
        self._refuse(UsageError("this is not a request of HTTP/1.1"))

    def _go_last(self) -> None:
        self.in_turn.pop(self, None)
        self.in_turn[self] = None

    def _end_longest_waiting(self) -> bool:
        """Close the connection that has waited longest for its client. Return False if no connection waits."""
        longest = next((each for each in self.in_turn if each._waits_for_client()), None)
        if longest is None:
            return False
        del self.in_turn[longest]
        longest.transport.abort()
        return True

    def _waits_for_client(self) -> bool:
        """Whether the connection waits for its client to send or to read."""
        cycle: RequestResponseCycle | Any = self.cycle
        is_answering = cycle is not None and not (cycle.response_complete or cycle.more_body)
        return self._unread is not None or not (is_answering or self.pipeline)

    def _await_request(self) -> None:
        self._coming = self.loop.call_later(self.bounds.request_timeout_s, self._give_up_request)

    def _give_up_request(self) -> None:
        if self._in_request:
            self._refuse(UsageError("the request did not come in whole, in time", code="request_timeout"))
        elif not self.transport.is_closing():
            # The client has sent no request at all.
            self._end()

    def _refuse(self, error: ReasonryError) -> None:
        """Send an error as the reply, unless another reply is in progress. Close the connection in either case."""
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused = True
        cycle: RequestResponseCycle | Any = self.cycle
        if cycle is None or not cycle.response_started or cycle.response_complete:
            body = msgspec.json.encode(error_document(error))
            head = (
                b"content-type: application/json\r\ncache-control: no-store\r\nconnection: close\r\n"
                b"content-length: %d\r\n\r\n" % len(body)
            )
            self.transport.write(STATUS_LINE[http_status(error.code)] + head + body)
        # Closing the connection while the client still sends would reset the connection, and the reply would be lost.
        self.transport.write_eof()
        self.loop.call_later(_LINGER_S, self._end)

    # -- sending

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        """Record that a reply is complete."""
        self._go_last()
        super().on_response_complete()
        if self.transport.is_closing():
            self._end()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection."""
        self._end()

    def pause_writing(self) -> None:
        """Start the time limit for a client that has stopped reading."""
        self._go_last()
        super().pause_writing()
        self._give_up_unread()

    def resume_writing(self) -> None:
        """Cancel the time limit, since the client reads again."""
        if not self.transport.is_closing():
            self._unread = _cancel(self._unread)
        super().resume_writing()

    def _end(self) -> None:
        """Close the connection when the client has read the reply, or at the latest after `send_timeout_s` seconds."""
        self.transport.close()
        self._give_up_unread()

    def _give_up_unread(self) -> None:
        self._unread = self._unread or self.loop.call_later(self.bounds.send_timeout_s, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
