"""Puts this package's HTTP client under the provider SDKs: one pool of connections, one set of bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from contextvars import ContextVar
from typing import Any

import httpx2

from ..errors import ModelError
from .http_client import HttpClient, Response, lease, release

_OURS = ("host", "content-length", "accept-encoding", "connection", "transfer-encoding")


class _Body(httpx2.AsyncByteStream):
    def __init__(self, exchange: AbstractAsyncContextManager[Any], response: Response) -> None:
        self._exchange = exchange
        # SDKs begin to read a second time, to drain what the first time left; it is still one body.
        self._pieces = response.pieces()
        self._open = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._pieces:
                yield piece
        except Exception as error:
            self._open = False
            await self._exchange.__aexit__(type(error), error, error.__traceback__)
            raise

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            await self._exchange.__aexit__(None, None, None)


_open_bodies: ContextVar[list[_Body]] = ContextVar("reasonry_open_bodies")


@asynccontextmanager
async def all_closed() -> AsyncGenerator[None]:
    """Close, on leaving, what responses SDKs have left open inside: some forget to where a reply is no good."""
    bodies: list[_Body] = []
    token = _open_bodies.set(bodies)
    try:
        yield
    finally:
        _open_bodies.reset(token)
        for body in bodies:
            await body.aclose()


class SdkTransport(httpx2.AsyncBaseTransport):
    """Carries an SDK's requests, whichever loop they come from."""

    def __init__(self) -> None:
        self._client: HttpClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request.

        Raises:
            ModelError: As `HttpClient.exchange` does; SDKs wrap it in errors of their own.
        """
        content = await request.aread()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _OURS}
        exchange = self._leased().exchange(request.method, str(request.url), headers, content)
        response = await exchange.__aenter__()
        if 300 <= response.status < 400:
            await exchange.__aexit__(None, None, None)
            raise ModelError(
                f"{request.url.host} answered with a redirect, which is not followed; set the base URL"
            )
        shown = [(name, value) for name, value in response.headers.items() if name != "content-encoding"]
        body = _Body(exchange, response)
        _open_bodies.get([]).append(body)
        return httpx2.Response(response.status, headers=shown, stream=body, request=request)

    def _leased(self) -> HttpClient:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._client, self._loop = lease(), loop
        return self._client

    async def aclose(self) -> None:
        """Give the connections back."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await release(client)
