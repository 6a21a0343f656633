"""The OpenAPI schema of the API, generated from the table of operations."""

import html
import inspect
import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, TypedDict

import msgspec
from starlette.routing import compile_path

from ..present import http_status
from .admission import is_open
from .operations import Operation

Schema = dict[str, Any]

_ABOUT = (
    "Reasoning strategies as durable, inspectable runs; sessions of thoughts. All times are UTC. "
    "Where tokens are set, each request needs one, and sees only what is its principal's."
)
_EVERYWHERE = {
    "invalid_request": "The request breaks a rule; the message names the rule and the legal values.",
    "unauthorized": "The request has no valid token.",
    "forbidden_origin": "A page of another site sent the request.",
    "not_found": "A name or id in the request does not exist, or belongs to another principal.",
    "request_timeout": "The request did not arrive in time.",
    "payload_too_large": "The request is too large.",
    "misdirected_host": "The server does not have this host name.",
    "rate_limited": "Too many requests; Retry-After says when to try again.",
    "headers_too_large": "The headers are too long.",
    "internal_error": "The server's fault; its log has it under the request's id.",
    "store_unavailable": "The store does not answer, or the server has as much to do as it may.",
}
_CHANGING = {"conflict": "The run or session does not allow this now; the message says why."}
_WITH_BODY = {"unsupported_media_type": "The body is not JSON."}
_NAMED = "#/components/schemas/"
_MEMBERS = {"array": "items", "object": "additionalProperties"}
"""Maps a JSON type to the schema keyword for its items or values. Client generators need these keywords."""


class ErrorBodyDocument(TypedDict):
    """An error.

    Programs can rely on `code`. `message` says what to do. `retryable` says whether the same request may succeed later.
    `request_id` identifies the error in the server's log.
    """

    code: str
    message: str
    retryable: bool
    request_id: str


class ErrorDocument(TypedDict):
    """The reply to a request that failed."""

    error: ErrorBodyDocument


def describe_api(table: Mapping[str, Sequence[Operation]]) -> Schema:
    """Return the OpenAPI schema of the operations. The keys of the table are the tags of the operations."""
    operations = [(tag, operation) for tag, operations in table.items() for operation in operations]
    queries = dict.fromkeys(each.query for _, each in operations)
    kinds = dict.fromkeys(kind for _, each in operations for kind in (each.body, each.reply))
    named = [*queries, *(kind for kind in kinds if kind is not None), ErrorDocument]
    references, components = _public(msgspec.json.schema_components(named, ref_template=_NAMED + "{name}"))
    schema_of = dict(zip(named, references, strict=True))
    query_of = {kind: components.pop(schema_of[kind]["$ref"].removeprefix(_NAMED)) for kind in queries}
    paths: dict[str, Schema] = {}
    for tag, operation in operations:
        described = _operation(operation, tag, schema_of, query_of[operation.query])
        paths.setdefault(operation.path.replace(":path", ""), {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": {"title": "Reasonry", "description": _ABOUT, "version": version("reasonry")},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _public(schema: Any) -> Any:
    """Return a schema in the form that client generators understand."""
    match schema:
        case {"type": "array" | "object" as kind} if schema.keys().isdisjoint(("properties", _MEMBERS[kind])):
            return {**schema, _MEMBERS[kind]: {}}
        case dict():
            return {_public(name): _public(part) for name, part in schema.items()}
        case list() | tuple():
            return [*map(_public, schema)]
        case str():
            # Clients see the names without the suffix `Document`, which only makes class names unique here.
            return schema.removesuffix("Document")
        case _:
            return schema


def _operation(operation: Operation, tag: str, schema_of: Mapping[Any, Schema], query: Schema) -> Schema:
    summary, _, description = (inspect.getdoc(operation.answer) or "").partition("\n")
    described: Schema = {
        "operationId": operation.answer.__name__,
        "tags": [tag],
        "summary": summary,
        "description": description.strip(),
        "parameters": _parameters(operation, query),
        "responses": _responses(operation, schema_of, summary),
        "security": [] if is_open(operation.path) else [{}, {"token": []}],
    }
    if operation.body is not None:
        content = {"application/json": {"schema": schema_of[operation.body]}}
        described["requestBody"] = {"required": operation.needs_body, "content": content}
    return described


def _parameters(operation: Operation, query: Schema) -> list[Schema]:
    in_path = compile_path(operation.path)[2]
    of_query, required = query["properties"], query.get("required", ())
    found = [
        *(("path", name, True, of_query.get(name, {"type": "string"})) for name in in_path),
        *(("query", name, name in required, of_query[name]) for name in of_query if name not in in_path),
        *(("header", name, False, schema) for name, schema in operation.headers.items()),
    ]
    return [
        {"name": name, "in": place, "required": is_required, "schema": schema}
        for place, name, is_required, schema in found
    ]


def _responses(operation: Operation, schema_of: Mapping[Any, Schema], summary: str) -> Schema:
    schema: Schema = {} if operation.reply is None else {"schema": schema_of[operation.reply]}
    content = {"content": {operation.media_type: schema}}
    error = {"content": {"application/json": {"schema": schema_of[ErrorDocument]}}}
    everywhere = _EVERYWHERE | ({} if operation.body is None else _WITH_BODY)
    everywhere |= {} if operation.method == "GET" else _CHANGING
    responses = {http_status(code): {"description": about, **error} for code, about in everywhere.items()}
    for status, about in operation.others.items():
        brings = error if status >= 400 else content if status < 204 else {}
        responses[status] = {"description": about, **brings}
    responses[operation.status] = {"description": summary, **content}
    return {str(status): response for status, response in sorted(responses.items())}


# -- as a page


def reference_page(document: Schema) -> str:
    """Return an OpenAPI document as an HTML page without scripts, styles or other files."""
    info = document["info"]
    head = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    )
    title = html.escape(f"{info['title']} {info['version']}: the HTTP API")
    about = html.escape(info["description"])
    lines = [f"{head}<title>{title}</title><h1>{title}</h1><p>{about}</p>"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            parts = ("parameters", "requestBody", "responses")
            lines += [
                f"<h2>{method.upper()} {html.escape(path)}</h2>",
                f"<p>{html.escape(operation['summary'])} {html.escape(operation['description'])}</p>",
                _data({name: operation[name] for name in parts if operation.get(name)}),
            ]
    schemas = document["components"]["schemas"].items()
    return "\n".join([*lines, *(f'<h2 id="{name}">{name}</h2>{_data(schema)}' for name, schema in schemas)])


def _data(value: Schema) -> str:
    text = html.escape(json.dumps(value, indent=2), quote=False)
    linked = re.sub(rf"{_NAMED}(\w+)", r'<a href="#\1">\1</a>', text)
    return f"<pre>{linked}</pre>"
