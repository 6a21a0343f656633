"""The API's schema: FastAPI's, made true of what holds for every route alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi

from ...core.names import did_you_mean
from ...errors import UsageError
from ..present import http_status
from .documents import describe_reply, object_schema

ERROR_SCHEMA = object_schema(
    {
        "error": object_schema(
            {
                "code": {"type": "string", "description": "Stable; what programs branch on."},
                "message": {"type": "string", "description": "What is wrong, and what to do about it."},
                "retryable": {
                    "type": "boolean",
                    "description": "Whether the same request may succeed later.",
                },
                "request_id": {"type": "string", "description": "Under which the server's log has it."},
            }
        )
    }
)

_EVERYWHERE = {
    "invalid_request": "The request breaks a rule; the message says which, and what is legal.",
    "unauthorized": "The server asks for a token, and there is none.",
    "forbidden_origin": "A page of another site sent the request.",
    "not_found": "There is nothing of a name or id in the request, or it is another's.",
    "request_timeout": "The request did not come in whole, in time.",
    "payload_too_large": "What the request brings is too large.",
    "misdirected_host": "The server is not called so.",
    "rate_limited": "Too many requests; Retry-After says when to try again.",
    "headers_too_large": "The headers are too long.",
    "internal_error": "The server's fault; its log has it under the request's id.",
    "store_unavailable": "The store does not answer, or the server has as much to do as it may.",
}
_WITH_BODY = {"unsupported_media_type": "The body is not JSON."}
_WITHOUT_TOKEN = frozenset({"/healthz"})


def add_schema(server: FastAPI) -> None:
    """Have the schema say what the gate and the error handlers do for every route."""

    def make() -> dict[str, Any]:
        if server.openapi_schema is None:
            schema = get_openapi(
                title=server.title,
                version=server.version,
                description=server.description,
                routes=server.routes,
                separate_input_output_schemas=False,
            )
            server.openapi_schema = _complete(schema)
        return server.openapi_schema

    server.openapi = make


def _complete(schema: dict[str, Any]) -> dict[str, Any]:
    components = schema.setdefault("components", {})
    components["schemas"] = {
        name: part for name, part in components.get("schemas", {}).items() if "ValidationError" not in name
    } | {"Error": ERROR_SCHEMA}
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            responses = operation["responses"]
            responses.pop("422", None)
            errors = _EVERYWHERE | (_WITH_BODY if "requestBody" in operation else {})
            for code, about in errors.items():
                responses.setdefault(str(http_status(code)), _error(about))
            operation["security"] = [] if path in _WITHOUT_TOKEN else [{}, {"token": []}]
    return schema


def _error(about: str) -> dict[str, Any]:
    return describe_reply({"$ref": "#/components/schemas/Error"}, about)


def error_responses(statuses: Mapping[int, str]) -> dict[int | str, dict[str, Any]]:
    """Return a route's `responses` for errors that only some routes have, by status."""
    return {status: _error(about) for status, about in statuses.items()}


async def check_query(request: Request) -> None:
    """Make sure that a request has no query parameters but those of its route, each of them once.

    Raises:
        UsageError: It has.
    """
    if not request.scope["query_string"]:
        return
    known = _query_names(request.scope["route"].dependant)
    found = [name for name, _ in request.query_params.multi_items()]
    for name in found:
        if name not in known:
            message = f"there is no query parameter {name[:60]!r}.{did_you_mean(name, known)}"
            raise UsageError(message, field=name[:60], choices=sorted(known))
        if found.count(name) > 1:
            raise UsageError(f"{name} is there twice", field=name)


def _query_names(dependant: Dependant) -> set[str]:
    names = {field.alias for field in dependant.query_params}
    for inner in dependant.dependencies:
        names |= _query_names(inner)
    return names
