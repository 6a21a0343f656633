"""Killed in the middle of its runs, a process leaves none behind that the next one does not bring to its end."""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reasonry.app.app import App
from reasonry.core.events import Answered
from reasonry.supervisor import Jobs, Supervisor
from tests.forked import ForkedProcess
from tests.servers import ServerProcess

from ..queues.killing import open_questions

pytestmark = pytest.mark.slow

RUNS = 5


async def finish(path: str, runs: list[str]) -> tuple[int, int]:
    """Return how many answers the runs recorded, and how many calls they count."""
    async with App(path, environ={}) as app:
        supervisor = Supervisor(app)
        driving = asyncio.create_task(Jobs(app, supervisor, 2).take())
        results = [await asyncio.wait_for(supervisor.wait(app, run_id), 20) for run_id in runs]
        assert {result.status for result in results} == {"done"}
        await supervisor.drain()
        await driving
        read = [(await app.engine.read(run_id)).run for run_id in runs]
        answers = sum(isinstance(event.event, Answered) for run in read for event in run.events)
        return answers, sum(result.usage.calls for result in results)


def test_every_accepted_run_ends_after_a_kill_and_only_calls_in_flight_are_paid_twice(folder: Path) -> None:
    path = str(folder / "runs.db")
    with ServerProcess(brain="game24", latency_ms=30) as server:
        command = [sys.executable, "-m", "tests.supervisor.accepting", path, server.model, str(RUNS)]
        with ForkedProcess(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        ) as killed:
            assert killed.stdout is not None
            runs = [killed.stdout.readline().strip() for _ in range(RUNS)]
            while server.stats()["requests"] < 3 * RUNS:
                time.sleep(0.01)
            killed.kill()
        in_flight = asyncio.run(open_questions(path, runs))
        answers, calls = asyncio.run(finish(path, runs))
        requests = server.stats()["requests"]
        assert 0 <= requests - answers <= in_flight
        # What was in flight and went out counts, whether or not it arrived.
        assert requests <= calls <= requests + in_flight
