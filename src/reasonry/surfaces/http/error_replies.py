"""Errors as responses: one shape for all, whatever went wrong."""

from __future__ import annotations

import logging
import math
import os
import traceback
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from ...errors import NotFoundError, ReasonryError, StoreError, UsageError
from ..present import error_document, http_status
from .context import REQUEST_ID
from .documents import reply

_LOG = logging.getLogger("reasonry.http")
_MAX_FRAMES = 12


def error_reply(error: ReasonryError, request_id: str) -> Response:
    """Return the response to a request that failed."""
    if isinstance(error, StoreError):
        error = _without_place(error)
    document: dict[str, Any] = error_document(error)
    document["error"]["request_id"] = request_id
    return reply(document, http_status(error.code), _headers(error))


def unexpected_error_reply(error: Exception, request_id: str) -> Response:
    """Return the response to a request that failed for a reason that is ours, and log where.

    What the error says is not logged: it may quote what a user or a model has written.
    """
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    shown = error if os.environ.get("REASONRY_DEBUG") else None
    _LOG.error("request %s failed: %s at %s", request_id, type(error).__name__, places, exc_info=shown)
    return error_reply(ReasonryError("internal error; the server's log has it under this id"), request_id)


def add_error_handlers(server: FastAPI) -> None:
    """Have whatever a route raises answered in the one shape."""

    async def answer_own(request: Request, error: Any) -> Response:
        return error_reply(error, request.scope[REQUEST_ID])

    async def answer_invalid(request: Request, error: Any) -> Response:
        wrong = [(".".join(map(str, entry["loc"][1:])), entry["msg"]) for entry in error.errors()]
        message = "; ".join(f"{field}: {reason}" for field, reason in wrong)
        return error_reply(UsageError(message, field=wrong[0][0]), request.scope[REQUEST_ID])

    async def answer_http(request: Request, error: Any) -> Response:
        if error.status_code != 405:
            missing = NotFoundError("there is nothing at this address; /api/openapi.json lists what there is")
            return error_reply(missing, request.scope[REQUEST_ID])
        methods = ", ".join(_methods_of(server, request.scope["path"]))
        refusal = UsageError(f"this address takes {methods}", code="method_not_allowed")
        response = error_reply(refusal, request.scope[REQUEST_ID])
        response.headers["Allow"] = methods
        return response

    server.add_exception_handler(ReasonryError, answer_own)
    server.add_exception_handler(RequestValidationError, answer_invalid)
    server.add_exception_handler(HTTPException, answer_http)


def _methods_of(server: FastAPI, path: str) -> list[str]:
    """Return the methods that an address takes, by the schema; the page's own take GET."""
    operations = [
        method.upper()
        for template, methods in server.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in methods
    ]
    return sorted(set(operations)) or ["GET"]


def _without_place(error: StoreError) -> StoreError:
    """Return an error of the store without the path of its file, which is nobody's business here."""
    details = dict(error.details)
    path = str(details.pop("path", ""))
    message = error.message.replace(path, "of this server") if path else error.message
    code, after = error.code, error.retry_after_s
    return StoreError(message, code=code, retryable=error.retryable, retry_after_s=after, **details)


def _headers(error: ReasonryError) -> dict[str, str]:
    headers: dict[str, str] = {}
    if error.code == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    after = getattr(error, "retry_after_s", None) or error.details.get("retry_after_s")
    if isinstance(after, int | float) and math.isfinite(after):
        headers["Retry-After"] = str(max(1, math.ceil(after)))
    return headers
