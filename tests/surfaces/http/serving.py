"""A real server on a free port of this machine, in a thread of its own, for tests."""

import asyncio
import hashlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from uvicorn.loops.auto import auto_loop_factory

from reasonry.app.app import App
from reasonry.surfaces.http.server import DrainingServer, create_server
from reasonry.surfaces.http.server_settings import ServerSettings

TOKENS = {"ana": "ana-token-7Zt4qRk0Vb", "ben": "ben-token-93XcLmPw5s"}
"""Of the server of the fixture `guarded`."""


@dataclass
class Serving:
    """A server that runs, and clients of it."""

    url: str
    app: App
    stop: Callable[[], None]
    """Does what a signal does."""
    clients: list[httpx2.Client] = field(default_factory=list)

    def client(self, token: str | None = None, **options: Any) -> httpx2.Client:
        """Return a client; it is closed with the server."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        # Without TLS no certificates are read: that takes longer than most requests.
        options = {"timeout": 10, "verify": False, **options}
        client = httpx2.Client(base_url=self.url, headers=headers, **options)
        self.clients.append(client)
        return client


def digests(tokens: Mapping[str, str]) -> dict[bytes, str]:
    """Return principals by the digest of their token, as `ServerSettings.tokens` has them."""
    return {hashlib.sha256(token.encode()).digest(): name for name, token in tokens.items()}


@contextmanager
def serve_in_thread(
    store: str = "memory", environ: Mapping[str, str] | None = None, **settings: Any
) -> Iterator[Serving]:
    """Serve an app on a free port; what waits is cancelled at the end.

    Args:
        store: As `--store` takes it.
        environ: The environment of the app; none of this process's is seen.
        settings: Of `ServerSettings`; `tokens` as principal → token.
    """
    tokens = digests(settings.pop("tokens", {}))
    app = App(store, environ={"REASONRY_MODEL": "offline", **(environ or {})})
    # On a busy machine a store may take long, and nothing is wrong with it.
    chosen = ServerSettings(tokens=tokens, **{"drain_s": 1, "store_timeout_s": 30, **settings})
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    ready = threading.Event()

    async def start() -> None:
        ready.set()

    server = DrainingServer(create_server(app, chosen), chosen, start)

    async def run() -> None:
        async with app:
            await server.serve(sockets=[listener])

    def work() -> None:
        with asyncio.Runner(loop_factory=auto_loop_factory()) as runner:
            runner.run(run())

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while not ready.wait(0.05):
        assert thread.is_alive(), "the server did not start"
    serving = Serving(f"http://127.0.0.1:{port}", app, lambda: setattr(server, "should_exit", True))
    try:
        yield serving
    finally:
        for client in serving.clients:
            client.close()
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive(), "the server did not end"


def in_flight(client: httpx2.Client) -> float:
    (found,) = re.findall(r"^reasonry_requests_in_flight (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return float(found)


def eventually(holds: Any, within_s: float = 60.0) -> bool:
    """Whether something comes to hold in time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            if holds():
                return True
        except httpx2.HTTPError:
            pass
        time.sleep(0.02)
    return False


def script_model(path: Path, *replies: tuple[str, str]) -> str:
    """Write a script of (stage, reply) and return the spec of the model that plays it."""
    lines = [json.dumps({"stage": stage, "reply": reply}) for stage, reply in replies]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return f"scripted:{path}"
