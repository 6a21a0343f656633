"""Accepts or refuses a request, before the body of the request is read and before any work begins.

The checks run in this order: the host, the origin and the token must be right; the rate of requests must not be too
high; a place for the request must be free; the store must answer (`health`); a new run must have room.

Rule 1: `Host` must name this server. Rules 1 and 2 protect the server from pages of other sites and DNS rebinding.
Rule 2: the `Origin` of a browser's request must be the address of this server.
Rule 3: only the open addresses, which this file lists, need no token. Even an unknown address needs a token.
Rule 4: a request takes one of `max_in_flight` places after its body has arrived, so slow clients do not block others.
        A request to an open address takes no place, and does not count toward the rate.
"""

import contextlib
import hashlib
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any

from starlette.datastructures import Headers

from ...errors import OverloadedError, ReasonryError, TooLargeError, UsageError
from ...models.http_session import is_loopback
from .context import PRINCIPAL, Wiring
from .documents import KEY
from .protocol import MAX_HEAD_BYTES
from .server_settings import OPERATOR, ServerSettings, read_host

_NEEDS_STORE = ("/api/", "/v1/", "/mcp")
_BEGINS_RUN = frozenset({"/v1/chat/completions", "/v1/responses"})
BURST_S = 5.0
"""The length of a burst: all requests that the rate allows in this many seconds may arrive at once."""

OPEN_PATHS = frozenset({"/", "/healthz"})
"""The addresses that need no token. The files of the page, under `OPEN_FOLDER`, need no token either."""
OPEN_FOLDER = "/assets/"

_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_CROSSED = "this server answers no request from a page of another site; have that site's server send it, with a token"


def check_host(hosts: Sequence[str], settings: ServerSettings) -> None:
    """Check that a request is meant for this server.

    Raises:
        UsageError: `Host` is missing, repeated or malformed, or it names another server (`misdirected_host`).
    """
    name = read_host(hosts[0]) if len(hosts) == 1 else None
    if name is None:
        raise UsageError("the header Host is missing, repeated or malformed", field="Host")
    if name in _OWN_NAMES or name in settings.allowed_hosts:
        return
    if not settings.allowed_hosts and not is_loopback(settings.host):
        # The names of this machine are unknown. But every request needs a token, which pages of other sites lack.
        return
    message = (
        "this server does not have this host name; its operator can allow the name (REASONRY_ALLOWED_HOSTS)"
    )
    raise UsageError(message, code="misdirected_host")


def check_origin(headers: Mapping[str, str]) -> None:
    """Raise ReasonryError (`forbidden_origin`) if a page of another site sent a request."""
    origin, host = headers.get("origin"), headers.get("host", "")
    if origin is not None:
        scheme, _, place = origin.lower().partition("://")
        if scheme not in ("http", "https") or place != host.lower():
            raise ReasonryError(_CROSSED, code="forbidden_origin")
    elif headers.get("sec-fetch-site", "none") not in ("same-origin", "none") and (
        # A user may follow a link on a page of another site.
        headers.get("sec-fetch-mode") != "navigate" or headers.get("sec-fetch-dest") != "document"
    ):
        raise ReasonryError(_CROSSED, code="forbidden_origin")


def is_open(path: str) -> bool:
    """Whether an address needs no token."""
    return path in OPEN_PATHS or path.startswith(OPEN_FOLDER)


def find_principal(tokens: Mapping[bytes, str], path: str, authorization: str | None) -> str:
    """Return the principal that owns the token of a request. If the request needs no token, return the operator.

    Args:
        tokens: Maps the SHA-256 digest of each token to its principal. If the mapping is empty, no token is needed.

    Raises:
        UsageError: The request needs a token, but has no valid token (`unauthorized`).
    """
    if not tokens or is_open(path):
        return OPERATOR
    scheme, _, token = (authorization or "").partition(" ")
    # The time that this lookup takes reveals nothing about the token.
    found = tokens.get(hashlib.sha256(token.strip(" ").encode("latin-1", "replace")).digest())
    if found is None or scheme.lower() != "bearer":
        reason = "this server does not know the token that was sent" if token else "a token is needed"
        raise UsageError(f"{reason}: send the header Authorization: Bearer TOKEN", code="unauthorized")
    return found


class RequestRate:
    """Limits how many requests each principal may send per minute. If `per_minute` is None, there is no limit."""

    def __init__(self, per_minute: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._each_s = 60 / per_minute if per_minute else 0.0
        self._clock = clock
        self._paid_until: dict[str, float] = {}

    def count(self, name: str) -> None:
        """Count a request of a principal.

        Raises:
            OverloadedError: The request exceeds the rate and is not counted (`rate_limited`). `retry_after_s` is set.
        """
        now = self._clock()
        until = max(now, self._paid_until.get(name, now)) + self._each_s
        if (wait_s := round(until - now - max(BURST_S, self._each_s), 6)) > 0:
            message = f"too many requests; try again in {wait_s:.1f} s"
            raise OverloadedError(message, code="rate_limited", retry_after_s=wait_s)
        self._paid_until[name] = until


class Admission:
    """Accepts or refuses requests, and counts the requests in progress."""

    def __init__(self, wiring: Wiring) -> None:
        self._wiring, self._settings = wiring, wiring.settings
        self._rate = RequestRate(self._settings.requests_per_minute)
        places = self._settings.max_in_flight
        self._most_of_one = max(1, places // 2) if len({*self._settings.tokens.values()}) > 1 else places

    def admit(self, scope: Any) -> Headers:
        """Raise ReasonryError if a request is refused. Otherwise, store its principal and return its headers."""
        settings, path, headers = self._settings, scope["path"], Headers(scope=scope)
        if len(path) + sum(len(name) + len(value) for name, value in headers.raw) > MAX_HEAD_BYTES:
            raise TooLargeError("the headers are too long", code="headers_too_large", limit=MAX_HEAD_BYTES)
        check_host(headers.getlist("host"), settings)
        check_origin(headers)
        scope[PRINCIPAL] = principal = find_principal(settings.tokens, path, headers.get("authorization"))
        if not is_open(path):
            self._rate.count(principal)
            self._check_place(principal)
        if path.startswith(_NEEDS_STORE):
            self._wiring.health.answering(scope["method"]).check()
        if path in _BEGINS_RUN and scope["method"] == "POST" and KEY not in headers:
            # A request with an idempotency key may be a repeat, whose run has already begun.
            self._wiring.supervisor.check_room()
        return headers

    @contextlib.asynccontextmanager
    async def place(self, scope: Any) -> AsyncGenerator[Callable[[], None]]:
        """Occupy one of the `max_in_flight` places while a request is answered.

        Call the yielded function when the reply begins. Before this call, the request is aborted if the store stops
        answering; see `Answering.waiting`.

        Raises:
            ReasonryError: No place is free, or the store has stopped answering.
        """
        principal = scope[PRINCIPAL]
        if is_open(scope["path"]):
            yield lambda: None
            return
        self._check_place(principal)
        self._wiring.in_flight[principal] += 1
        try:
            async with self._wiring.health.answering(scope["method"]).waiting() as reply_begins:
                yield reply_begins
        finally:
            self._wiring.in_flight[principal] -= 1

    def _check_place(self, principal: str) -> None:
        if self._wiring.in_flight.total() >= self._settings.max_in_flight:
            raise OverloadedError("the server is at work on as many requests as it takes at once")
        if (limit := self._most_of_one) <= self._wiring.in_flight[principal]:
            message = f"the server is at work on {limit} of your requests, and takes no more at once"
            raise OverloadedError(message, code="rate_limited")
