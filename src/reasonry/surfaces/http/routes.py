"""The table of all that the server answers, of which its routes and its schema are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ...errors import NotFoundError
from . import catalog, mcp, page, runs, sessions, standing
from .context import RequestContext, Wiring
from .documents import reply
from .openai import routes as openai
from .openapi import describe_api
from .operations import Endpoint, Operation

TABLE: Mapping[str, Sequence[Operation]] = {
    "sessions": sessions.OPERATIONS,
    "runs": runs.OPERATIONS,
    "catalog": catalog.OPERATIONS,
    "operation": standing.OPERATIONS,
    "openai": openai.OPERATIONS,
}
"""What the schema describes, under its tags."""


async def read_api(context: RequestContext) -> Response:
    """Return what `/api` and `/v1` take and answer."""
    return reply(_schema())


@cache
def _schema() -> dict[str, Any]:
    return describe_api(TABLE)


BESIDES = (Operation("GET", "/api/openapi.json", read_api), *mcp.OPERATIONS, *page.OPERATIONS)
"""What the schema does not describe."""


def routes(wiring: Wiring) -> list[Route]:
    """Return the routes of a server."""
    addresses: dict[str, list[Operation]] = {}
    for operation in (*(each for operations in TABLE.values() for each in operations), *BESIDES):
        addresses.setdefault(operation.path, []).append(operation)
    return [Route(path, Endpoint(operations, wiring)) for path, operations in addresses.items()]


async def answer_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer what is at no address."""
    raise NotFoundError("there is nothing at this address; /api/openapi.json lists what there is")
