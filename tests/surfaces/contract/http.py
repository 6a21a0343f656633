"""The HTTP API."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..http.serving import serve_in_thread
from .surface import Given, Reply, reply_of

STATUSES = {
    "invalid_request": 400,
    "answer_refused": 400,
    "not_found": 404,
    "conflict": 409,
    "payload_too_large": 413,
}
_RUN, _SESSION = "/api/runs/{run}", "/api/sessions/{session}"
_REQUESTS = {
    "solve": ("POST", "/api/runs"),
    "chat": ("POST", "/v1/chat/completions"),
    "respond": ("POST", "/v1/responses"),
    "start": ("POST", "/api/runs"),
    "refute": ("POST", "/api/runs"),
    "answer": ("POST", f"{_RUN}/answers"),
    "cancel": ("POST", f"{_RUN}/cancel"),
    "pause": ("POST", f"{_RUN}/pause"),
    "resume": ("POST", f"{_RUN}/resume"),
    "fork": ("POST", f"{_RUN}/fork"),
    "limit": ("PATCH", f"{_RUN}/budget"),
    "status": ("GET", _RUN),
    "show": ("GET", _RUN),
    "replay": ("GET", f"{_RUN}/replay"),
    "delete": ("DELETE", _RUN),
    "list": ("GET", "/api/runs"),
    "diff": ("GET", "/api/runs/diff"),
    "page": ("GET", f"{_RUN}/page"),
    "comparison": ("GET", "/api/comparisons/{comparison}"),
    "strategies": ("GET", "/api/strategies"),
    "strategy": ("GET", "/api/strategies/{strategy}"),
    "think": ("POST", "/api/sessions"),
    "sessions": ("GET", "/api/sessions"),
    "search": ("GET", "/api/search"),
    "import": ("POST", "/api/sessions/import"),
    "session": ("GET", _SESSION),
    "export": ("GET", f"{_SESSION}/export"),
    "pin": ("PATCH", _SESSION),
    "unpin": ("PATCH", _SESSION),
    "forget": ("DELETE", _SESSION),
}


class Api:
    """Requests to a server."""

    name = "http"

    def __init__(self, folder: Path) -> None:
        self.store, self._held = str(folder / "http.db"), ExitStack()
        self._client = self._held.enter_context(serve_in_thread(self.store)).client()

    def close(self) -> None:
        """End the server."""
        self._held.close()

    def call(self, use: str, given: Given) -> Reply:
        """Send a request, and where it begins a driven run, wait for its end; the status is that of the error."""
        method, path = _REQUESTS[use]
        if "session" in given and use in ("think", "page"):
            path = f"{_SESSION}/{'thoughts' if use == 'think' else use}"
        body = {name: value for name, value in given.items() if f"{{{name}}}" not in path}
        reply = self._ask(method, path.format(**given), _body(use, body))
        if use in ("chat", "respond"):
            (run,) = reply.document["reasonry"]["runs"]
            return self._ask("GET", _RUN.format(run=run["run_id"]), {})
        if use not in ("solve", "resume", "fork") or reply.code or reply.document["mode"] == "coached":
            return reply
        self._client.get(f"/api/runs/{reply.run_id}/events")
        return self._ask("GET", f"/api/runs/{reply.run_id}", {})

    def _ask(self, method: str, path: str, given: Given) -> Reply:
        sent: dict[str, Any] = {"params" if method in ("GET", "DELETE") else "json": given}
        answer = self._client.request(method, path, **sent)
        reply = reply_of(answer.json())
        assert answer.status_code == STATUSES[reply.code] if reply.code else answer.status_code < 400
        return reply


def _body(use: str, given: Given) -> Given:
    """Return what a request brings."""
    if use == "limit":
        return given["budget"]
    if use == "import":
        return given["content"]
    if use in ("chat", "respond"):
        own = {name: value for name, value in given.items() if name not in ("problem", "strategy")}
        asked = [{"role": "user", "content": given["problem"]}]
        place = "messages" if use == "chat" else "input"
        return {"model": f"{given['strategy']}@offline", place: asked, "reasonry": own}
    renamed = {{"session": "session_id"}.get(name, name): value for name, value in given.items()}
    if use == "refute":
        claims = renamed.pop("claims", [])
        renamed |= {"strategy": use, "options": {"claims": claims} if claims else {}}
    is_coached = renamed.pop("coached", use in ("start", "refute"))
    if use in ("start", "refute", "resume", "fork"):
        renamed["mode"] = "coached" if is_coached else "driven"
    return {**renamed, **({"pinned": use == "pin"} if use in ("pin", "unpin") else {})}
