"""Documents that come in and go out: JSON, read and written by msgspec, described in the API's schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from fastapi import Request, Response
from msgspec import Struct

from ...core.strategy import inlined_schema
from ...errors import ReasonryError, StoreError, UsageError
from ..present import error_document
from .spelling import spell_message

T = TypeVar("T", bound=Struct)

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


async def read_body(request: Request, form: type[T]) -> T:
    """Return the JSON document that a request brings as the Struct that it must be.

    Raises:
        UsageError: It is not one; the message says what is wrong where.
    """
    document = await read_json(request)
    try:
        return msgspec.convert(document, form)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UsageError(f"the body is not as it must be: {error}", field="body") from None


def describe_body(form: type[Struct]) -> dict[str, Any]:
    """Return what says in the API's schema what `read_body` takes; a route's `openapi_extra`."""
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": inlined_schema(form)}}}
    }


def describe_reply(schema: Mapping[str, Any], about: str) -> dict[str, Any]:
    """Return what says in the API's schema what a response brings; a value of a route's `responses`."""
    return {"description": about, "content": {"application/json": {"schema": dict(schema)}}}


def object_schema(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the schema of an object that has some members, and may have others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
    }
