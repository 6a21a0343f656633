"""Routes called a thousand times a second, without most of what FastAPI does around each.

The schema is FastAPI's, as for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute, APIRouter
from starlette.routing import Match

from .context import get_context
from .schema import check_query


class PlainRoute(APIRoute):
    """A route whose function takes `context`, `request` and the names in its path."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        return self.answer

    async def answer(self, request: Request) -> Response:
        """Answer a request."""
        await check_query(request)
        context = await get_context(request)
        return await self.endpoint(context=context, request=request, **request.path_params)


class PlainRoutes:
    """ASGI middleware inside the gate: answers what is for plain routes, and hands on everything else.

    Args:
        routers: They have nothing but plain routes.
    """

    def __init__(self, app: Any, routers: Sequence[APIRouter]) -> None:
        self._app = app
        self._routes = [
            route for router in routers for route in router.routes if isinstance(route, PlainRoute)
        ]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        for route in self._routes:
            match, found = route.matches(scope)
            if match is Match.FULL:
                scope.update(found)
                response = await route.answer(Request(scope, receive))
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)
