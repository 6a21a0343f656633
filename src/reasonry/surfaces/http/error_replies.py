"""Errors as responses: one shape for all, whatever went wrong; under `/v1` it is OpenAI's."""

from __future__ import annotations

import logging
import math
import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from starlette.responses import Response

from ...errors import ReasonryError
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


def _headers(error: ReasonryError) -> dict[str, str]:
    headers: dict[str, str] = {}
    if error.code == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    if error.code == "method_not_allowed":
        headers["Allow"] = ", ".join(error.details["choices"])
    after = getattr(error, "retry_after_s", None) or error.details.get("retry_after_s")
    if isinstance(after, int | float) and math.isfinite(after):
        headers["Retry-After"] = str(max(1, math.ceil(after)))
    return headers
