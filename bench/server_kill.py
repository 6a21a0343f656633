"""The server: killed without warning in the middle of many runs, and started again.

    uv run python bench/server_kill.py [--runs 200] [--latency-ms 60] [--folder DIR]

Runs are begun over HTTP against the loopback model server; once a third of what an undisturbed run asks is answered,
`kill -9`. The same command is started again, and nothing else is done. In flight at the kill are the questions that the
journals have no answer for; paid twice is what the model server counts beyond the answers recorded in the end.
Target: every run ends, paid twice ≤ in flight.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from loopback import ServerProcess
from reasonry_server import ServerOnPort, reasonry

from reasonry.app.app import App
from reasonry.core.effects import Ask
from reasonry.core.events import Answered

PROBLEM = "Use 4, 9, 10 and 13 to make 24"
OPTIONS = {"expand_width": 2, "max_depth": 3}
MODEL = "loopback"
WAIT_S = 120


def begin(server: ServerOnPort) -> str:
    body = {"problem": PROBLEM, "strategy": "tree_of_thoughts", "options": OPTIONS, "budget": {"calls": 200}}
    request = urllib.request.Request(
        f"http://127.0.0.1:{server.port}/api/runs",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)["run_id"]


async def look(store: str, runs: list[str]) -> tuple[int, int, int]:
    """Return how many of the runs have ended, how many questions are open, and how many answers are recorded."""
    async with App(store, environ={}) as app:
        read = [(await app.engine.read(run_id)).run for run_id in runs]
    ended = sum(run.snapshot.status != "active" for run in read)
    asked = sum(isinstance(pending.effect, Ask) for run in read for pending in run.open_effects)
    return ended, asked, sum(isinstance(event.event, Answered) for run in read for event in run.events)


def active(server: ServerOnPort) -> bool:
    url = f"http://127.0.0.1:{server.port}/api/runs?status=active&limit=1"
    with urllib.request.urlopen(url, timeout=30) as response:
        shown: dict[str, Any] = json.load(response)
    return bool(shown["runs"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--latency-ms", type=int, default=60)
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir=given.folder) as folder,
        ServerProcess(brain="game24", latency_ms=given.latency_ms) as model,
    ):
        store, settings = str(Path(folder) / "server.db"), {"REASONRY_MODELS": f"{MODEL}={model.model}"}
        with reasonry(folder, **settings) as server:
            with ThreadPoolExecutor(32) as clients:
                runs = [*clients.map(begin, [server] * given.runs)]
            while model.stats()["requests"] < 3 * given.runs:
                time.sleep(0.01)
            server.kill()
        ended, in_flight, _ = asyncio.run(look(store, runs))
        began = time.monotonic()
        with reasonry(folder, **settings) as server:
            while active(server) and time.monotonic() - began < WAIT_S:
                time.sleep(0.1)
            took_s = time.monotonic() - began
        all_ended, _, answers = asyncio.run(look(store, runs))
        twice = model.stats()["requests"] - answers
    print(f"{given.runs} runs: {ended} had ended at the kill, {all_ended} {took_s:.1f} s after the restart")
    print(f"in flight {in_flight}, paid twice {twice}, recorded answers {answers:,}")
    good = all_ended == given.runs and 0 <= twice <= in_flight
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
