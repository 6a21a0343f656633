"""Errors as responses: one shape for all, whatever went wrong."""

from __future__ import annotations

import logging
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ...errors import NotFoundError, ReasonryError, UsageError
from ..present import error_document, http_status
from .context import REQUEST_ID
from .documents import reply


def error_reply(error: ReasonryError, request_id: str, headers: dict[str, str] | None = None) -> Response:
    """Return the response to a request that failed."""
    document: dict[str, Any] = error_document(error)
    document["error"]["request_id"] = request_id
    return reply(document, http_status(error.code), headers)


def add_error_handlers(server: FastAPI) -> None:
    """Have whatever a route raises answered in the one shape."""

    async def on_own(request: Request, error: Any) -> Response:
        return error_reply(error, request.scope[REQUEST_ID])

    async def on_invalid(request: Request, error: Any) -> Response:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"][1:]))
        return error_reply(UsageError(f"{field}: {first['msg']}", field=field), request.scope[REQUEST_ID])

    async def on_http(request: Request, error: Any) -> Response:
        found = NotFoundError("there is nothing at this address; /api/openapi.json has what there is")
        return error_reply(found, request.scope[REQUEST_ID])

    async def on_any(request: Request, error: Exception) -> Response:
        request_id = request.scope[REQUEST_ID]
        logging.getLogger("reasonry").error("request %s failed", request_id, exc_info=error)
        return error_reply(ReasonryError("internal error; the server's log has it by its id"), request_id)

    server.add_exception_handler(ReasonryError, on_own)
    server.add_exception_handler(RequestValidationError, on_invalid)
    server.add_exception_handler(HTTPException, on_http)
    server.add_exception_handler(Exception, on_any)
