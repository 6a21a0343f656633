"""One request and its response, over aiohttp's server, down to the bytes and resets that no server means to send."""

import asyncio
from collections.abc import Mapping

from aiohttp import web


class Exchange:
    """One request, whole, and the response to it. Writing waits until the client takes it, and fails once it has gone.

    Attributes:
        arrived_s: When the last byte of the request was there; loop time.
    """

    def __init__(self, request: web.Request, body: bytes) -> None:
        self._request = request
        self.method, self.path, self.headers, self.body = request.method, request.path, request.headers, body
        self.arrived_s = asyncio.get_running_loop().time()
        self.response = web.StreamResponse()

    @property
    def key(self) -> str:
        """The key that came with the request, in whichever of the providers' headers; empty if there is none."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return bearer or self.headers.get("x-api-key", "") or self.headers.get("x-goog-api-key", "")

    async def start(
        self,
        status: int = 200,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
        *,
        length: int | None = None,
        reason: str | None = None,
    ) -> None:
        """Begin the response.

        Args:
            length: Of its body, whether or not so much will come; None: it comes in chunks.
            reason: The phrase behind the status, if not the usual one.
        """
        self.response = web.StreamResponse(
            status=status, reason=reason, headers={"Content-Type": content_type, **(headers or {})}
        )
        self.response.content_length = length
        await self.response.prepare(self._request)

    async def send(
        self,
        status: int,
        body: bytes,
        content_type: str = "application/json",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Write a whole response."""
        await self.start(status, content_type, headers, length=len(body))
        await self.response.write_eof(body)

    async def start_events(self) -> None:
        """Begin a response of server-sent events; `write_event` writes."""
        await self.start(content_type="text/event-stream", headers={"Cache-Control": "no-cache"})

    async def write_event(self, data: bytes, name: str = "") -> None:
        """Write one event."""
        await self.response.write((f"event: {name}\n".encode() if name else b"") + b"data: " + data + b"\n\n")

    def close(self) -> None:
        """Close the connection once everything is written."""
        if self._request.transport is not None:
            self._request.transport.close()

    def reset(self) -> None:
        """Drop the connection at once; the client sees it reset or broken off."""
        if self._request.transport is not None:
            self._request.transport.abort()
