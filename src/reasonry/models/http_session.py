"""HTTP for OpenAI-compatible endpoints, over aiohttp, with reused connections and hard limits on responses.

Rule 1: no redirect is followed, no cookie is kept, and no credentials are read from files.
Rule 2: a request is sent once. Every failure is a ModelError that says whether to retry.
Rule 3: a connection is reused only after its response was read to the end; otherwise it is closed.
"""

from __future__ import annotations

import asyncio
import base64
import io
import ipaddress
import os
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from ..core.effects import Ask
from ..engine.ports import BrokenReplyError, Question
from ..engine.prices import PriceOf
from ..engine.usage import estimate_tokens, estimate_usage, guess
from ..errors import ModelError, UsageError
from ..system.masking import SECRETS

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession

T = TypeVar("T")

DEFAULT_TIMEOUT_S = 600.0
"""The time limit of a reply, if the question has no time limit."""
CONNECT_TIMEOUT_S = 10.0
MAX_REPLY_BYTES = 2_000_000
MAX_STREAM_BYTES = 16_000_000
"""The limit for a streamed reply, whose events are far larger than its text."""
TOKEN_BYTES = 16
"""An upper bound for the average size of a token in bytes, when the token is escaped for JSON."""
_SPARE_BYTES = 64_000
IDLE_S = 30.0
_HEADER_LIMIT = 65_536
_BUFFER_BYTES = 65_536


@cache
def tls_context() -> ssl.SSLContext:
    """Return a TLS context. `SSL_CERT_FILE` or `SSL_CERT_DIR` replaces the system's certificates."""
    from httpx2 import create_ssl_context

    return create_ssl_context()


class HttpSession:
    """The connections to one server. A new event loop gets new connections.

    Attributes:
        server: Host and port, for error messages.
    """

    def __init__(self, url: str) -> None:
        # The import takes a while, which must not count against the first call's time.
        from aiohttp import ClientError

        self._errors = (ClientError, UnicodeError)
        parts = urlsplit(url)
        self._tls = parts.scheme == "https"
        self._host = parts.hostname or ""
        self.server = parts.netloc
        self._opened: AsyncGenerator[ClientSession] | None = None
        self._session: ClientSession | None = None
        self._proxy: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> ClientResponse:
        """Send a request and return the response. The connection is reused only if the response is read to its end.

        Raises:
            ModelError: The code is `provider_timeout` if no connection is made in time, otherwise `provider_error`.
        """
        loop = asyncio.get_running_loop()
        if self._session is None or self._loop is not loop or self._session.closed:
            self._proxy = proxy_for(self._host, self._tls)
            self._opened, self._loop = _sessions(), loop
            self._session = await anext(self._opened)
        options: dict[str, Any] = {"ssl": tls_context()} if self._tls else {}
        options |= {"headers": headers, "proxy": self._proxy, "allow_redirects": False}
        try:
            return await self._session.post(url, data=io.BytesIO(body), **options)
        except self._errors as error:
            raise self._failure(error) from None

    # This is not a generator, because the event loop keeps a list of generators, which costs more than the reading.
    async def read(
        self, response: ClientResponse, take: Callable[[bytes], object], limit_bytes: int = MAX_REPLY_BYTES
    ) -> None:
        """Pass the body of a response to `take` as it arrives.

        Raises:
            ModelError: The body exceeds the limit (`reply_too_long`), or is incomplete.
        """
        total = 0
        try:
            while piece := await response.content.readany():
                total += len(piece)
                if total > limit_bytes:
                    raise too_long(self.server, limit_bytes)
                take(piece)
                if len(piece) >= _BUFFER_BYTES:
                    # Let other tasks run, even if a server sends without a pause.
                    await asyncio.sleep(0)
        except self._errors as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> ModelError:
        import aiohttp

        proxy = urlsplit(self._proxy or "").netloc.rpartition("@")[2]
        match error:
            case aiohttp.ConnectionTimeoutError():
                message = f"{self.server} did not take a connection within {CONNECT_TIMEOUT_S:g} s"
                return ModelError(message, code="provider_timeout", retryable=True)
            case aiohttp.ClientHttpProxyError() | aiohttp.ClientProxyConnectionError():
                status = getattr(error, "status", None)
                why = f"refused to connect ({status})" if status else "cannot be reached"
                message = f"no connection to {self.server}: the proxy {proxy} {why}; check HTTPS_PROXY"
                return ModelError(message, retryable=status is None)
            case aiohttp.ClientConnectorError():
                cause = error.os_error
                # Only TLS errors have a `reason`. For an unknown host, `errno` is negative, not a system error.
                number = cause.errno or 0
                system = os.strerror(number) if number > 0 else cause.strerror or cause
                reason = getattr(cause, "reason", None) or system
                step = "check the URL, and that the server runs"
                if self.server.endswith(":11434"):
                    step = "start Ollama: ollama serve"
                message = f"no connection to {self.server}: {reason}; {step}"
                return ModelError(message, retryable=not isinstance(error, aiohttp.ClientSSLError))
            case _:
                # An invalid address raises a ValueError.
                message = f"the call to {self.server} failed: {type(error).__name__}"
                return ModelError(message, retryable=not isinstance(error, ValueError))

    async def close(self) -> None:
        """Close the connections. The next request opens new ones."""
        opened, self._opened, self._session = self._opened, None, None
        if opened is not None and self._loop is asyncio.get_running_loop():
            await opened.aclose()


