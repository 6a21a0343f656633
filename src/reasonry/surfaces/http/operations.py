"""An operation of the API: its parameters and its reply, and the call of its function for a request."""

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
    """The query of an operation that takes no parameters."""


class Operation(Struct):
    """A method of an address.

    Attributes:
        path: The path in Starlette's form.
        answer: The function. It takes the context, and optionally `query` and `body` of annotated types. Names in the
            path are members of the query if its type has them, else separate arguments.
        reply: The type of the returned document.
        status: The status of a successful reply.
        others: Descriptions of the other statuses, errors included.
        headers: The headers that it reads, with their schemas.
        reads: Makes the body from the document in the request.
        media_type: The media type of the reply.
        checks_query: Whether unknown query parameters are refused.
        query: The type of its query.
        body: The type of its body, if any.
        needs_body: Whether the body is required: it is optional if all its members are.
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
        """Derive query, body and path parameters from the signature of `answer`."""
        takes = get_type_hints(self.answer)
        self.query, self.body = takes.get("query", NoQuery), takes.get("body")
        is_form = isinstance(self.body, type) and issubclass(self.body, Struct)
        self.needs_body = any(each.required for each in fields(self.body)) if is_form else bool(self.body)

    async def arguments(self, request: Request) -> dict[str, Any]:
        """Return the arguments of `answer` besides the context.

        Raises:
            UsageError: The request is invalid; `field` names the place.
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
    """Answers the requests to a path, with an operation for each method."""

    def __init__(self, operations: Sequence[Operation], wiring: Wiring) -> None:
        self._operations = {operation.method: operation for operation in operations}
        self._wiring = wiring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            UsageError: See `Operation.arguments`; `method_not_allowed`: the path has no such method.
        """
        operation = self._operations.get(scope["method"])
        if operation is None:
            methods = sorted(self._operations)
            message = f"this address takes {', '.join(methods)}"
            raise UsageError(message, code="method_not_allowed", choices=methods)
        request = Request(scope, receive)
        response = await operation.answer(self._wiring.context(request), **await operation.arguments(request))
        await response(scope, receive, send)
