"""What every request goes through, and every response: the one door of the server.

In this order: whom it is for and from (`hosts`), who asks (`access`), how often (`request_rates`), how much is under
way, whether the store answers (`health`), what it brings. Nothing is read or done for a request that is turned away.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import time
from collections.abc import Mapping
from typing import Any

from ...engine.telemetry import is_traced
from ...errors import OverloadedError, ReasonryError, TooLargeError, UsageError
from .access import OPEN_PATHS, find_principal
from .context import PRINCIPAL, REQUEST_ID, Wiring
from .error_replies import error_reply, unexpected_error_reply
from .hosts import check_host, check_origin
from .openai.replies import KEY
from .protocol import MAX_HEAD_BYTES
from .request_rates import RequestRates
from .request_traces import trace_request

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Nothing but the page's own files; no text of a model can become a script, a style or a request."""

SECURITY_HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_NOT_KEPT = (b"cache-control", b"no-store")
_NEEDS_STORE = ("/api/", "/v1/", "/mcp")
_BEGINS_RUN = ("/v1/chat/completions", "/v1/responses")
"""Nothing is read or checked of what cannot be begun: to refuse must cost next to nothing where there is too much.

A request with a key may have begun its run before.
"""


class RequestGate:
    """ASGI middleware around everything else."""

    def __init__(self, app: Any, wiring: Wiring) -> None:
        settings = wiring.settings
        self._app, self._wiring, self._settings = app, wiring, settings
        self._process, self._numbers = secrets.token_hex(6), itertools.count(1)
        self._rates = RequestRates(settings.requests_per_minute)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = scope[REQUEST_ID] = f"{self._process}-{next(self._numbers):x}"
        if not is_traced():
            await self._answer(scope, receive, send)
            return
        with trace_request(scope, request_id) as note_reply:
            note_reply(await self._answer(scope, receive, send))

    async def _answer(self, scope: Any, receive: Any, send: Any) -> int:
        """Answer a request; return with what status, 0 if with none."""
        request_id = scope[REQUEST_ID]
        begun, status = time.perf_counter(), 0
        waiting = self._wiring.health.wait()

        async def answer(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                waiting.end()
                status = message["status"]
                message["headers"] = _complete(message["headers"], request_id)
            await send(message)

        self._wiring.in_flight += 1
        try:
            headers = _headers(scope)
            self._let_in(scope, headers)
            body = await self._read_body(headers, receive)
            if scope["path"].startswith(_NEEDS_STORE):
                waiting.begin()
            await self._app(scope, receive if body is None else _replay(body, receive), answer)
        except asyncio.CancelledError:
            await error_reply(waiting.fault(), scope)(scope, receive, answer)
        except ReasonryError as error:
            if not status:
                await error_reply(error, scope)(scope, receive, answer)
        except Exception as error:
            response = unexpected_error_reply(error, scope)
            if not status:
                await response(scope, receive, answer)
        finally:
            waiting.end()
            self._wiring.in_flight -= 1
            self._wiring.metrics.count(scope, status, begun)
        return status

    def _let_in(self, scope: Any, headers: Mapping[str, str]) -> None:
        """Make sure that a request may be answered, and note whose it is."""
        settings, path = self._settings, scope["path"]
        check_host(headers.get("host"), settings)
        check_origin(headers)
        principal = scope[PRINCIPAL] = find_principal(settings.tokens, path, headers.get("authorization"))
        self._rates.check(principal)
        self._rates.count(principal)
        if self._wiring.in_flight > settings.max_in_flight and path not in OPEN_PATHS:
            raise OverloadedError(
                "the server is at work on as many requests as it takes", retryable=True, retry_after_s=1
            )
        if path.startswith(_NEEDS_STORE):
            self._wiring.health.check()
        if path in _BEGINS_RUN and scope["method"] == "POST" and KEY not in headers:
            self._wiring.supervisor.check_room()

    async def _read_body(self, headers: Mapping[str, str], receive: Any) -> bytes | None:
        """Return what a request brings; None: nothing.

        Raises:
            TooLargeError: It is more than a request may bring.
            UsageError: It is compressed.
        """
        length = headers.get("content-length")
        if length is None and "transfer-encoding" not in headers:
            return None
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding != "identity":
            raise UsageError("send the body as it is, not compressed", code="unsupported_media_type")
        limit = self._settings.max_body_bytes
        if length is not None and int(length) > limit:
            raise _too_large(limit)
        parts, size = list[bytes](), 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise _too_large(limit)
            if not message.get("more_body"):
                return b"".join(parts)


def _headers(scope: Any) -> dict[str, str]:
    """Return the headers of a request; of those that stand there twice, the first.

    Raises:
        TooLargeError: They are too long.
        UsageError: There are two hosts.
    """
    headers: dict[str, str] = {}
    size = len(scope["path"])
    for name, value in scope["headers"]:
        size += len(name) + len(value)
        if name == b"host" and "host" in headers:
            raise UsageError("the header Host is there twice", field="Host")
        headers.setdefault(name.decode("latin-1"), value.strip(b" \t").decode("latin-1"))
    if size > MAX_HEAD_BYTES:
        raise TooLargeError("the headers are too long", code="headers_too_large", limit=MAX_HEAD_BYTES)
    return headers


def _too_large(limit: int) -> TooLargeError:
    return TooLargeError(f"the body is over {limit:,} bytes", limit=limit)


def _replay(body: bytes, receive: Any) -> Any:
    """Return what gives a body that has been read, and then whatever else comes."""
    is_given = False

    async def replay() -> Any:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _complete(headers: Any, request_id: str) -> list[tuple[bytes, bytes]]:
    complete = [*headers, *SECURITY_HEADERS, (b"x-request-id", request_id.encode())]
    if not any(name == b"cache-control" for name, _ in headers):
        complete.append(_NOT_KEPT)
    return complete
