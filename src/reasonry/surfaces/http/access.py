"""Who may come in: tokens and their principals."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

from starlette.datastructures import Headers

from ...errors import UsageError
from ...ids import new_id
from .context import PRINCIPAL, REQUEST_ID
from .error_replies import error_reply
from .settings import OPERATOR, ServerSettings

OPEN_PATHS = frozenset({"/", "/healthz"})
"""What is answered without a token; `/assets/…`, the page's own files, is too."""


class AccessControl:
    """ASGI middleware that gives each request an id and a principal, or turns it away."""

    def __init__(self, app: Any, settings: ServerSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope[REQUEST_ID] = new_id()
        principal = self._principal(scope)
        if principal is None:
            refusal = UsageError("this server asks for a token: Authorization: Bearer …", code="unauthorized")
            response = error_reply(refusal, scope[REQUEST_ID], {"WWW-Authenticate": "Bearer"})
            await response(scope, receive, send)
            return
        scope[PRINCIPAL] = principal
        await self._app(scope, receive, send)

    def _principal(self, scope: Any) -> str | None:
        if not self._settings.tokens or scope["path"] in OPEN_PATHS or scope["path"].startswith("/assets/"):
            return OPERATOR
        scheme, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        digest = hashlib.sha256(token.strip().encode()).digest()
        found = None
        for known, principal in self._settings.tokens.items():
            if hmac.compare_digest(known, digest):
                found = principal
        return found if scheme.lower() == "bearer" else None
