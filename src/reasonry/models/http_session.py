"""HTTP for OpenAI-compatible endpoints, over aiohttp: kept connections, and hard bounds on what comes back.

Rule 1: nothing follows a redirect, keeps a cookie, or reads credentials from anywhere.
Rule 2: a request is sent once. Whatever goes wrong is a ModelError that says whether to try again.
Rule 3: a connection is used again only after its response was read to the end; else it is closed.
"""

from __future__ import annotations

import asyncio
import base64
import io
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from msgspec import Struct

from ..core.metering import PriceOf, estimate_usage
from ..engine.ports import BrokenReplyError, Question
from ..errors import ModelError, UsageError
from ..masking import SECRETS

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

T = TypeVar("T")

DEFAULT_TIMEOUT_S = 600.0
"""Of a whole answer, where the question says nothing."""
CONNECT_TIMEOUT_S = 10.0
MAX_REPLY_BYTES = 16_000_000
IDLE_S = 30.0
_HEADER_LIMIT = 65_536
_LARGE_BODY_BYTES = 1_000_000
_BUFFER_BYTES = 65_536
MAX_LINE_BYTES = 2_000_000
MAX_LINES = 1_000_000


@cache
def tls_context() -> ssl.SSLContext:
    """Return how certificates are checked: by the system's store, or what `SSL_CERT_FILE` or `SSL_CERT_DIR` names."""
    from httpx2 import create_ssl_context

    return create_ssl_context()


class HttpResponse:
    """A response whose head was read; a context manager that closes the connection unless it was read to its end.

    Attributes:
        headers: By names whose case does not matter.
        server: Host and port, for errors.
    """

    def __init__(self, response: ClientResponse, session: HttpSession) -> None:
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers
        self.content_type = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        self.server = session.server
        self._response, self._session = response, session

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._response.release()

    async def read(self, limit: int = MAX_REPLY_BYTES) -> bytes:
        """Return the whole body.

        Raises:
            ModelError: It is longer than `limit` bytes, or breaks off.
        """
        return b"".join([piece async for piece in self.pieces(limit)])

    def pieces(self, limit: int = MAX_REPLY_BYTES) -> AsyncIterator[bytes]:
        """Yield the body as it comes in, unpacked.

        Raises:
            ModelError: It is longer than `limit` bytes, or breaks off.
        """
        return _Pieces(self._response, self._session, limit)


class _Pieces:
    """The body of a response. Not a generator: the loop keeps a list of those, which costs more than reading does."""

    def __init__(self, response: ClientResponse, session: HttpSession, limit: int) -> None:
        self._content, self._stated = response.content, response.content_length
        self._session, self._limit = session, limit
        self._total = self._last = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._stated is not None and self._stated > self._limit:
            raise self._too_long(f"{self._stated:,} bytes; the limit is {self._limit:,}")
        if self._last >= _BUFFER_BYTES:
            # A server that floods us is read no faster than the rest of the process allows.
            await asyncio.sleep(0)
        try:
            piece = await self._content.readany()
        except self._session.errors as error:
            raise self._session.failure(error) from None
        if not piece:
            raise StopAsyncIteration
        self._last = len(piece)
        self._total += self._last
        if self._total > self._limit:
            raise self._too_long(f"more than {self._limit:,} bytes")
        return piece

    def _too_long(self, size: str) -> ModelError:
        return protocol_error(self._session.server, f"sent a reply of {size}")


