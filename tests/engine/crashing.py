"""Processes that drive runs and are killed at a commit.

`python -m tests.engine.crashing` takes a job as JSON and tells as JSON lines what was acknowledged and what came of it.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.core.budget import Budget
from reasonry.engine.policy import Policy
from reasonry.engine.result import Result
from reasonry.records import Line, RunRow
from reasonry.stores.sqlite import SqliteStore
from reasonry.strategies import STRATEGIES
from reasonry.tools.catalog import load_tools
from tests.forked import ForkedProcess

from .playing import LOOP
from .running import order_and_solve

ALL = {**STRATEGIES, "loop": LOOP}
ROOT = Path(__file__).parents[2]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A drive.

    Args:
        run_id: The run to resume; empty: a new one.
        kill: Die right before or right after commit number so-and-so; None: live.
        mcp: Servers whose tools are used.
        context: Files of the user.
        tools: Callables, as `FILE.py:NAME`.
    """

    path: str
    model: str
    strategy: str = "loop"
    options: dict[str, Any] = {}
    budget: Budget = Budget()
    run_id: str = ""
    kill: tuple[int, str] | None = None
    max_concurrency: int = 8
    problem: str = "Use 4, 9, 10 and 13 to make 24"
    mcp: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()


class MortalStore(SqliteStore):
    """Tells what was acknowledged, and kills its process at one of its commits."""

    def __init__(self, job: Job) -> None:
        super().__init__(Path(job.path))
        self.kill, self.commits = job.kill, 0

    async def create_run(self, row: RunRow, lines: Sequence[Line], *more: Any, **named: Any) -> str:
        self._perhaps_die("before")
        run_id = await super().create_run(row, lines, *more, **named)
        self._acknowledged(lines)
        return run_id

    async def append(self, run_id: str, lines: Sequence[Line], *more: Any, **named: Any) -> None:
        self._perhaps_die("before")
        await super().append(run_id, lines, *more, **named)
        self._acknowledged(lines)

    def _perhaps_die(self, when: str) -> None:
        self.commits += when == "before"
        if self.kill == (self.commits, when):
            os.kill(os.getpid(), signal.SIGKILL)

    def _acknowledged(self, lines: Sequence[Line]) -> None:
        self._perhaps_die("after")
        tell(acknowledged=[[line.seq, line.digest.hex()] for line in lines])


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def drive(job: Job) -> None:
    store = MortalStore(job)
    async with open_app(job, store) as app:
        result = await solve_or_resume(app, job)
        tell(result=result.document())
    await store.close()


def open_app(job: Job, store: SqliteStore | None = None) -> App:
    """Open an app over the store of a job, or over another one."""
    return App(store or job.path, Policy(max_concurrency=job.max_concurrency), strategies=ALL)


async def solve_or_resume(app: App, job: Job) -> Result:
    tools = [tool for one in job.tools for tool in load_tools(one)]
    participants = await app.equip(
        Participants(model=job.model, mcp=job.mcp, context=job.context, tools=tools)
    )
    if job.run_id:
        return await app.resume(job.run_id, participants)
    return await order_and_solve(
        app, job.problem, ALL[job.strategy], options=job.options, budget=job.budget, participants=participants
    )


def perform(job: Job) -> dict[str, Any]:
    """Drive in a process of its own; return the signal it died of (0: none) and what it told before."""
    command = [sys.executable, "-m", "tests.engine.crashing"]
    pipe = subprocess.PIPE
    with ForkedProcess(command, cwd=ROOT, stdin=pipe, stdout=pipe) as process:
        out, _ = process.communicate(msgspec.json.encode(job))
    assert process.returncode in (0, -signal.SIGKILL)
    told: dict[str, Any] = {"signal": -process.returncode, "acknowledged": []}
    for row in map(json.loads, out.splitlines()):
        told["acknowledged"] += row.pop("acknowledged", [])
        told |= row
    return told


if __name__ == "__main__":
    asyncio.run(drive(msgspec.json.decode(sys.stdin.buffer.read(), type=Job)))
