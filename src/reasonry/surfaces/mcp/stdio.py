"""Serving over standard input and output.

The frames that agents send all day are answered on a short way of our own; the SDK, whose import alone takes
longer than the rest of the start, is brought in by the first request that is anything else, and from then on
shares the connection. What the short way answers is what the SDK would: both ask the same desk, and a test
compares them frame by frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ...errors import ReasonryError, UsageError, WorldError
from . import frames
from .desk import CACHE_HINTS, CAPABILITIES, INSTRUCTIONS, Desk, server_info
from .lane import Lane
from .tools import Binding, Caller, Document, error_document

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION = "2026-07-28"
_META = "io.modelcontextprotocol/"
_VERSION_KEY, _CAPABILITIES_KEY = f"{_META}protocolVersion", f"{_META}clientCapabilities"
_INFO_KEY = f"{_META}clientInfo"
_KNOWN_KEYS: dict[str, frozenset[str]] = {
    "tools/call": frozenset({"name", "arguments", "_meta"}),
    "resources/read": frozenset({"uri", "_meta"}),
    "prompts/get": frozenset({"name", "arguments", "_meta"}),
}
_MODERN_GREETING = {"jsonrpc": "2.0", "id": "reasonry-greeting", "method": "server/discover"}
"""Tells the SDK, when it comes in, the era that the client has opened with."""
_ONLY_META = frozenset({"_meta"})

_encode = msgspec.json.encode


class Era:
    """How one protocol era dresses results.

    Args:
        members: What every result carries besides its own.
    """

    def __init__(self, members: Document, hints: dict[str, int]) -> None:
        self._members = members
        self._hints = hints
        self.tool_suffix = b"," + _encode(members)[1:] if members else b"}"

    def dress(self, method: str, result: Document) -> bytes:
        """Return a result as the era's bytes."""
        if method in self._hints:
            result = {"ttlMs": self._hints[method], "cacheScope": "private", **result}
        return _encode({**result, **self._members})