class HttpSession:
    """The connections to one server, from whichever event loop they are asked for.

    Attributes:
        server: Host and port, for errors.
        errors: What aiohttp raises; `failure` says what it means.
    """

    def __init__(self, url: str) -> None:
        # Takes a while, which shall not be taken from the first call's time.
        from aiohttp import ClientError

        self.errors = (ClientError, UnicodeError)
        parts = urlsplit(url)
        self._tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self.server = parts.netloc
        self._opened: AsyncGenerator[ClientSession] | None = None
        self._session: ClientSession | None = None
        self._proxy: Proxy | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> HttpResponse:
        """Send a request and return the response, to be used as a context manager.

        Raises:
            ModelError: `provider_timeout` if no connection comes about in time, else `provider_error`.
        """
        session, proxy = await self._of_this_loop()
        data = body if len(body) <= _LARGE_BODY_BYTES else io.BytesIO(body)
        options: dict[str, Any] = {"headers": headers}
        if self._tls:
            options["ssl"] = tls_context()
        if proxy is not None:
            options["proxy"] = proxy.url
            argument = "proxy_headers" if self._tls else "headers"
            options[argument] = {**options.get(argument, {}), **proxy.headers}
        try:
            response = await session.post(url, data=data, allow_redirects=False, **options)
        except self.errors as error:
            raise self.failure(error) from None
        return HttpResponse(response, self)

    async def _of_this_loop(self) -> tuple[ClientSession, Proxy | None]:
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop or self._session.closed:
            self._proxy = proxy_for(self._host, self._tls)
            self._opened, self._loop = _sessions(), loop
            self._session = await anext(self._opened)
        return self._session, self._proxy

    def failure(self, error: Exception) -> ModelError:
        """Return the error that one of aiohttp's stands for."""
        import aiohttp

        proxy = self._proxy
        match error:
            case aiohttp.ConnectionTimeoutError():
                message = f"{self.server} did not take a connection within {CONNECT_TIMEOUT_S:g} s"
                return ModelError(message, code="provider_timeout", retryable=True)
            case aiohttp.ClientHttpProxyError() if proxy is not None:
                message = f"the proxy {proxy.shown} did not connect to {self.server} ({error.status})"
                return ModelError(message, retryable=False)
            case aiohttp.ClientProxyConnectionError() if proxy is not None:
                return ModelError(
                    f"no connection to the proxy {proxy.shown}; check HTTPS_PROXY", retryable=True
                )
            case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientConnectorSSLError():
                return ModelError(f"no secure connection to {self.server}: {_tls_reason(error)}")
            case aiohttp.ClientConnectorError():
                reason = error.os_error.strerror or "the address cannot be used"
                message = f"no connection to {self.server}: {reason}; check the URL, and that the server runs"
                return ModelError(message, retryable=True)
            case aiohttp.InvalidURL() | UnicodeError():
                return ModelError(
                    f"no connection to {self.server}: the address cannot be used; check the URL"
                )
            case aiohttp.ClientResponseError():
                return protocol_error(self.server, "sent something that is not HTTP")
            case _:
                return protocol_error(self.server, "closed the connection in the middle of a call")

    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        opened, self._opened, self._session = self._opened, None, None
        if opened is not None and self._loop is asyncio.get_running_loop():
            await opened.aclose()


async def _sessions() -> AsyncGenerator[ClientSession]:
    """Yield one session. Being a generator, it is closed with its loop, even if nobody closes it before."""
    import aiohttp

    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity", "User-Agent": "reasonry"},
        timeout=aiohttp.ClientTimeout(connect=CONNECT_TIMEOUT_S),
        read_bufsize=_BUFFER_BYTES,
        max_line_size=_HEADER_LIMIT,
        max_field_size=_HEADER_LIMIT,
    ) as session:
        yield session


def _tls_reason(error: Any) -> str:
    with suppress(AttributeError):
        return error.certificate_error.reason or "TLS failed"
    return getattr(error.os_error, "reason", None) or "TLS failed"


def protocol_error(server: str, fault: str) -> ModelError:
    """Return the error of a server that does not keep to the protocol, or to our limits."""
    return ModelError(f"{server} {fault}", retryable=True)


async def in_time(asking: Awaitable[T], question: Question, name: str, price: PriceOf) -> T:
    """Return what a model answers within the time of the question.

    Raises:
        ModelError: `provider_timeout`, or what the model raises, without what a library says about the request.
    """
    limit_s = question.timeout_s or DEFAULT_TIMEOUT_S
    try:
        async with asyncio.timeout(limit_s):
            return await asking
    except TimeoutError:
        message = f"{name} did not answer within {limit_s:g} s"
        error = ModelError(message, code="provider_timeout", retryable=True)
        raise BrokenReplyError(error, estimate_usage(question.prompt, "", price)) from None
    except ModelError as error:
        # What a library says about a failed request may hold its headers, and with them the key.
        error.__cause__ = error.__context__ = None
        raise


