"""The example tool server, `examples/weather_server.py`, over HTTP: started once for many commands."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.forked import ForkedProcess, forking_python

WEATHER = Path(__file__).parents[2] / "examples" / "weather_server.py"


def weather_command() -> str:
    """Return what `--mcp` is given for the server over standard input and output."""
    return f"{forking_python()} {WEATHER}"


@contextmanager
def over_http(script: Path) -> Iterator[tuple[str, ForkedProcess]]:
    """Start a tool server; return its address and its process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, str(script), "--port", str(port)]
    with ForkedProcess(command, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: _listens(port))
            yield f"http://127.0.0.1:{port}/mcp", process
        finally:
            process.kill()


@contextmanager
def weather_over_http() -> Iterator[str]:
    with over_http(WEATHER) as (url, _):
        yield url


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def until(holds: Any) -> None:
    for _ in range(2000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never came to that")
