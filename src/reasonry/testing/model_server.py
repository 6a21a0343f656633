"""A model server on the loopback interface, for tests: OpenAI-compatible, scriptable, faulty on demand.

    with ModelServer(latency_ms=50, rules=[Rule("capital of France", "Paris")]) as server:
        model = reasonry.models.open_model(server.model)
        …
        assert server.stats()["requests"] == 1

It also answers `/v1/messages` as Anthropic does and `…:generateContent` as Google does; `bodies` has those requests in
OpenAI's form. It runs in a thread with a loop of its own, so synchronous and asynchronous tests use it alike.
Other processes steer it over HTTP: `GET /_stats`, `GET /_bodies`, `POST /_reset` with a `Behaviour` as JSON.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from typing import Any, Self

import msgspec

from .behaviour import Behaviour, changed
from .brain import Reply
from .completion import complete
from .desk import Desk
from .dialects import ANTHROPIC, GOOGLE, from_anthropic, from_google
from .exchange import Exchange, HttpRequest, key_of
from .speech import OPENAI, Speech


class ModelServer:
    """The server; a context manager.

    Args:
        reply: Answers what neither the queue nor the rules do; called on the server's thread.
        port: 0 takes a free one.
        behaviour: See `Behaviour`; single settings can be given as keywords instead.

    Attributes:
        url: The base URL that clients are given, `…/v1`.
        model: As a user would write it after `--model`.
    """

    def __init__(
        self,
        *,
        reply: Reply | None = None,
        port: int = 0,
        behaviour: Behaviour | None = None,
        **settings: Any,
    ) -> None:
        self._reply = reply
        self._port = port
        self._desk = Desk(changed(behaviour or Behaviour(), settings), reply)
        self._connections: set[Exchange] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._server: asyncio.Server | None = None
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._failure: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="reasonry-model-server", daemon=True)

    @property
    def url(self) -> str:
        """The base URL that clients are given."""
        return f"http://127.0.0.1:{self._port}/v1"

    @property
    def model(self) -> str:
        """The server's first model, as a user would write it after `--model`."""
        return f"openai-compatible:{self.url}#{self._desk.behaviour.models[0]}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests since the last reset, oldest first."""
        return list(self._desk.bodies)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections)

    def drop_connections(self) -> None:
        """Close all connections, as a server does with idle ones."""
        for connection in list(self._connections):
            if self._loop is not None:
                self._loop.call_soon_threadsafe(connection.close)

    def stats(self) -> dict[str, Any]:
        """Return the figures since the last reset; see `Ledger.stats`."""
        return self._desk.ledger.stats()

    def reset(self, *, reply: Reply | None = None, **settings: Any) -> None:
        """Forget all that was counted and change these settings. Calls in flight end as they began.

        Args:
            reply: None keeps the one there is.
            settings: Those of `Behaviour`.
        """
        self._reply = reply or self._reply
        self._desk = Desk(changed(self._desk.behaviour, settings), self._reply)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self.serve())
        except OSError as error:
            self._failure = error
        finally:
            self._ready.set()

    async def listen(self) -> None:
        """Take the port; for those who have a loop and need no thread.

        Raises:
            OSError: The port is taken.
        """
        self._loop = asyncio.get_running_loop()
        self._server = await self._loop.create_server(self._connect, "127.0.0.1", self._port, backlog=512)
        self._port = self._server.sockets[0].getsockname()[1]

    async def serve(self) -> None:
        """Serve until stopped."""
        if self._server is None:
            await self.listen()
        assert self._server is not None
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            self._server.close()
            for connection in list(self._connections):
                connection.reset()
            await asyncio.sleep(0)

    def _connect(self) -> Exchange:
        return Exchange(self._handle, self._connections)

    async def _handle(self, request: HttpRequest, exchange: Exchange) -> None:
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                await self._chat(request, exchange, OPENAI)
            case "POST", "/v1/messages":
                await self._chat(request, exchange, ANTHROPIC)
            case "POST", path if path.endswith((":generateContent", ":streamGenerateContent")):
                await self._chat(request, exchange, GOOGLE)
            case "GET", "/v1/models":
                models = [{"id": name, "object": "model"} for name in self._desk.behaviour.models]
                _send(exchange, 200, {"object": "list", "data": models})
            case "GET", "/api/tags":
                _send(exchange, 200, {"models": [{"name": name} for name in self._desk.behaviour.models]})
            case "GET", "/_stats":
                _send(exchange, 200, self.stats())
            case "GET", "/_bodies":
                _send(exchange, 200, self.bodies)
            case "POST", "/_reset":
                self._reset_over_http(request, exchange)
            case _:
                _refuse(exchange, 404, "not_found", f"There is nothing at {request.method} {request.path}.")

    def _reset_over_http(self, request: HttpRequest, exchange: Exchange) -> None:
        try:
            behaviour = msgspec.json.decode(request.body or b"{}", type=Behaviour)
            self._desk = Desk(behaviour, self._reply)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            _refuse(exchange, 400, "invalid_request_error", str(error))
        else:
            _send(exchange, 200, {"ok": True})

    async def _chat(self, request: HttpRequest, exchange: Exchange, speech: Speech) -> None:
        desk, loop = self._desk, asyncio.get_running_loop()
        body = _decoded(request, speech)
        if body is None:
            _refuse(exchange, 400, "invalid_request_error", "The body must be a JSON object with `messages`.")
            return
        if len(desk.bodies) < desk.behaviour.keep_bodies:
            desk.bodies.append(body)
        digest = hashlib.blake2b(msgspec.json.encode(body["messages"]), digest_size=12).hexdigest()
        call = desk.ledger.open(digest, request.arrived_s)
        try:
            refusal = _refusal(desk, request)
            if refusal is None:
                await complete(desk, call, body, speech, request, exchange)
            else:
                desk.ledger.settle(call, "failed", loop.time())
                _refuse(exchange, *refusal)
        finally:
            desk.ledger.close(call, loop.time())


def _decoded(request: HttpRequest, speech: Speech) -> dict[str, Any] | None:
    try:
        body = msgspec.json.decode(request.body)
        if speech is ANTHROPIC:
            body = from_anthropic(body)
        elif speech is GOOGLE:
            body = from_google(body, request.path)
    except (msgspec.MsgspecError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return body if isinstance(body, dict) and isinstance(body.get("messages"), list) else None


def _refusal(desk: Desk, request: HttpRequest) -> tuple[int, str, str] | None:
    behaviour = desk.behaviour
    key = key_of(request)
    if behaviour.api_key is not None and key != behaviour.api_key:
        return 401, "invalid_api_key", f"Incorrect API key provided: {key or 'none'}."
    if behaviour.max_parallel is not None and desk.ledger.inflight > behaviour.max_parallel:
        return 429, "rate_limit_exceeded", "Too many requests at once."
    return None


def _send(exchange: Exchange, status: int, document: Any) -> None:
    exchange.send(status, msgspec.json.encode(document))


def _refuse(exchange: Exchange, status: int, code: str, message: str) -> None:
    _send(exchange, status, {"error": {"message": message, "type": code, "code": code, "param": None}})
