"""Requests as spans: what a request begins, in this process or another, is seen in the trace of whoever sent it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from ...engine.telemetry import CARRIED, trace_work
from .metrics import METHODS, UNKNOWN, route_of

_CARRIED = {name.encode() for name in CARRIED}


@contextmanager
def trace_request(scope: Any, request_id: str) -> Generator[Callable[[int], None]]:
    """Trace a request; what is yielded takes the status that it was answered with, or 0."""
    carried = {name.decode(): text.decode("latin-1") for name, text in scope["headers"] if name in _CARRIED}
    method = scope["method"] if scope["method"] in METHODS else "_OTHER"
    facts = {"http.request.method": method, "reasonry.request_id": request_id}
    with trace_work(method, "SERVER", facts, carried) as traced:

        def note_reply(status: int) -> None:
            # The address itself may be anything.
            route = route_of(scope)
            name = method if route == UNKNOWN else f"{method} {route}"
            traced.note({"http.route": route, "http.response.status_code": status or None}, name)
            if status >= 500:
                traced.note_failure(str(status))

        yield note_reply
