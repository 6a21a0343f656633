"""Processes that drive runs and are killed at a commit; forked from one that has everything loaded, so each is cheap.

`python -m tests.engine.crashing` takes jobs as JSON lines and answers each with a JSON line: the signal its process
died of (0: none) and what it told before.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

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
from tests.forked import ForkedProcess, settle

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

    def __init__(self, job: Job, tell: int) -> None:
        super().__init__(Path(job.path))
        self.kill, self.tell, self.commits = job.kill, tell, 0

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
        tell(self.tell, acknowledged=[[line.seq, line.digest.hex()] for line in lines])


def tell(pipe: int, **what: Any) -> None:
    os.write(pipe, json.dumps(what).encode() + b"\n")


async def drive(job: Job, pipe: int) -> None:
    store = MortalStore(job, pipe)
    async with open_app(job, store) as app:
        result = await solve_or_resume(app, job)
        tell(pipe, result=result.document())
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
    """Fork, drive in the child, and return what it told."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            asyncio.run(drive(job, writing))
        except BaseException as error:
            tell(writing, error=f"{type(error).__name__}: {error}")
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        rows = [json.loads(row) for row in pipe.read().splitlines()]
    _, status = os.waitpid(child, 0)
    told: dict[str, Any] = {"signal": status & 0x7F, "acknowledged": []}
    for row in rows:
        told["acknowledged"] += row.pop("acknowledged", [])
        told |= row
    return told


class Nursery:
    """The process that forks the others; a context manager.

    Where a job is given up, by a time-out of the test, say, it ends with its children: its answer would be taken for
    that of the next job.
    """

    def __enter__(self) -> Self:
        self._process = self._start()
        return self

    def _start(self) -> subprocess.Popen[bytes]:
        return ForkedProcess(
            [sys.executable, "-m", "tests.engine.crashing"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with self._process:
            pass

    def perform(self, job: Job) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(msgspec.json.encode(job) + b"\n")
            self._process.stdin.flush()
            told = json.loads(self._process.stdout.readline())
        except BaseException:
            self._end()
            self._process = self._start()
            raise
        assert "error" not in told, told["error"]
        return told


def load() -> None:
    """Import what a drive needs and drive a run, so that children find all read, compiled and cached."""
    for name in ("choose", "openai_compatible", "http_session"):
        import_module(f"reasonry.models.{name}")
    for name in ("knowledge", "logic_kernel", "mcp_client", "sandbox_monty", "verifiers"):
        import_module(f"reasonry.tools.{name}")
    for name in ("apsw.sqlite_extra", "importlib.resources.readers"):
        import_module(name)
    for name in ("aiohttp", "apsw", "encodings.idna", "encodings.utf_8_sig", "json_repair", "pydantic_monty"):
        import_module(name)
    for name in ("mcp.client.streamable_http", "anyio._backends._asyncio", "anyio.streams.tls", "httpcore2"):
        import_module(name)
    with TemporaryDirectory() as folder, Path(os.devnull).open("wb") as nobody:
        job = Job(path=str(Path(folder) / "first.db"), model="offline", strategy="tree_of_thoughts")
        asyncio.run(drive(job, nobody.fileno()))
    settle()
    assert threading.active_count() == 1, "what has threads cannot be forked"


if __name__ == "__main__":
    load()
    # What a child need not look through for garbage, it need not copy.
    gc.freeze()
    for line in sys.stdin.buffer:
        sys.stdout.write(json.dumps(perform(msgspec.json.decode(line, type=Job))) + "\n")
        sys.stdout.flush()
