"""`reasonry serve` as a process."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import httpx2
import pytest

from reasonry.app.app import App
from reasonry.errors import UsageError
from reasonry.surfaces.cli import servers, settings
from reasonry.surfaces.cli.settings import Common
from reasonry.surfaces.http.context import Wiring
from reasonry.surfaces.http.server import serve
from reasonry.surfaces.http.server_settings import ServerSettings

TOKEN = "laptop-token-8Hs02kqLw1"
SERVE = [sys.executable, "-m", "reasonry", "serve", "--port=0", "--json", "--store"]


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a43_it_says_its_address_asks_for_the_token_and_ends_in_time_when_it_is_told_to(folder: Path) -> None:
    environ = {**os.environ, "REASONRY_TOKENS": f"operator={TOKEN}", "REASONRY_MODEL": "offline"}
    command = [*SERVE, str(folder / "s.db")]
    begun = time.monotonic()
    with subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        started_s = time.monotonic() - begun
        url = json.loads("".join(lines))["url"]
        with httpx2.Client(base_url=url) as client:
            assert client.get("/healthz").json() == {"status": "ok"}
            assert client.get("/api/runs").status_code == 401
            answer = client.get("/api/runs", headers={"Authorization": f"Bearer {TOKEN}"})
            assert answer.json() == {"runs": [], "next_cursor": None}
            begun = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
    # Nothing is under way, so that the end takes no longer than the start, on a machine that is slow at both.
    assert time.monotonic() - begun < max(5, started_s)
    assert process.returncode == 0
    assert TOKEN not in said
    assert "Traceback" not in said


def test_a_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Wiring) -> None:
        raise ImportError("no module named so")

    monkeypatch.setattr(Wiring, "working", fail)

    async def start() -> None:
        async with App("memory", environ={}) as app:
            await serve(app, ServerSettings(port=0), print)

    with pytest.raises(ImportError, match="no module named so"):
        asyncio.run(start())


@pytest.mark.parametrize("variable", ["REASONRY_TOKENS", "REASONRY_ALLOWED_HOSTS"])
@pytest.mark.parametrize("value", ["", "think.example"])
def test_a_secret_that_was_not_set_lets_nobody_in(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)

    def start(work: Coroutine[Any, Any, None], *_: object) -> None:
        work.close()
        raise LookupError("it starts")

    monkeypatch.setattr(settings, "run_async", start)
    starts = (variable, value) == ("REASONRY_ALLOWED_HOSTS", "")
    with pytest.raises(
        LookupError if starts else UsageError, match="it starts" if starts else "REASONRY_TOKENS"
    ):
        servers.serve(common=Common(store="memory"))


@pytest.mark.skipif(os.name != "posix", reason="limits are POSIX's")
def test_more_connections_than_a_shell_lets_a_process_have_open_shut_nobody_out(folder: Path) -> None:
    limited = ["sh", "-c", 'ulimit -Sn 200 && exec "$@"', "sh", *SERVE, "memory"]
    with subprocess.Popen(limited, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads("".join(process.stdout.readline() for _ in range(3)))["url"]
        host, _, port = url.removeprefix("http://").partition(":")
        with contextlib.ExitStack() as silent:
            try:
                for _ in range(250):
                    silent.enter_context(socket.create_connection((host, int(port))))
                assert httpx2.get(f"{url}/healthz", timeout=60).status_code == 200
            finally:
                process.kill()
