"""Errors as responses: one shape for all, whatever went wrong; under `/v1` it is OpenAI's."""

from __future__ import annotations

import logging
import math
import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from ...errors import NotFoundError, ReasonryError, UsageError
from ..present import http_status
from .context import REQUEST_ID
from .documents import document_of_error, reply
from .openai import replies as openai

_LOG = logging.getLogger("reasonry.http")
_MAX_FRAMES = 12


def error_reply(error: ReasonryError, scope: Mapping[str, Any]) -> Response:
    """Return the response to a request that failed."""
    request_id, headers = scope[REQUEST_ID], _headers(error)
    if scope["path"].startswith(openai.PREFIX):
        document = openai.error_body(error, request_id)
        return reply(document, openai.status_of(error), {**headers, **openai.error_headers(error)})
    document = document_of_error(error)
    document["error"]["request_id"] = request_id
    return reply(document, http_status(error.code), headers)


def unexpected_error_reply(error: Exception, scope: Mapping[str, Any]) -> Response:
    """Return the response to a request that failed for a reason that is ours, and log where.

    What the error says is not logged: it may quote what a user or a model has written.
    """
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    shown = error if os.environ.get("REASONRY_DEBUG") else None
    _LOG.error("request %s failed: %s at %s", scope[REQUEST_ID], type(error).__name__, places, exc_info=shown)
    return error_reply(ReasonryError("internal error; the server's log has it under this id"), scope)


def add_error_handlers(server: FastAPI) -> None:
    """Have whatever a route raises answered in the one shape."""

    async def answer_own(request: Request, error: Any) -> Response:
        return error_reply(error, request.scope)

    async def answer_invalid(request: Request, error: Any) -> Response:
        wrong = [(".".join(map(str, entry["loc"][1:])), entry["msg"]) for entry in error.errors()]
        message = "; ".join(f"{field}: {reason}" for field, reason in wrong)
        return error_reply(UsageError(message, field=wrong[0][0]), request.scope)

    async def answer_http(request: Request, error: Any) -> Response:
        if error.status_code != 405:
            missing = NotFoundError("there is nothing at this address; /api/openapi.json lists what there is")
            return error_reply(missing, request.scope)
        methods = ", ".join(_methods_of(server, request.scope["path"]))
        refusal = UsageError(f"this address takes {methods}", code="method_not_allowed")
        response = error_reply(refusal, request.scope)
        response.headers["Allow"] = methods
        return response

    async def raise_again(_: Request, error: Exception) -> Response:
        # The gate logs it and answers; Starlette would answer by itself.
        raise error

    server.add_exception_handler(ReasonryError, answer_own)
    server.add_exception_handler(RequestValidationError, answer_invalid)
    server.add_exception_handler(HTTPException, answer_http)
    server.add_exception_handler(Exception, raise_again)


def _methods_of(server: FastAPI, path: str) -> list[str]:
    """Return the methods that an address takes, by the schema; the page's own take GET."""
    operations = [
        method.upper()
        for template, methods in server.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in methods
    ]
    return sorted(set(operations)) or ["GET"]


def _headers(error: ReasonryError) -> dict[str, str]:
    headers: dict[str, str] = {}
    if error.code == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    after = getattr(error, "retry_after_s", None) or error.details.get("retry_after_s")
    if isinstance(after, int | float) and math.isfinite(after):
        headers["Retry-After"] = str(max(1, math.ceil(after)))
    return headers
