"""A model server on the loopback interface, for tests: OpenAI-compatible, scriptable, faulty on demand.

    with ModelServer(latency_ms=50, replies=["Paris"]) as server:
        model = reasonry.models.open_model(server.model)
        …
        assert server.stats()["requests"] == 1

It also answers `/v1/messages` as Anthropic does and `…:generateContent` as Google does; `bodies` has those requests in
OpenAI's form. It runs in a thread with a loop of its own, so synchronous and asynchronous tests use it alike.
Other processes steer it over HTTP: `GET /_stats`, `GET /_bodies`, `POST /_reset` with a `Behaviour` as JSON.
"""

import asyncio
import contextlib
import logging
import threading
from typing import Any, Self

import msgspec
from aiohttp import web

from .behaviour import Behaviour, changed
from .brain import Reply
from .completion import ServerState, complete
from .dialects import ANTHROPIC, GOOGLE, from_anthropic, from_google
from .exchange import Exchange
from .speech import OPENAI, Speech

MAX_BODY_BYTES = 64_000_000

QUIET = logging.getLogger("reasonry.tests.server")
QUIET.addHandler(logging.NullHandler())
QUIET.propagate = False
"""What clients break is no news here."""


class ModelServer:
    """The server; a context manager.

    Args:
        reply: Answers what the queue does not; called on the server's thread.
        hold: No streamed reply ends before it is set.
        settings: Those of `Behaviour`.

    Attributes:
        url: The base URL that clients are given, `…/v1`.
        model: As a user would write it after `--model`.
    """

    def __init__(
        self, *, reply: Reply | None = None, hold: threading.Event | None = None, **settings: Any
    ) -> None:
        self._reply, self._hold = reply, hold
        self._port = 0
        self._state = ServerState(changed(Behaviour(), settings), reply, hold)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runner: web.AppRunner | None = None
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
        return f"openai-compatible:{self.url}#{self._state.behaviour.models[0]}"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the requests since the last reset, oldest first."""
        return list(self._state.bodies)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._open())

    def drop_connections(self) -> None:
        """Close all connections, as a server does with idle ones."""
        for connection in self._open():
            if self._loop is not None and connection.transport is not None:
                self._loop.call_soon_threadsafe(connection.transport.close)

    def _open(self) -> list[Any]:
        server = None if self._runner is None else self._runner.server
        return [] if server is None else list(server.connections)

    def stats(self) -> dict[str, Any]:
        """Return the figures since the last reset; see `Ledger.stats`."""
        return self._state.ledger.stats()

    def reset(self, *, reply: Reply | None = None, **settings: Any) -> None:
        """Forget all that was counted and change these settings. Calls in flight end as they began.

        Args:
            reply: None keeps the one there is.
            settings: Those of `Behaviour`.
        """
        self._reply = reply or self._reply
        self._state = ServerState(changed(self._state.behaviour, settings), self._reply, self._hold)

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
        app = web.Application(client_max_size=MAX_BODY_BYTES, logger=QUIET)
        app.router.add_route("*", "/{path:.*}", self._answer)
        # A client that goes away ends the work for it.
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, logger=QUIET)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port, backlog=512).start()
        self._port = self._runner.addresses[0][1]

    async def serve(self) -> None:
        """Serve until stopped."""
        if self._runner is None:
            await self.listen()
        assert self._runner is not None
        self._ready.set()
        try:
            await self._stop.wait()
        finally:
            for connection in self._open():
                if connection.transport is not None:
                    connection.transport.abort()
            await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        exchange = Exchange(request, await request.read())
        with contextlib.suppress(ConnectionError):
            await self._handle(exchange)
        return exchange.response

    async def _handle(self, exchange: Exchange) -> None:
        match exchange.method, exchange.path:
            case "POST", "/v1/chat/completions":
                await self._chat(exchange, OPENAI)
            case "POST", "/v1/messages":
                await self._chat(exchange, ANTHROPIC)
            case "POST", path if path.endswith((":generateContent", ":streamGenerateContent")):
                await self._chat(exchange, GOOGLE)
            case "GET", "/v1/models":
                models = [{"id": name, "object": "model"} for name in self._state.behaviour.models]
                await _send(exchange, 200, {"object": "list", "data": models})
            case "GET", "/api/tags":
                await _send(
                    exchange, 200, {"models": [{"name": name} for name in self._state.behaviour.models]}
                )
            case "GET", "/_stats":
                await _send(exchange, 200, self.stats())
            case "GET", "/_bodies":
                await _send(exchange, 200, self.bodies)
            case "POST", "/_reset":
                await self._reset_over_http(exchange)
            case method, path:
                await _refuse(exchange, 404, "not_found", f"There is nothing at {method} {path}.")

    async def _reset_over_http(self, exchange: Exchange) -> None:
        try:
            behaviour = msgspec.json.decode(exchange.body or b"{}", type=Behaviour)
            self._state = ServerState(behaviour, self._reply, self._hold)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            await _refuse(exchange, 400, "invalid_request_error", str(error))
        else:
            await _send(exchange, 200, {"ok": True})

    async def _chat(self, exchange: Exchange, speech: Speech) -> None:
        state, loop = self._state, asyncio.get_running_loop()
        body = _decoded(exchange, speech)
        if body is None:
            await _refuse(
                exchange, 400, "invalid_request_error", "The body must be a JSON object with `messages`."
            )
            return
        if len(state.bodies) < state.behaviour.keep_bodies:
            state.bodies.append(body)
        call = state.ledger.open(exchange.arrived_s)
        try:
            if state.behaviour.api_key in (None, exchange.key):
                await complete(state, call, body, speech, exchange)
            else:
                state.ledger.settle(call, "failed", loop.time())
                message = f"Incorrect API key provided: {exchange.key or 'none'}."
                await _refuse(exchange, 401, "invalid_api_key", message)
        finally:
            state.ledger.close(call, loop.time())


def _decoded(exchange: Exchange, speech: Speech) -> dict[str, Any] | None:
    try:
        body = msgspec.json.decode(exchange.body)
        if speech is ANTHROPIC:
            body = from_anthropic(body)
        elif speech is GOOGLE:
            body = from_google(body, exchange.path)
    except (msgspec.MsgspecError, ValueError, TypeError, AttributeError, RecursionError):
        return None
    return body if isinstance(body, dict) and isinstance(body.get("messages"), list) else None


async def _send(exchange: Exchange, status: int, document: Any) -> None:
    await exchange.send(status, msgspec.json.encode(document))


async def _refuse(exchange: Exchange, status: int, code: str, message: str) -> None:
    await _send(exchange, status, {"error": {"message": message, "type": code, "code": code, "param": None}})
