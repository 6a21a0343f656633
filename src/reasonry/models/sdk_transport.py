"""What the provider SDKs send through: httpx2's own transport, with the bounds and rules of `http_session`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpx2

from ..errors import ModelError
from .event_stream import EventLines
from .http_session import CONNECT_TIMEOUT_S, IDLE_S, MAX_REPLY_BYTES, protocol_error, tls_context
from .proxies import Proxy, proxy_for

_KEPT = httpx2.Limits(keepalive_expiry=IDLE_S)


_replies: ContextVar[list[bytes]] = ContextVar("reasonry_replies")


@contextmanager
def replies() -> Generator[list[bytes]]:
    """Collect the bodies of replies, but not of refusals, for a reply that the SDK cannot read."""
    received: list[bytes] = []
    token = _replies.set(received)
    try:
        yield received
    finally:
        _replies.reset(token)


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, inner: Any, server: str, lines: EventLines | None, received: list[bytes]) -> None:
        self._inner, self._server, self._lines, self._received = inner, server, lines, received
        self._left = MAX_REPLY_BYTES

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            self._left -= len(piece)
            if self._left < 0:
                raise protocol_error(self._server, f"sent a reply of more than {MAX_REPLY_BYTES:,} bytes")
            self._received.append(piece)
            if self._lines is not None:
                self._lines.feed(piece)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


class SdkTransport(httpx2.AsyncBaseTransport):
    """Carries an SDK's requests, whichever loop they come from."""

    def __init__(self) -> None:
        self._pools: dict[Proxy | None, httpx2.AsyncHTTPTransport] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request.

        Raises:
            ModelError: The response is one that is not read; SDKs wrap it in errors of their own.
        """
        server = request.url.netloc.decode("ascii")
        request.headers["Accept-Encoding"] = "identity"
        request.extensions["timeout"] = {"connect": CONNECT_TIMEOUT_S}
        response = await self._pool_for(request.url).handle_async_request(request)
        refusal = _refusal(response, server)
        if refusal is not None:
            await response.aclose()
            raise refusal
        streams = response.headers.get("content-type", "").startswith("text/event-stream")
        lines = EventLines(server) if streams else None
        received = _replies.get([]) if response.status_code == 200 else []
        response.stream = _BoundedBody(response.stream, server, lines, received)
        return response

    def _pool_for(self, url: httpx2.URL) -> httpx2.AsyncHTTPTransport:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # The connections of a loop that has ended are of no use in another one.
            self._pools, self._loop = {}, loop
        proxy = proxy_for(url.host, url.scheme == "https")
        if proxy not in self._pools:
            through = None if proxy is None else httpx2.Proxy(proxy.url, headers=proxy.headers)
            self._pools[proxy] = httpx2.AsyncHTTPTransport(verify=tls_context(), limits=_KEPT, proxy=through)
        return self._pools[proxy]

    async def aclose(self) -> None:
        """Close the connections; the next request opens new ones."""
        pools, self._pools = self._pools, {}
        if self._loop is asyncio.get_running_loop():
            for pool in pools.values():
                await pool.aclose()


def _refusal(response: httpx2.Response, server: str) -> ModelError | None:
    if 300 <= response.status_code < 400:
        return ModelError(f"{server} answered with a redirect, which is not followed; set the base URL")
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        return protocol_error(server, "packed its reply, which was not asked for")
    return None
