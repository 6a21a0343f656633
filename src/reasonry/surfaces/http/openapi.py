"""The API's schema in OpenAPI's terms, made of the table of its operations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypedDict

import msgspec

from ..present import http_status
from .documents import snake_name
from .operations import Operation

Document = dict[str, Any]

_ABOUT = (
    "Reasoning strategies as durable, inspectable runs; sessions of thoughts. All times are UTC. "
    "Where tokens are set, each request needs one, and sees only what is its principal's."
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
_TEXT: Document = {"type": "string"}
_HEADERS: Mapping[str, Document] = {"Idempotency-Key": {**_TEXT, "minLength": 1, "maxLength": 200}}
"""Schemas of headers that are not just any text."""


class ErrorBody(TypedDict):
    """What went wrong.

    `code` is stable: programs branch on it. `message` says what to do. `retryable`: whether the same request may
    succeed later. `request_id`: under which the server's log has it.
    """

    code: str
    message: str
    retryable: bool
    request_id: str


class Error(TypedDict):
    """What is returned in place of anything else."""

    error: ErrorBody


def describe_api(table: Mapping[str, Sequence[Operation]]) -> Document:
    """Return the schema of the operations under each tag."""
    operations = [(tag, operation) for tag, operations in table.items() for operation in operations]
    kinds: list[Any] = [Error]
    for _, operation in operations:
        kinds += [kind for kind in (operation.query, operation.body, operation.reply) if kind is not None]
    schemas, parts = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(kinds, schemas, strict=True))
    components: Document = {name: _in_snake(part) for name, part in parts.items()}
    paths: dict[str, Document] = {}
    for tag, operation in operations:
        query = components[_name_of(schema_of[operation.query])]
        described = _operation(operation, tag, schema_of, query)
        paths.setdefault(operation.path.replace(":path", ""), {})[operation.method.lower()] = described
    queries = {_name_of(schema_of[operation.query]) for _, operation in operations}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Reasonry", "description": _ABOUT, "version": version("reasonry")},
        "paths": paths,
        "components": {
            "schemas": {name: part for name, part in components.items() if name not in queries},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _in_snake(schema: Document) -> Document:
    """Return the schema of a document with its members in snake case."""
    if "properties" not in schema:
        return schema
    required = [snake_name(name) for name in schema.get("required", ())]
    properties = {snake_name(name): member for name, member in schema["properties"].items()}
    return {**schema, "properties": properties, "required": required}


def _name_of(reference: Document) -> str:
    return reference["$ref"].rpartition("/")[2]


def _operation(
    operation: Operation, tag: str, schema_of: Mapping[Any, Document], query: Document
) -> Document:
    summary, _, description = (inspect.getdoc(operation.answer) or "").partition("\n")
    described: Document = {
        "operationId": f"{tag}_{operation.answer.__name__}",
        "tags": [tag],
        "summary": summary,
        "description": description.strip(),
        "parameters": _parameters(operation, query),
        "responses": _responses(operation, schema_of, summary),
        "security": [] if operation.path in _WITHOUT_TOKEN else [{}, {"token": []}],
    }
    if operation.body is not None:
        content = {"application/json": {"schema": schema_of[operation.body]}}
        described["requestBody"] = {"required": operation.needs_body, "content": content}
    return described


def _parameters(operation: Operation, query: Document) -> list[Document]:
    return [
        *(
            {"name": name, "in": "path", "required": True, "schema": _TEXT}
            for name in re.findall(r"{(\w+)", operation.path)
        ),
        *(
            {"name": name, "in": "query", "required": name in query["required"], "schema": schema}
            for name, schema in query["properties"].items()
        ),
        *(
            {"name": name, "in": "header", "required": False, "schema": _HEADERS.get(name, _TEXT)}
            for name in operation.headers
        ),
    ]


def _responses(operation: Operation, schema_of: Mapping[Any, Document], summary: str) -> Document:
    schema: Document = {} if operation.reply is None else {"schema": schema_of[operation.reply]}
    content = {"content": {operation.media_type: schema}}
    error = {"content": {"application/json": {"schema": schema_of[Error]}}}
    everywhere = _EVERYWHERE | ({} if operation.body is None else _WITH_BODY)
    responses = {http_status(code): {"description": about, **error} for code, about in everywhere.items()}
    for status, about in operation.others.items():
        brings = error if status >= 400 else content if status < 204 else {}
        responses[status] = {"description": about, **brings}
    responses[operation.status] = {"description": summary, **content}
    return {str(status): response for status, response in sorted(responses.items())}
