"""Errors as OpenAI's clients read them, and the header that names runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ....errors import ReasonryError
from ...present import http_status
from ..documents import document_of_error

PREFIX: Final = "/v1/"
"""What the addresses begin with at which errors have OpenAI's shape."""

_TYPES: Final = {401: "authentication_error", 404: "invalid_request_error", 429: "rate_limit_error"}


def error_body(error: ReasonryError, request_id: str) -> dict[str, Any]:
    """Return an error in OpenAI's shape: ours, with a type and the field that it is about."""
    document = document_of_error(error)["error"]
    status = status_of(error)
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    field = document.get("field") or document.get("option")
    return {"error": {**document, "type": kind, "param": field, "request_id": request_id}}


def status_of(error: ReasonryError) -> int:
    """Return the status that an error is replied with."""
    return 404 if error.code == "model_not_found" else http_status(error.code)


def error_headers(error: ReasonryError) -> dict[str, str]:
    """Return the headers of an error that OpenAI's clients heed, and the one that names its run.

    What the engine gave up on is not worth another try; OpenAI's clients would make one, and it would be paid again.
    """
    run_id = error.details.get("run_id")
    named = run_header([run_id]) if isinstance(run_id, str) else {}
    return {"x-should-retry": "true" if error.retryable else "false", **named}


def run_header(runs: Sequence[str]) -> Mapping[str, str]:
    """Return the header that names the runs behind a reply."""
    return {"X-Reasonry-Run": ", ".join(runs)} if runs else {}
