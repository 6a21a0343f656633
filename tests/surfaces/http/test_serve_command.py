"""`reasonry serve` as a process."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from reasonry.app import App
from reasonry.surfaces.http.context import Wiring
from reasonry.surfaces.http.serve import serve
from reasonry.surfaces.http.settings import ServerSettings

TOKEN = "laptop-token-8Hs02kqLw1"


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_a43_it_says_its_address_asks_for_the_token_and_ends_in_time_when_it_is_told_to(folder: Path) -> None:
    environ = {**os.environ, "REASONRY_TOKENS": f"operator={TOKEN}", "REASONRY_MODEL": "offline"}
    command = [
        sys.executable,
        "-m",
        "reasonry",
        "serve",
        "--port",
        "0",
        "--json",
        "--store",
        str(folder / "s.db"),
    ]
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
