"""A process whose event loop stands still is ended, and says of which run; one that was suspended is not."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from reasonry.stores import open_store
from tests.forked import ForkedProcess
from tests.servers import ServerProcess

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such watch"),
]

HANGS = """
import asyncio, re
from reasonry.engine import watchdog
watchdog.STILL_S, watchdog.TICK_S = 1, 0.05

async def main():
    async with watchdog.WATCHDOG.watching():
        for run_id in ("first", "last"):
            watchdog.WATCHDOG.note_life(run_id)
            await asyncio.sleep(0.2)
        re.fullmatch("(a+)+b", "a" * 64)

asyncio.run(main())
"""
LIVES = """
import asyncio, sys
from reasonry.engine import watchdog
watchdog.STILL_S, watchdog.TICK_S = 2, 0.02

async def main():
    async with watchdog.WATCHDOG.watching():
        await asyncio.sleep(0.1)
        print("alive", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
    print("done")

asyncio.run(main())
"""
SERVE = """
import re, sys
from reasonry.engine import watchdog
from reasonry.core.bodies import Conclusion, go, request
from reasonry.core.effects import Ask
from reasonry.surfaces.cli import main, settings
from tests.engine.playing import LOOP, Strategy, Stage

def think(state):
    yield request(state, Ask(state.problem))
    re.fullmatch("(a+)+b", "a" * 64)

ENDLESS = Strategy(
    name="endless", title="Endless", source="test", summary="Its fold never ends.", options=LOOP.options,
    state=LOOP.state, begin=LOOP.begin, conclude=LOOP.conclude,
    stages=(Stage("think", to=("end",), body=think), Stage("end")),
)
settings.installed_strategies = lambda: {"endless": ENDLESS}
watchdog.STILL_S, watchdog.TICK_S = 4, 0.1
sys.exit(main())
"""
STARTS_SLOWLY = """
import sys, time
from reasonry.engine import watchdog
from reasonry.surfaces.cli import main
from reasonry.surfaces.http import mcp
watchdog.STILL_S, watchdog.TICK_S = 1, 0.05
serving = mcp.serving_mcp

def serve_late(wiring):
    time.sleep(3)
    return serving(wiring)

mcp.serving_mcp = serve_late
sys.exit(main())
"""


@contextmanager
def running(code: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", code, *words]
    with ForkedProcess(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_loop_that_a_regular_expression_holds_ends_its_process_which_names_the_run() -> None:
    with running(HANGS) as process:
        _, said = process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert "the last run folded in: run last;" in said


def test_a_process_that_was_suspended_continues() -> None:
    with running(LIVES) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "alive\n"
        process.send_signal(signal.SIGSTOP)
        # Longer than a loop may stand still.
        time.sleep(2.5)
        assert psutil.Process(process.pid).status() == psutil.STATUS_STOPPED
        process.send_signal(signal.SIGCONT)
        out, said = process.communicate("\n", timeout=120)
    assert (process.returncode, out, said) == (0, "done\n", "")


def test_a_server_may_start_as_slowly_as_a_busy_machine_makes_it() -> None:
    with running(STARTS_SLOWLY, "serve", "--port", "0", "--store", "memory") as process:
        assert process.stderr is not None
        said = process.stderr.readline()
    assert said.startswith("Reasonry is at "), said


def test_the_child_ends_with_its_process() -> None:
    with running(LIVES) as process:
        assert process.stdout is not None
        process.stdout.readline()
        (child,) = psutil.Process(process.pid).children()
        process.kill()
        process.wait()
        child.wait(60)


async def test_a_server_that_hangs_in_a_run_dies_of_it_and_the_death_counts(tmp_path: Path) -> None:
    store = str(tmp_path / "runs.db")
    with ServerProcess(brain="form") as model:
        words = ("serve", "--port", "0", "--store", store, "--models", model.model)
        with running(SERVE, *words) as process:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert said.startswith("Reasonry is at "), said
            url = said.split()[3]
            body = json.dumps({"problem": "p", "strategy": "endless"}).encode()
            asked = urllib.request.Request(f"{url}/api/runs", body, {"content-type": "application/json"})
            run_id = json.load(urllib.request.urlopen(asked, timeout=60))["run_id"]
            said = await asyncio.to_thread(process.stderr.read)
            assert process.wait(60) == -signal.SIGKILL
    assert re.search(rf"stood still for 4 s; the last run folded in: run {run_id};", said), said
    kept = open_store(store)
    assert (await kept.deaths_of(run_id))[0] == 1
    assert (await kept.run(run_id)).status == "active"
    await kept.close()