class Connection:
    """One client's side of the conversation.

    Args:
        send: Takes each line that goes out.
        open_lane: Brings in the SDK.
    """

    def __init__(
        self,
        desk: Desk,
        binding: Binding,
        send: Callable[[bytes], None],
        open_lane: Callable[[Callable[[bytes], None]], Lane],
    ) -> None:
        self._desk = desk
        self._send = send
        self._open_lane = open_lane
        self._lane: Lane | None = None
        self._caller = Caller(binding)
        self._about = server_info()
        self._handshake = Era({}, {})
        self._modern = Era(
            {"resultType": "complete", "_meta": {f"{_META}serverInfo": self._about}}, CACHE_HINTS
        )
        self._era: Era | None = None
        self._greeting: list[bytes] = []
        self._listed: dict[tuple[Era, str], bytes] = {}
        self._tasks: dict[Any, asyncio.Task[None]] = {}
        self._working: dict[asyncio.Task[None], tuple[Any, str, Era]] = {}

    # --- in

    def receive(self, line: bytes) -> None:
        """Take in one line; whatever it says, it is answered or passed over."""
        try:
            message = frames.read(line)
        except frames.UnreadableError as error:
            self.refuse(error)
            return
        if "id" not in message or "method" not in message:
            self._hear(message, line)
        elif (fault := frames.fault(message)) is not None:
            self._send(frames.error(fault[0], frames.INVALID_REQUEST, f"Invalid request: {fault[1]}"))
        elif not self._answer_directly(message["id"], message["method"], message.get("params") or {}, line):
            self._hand_over(message, line)

    def refuse(self, error: frames.UnreadableError) -> None:
        """Answer a line that could not be read; for a tool call, as a tool's error."""
        era = self._era
        if error.method == "tools/call" and error.id is not None and era is not None:
            document = error_document(error.cause or UsageError(error.message))
            self._send(frames.result(error.id, frames.tool_result(document, True, era.tool_suffix)))
        else:
            self._send(frames.error(error.id, error.code, error.message))

    def _hear(self, message: Document, line: bytes) -> None:
        """Take in a notification, or a reply to something the SDK asked."""
        if message.get("method") == "notifications/cancelled":
            params = message.get("params")
            id = params.get("requestId") if isinstance(params, dict) else None
            task = self._tasks.get(id) if frames.is_id(id) else None
            if task is not None:
                task.cancel()
                return
            if self._lane is not None:
                self._lane.settle(id)
        if message.get("method") == "notifications/initialized":
            self._greeting.append(line)
        if self._lane is not None:
            self._lane.feed(line)

    def _hand_over(self, message: Document, line: bytes) -> None:
        if self._lane is None:
            self._lane = self._open_lane(self._send)
            if self._greeting:
                self._lane.greet(self._greeting)
        self._lane.ask(message["id"], _name_of(message["method"], message.get("params") or {}), line)

    async def prepared(self) -> None:
        """Return once every request that was read is at work: none waits for the SDK to be brought in."""
        if self._lane is not None:
            await self._lane.ready.wait()

    async def finish(self) -> None:
        """Return once every request that was read is answered, and let the SDK go."""
        while self._working:
            await asyncio.wait(list(self._working))
        if self._lane is not None:
            await self._lane.finish()

    def abandon(self, why: str) -> list[str]:
        """Answer what is still at work with an error, and give it up; return what that was, for people."""
        error = WorldError(why, code="deadline_exceeded", retryable=True)
        left: list[str] = []
        for task, (id, what, era) in list(self._working.items()):
            task.cancel()
            if what.startswith("tools/call"):
                document = error_document(error)
                self._send(frames.result(id, frames.tool_result(document, True, era.tool_suffix)))
            else:
                self._send(frames.error(id, frames.INTERNAL_ERROR, why, error.document()))
            left.append(f"{id} ({what})")
        for id, what in self._lane.abandon() if self._lane is not None else ():
            self._send(frames.error(id, frames.INTERNAL_ERROR, why, error.document()))
            left.append(f"{id} ({what})")
        return left

    # --- the short way

    def _answer_directly(self, id: Any, method: str, params: Document, line: bytes) -> bool:
        if method == "initialize":
            return self._initialize(id, params, line)
        era = self._era_of(params)
        if era is None:
            return False
        if method == "ping" and era is self._handshake:
            self._send(frames.result(id, b"{}"))
        elif method == "server/discover" and era is self._modern:
            self._send(frames.result(id, self._discovery(era)))
        elif method == "tools/list" and params.keys() <= _ONLY_META:
            self._send(frames.result(id, self._tool_listing(era)))
        elif method == "tools/call" and _is_plain_call(params):
            self._start(id, self._call(id, params, era), _name_of(method, params), era)
        elif method in self._desk.methods and _is_plain(method, params):
            self._start(id, self._fetch(id, method, params, era), method, era)
        else:
            return False
        return True

    def _era_of(self, params: Document) -> Era | None:
        """Return the connection's era if the request is of it and well made; the first request decides."""
        meta = params.get("_meta")
        if meta is None and "_meta" not in params:
            return self._era if self._era is self._handshake else None
        if not isinstance(meta, dict):
            return None
        if _VERSION_KEY not in meta:
            token = meta.get("progressToken", 0)
            return self._era if self._era is self._handshake and frames.is_id(token) else None
        if not _is_modern(meta):
            return None
        if self._era is None and self._lane is None:
            self._era = self._modern
            self._greeting = [_encode({**_MODERN_GREETING, "params": {"_meta": meta}})]
        return self._era if self._era is self._modern else None

    def _initialize(self, id: Any, params: Document, line: bytes) -> bool:
        info = params.get("clientInfo")
        is_plain = (
            self._era is None
            and self._lane is None
            and isinstance(params.get("protocolVersion"), str)
            and isinstance(params.get("capabilities"), dict)
            and isinstance(info, dict)
            and isinstance(info.get("name"), str)
            and isinstance(info.get("version"), str)
        )
        if not is_plain:
            return False
        self._era = self._handshake
        self._greeting = [line]
        offered = params["protocolVersion"]
        answer = {
            "protocolVersion": offered if offered in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": CAPABILITIES,
            "serverInfo": self._about,
            "instructions": INSTRUCTIONS,
        }
        self._send(frames.result(id, _encode(answer)))
        return True

    def _discovery(self, era: Era) -> bytes:
        answer = {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": CAPABILITIES,
            "instructions": INSTRUCTIONS,
        }
        return era.dress("server/discover", answer)

    def _tool_listing(self, era: Era) -> bytes:
        return era.dress("tools/list", {"tools": [tool.listing() for tool in self._desk.tools.values()]})

    # --- work

    def _start(self, id: Any, work: Awaitable[None], what: str, era: Era) -> None:
        task = asyncio.ensure_future(self._guard(id, work))
        self._tasks[id] = task
        self._working[task] = (id, what, era)
        task.add_done_callback(lambda done: self._finished(id, done))

    async def _guard(self, id: Any, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception as error:
            document = error_document(error)["error"]
            self._send(frames.error(id, frames.INTERNAL_ERROR, document["message"], document))

    def _finished(self, id: Any, task: asyncio.Task[None]) -> None:
        del self._working[task]
        if self._tasks.get(id) is task:
            del self._tasks[id]

    async def _call(self, id: Any, params: Document, era: Era) -> None:
        caller = self._caller
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            caller = Caller(caller.binding, self._reporter(token))
        try:
            document, is_error = await self._desk.call(params["name"], params.get("arguments") or {}, caller)
        except ReasonryError as error:
            self._send(frames.error(id, frames.INVALID_PARAMS, error.message, error.document()))
            return
        self._send(frames.result(id, frames.tool_result(document, is_error, era.tool_suffix)))

    def _reporter(self, token: Any) -> Callable[[float, float | None, str | None], Awaitable[None]]:
        async def report(progress: float, total: float | None = None, message: str | None = None) -> None:
            params = {"progressToken": token, "progress": progress, "total": total, "message": message}
            known = {key: value for key, value in params.items() if value is not None}
            self._send(frames.notification("notifications/progress", known))

        return report

    async def _fetch(self, id: Any, method: str, params: Document, era: Era) -> None:
        try:
            result = await self._desk.methods[method](params)
        except ReasonryError as error:
            self._send(frames.error(id, frames.INVALID_PARAMS, error.message, error.document()))
            return
        self._send(frames.result(id, era.dress(method, result)))


def _name_of(method: str, params: Document) -> str:
    name = params.get("name")
    return f"{method} {name}" if isinstance(name, str) else method


def _is_modern(meta: Document) -> bool:
    info = meta.get(_INFO_KEY)
    return (
        meta[_VERSION_KEY] == MODERN_VERSION
        and isinstance(meta.get(_CAPABILITIES_KEY), dict)
        and (info is None or (isinstance(info, dict) and {"name", "version"} <= info.keys()))
    )


def _is_plain_call(params: Document) -> bool:
    return (
        isinstance(params.get("name"), str)
        and isinstance(params.get("arguments", {}), dict)
        and params.keys() <= _KNOWN_KEYS["tools/call"]
    )


def _is_plain(method: str, params: Document) -> bool:
    if not params.keys() <= _KNOWN_KEYS.get(method, _ONLY_META):
        return False
    if method == "resources/read":
        return isinstance(params.get("uri"), str)
    if method == "prompts/get":
        arguments = params.get("arguments", {})
        texts = isinstance(arguments, dict) and all(isinstance(one, str) for one in arguments.values())
        return texts and isinstance(params.get("name"), str)
    return True
