"""`reasonry serve` in a process of its own, and bare routes of the same HTTP server, for the measurements."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

BARE = """
import socket, sys
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
import httpx2, json

async def echo(request):
    body = await request.json()
    return JSONResponse({"number": body.get("thought_number")})

model = httpx2.AsyncClient(base_url=sys.argv[1], limits=httpx2.Limits(max_connections=2_000), timeout=60)

async def hand_on(request):
    content = await request.body()
    headers = {"content-type": "application/json"}
    sent = model.build_request("POST", "chat/completions", content=content, headers=headers)
    answer = await model.send(sent, stream=True)
    return StreamingResponse(answer.aiter_bytes(), media_type=answer.headers["content-type"])

app = Starlette(routes=[Route("/echo", echo, methods=["POST"]), Route("/hand_on", hand_on, methods=["POST"])])
# asyncio sends small pieces at once (TCP_NODELAY) only where the protocol is named.
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listener.bind(("127.0.0.1", 0))
listener.listen(2_048)
print(listener.getsockname()[1], flush=True)
server = uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False))
server.run(sockets=[listener])
"""


class ServerOnPort:
    """A server in a process of its own; a context manager.

    Attributes:
        port: Where it listens.
    """

    def __init__(self, command: list[str], environ: dict[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **(environ or {})},
        )
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if digits := "".join(filter(str.isdigit, line.rpartition(":")[2])):
                self.port = int(digits)
                return
        raise SystemExit("the server did not start")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=20)

    def kill(self) -> None:
        """End it without warning."""
        self._process.kill()
        self._process.wait()

    @property
    def rss_mib(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    @property
    def cpu_s(self) -> float:
        """Processor time since its start."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def reasonry(folder: str, *options: str, **environ: str) -> ServerOnPort:
    """Return `reasonry serve` over a new store in a folder."""
    store = str(Path(folder) / "server.db")
    command = [sys.executable, "-m", "reasonry", "serve", "--port", "0", "--store", store, "--json", *options]
    return ServerOnPort(command, environ)


def bare(model_url: str = "http://127.0.0.1:9/v1") -> ServerOnPort:
    """Return a server with two routes: `/echo`, and `/hand_on`, which asks a model and hands its answer on."""
    return ServerOnPort([sys.executable, "-c", BARE, model_url])
