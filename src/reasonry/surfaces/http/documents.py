"""Documents that come in and go out: JSON, read and written by msgspec, described in the API's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from fastapi import Request, Response
from msgspec import Struct

from ...errors import UsageError
from ...masking import SECRETS

T = TypeVar("T", bound=Struct)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def reply(document: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a JSON document as a response, without the keys that are in use here."""
    body = SECRETS.mask_line(_encode(document))
    return Response(body, status, headers, media_type="application/json")


async def read_json(request: Request) -> Any:
    """Return the JSON document that a request brings.

    Raises:
        UsageError: It brings none.
    """
    try:
        return _decode(await request.body())
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UsageError("the body must be a JSON document", field="body") from None


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
    (schema,), definitions = msgspec.json.schema_components([form], ref_template="#/$defs/{name}")
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {**schema, "$defs": definitions}}},
        }
    }
