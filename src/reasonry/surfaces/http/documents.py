"""Reads the JSON documents of requests, and writes the JSON documents of replies, with msgspec.

All errors have the same members. Under `/v1`, an error has additional members that OpenAI's clients expect.
"""

import hashlib
import logging
import math
import os
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from ...core.budget import MAX_INT
from ...errors import ReasonryError, StoreError, TooLargeError, UsageError
from ...guided.tool_arguments import not_a_choice
from ...records import RequestKey, now_ms
from ...system.masking import SECRETS
from ...text import did_you_mean, display_line
from ..present import error_document, http_status

_LOG = logging.getLogger("reasonry.http")
_MAX_FRAMES = 12
_LOGGED_CHARS = 300

Document = dict[str, Any]
S = TypeVar("S", bound=Struct)
T = TypeVar("T")

REQUEST_ID = "reasonry.request_id"
"""The key in an ASGI scope for the id of the request. The log shows this id."""
_DOCUMENT = "reasonry.document"
"""The key in an ASGI scope for the JSON document that was read from the request."""
KEY = "idempotency-key"
"""The header for the idempotency key of a request. A repeated request with the same key starts no second run."""
MAX_KEY_CHARS = 200
RUN = "X-Reasonry-Run"
"""The header of a reply that contains the id of the run behind the reply."""

MAX_DEPTH = 64
"""How many levels deep lists and objects may be nested in the body of a request."""

_OPENAI = "/v1/"
_TYPES = {401: "authentication_error", 429: "rate_limit_error"}

_encode = msgspec.json.Encoder().encode
_decode_number = msgspec.json.Decoder(float).decode


def _whole_number(text: str) -> float:
    """Parse a JSON number with a fraction or an exponent. A whole number, such as 2.0, becomes an int."""
    number = _decode_number(text)
    return int(number) if number.is_integer() and abs(number) <= MAX_INT else number


