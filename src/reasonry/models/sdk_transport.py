"""What the provider SDKs send through: httpx2's own client, with the bounds and rules of `http_session`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any
from urllib.request import getproxies

import httpx2

from ..errors import ModelError
from ..masking import SECRETS
from .http_session import (
    CONNECT_TIMEOUT_S,
    DEFAULT_TIMEOUT_S,
    IDLE_S,
    MAX_REPLY_BYTES,
    protocol_error,
    tls_context,
)

LINE_BYTES = 16
"""How many bytes of the limit each line counts for, besides its own."""

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
    def __init__(self, inner: Any, server: str, received: list[bytes]) -> None:
        self._inner, self._server, self._received = inner, server, received
        self._left = MAX_REPLY_BYTES

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._inner:
            # A line costs the SDKs far more time than its bytes do.
            self._left -= len(piece) + LINE_BYTES * piece.count(b"\n")
            if self._left < 0:
                raise protocol_error(self._server, f"sent a reply of more than {MAX_REPLY_BYTES:,} bytes")
            self._received.append(piece)
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def sdk_client() -> httpx2.AsyncClient:
    """Return the client of one provider; it serves the event loop in which it is first used.

    In place of a reply that is not read a ModelError is raised; SDKs wrap it in errors of their own.
    """
    for proxy in getproxies().values():
        SECRETS.keep_password(proxy)
    return httpx2.AsyncClient(
        timeout=DEFAULT_TIMEOUT_S,
        limits=httpx2.Limits(keepalive_expiry=IDLE_S),
        verify=tls_context(),
        mounts={f"all://{host}": None for host in ("localhost", "127.0.0.1", "[::1]")},
        event_hooks={"request": [_prepare], "response": [_bound]},
    )


async def _prepare(request: httpx2.Request) -> None:
    request.headers["Accept-Encoding"] = "identity"
    request.extensions["timeout"] = {"connect": CONNECT_TIMEOUT_S}


async def _bound(response: httpx2.Response) -> None:
    server = response.request.url.netloc.decode("ascii")
    if 300 <= response.status_code < 400:
        raise ModelError(f"{server} answered with a redirect, which is not followed; set the base URL")
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise protocol_error(server, "packed its reply, which was not asked for")
    received = _replies.get([]) if response.status_code == 200 else []
    response.stream = _BoundedBody(response.stream, server, received)
