"""The gate of the server, through which every request and every response passes.

A request that passes `admission` is read and answered. A refused request is not read.
"""

import itertools
import secrets
import time
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request

from ...engine.telemetry import CARRIER_FIELDS, trace_work
from ...errors import TooLargeError, UsageError
from .admission import Admission
from .context import Wiring
from .documents import REQUEST_ID, error_reply
from .metrics import METHODS, UNKNOWN, route_of

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""This policy permits only the page's own files, so a model's text cannot become a script, a style or a request."""

SECURITY_HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_NOT_KEPT = (b"cache-control", b"no-store")


class RequestGate:
    """ASGI middleware around the whole server: it admits, traces and counts requests, and adds headers to replies."""

    def __init__(self, app: Any, wiring: Wiring) -> None:
        self._app, self.wiring, self._admission = app, wiring, Admission(wiring)
        self._process, self._numbers = secrets.token_hex(6), itertools.count(1)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        # Spaces around a header's value do not belong to the value (RFC 9110, 5.5), but some HTTP parsers keep them.
        scope["headers"] = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        scope[REQUEST_ID] = request_id = f"{self._process}-{next(self._numbers):x}"
        # The span of a request belongs to the sender's trace.
        headers = Headers(scope=scope)
        carrier = {name: headers[name] for name in CARRIER_FIELDS if name in headers}
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        facts = {"http.request.method": method, "reasonry.request_id": request_id}
        with trace_work(method, "SERVER", facts, carrier) as traced:
            status = await self._answer(scope, receive, send)
            # The route names the span, since the address may contain any text.
            route = route_of(scope)
            name = method if route == UNKNOWN else f"{method} {route}"
            traced.note({"http.route": route, "http.response.status_code": status or None}, name)
            if status >= 500:
                traced.note_failure(str(status))

    async def _answer(self, scope: Any, receive: Any, send: Any) -> int:
        """Answer a request. Return the status of the reply, or 0 if no reply was sent."""
        begun, status = time.perf_counter(), 0

        def reply_begins() -> None: ...

        async def answer(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                reply_begins()
                status = message["status"]
                headers, request_id = message["headers"], scope[REQUEST_ID].encode()
                message["headers"] = [*headers, *SECURITY_HEADERS, (b"x-request-id", request_id)]
                if not any(name == b"cache-control" for name, _ in headers):
                    message["headers"].append(_NOT_KEPT)
            await send(message)

        try:
            headers = self._admission.admit(scope)
            body = await self._read_body(headers, scope, receive)
            async with self._admission.place(scope) as reply_begins:
                await self._app(scope, receive if body is None else _replay(body, receive), answer)
        except ClientDisconnect:
            # The client has disconnected: no reply would reach it, and there is no error to log.
            pass
        except Exception as error:
            response = error_reply(error, scope)
            if not status:
                await response(scope, receive, answer)
        finally:
            self.wiring.metrics.count(scope, status, begun)
        return status

    async def _read_body(self, headers: Mapping[str, str], scope: Any, receive: Any) -> bytes | None:
        """Read the body of a request. Return None if the request has no body.

        Raises:
            ClientDisconnect: The client disconnected before the whole body had arrived.
            TooLargeError: The body exceeds the limit.
            UsageError: The body is compressed.
        """
        length = headers.get("content-length")
        if length is None and "transfer-encoding" not in headers:
            return None
        if headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise UsageError("send the body as it is, not compressed", code="unsupported_media_type")
        self._check_size(int(length or 0))
        body = bytearray()
        async for part in Request(scope, receive).stream():
            body += part
            self._check_size(len(body))
        return bytes(body)

    def _check_size(self, size: int) -> None:
        limit = self.wiring.settings.max_body_bytes
        if size > limit:
            raise TooLargeError(f"the body is over {limit:,} bytes", limit=limit)


def _replay(body: bytes, receive: Any) -> Any:
    """Return an ASGI `receive` that first returns a body, and then calls the original `receive`."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replay() -> Any:
        return next(messages, None) or await receive()

    return replay
