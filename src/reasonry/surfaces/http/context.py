"""What a route is answered with: who asks, and the parts of the app that are theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from fastapi import Depends, Request

from ...app import App
from ..agents import AgentAccess
from .settings import ServerSettings

if TYPE_CHECKING:
    Supervisor = Any

PRINCIPAL = "reasonry.principal"
REQUEST_ID = "reasonry.request_id"
"""Keys of an ASGI scope; the middleware in `access` sets them."""


class RequestContext(NamedTuple):
    """Who asks, and with what it is answered.

    Attributes:
        app: In its store only what is the principal's exists.
        access: The same app as requests may use it: they name what the operator listed, and nothing else.
    """

    principal: str
    app: App
    supervisor: Supervisor
    access: AgentAccess
    request_id: str


class Wiring:
    """The parts that requests share, made once; each principal has an app of its own over them."""

    def __init__(self, app: App, settings: ServerSettings, supervisor: Supervisor = None) -> None:
        self.app, self.settings, self.supervisor = app, settings, supervisor
        self._of_principals: dict[str, tuple[App, AgentAccess]] = {}

    def context(self, principal: str, request_id: str) -> RequestContext:
        """Return what a request of a principal is answered with."""
        parts = self._of_principals.get(principal)
        if parts is None:
            app = self.app
            parts = self._of_principals[principal] = app, AgentAccess(app)
        return RequestContext(principal, parts[0], self.supervisor, parts[1], request_id)


async def get_context(request: Request) -> RequestContext:
    """Return the context of a request that has been let in."""
    scope = request.scope
    return request.app.state.wiring.context(scope[PRINCIPAL], scope[REQUEST_ID])


Context = Annotated[RequestContext, Depends(get_context)]
"""The type of a route's parameter that is the request's context."""
