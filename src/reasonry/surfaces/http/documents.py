"""Documents that come in and go out: JSON, read and written by msgspec."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from ...errors import ReasonryError, StoreError, UsageError
from ...reading.names import did_you_mean
from ..present import error_document
from .spelling import spell_message

S = TypeVar("S", bound=Struct)
T = TypeVar("T")

KEY = "idempotency-key"
"""The header with which a request that is sent again begins nothing new."""
MAX_KEY_CHARS = 200

MAX_DEPTH = 64
"""How deep lists and objects of a body may lie in each other."""

_BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
"""A text, or a bracket outside of one."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON document as a response."""
    return Response(_encode(document), status, headers, media_type="application/json")


def document_of_error(error: ReasonryError) -> dict[str, Any]:
    """Return an error as a document, in words of requests; where the store's file is is nobody's business here."""
    document = error_document(error)
    shown = document["error"]
    if isinstance(error, StoreError) and (path := shown.pop("path", None)):
        shown["message"] = shown["message"].replace(str(path), "of this server")
    shown["message"] = spell_message(shown["message"])
    return document


def read_key(request: Request) -> str | None:
    """Return the key of a request, if it has one.

    Raises:
        UsageError: It is empty, or too long.
    """
    key = request.headers.get(KEY)
    if key is not None and not 0 < len(key) <= MAX_KEY_CHARS:
        raise UsageError(f"Idempotency-Key: from 1 to {MAX_KEY_CHARS} characters", field="Idempotency-Key")
    return key


async def read_json(request: Request) -> Any:
    """Return the JSON document that a request brings.

    Raises:
        UsageError: It brings none, or one that is too deep; `unsupported_media_type`: it says it is something else.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        # A page of another site cannot send this type unasked.
        raise UsageError(
            "send the body as JSON, with the header Content-Type: application/json",
            code="unsupported_media_type",
        )
    body = await request.body()
    try:
        if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _depth(body) > MAX_DEPTH:
            raise UsageError(f"the body is more than {MAX_DEPTH} levels deep", field="body")
        return _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UsageError("the body must be a JSON document", field="body") from None


def _depth(body: bytes) -> int:
    """Return how deep brackets lie in each other."""
    depth = deepest = 0
    for part in _BRACKETS.finditer(body):
        match part[0]:
            case b"[" | b"{":
                depth += 1
                deepest = max(deepest, depth)
            case b"]" | b"}":
                depth -= 1
            case _:
                pass
    return deepest


def read_query(request: Request, form: type[S]) -> S:
    """Return the query of a request as a Struct, each of whose members it has once at most.

    Raises:
        UsageError: It has other parameters, one of them twice, or one that is not of its type.
    """
    found, known = dict[str, str](), form.__struct_encode_fields__
    for name, value in request.query_params.multi_items():
        if name not in known:
            message = f"there is no query parameter {name[:60]!r}.{did_you_mean(name, known)}"
            raise UsageError(message, field=name[:60], choices=sorted(known))
        if name in found:
            raise UsageError(f"{name} is there twice", field=name)
        found[name] = value
    return read_form(found, form, strict=False)


def read_form(document: Any, form: type[T], *, strict: bool = True) -> T:
    """Return a document as the type that it must be.

    Args:
        strict: Whether numbers and truth values must not come as text.

    Raises:
        UsageError: It is not one; `field` is what is wrong in it, or `body` as a whole.
    """
    try:
        return msgspec.convert(document, form, strict=strict)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$")
        field = path.rstrip("`").lstrip(".") or reason.rpartition("`")[0].rpartition("`")[2] or "body"
        raise UsageError(f"{field}: {reason}", field=field) from None
    except RecursionError:
        raise UsageError("the body is nested too deeply", field="body") from None
