"""Calls paid twice after kill -9: none but those in flight.

    uv run python bench/crash.py [--runs 10] [--kills 3] [--latency-ms 50]

A search in 7 rounds is run by the command line over the loopback model server, killed without warning after a random
number of requests, resumed, killed again, …, and resumed to its end. The server gives one sample a request, so that
requests, calls and questions are the same thing and can be set side by side; `--samples served` lets it give several.
What the server counts beyond the requests of an undisturbed run was paid twice. In flight at a kill are the requests
for the questions that the journal has no answer for. Beside it: what a run that keeps nothing, and starts over after
each kill, pays twice.
Target: paid twice ≤ in flight, in every run, and the same answer as the undisturbed run.
"""

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from brains import brain
from game24 import OPTIONS
from loopback import ServerProcess
from shell import command
from wire import progress

from reasonry.app.app import App
from reasonry.core.effects import Ask

PROBLEM = "Use 3, 3, 8 and 8 to make 24"
AT_ONCE = 32


def first(store: str, model: str) -> list[str]:
    options = [one for name, value in OPTIONS.items() for one in ("--option", f"{name}={value}")]
    return command(
        "solve",
        PROBLEM,
        "--strategy",
        "tree_of_thoughts",
        "--model",
        model,
        *options,
        store=store,
        at_once=AT_ONCE,
    )


def finish(arguments: list[str]) -> dict[str, Any]:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    return json.loads(done.stdout)


def kill_after(arguments: list[str], server: ServerProcess, requests: int) -> bool:
    """Start a process and kill it once the server has seen so many requests; whether it still ran."""
    process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while server.stats()["requests"] < requests and process.poll() is None:
        time.sleep(0.002)
    process.kill()
    return process.wait() < 0


async def run_status(store: str, serves_n: bool = False) -> tuple[str | None, int]:
    """Return the run of a store, and in how many requests the questions go that have no answer yet."""
    async with App(store) as app:
        rows = await app.store.runs(limit=1)
        if not rows:
            return None, 0
        run = (await app.engine.read(rows[0].run_id)).run
        open_questions = [one.effect for one in run.open_effects if isinstance(one.effect, Ask)]
        # Samples of one question have the same prompt, and share a request where the server gives several.
        prompts = {(one.system, one.prompt) for one in open_questions}
        return rows[0].run_id, len(prompts) if serves_n else len(open_questions)


def disturbed(
    server: ServerProcess, store: str, chance: random.Random, kills: int, calls: int, serves_n: bool
) -> dict[str, Any]:
    """Run, kill, resume, …, and return what was counted."""
    server.reset()
    arguments, in_flight, over, killed = first(store, server.model), 0, 0, 0
    for _ in range(kills):
        seen = server.stats()["requests"]
        at = chance.randint(seen + 1, max(seen + 2, calls))
        if kill_after(arguments, server, at):
            killed += 1
            over += server.stats()["requests"] - seen
        run_id, open_requests = asyncio.run(run_status(store, serves_n))
        in_flight += open_requests
        if run_id is not None:
            arguments = command("runs", "resume", run_id, store=store, at_once=AT_ONCE)
    document = finish(arguments)
    assert document["status"] == "done", document
    paid = server.stats()["requests"]
    return {
        "killed": killed,
        "twice": paid - calls,
        "in_flight": in_flight,
        "over": over,
        "answer": document["answer"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--latency-ms", type=float, default=50)
    parser.add_argument("--samples", choices=("ignored", "served"), default="ignored")
    given = parser.parse_args()
    serves_n = given.samples == "served"
    chance, rows = random.Random(9), []
    with (
        tempfile.TemporaryDirectory() as folder,
        ServerProcess(
            brain=brain("sure"), latency_ms=given.latency_ms, keep_bodies=0, samples=given.samples
        ) as server,
    ):
        whole = finish(first(str(Path(folder) / "whole.db"), server.model))
        calls = server.stats()["requests"]
        for number in range(1, given.runs + 1):
            store = str(Path(folder) / f"{number}.db")
            rows.append(disturbed(server, store, chance, given.kills, calls, serves_n))
            progress("killed and resumed", number, given.runs)
    killed, twice, in_flight, over = (
        sum(row[key] for row in rows) for key in ("killed", "twice", "in_flight", "over")
    )
    print(f"undisturbed: {calls} requests. {given.runs} runs, {killed} kills")
    print(f"{'paid twice':<28} {twice:6d} requests, {twice / killed:5.1f} a kill")
    print(f"{'in flight at the kills':<28} {in_flight:6d} requests, {in_flight / killed:5.1f} a kill")
    print(f"{'starting over pays twice':<28} {over:6d} requests, {over / killed:5.1f} a kill")
    good = all(row["twice"] <= row["in_flight"] and row["answer"] == whole["answer"] for row in rows)
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
