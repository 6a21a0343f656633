"""A client's conversation over standard input and output, in the client's protocol version.

The first valid request decides the version: `initialize` selects a handshake version, and an envelope in `_meta`
selects the stateless version. From then on, the connection serves only this version.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from msgspec import Struct

from ...errors import ReasonryError, UsageError, WorldError
from ...guided.session_choice import Thinker
from . import frames
from .frames import RefusedError, read_params
from .mcp_server import (
    CACHE_HINTS,
    CAPABILITIES,
    INSTRUCTIONS,
    McpServer,
    note_abilities,
    protocol_error,
    server_info,
)
from .run_tasks import TASKS
from .tools import CallContext, Document, error_document, tool_result

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSION = "2026-07-28"
_META = "io.modelcontextprotocol/"
_VERSION_KEY, _CAPABILITIES_KEY = f"{_META}protocolVersion", f"{_META}clientCapabilities"
_INFO_KEY = f"{_META}clientInfo"


class ClientInfo(Struct, frozen=True):
    """The name and version that the client reports."""

    name: str
    version: str


class InitializeParams(Struct, frozen=True, rename="camel"):
    """The parameters of `initialize`."""

    protocol_version: str
    capabilities: dict[str, Any]
    client_info: ClientInfo


class Envelope(Struct, frozen=True):
    """The member `_meta` that every request has in the stateless version of the protocol."""

    version: str = msgspec.field(name=_VERSION_KEY)
    capabilities: dict[str, Any] = msgspec.field(name=_CAPABILITIES_KEY)
    client: ClientInfo | None = msgspec.field(name=_INFO_KEY, default=None)


class Connection:
    """A client's conversation with the server over standard input and output."""

    def __init__(self, server: McpServer, send: Callable[[bytes], None]) -> None:
        self._server = server
        self._send = send
        self._context = CallContext(Thinker(gate=asyncio.Lock()))
        self._about = server_info()
        self._is_stateless: bool | None = None
        """True for the stateless version, False for a handshake version, None before the first valid request."""
        self._working: dict[asyncio.Task[None], tuple[Any, str]] = {}

    def receive(self, line: bytes) -> None:
        """Process a line from the client. An unreadable line gets an error reply."""
        try:
            message = frames.read(line)
        except frames.UnreadableError as error:
            if error.method == "tools/call" and error.id is not None and self._is_stateless is not None:
                self._send_tool_error(error.id, error.cause or UsageError(error.message))
            else:
                self._send(frames.error(error.id, error))
            return
        if "id" in message and "method" in message:
            try:
                self._on_request(message["id"], message["method"], message.get("params") or {})
            except RefusedError as refusal:
                self._send(frames.error(message["id"], refusal))
        elif message.get("method") == "notifications/cancelled" and isinstance(message.get("params"), dict):
            wanted = message["params"].get("requestId")
            for task, (id, _) in self._working.items():
                if id == wanted and type(id) is type(wanted):
                    task.cancel()

    def _send_tool_error(self, id: Any, error: ReasonryError) -> None:
        result = tool_result(error_document(error), is_error=True)
        self._send(frames.result(id, self._encode("tools/call", result)))

    async def finish(self, timeout_s: float | None = None) -> None:
        """Wait until every request is answered, or until `timeout_s` seconds have passed."""
        if self._working:
            await asyncio.wait([*self._working], timeout=timeout_s)

    def abandon(self, why: str) -> list[str]:
        """Cancel all pending requests and answer them with errors. Return the id and method of each request."""
        error = WorldError(why, code="deadline_exceeded", retryable=True)
        left: list[str] = []
        for task, (id, name) in list(self._working.items()):
            task.cancel()
            if name.startswith("tools/call"):
                self._send_tool_error(id, error)
            else:
                self._send(frames.error(id, RefusedError(frames.INTERNAL_ERROR, why, error.document())))
            left.append(f"{id} ({name})")
        return left

    # --- which version, which method

    def _on_request(self, id: Any, method: str, params: Document) -> None:
        if method == "initialize":
            self._send(frames.result(id, self._initialize(params)))
            return
        self._check_version(method, params)
        if method == "ping" and not self._is_stateless:
            self._send(frames.result(id, b"{}"))
        elif method == "server/discover" and self._is_stateless:
            self._send(frames.result(id, self._discovery()))
        elif method in self._server.methods:
            self._start(id, method, params)
        else:
            raise RefusedError(frames.METHOD_NOT_FOUND, f"Method not found: {method[:200]}", method[:200])

    def _check_version(self, method: str, params: Document) -> None:
        """Check that a request uses the version of the connection's first request, or raise RefusedError."""
        meta, why = params.get("_meta"), ""
        if not isinstance(meta, dict | None):
            why = "`_meta` must be an object"
        elif meta and not frames.is_id(meta.get("progressToken", 0)):
            why = "`progressToken` must be a string or an integer"
        elif meta and _VERSION_KEY in meta:
            self._open_stateless(meta)
        elif self._is_stateless:
            why = f"`_meta` must hold {_VERSION_KEY} and {_CAPABILITIES_KEY}"
        elif self._is_stateless is None and method != "ping":
            why = f"send `initialize` first, or {_VERSION_KEY} in `_meta`"
        if why:
            raise RefusedError(frames.INVALID_PARAMS, f"Invalid params: {why}")

    def _open_stateless(self, meta: Document) -> None:
        if self._is_stateless is False:
            message = (
                f"this connection was opened by `initialize`; it takes no request of {STATELESS_VERSION}"
            )
            raise RefusedError(frames.INVALID_REQUEST, message)
        envelope = read_params(Envelope, meta)
        self._context = note_abilities(self._context, envelope.capabilities, is_stateless=True)
        if envelope.version != STATELESS_VERSION:
            raise _version_error("Unsupported protocol version", envelope.version)
        self._is_stateless = True

    def _initialize(self, params: Document) -> bytes:
        asked = read_params(InitializeParams, params)
        offered = asked.protocol_version
        if self._is_stateless:
            message = f"this connection is in protocol version {STATELESS_VERSION}, which has no `initialize`"
            raise _version_error(message, offered)
        self._is_stateless = False
        self._context = note_abilities(self._context, asked.capabilities, is_stateless=False)
        answer = {
            "protocolVersion": offered if offered in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": CAPABILITIES,
            "serverInfo": self._about,
            "instructions": INSTRUCTIONS,
        }
        return self._encode("initialize", answer)

    def _discovery(self) -> bytes:
        answer = {
            "supportedVersions": [STATELESS_VERSION],
            "capabilities": {**CAPABILITIES, **({"extensions": {TASKS: {}}} if self._server.tasks else {})},
            "instructions": INSTRUCTIONS,
        }
        return self._encode("server/discover", answer)

    def _encode(self, method: str, result: Document) -> bytes:
        """Encode a result as JSON, with the members that the connection's version requires."""
        if self._is_stateless:
            about = {"resultType": "complete", "_meta": {f"{_META}serverInfo": self._about}}
            fresh = {"ttlMs": CACHE_HINTS[method], "cacheScope": "private"} if method in CACHE_HINTS else {}
            result = {**about, **fresh, **result}
        return msgspec.json.encode(result)

    # --- work

    def _start(self, id: Any, method: str, params: Document) -> None:
        name = f"{method} {params.get('name', '')}" if method == "tools/call" else method
        task = asyncio.ensure_future(self._answer(id, method, params))
        self._working[task] = (id, name)
        task.add_done_callback(self._working.pop)

    async def _answer(self, id: Any, method: str, params: Document) -> None:
        context, token = self._context, (params.get("_meta") or {}).get("progressToken")
        if token is not None:
            context = replace(context, report=partial(self._report, token))
        try:
            answer = await self._server.answer(method, params, context)
            line = frames.result(id, self._encode(method, answer))
        except Exception as error:
            line = frames.error(id, protocol_error(error))
        self._send(line)

    async def _report(self, token: Any, progress: float, total: float | None, message: str | None) -> None:
        params = {"progressToken": token, "progress": progress, "total": total, "message": message}
        known = {key: value for key, value in params.items() if value is not None}
        self._send(frames.notification("notifications/progress", known))


def _version_error(message: str, requested: str) -> RefusedError:
    data = {"supported": [STATELESS_VERSION], "requested": requested[:200]}
    return RefusedError(frames.UNSUPPORTED_VERSION, message, data)