async def _sessions() -> AsyncGenerator[ClientSession]:
    """Yield a session. The session is closed when the event loop shuts down, if not earlier."""
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


def reply_limit(ask: Ask, samples: int = 1) -> int:
    """Return the size limit of a reply in bytes, computed from the question's token limit."""
    if ask.max_output_tokens is None:
        return MAX_REPLY_BYTES
    return min(TOKEN_BYTES * ask.max_output_tokens * samples + _SPARE_BYTES, MAX_REPLY_BYTES)


def too_long(server: str, limit_bytes: int) -> ModelError:
    """Return the error for a reply that is longer than its limit."""
    return ModelError(f"{server} sent a reply of more than {limit_bytes:,} bytes", code="reply_too_long")


def booked_whole(error: ModelError, question: Question, price: PriceOf, samples: int = 1) -> BrokenReplyError:
    """Return the error for a reply that is too long to read. All allowed tokens count as used."""
    tokens = (question.ask.max_output_tokens or MAX_REPLY_BYTES // TOKEN_BYTES) * samples
    return BrokenReplyError(error, guess(estimate_tokens(question.prompt), tokens, price))


async def in_time(asking: Awaitable[T], question: Question, name: str, price: PriceOf) -> T:
    """Await a model's reply within the time limit of the question.

    Raises:
        ModelError: `provider_timeout`, or the model's own error, from which a library's details are removed.
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
        # A library's error about a failed request may contain the headers of the request, and so the key.
        error.__cause__ = error.__context__ = None
        raise


# -- server-sent events


class EventLines:
    """Splits one stream of server-sent events into lines, in linear time.

    Chat completions put each event's JSON on one `data:` line, so a line with data is an event. Other fields, comments
    and empty lines are ignored.
    """

    def __init__(self) -> None:
        self._begun: list[bytes] = []
        self.held_bytes = 0
        """How many bytes of an unfinished line have arrived."""

    def data(self, piece: bytes) -> list[bytes]:
        """Add a piece of the stream. Return the data of each event that is now complete."""
        # A line ends with CR LF, LF or CR. CR LF makes an empty line here, which is ignored.
        *ended, last = piece.replace(b"\r", b"\n").split(b"\n")
        if ended:
            ended[0], self._begun, self.held_bytes = b"".join([*self._begun, ended[0]]), [], 0
        self._begun.append(last)
        self.held_bytes += len(last)
        return [data for line in ended if line.startswith(b"data:") and (data := line[5:].strip())]


# -- proxies


def proxy_for(host: str, tls: bool) -> str | None:
    """Return the URL of the proxy for a host, from variables such as `HTTPS_PROXY`. None if there is none.

    Raises:
        ModelError: The kind of proxy is not supported.
    """
    if is_loopback(host) or proxy_bypass(host):
        return None
    named = getproxies()
    url = named.get("https" if tls else "http") or named.get("all")
    if not url:
        return None
    url = url if "://" in url else f"http://{url}"
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise ModelError(
            f"proxies of the kind {parts.scheme}:// are not supported; set an http:// proxy, or NO_PROXY"
        )
    if parts.username is not None:
        SECRETS.keep_password(url)
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        SECRETS.keep(base64.b64encode(pair.encode()).decode("ascii"))
    return url


def is_loopback(host: str) -> bool:
    """Whether a name or an address is a loopback address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


# -- the nesting of requests between servers: a server configured as its own model must not ask itself forever


HEADER: Final = "X-Reasonry-Depth"
MAX_DEPTH: Final = 2
"""How many Reasonry servers a request may pass through."""

_depth: ContextVar[int] = ContextVar("reasonry_depth", default=0)


def enter_nested(header: str | None) -> None:
    """Store how many servers the current request has passed through. `nesting_header` reads the number.

    Raises:
        UsageError: The request has passed through too many servers.
    """
    depth = int(header) if header is not None and header.isdecimal() and len(header) < 6 else 0
    if depth >= MAX_DEPTH:
        raise UsageError(
            f"this request has come through {depth} servers of this kind: one has another, or itself, as a model",
            field=HEADER,
        )
    _depth.set(depth + 1)


def nesting_header() -> dict[str, str]:
    """Return the header that states how many servers the request has passed through. Empty outside a server."""
    return {HEADER: str(_depth.get())} if _depth.get() else {}
