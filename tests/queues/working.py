"""Runs that are begun as jobs, and workers as processes."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from reasonry.app.app import App
from reasonry.core.budget import Budget
from reasonry.core.events import Answered
from reasonry.queues import Worker, postgres_store
from reasonry.records import JobOptions, RunRow
from reasonry.supervisor import Supervisor
from tests.forked import ForkedProcess

from ..engine.running import request_of
from .killing import OPTIONS, PROBLEM

PATIENCE_S = 200
"""How long a test waits for what is to happen, on however busy a machine."""


async def accept(
    app: App, model: str, runs: int, job: JobOptions = JobOptions(), problem: str = PROBLEM
) -> list[str]:
    """Begin runs as jobs."""
    wanted = {"options": OPTIONS, "budget": Budget(calls=200), "model": model}
    order, _ = app.order(request_of(problem, "tree_of_thoughts", **wanted))
    return [(await app.engine.accept(order, job=job)).run_id for _ in range(runs)]


async def until_ended(app: App, run_id: str) -> RunRow:
    """Return a run once it has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while (row := await app.store.run(run_id)).status == "active":
            await asyncio.sleep(0.02)
    return row


async def until_done(app: App, runs: Sequence[str]) -> int:
    """Return how many answers runs recorded, once all of them are done."""
    for run_id in runs:
        row = await until_ended(app, run_id)
        assert row.status == "done", row
    read = [(await app.engine.read(run_id)).run for run_id in runs]
    return sum(isinstance(event.event, Answered) for run in read for event in run.events)


@asynccontextmanager
async def working(app: App, *queues: str, concurrency: int = 8) -> AsyncIterator[Supervisor]:
    """Have a worker of this process drive jobs."""
    supervisor = Supervisor(app)
    worker = Worker(postgres_store(app.store), supervisor, queues or ("default",), concurrency)
    at_work = asyncio.create_task(worker.work())
    try:
        yield supervisor
    finally:
        worker.end()
        await asyncio.gather(supervisor.drain(), at_work)


@contextmanager
def worker_process(
    store: str, model: str, *options: str, program: Sequence[str] = ("reasonry",)
) -> Iterator[subprocess.Popen[str]]:
    """Start a worker; continue once it drives."""
    command = [sys.executable, "-m", *program, "worker", "--store", store, "--models", model, *options]
    with ForkedProcess(command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            assert process.stderr is not None
            said = [process.stderr.readline()]
            while "driving up to" not in said[-1]:
                said.append(process.stderr.readline())
                assert said[-1], said
            yield process
        finally:
            process.kill()
