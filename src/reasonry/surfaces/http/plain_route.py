"""Routes called a thousand times a second, without FastAPI's solving of dependencies.

The schema is FastAPI's, as for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from .context import get_context
from .schema import check_query


class PlainRoute(APIRoute):
    """A route whose function takes `context`, `request` and the names in its path."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        function = self.endpoint

        async def answer(request: Request) -> Response:
            await check_query(request)
            context = await get_context(request)
            return await function(context=context, request=request, **request.path_params)

        return answer