# -- server-sent events


class EventLines:
    """Splits one stream of server-sent events into lines, in time linear in the bytes and within limits.

    Chat completions put each event's JSON on one `data:` line, so a line with data is an event. Other fields, comments
    and empty lines are passed over, but count against the limits.

    Args:
        server: Host and port, for errors.
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._count = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in this piece, without their ends.

        Raises:
            ModelError: A line is too long, or there are too many.
        """
        # A line ends with CR LF, LF or CR. CR LF makes an empty line here, which means nothing.
        first, *rest = piece.replace(b"\r", b"\n").split(b"\n")
        self._begun.append(first)
        self._begun_bytes += len(first)
        lines: list[bytes] = []
        if rest:
            *whole, last = rest
            lines = [b"".join(self._begun), *whole]
            self._begun, self._begun_bytes = [last], len(last)
        self._count += len(lines)
        if self._begun_bytes > MAX_LINE_BYTES or any(len(line) > MAX_LINE_BYTES for line in lines):
            raise self._limit_error(f"an event of more than {MAX_LINE_BYTES:,} bytes")
        if self._count > MAX_LINES:
            raise self._limit_error(f"a stream of more than {MAX_LINES:,} lines")
        return lines

    def data(self, piece: bytes) -> list[bytes]:
        """Return the data of the events that end in this piece; events without data are left out.

        Raises:
            ModelError: A line is too long, or there are too many.
        """
        found = (line[5:].strip() for line in self.feed(piece) if line.startswith(b"data:"))
        return [data for data in found if data]

    def _limit_error(self, subject: str) -> ModelError:
        return ModelError(f"{self._server} sent {subject}", retryable=True)


# -- proxies


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Proxy(Struct, frozen=True):
    """An HTTP proxy that tunnels; `authorization` is a header's value, or empty."""

    host: str
    port: int
    authorization: str = ""

    @property
    def shown(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Its URL, without a password."""
        return f"http://{self.shown}"

    @property
    def headers(self) -> dict[str, str]:
        """Headers that only the proxy receives."""
        return {"Proxy-Authorization": self.authorization} if self.authorization else {}


def proxy_for(host: str, tls: bool) -> Proxy | None:
    """Return the proxy that `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY` name; None for the loopback.

    Raises:
        ModelError: It is of a kind that is not supported.
    """
    if is_loopback(host) or proxy_bypass(host):
        return None
    named = getproxies()
    url = named.get("https" if tls else "http") or named.get("all")
    if not url:
        return None
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme != "http" or not parts.hostname:
        raise ModelError(
            f"proxies of the kind {parts.scheme}:// are not supported; set an http:// proxy, or NO_PROXY"
        )
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        packed = base64.b64encode(pair.encode()).decode("ascii")
        SECRETS.keep_password(url)
        SECRETS.keep(packed)
        authorization = f"Basic {packed}"
    return Proxy(parts.hostname, parts.port or 80, authorization)


def is_loopback(host: str) -> bool:
    """Whether a host name means this machine."""
    return host.lower() in _LOOPBACK or host.startswith("127.")


# -- how deep servers ask each other: one that is configured as its own model must not ask itself for ever


HEADER: Final = "X-Reasonry-Depth"
MAX_DEPTH: Final = 2
"""How many servers may ask each other for one request."""

_depth: ContextVar[int] = ContextVar("reasonry_depth", default=0)


def enter_nested(header: str | None) -> None:
    """Note that what follows in this context works for a request that came with this header.

    Raises:
        UsageError: It has come through too many servers.
    """
    depth = int(header) if header is not None and header.isdecimal() and len(header) < 6 else 0
    if depth >= MAX_DEPTH:
        raise UsageError(
            f"this request has come through {depth} servers of this kind: one has another, or itself, as a model",
            field=HEADER,
        )
    _depth.set(depth + 1)


def nesting_header() -> dict[str, str]:
    """Return what a request to a model says of how deep it is; nothing outside a server."""
    return {HEADER: str(_depth.get())} if _depth.get() else {}