_decode = msgspec.json.Decoder(float_hook=_whole_number).decode


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response whose body is the document as JSON."""
    return Response(_encode(document), status, headers, media_type="application/json")


def page_headers(*mark: Any) -> dict[str, str]:
    """Return the cache headers of a page. The ETag is a digest of `mark`, which identifies the version of the page."""
    etag = hashlib.sha256(_encode(mark)).hexdigest()[:24]
    return {"ETag": f'"{etag}"', "Cache-Control": "private, no-cache"}


async def read_key(request: Request, asked: bytes = b"") -> RequestKey | None:
    """Return the idempotency key of a request, if any.

    Args:
        asked: The content that must be the same in all requests with this key. Defaults to the path and the body.

    Raises:
        UsageError: The key is empty or too long.
    """
    key = request.headers.get(KEY)
    if key is not None and not 0 < len(key) <= MAX_KEY_CHARS:
        raise UsageError(f"Idempotency-Key: from 1 to {MAX_KEY_CHARS} characters", field="Idempotency-Key")
    asked = asked or request.url.path.encode() + b"\n" + await request.body()
    return None if key is None else RequestKey.of(key, asked, now_ms())


async def read_json(request: Request) -> Any:
    """Return the JSON document in a request.

    Raises:
        UsageError: The body is missing, invalid or nested too deeply, or its type is wrong (`unsupported_media_type`).
    """
    if _DOCUMENT in request.scope:
        return request.scope[_DOCUMENT]
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        # A browser asks this server before it sends this type for a page of another site (CORS).
        message = "send the body as JSON, with the header Content-Type: application/json"
        raise UsageError(message, code="unsupported_media_type")
    try:
        document = _decode(await request.body())
        if _is_deeper(document, MAX_DEPTH):
            raise UsageError(f"the body is more than {MAX_DEPTH} levels deep", field="body")
        request.scope[_DOCUMENT] = document
        return document
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UsageError("the body must be a JSON document", field="body") from None


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    parts = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(part, levels - 1) for part in parts)


def read_query(request: Request, form: type[S]) -> S:
    """Convert the parameters in a request's query and path to a Struct of the type `form`.

    Raises:
        UsageError: A parameter is unknown, repeated, or of the wrong type.
    """
    found, known = dict[str, str](request.path_params), form.__struct_encode_fields__
    for name, value in request.query_params.multi_items():
        if name not in known:
            message = f"there is no query parameter {name[:60]!r}.{did_you_mean(name, known)}"
            raise UsageError(message, field=name[:60], choices=sorted(known))
        if name in found:
            raise UsageError(f"{name} is repeated", field=name)
        found[name] = value
    return read_form(found, form, strict=False)


def read_form(document: Any, form: type[T], *, strict: bool = True) -> T:
    """Convert a document to an instance of the type `form`.

    Args:
        strict: Whether to refuse numbers and booleans written as text.

    Raises:
        UsageError: The document does not fit the type. `field` is the name of the wrong member, or `body`.
        TooLargeError: A text in the document is too long.
    """
    try:
        return msgspec.convert(document, form, strict=strict)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        named = reason.rpartition("`")[0].rpartition("`")[2] if reason.startswith("Object ") else ""
        field = path.rstrip("`").lstrip(".") or named or "body"
        if reason.startswith("Invalid enum value") and (choices := _choices_of(form, field)):
            raise not_a_choice(field, str(document[field]), choices) from None
        if reason.startswith("Expected `str` of length <= "):
            raise TooLargeError(f"{field}: {reason}", field=field) from None
        if named == field and "unknown field" in reason:
            hint = did_you_mean(named, getattr(form, "__struct_encode_fields__", ()))
            raise UsageError(f"there is no member {named[:60]!r}.{hint}", field=field) from None
        raise UsageError(f"{field}: {reason}", field=field) from None


def _choices_of(form: Any, field: str) -> list[object]:
    """Return the choices of the member named `field`. If the member is not a `Literal`, return an empty list."""
    kind = get_type_hints(form).get(field)
    return [
        choice for part in (kind, *get_args(kind)) if get_origin(part) is Literal for choice in get_args(part)
    ]


# -- errors


def error_reply(error: Exception, scope: Mapping[str, Any]) -> Response:
    """Log why a request was refused or failed, and return the response that reports the error."""
    known = note_error(error, scope)
    return reply(error_body(known, scope), http_status(known.code), _headers(known, scope))


def note_error(error: Exception, scope: Mapping[str, Any]) -> ReasonryError:
    """Log why a request was refused or failed. Return the error to report to the client.

    The text of an unexpected error may quote a user or a model. The log omits this text unless `REASONRY_DEBUG` is set.
    """
    request_id, headers = scope[REQUEST_ID], Headers(scope=dict(scope))
    if isinstance(error, ReasonryError):
        asked = f"{scope['method']} {scope['path']} by {headers.get('user-agent', 'an unnamed client')}"
        why = f"{http_status(error.code)} {error.code}: {error.message} ({asked})"
        _LOG.warning("request %s refused: %s", request_id, display_line(SECRETS.mask(why), _LOGGED_CHARS))
        return error
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    shown = error if os.environ.get("REASONRY_DEBUG") else None
    _LOG.error("request %s failed: %s at %s", request_id, type(error).__name__, places, exc_info=shown)
    return ReasonryError("internal error; the server's log has it under this request_id")


def error_body(error: ReasonryError, scope: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document that describes an error, without the path of the store's file."""
    document = error_document(error)
    shown = document["error"]
    if isinstance(error, StoreError) and (path := shown.pop("path", None)):
        shown["message"] = shown["message"].replace(str(path), "of this server")
    shown["request_id"] = scope[REQUEST_ID]
    if scope["path"].startswith(_OPENAI):
        status = http_status(error.code)
        shown["type"] = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
        shown["param"] = shown.get("field") or shown.get("option")
    return document


def _headers(error: ReasonryError, scope: Mapping[str, Any]) -> dict[str, str]:
    headers: dict[str, str] = {}
    if error.code == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    if error.code == "method_not_allowed":
        headers["Allow"] = ", ".join(error.details["choices"])
    after = getattr(error, "retry_after_s", None) or error.details.get("retry_after_s")
    if isinstance(after, int | float) and math.isfinite(after):
        headers["Retry-After"] = str(max(1, math.ceil(after)))
    if scope["path"].startswith(_OPENAI):
        # OpenAI's clients would repeat a request that the engine gave up on, at the user's expense.
        headers["x-should-retry"] = "true" if error.retryable else "false"
        if isinstance(run_id := error.details.get("run_id"), str):
            headers[RUN] = run_id
    return headers
