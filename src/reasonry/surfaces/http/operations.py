"""Describes each operation of the HTTP API (parameters, body, reply), and calls the function of the operation."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, get_type_hints

from msgspec import Struct
from msgspec.structs import fields
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from ...errors import UsageError
from .context import Wiring
from .documents import read_form, read_json, read_query


class NoQuery(Struct, frozen=True):
    """The type of the query for an operation that takes no query parameters."""


class Operation(Struct):
    """An operation of the API: one HTTP method of one path.

    Attributes:
        path: The path in the syntax of Starlette's routes.
        answer: The function that answers a request. It takes the context, and may take the typed `query` and `body`.
            A path parameter is in `query` if the type of `query` has this member, and otherwise an argument.
        reply: The type of the returned document.
        status: The status of a successful reply.
        others: Maps each additional status of a reply, including errors, to its description.
        headers: Maps each request header that the function reads to the JSON schema of the header.
        reads: The function that converts the JSON document of a request to the type of the body.
        media_type: The media type of the reply.
        checks_query: Whether unknown query parameters are refused.
        query: The type of the query.
        body: The type of the body, if any.
        needs_body: Whether a request must have a body. A body is optional if all its members are optional.
    """

    method: str
    path: str
    answer: Callable[..., Awaitable[ASGIApp]]
    reply: Any = None
    status: int = 200
    others: Mapping[int, str] = {}
    headers: Mapping[str, Mapping[str, Any]] = {}
    reads: Callable[[Any, Any], Any] = read_form
    media_type: str = "application/json"
    checks_query: bool = True
    query: type[Struct] = NoQuery
    body: Any = None
    needs_body: bool = False

    def __post_init__(self) -> None:
        """Set `query`, `body` and `needs_body` from the signature of `answer`."""
        takes = get_type_hints(self.answer)
        self.query, self.body = takes.get("query", NoQuery), takes.get("body")
        is_form = isinstance(self.body, type) and issubclass(self.body, Struct)
        self.needs_body = any(each.required for each in fields(self.body)) if is_form else bool(self.body)

    async def arguments(self, request: Request) -> dict[str, Any]:
        """Read the arguments of `answer`, except the context, from a request.

        Raises:
            UsageError: The request is invalid. `field` names the wrong parameter or member.
        """
        of_query = self.query.__struct_encode_fields__
        arguments = {name: value for name, value in request.path_params.items() if name not in of_query}
        if self.query is not NoQuery:
            arguments["query"] = read_query(request, self.query)
        elif self.checks_query:
            read_query(request, NoQuery)
        if self.body is not None:
            is_there = self.needs_body or await request.body()
            arguments["body"] = self.reads(await read_json(request) if is_there else {}, self.body)
        return arguments


class Endpoint:
    """Answers requests to one path. Each HTTP method of the path has its own operation."""

    def __init__(self, operations: Sequence[Operation], wiring: Wiring) -> None:
        self._operations = {operation.method: operation for operation in operations}
        self._wiring = wiring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            UsageError: The request is invalid, or the path does not support its HTTP method (`method_not_allowed`).
        """
        operation = self._operations.get(scope["method"])
        if operation is None:
            methods = sorted(self._operations)
            message = f"this address takes {', '.join(methods)}"
            raise UsageError(message, code="method_not_allowed", choices=methods)
        request = Request(scope, receive)
        response = await operation.answer(self._wiring.context(request), **await operation.arguments(request))
        await response(scope, receive, send)
