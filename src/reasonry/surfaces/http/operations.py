"""An operation of the API: what it takes and returns, and how a request becomes a call of its function."""

from __future__ import annotations

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
    """What one method of an address does.

    Attributes:
        path: As Starlette writes it.
        answer: Takes the context, and `query` and `body` of the types that it says, if it does; the query has the names
            in the path too where its type has them, else they are arguments of their own.
        reply: The type of the document that it returns.
        status: With which it returns that.
        others: What it says of other statuses: of errors, and where it returns no document, or the same one.
        headers: Those that it heeds, with their schemas.
        reads: What makes the body of the document that a request brings.
        media_type: Of what it returns.
        checks_query: Whether a query that it does not take is refused.
        query: The form of its query.
        body: The type of its body; None: it takes none.
        needs_body: Whether a request must bring one: not where all of its members may be left out.
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
        """Read from the signature of `answer` what it takes."""
        takes = get_type_hints(self.answer)
        self.query, self.body = takes.get("query", NoQuery), takes.get("body")
        is_form = isinstance(self.body, type) and issubclass(self.body, Struct)
        self.needs_body = any(each.required for each in fields(self.body)) if is_form else bool(self.body)

    async def arguments(self, request: Request) -> dict[str, Any]:
        """Return what `answer` takes, besides the context.

        Raises:
            UsageError: The request is not as it must be; `field` says where.
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
    """What answers the requests to one path, with an operation for each method."""

    def __init__(self, operations: Sequence[Operation], wiring: Wiring) -> None:
        self._operations = {operation.method: operation for operation in operations}
        self._wiring = wiring

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            UsageError: As `Operation.arguments`; `method_not_allowed`: there is no operation for it.
        """
        operation = self._operations.get(scope["method"])
        if operation is None:
            methods = sorted(self._operations)
            message = f"this address takes {', '.join(methods)}"
            raise UsageError(message, code="method_not_allowed", choices=methods)
        request = Request(scope, receive)
        response = await operation.answer(self._wiring.context(request), **await operation.arguments(request))
        await response(scope, receive, send)
