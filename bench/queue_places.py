"""Stores with a queue, runs that wait in it, and processor time of whole processes, for the measurements."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loopback import postgres_server

from reasonry.app import App
from reasonry.core.budget import Budget
from reasonry.participants import Participants
from reasonry.queues import Queue, place_of

ANSWER = '{"steps": ["4 and 9 make 13."], "answer": "13", "done": true}'
"""All that a run of `accept` asks for, in one answer."""

KINDS = ("sqlite", "postgres")


@contextmanager
def new_store(kind: str, folder: str) -> Iterator[tuple[str, int | None]]:
    """Make a store on a disk; return its address, and the process of its server if it has one."""
    if kind == "sqlite":
        with tempfile.TemporaryDirectory(dir=folder) as inside:
            yield str(Path(inside) / "store.db"), None
    else:
        with postgres_server(disk=folder) as server:
            yield server.url, server.pid


def queue_of(app: App) -> Queue:
    """Return the queue of a store."""
    place = place_of(app.store)
    assert place is not None
    return Queue(place)


async def accept(app: App, model: str, problem: str = "What is 4 + 9?") -> str:
    """Write down a run that asks its model once."""
    participants = Participants(model=model)
    order, _ = app.order(problem, "chain_of_thought", {}, Budget(calls=9), participants)
    return (await app.engine.accept_once(order, unattended=True)).run_id


async def until_ended(app: App, runs: list[str]) -> None:
    """Wait until runs have ended."""
    for run_id in runs:
        while (await app.store.run(run_id)).status == "active":
            await asyncio.sleep(0.02)


@contextmanager
def workers(store: str, model: str, count: int, concurrency: int = 32) -> Iterator[list[int]]:
    """Start workers, and wait until they take runs; return their processes."""
    command = [sys.executable, "-m", "reasonry", "worker", "--store", store, "--models", model, "--json"]
    command += ["--concurrency", str(concurrency)]
    with ExitStack() as ending:
        begun = list[subprocess.Popen[str]]()
        for _ in range(count):
            begun.append(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            )
            ending.callback(begun[-1].communicate, timeout=20)
            ending.callback(begun[-1].terminate)
        for process in begun:
            assert process.stdout is not None
            said = process.stdout.readline() + process.stdout.readline()
            assert '"worker"' in said, said + process.stdout.read()
        yield [process.pid for process in begun]


def cpu_s(pid: int | None) -> float:
    """Return the processor time of a process and of all that it has started."""
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return own + sum(map(cpu_s, map(int, children)))
