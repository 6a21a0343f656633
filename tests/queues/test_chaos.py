"""Servers and workers that are killed or frozen while runs are at work; at length in `bench/queue_chaos.py`."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from reasonry.app import App
from reasonry.queues import Waiting
from tests.servers import ServerProcess

from .test_workers import OPTIONS, PROBLEM, accept, open_questions, queue_of, until_done
from .working import worker_process

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's"),
]


async def until_asked(server: ServerProcess, requests: int) -> None:
    async with asyncio.timeout(60):
        while server.stats()["requests"] < requests:
            await asyncio.sleep(0.01)


async def test_a_frozen_workers_runs_go_on_elsewhere_and_thawed_it_writes_nothing_to_them(
    postgres_url: str,
) -> None:
    hasty = {"program": ("tests.queues.hasty",)}
    with ServerProcess(brain="game24", latency_ms=100) as server:
        async with App(postgres_url, environ={}) as app:
            runs, queue = await accept(app, server.model, 6), queue_of(app)
            await queue.put([Waiting(run_id) for run_id in runs])
            share = "--concurrency", "3"
            with (
                worker_process(postgres_url, server.model, *share, **hasty) as frozen,
                worker_process(postgres_url, server.model, *share, **hasty) as other,
            ):
                await until_asked(server, 12)
                frozen.send_signal(signal.SIGSTOP)
                in_flight = await open_questions(app, runs)
                answers, _ = await until_done(app, runs)
                assert 0 <= server.stats()["requests"] - answers <= in_flight
                lines = [await app.store.lines(run_id) for run_id in runs]
                frozen.send_signal(signal.SIGCONT)
                # It goes on with others, those of a worker that is killed among them.
                more, asked = await accept(app, server.model, 6), server.stats()["requests"]
                await queue.put([Waiting(run_id) for run_id in more])
                await until_asked(server, asked + 8)
                other.kill()
                other.wait()
                in_flight += await open_questions(app, more)
                all_answers, _ = await until_done(app, [*runs, *more])
                assert 0 <= server.stats()["requests"] - all_answers <= in_flight
                assert [await app.store.lines(run_id) for run_id in runs] == lines
                assert frozen.poll() is None
            await queue.close()


class Server:
    """`reasonry serve`, started again at the same port whenever it was killed."""

    def __init__(self, store: str, model: str) -> None:
        self._command = [sys.executable, "-m", "reasonry", "serve", "--store", store, "--models", model]
        self.url = self.start("0")

    def start(self, port: str) -> str:
        self.process = subprocess.Popen([*self._command, "--port", port], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if line.startswith("Reasonry is at "):
                return line.split()[3]
        raise AssertionError("the server did not start")

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


async def test_runs_that_a_server_accepted_end_right_whatever_is_killed(folder: Path) -> None:
    store = str(folder / "runs.db")
    with ServerProcess(brain="game24", latency_ms=60) as model:
        server = Server(store, model.model)
        try:
            body = {"problem": PROBLEM, "strategy": "tree_of_thoughts", "options": OPTIONS}
            with httpx2.Client(base_url=server.url) as client:
                runs = [client.post("/api/runs", json=body).json()["run_id"] for _ in range(8)]
            async with App(store, environ={}) as app:
                await until_asked(model, 10)
                server.kill()
                in_flight = await open_questions(app, runs)
                with worker_process(store, model.model, "--concurrency", "4") as worker:
                    server.start(server.url.rpartition(":")[2])
                    await until_asked(model, 35)
                    worker.kill()
                    in_flight += await open_questions(app, runs)
                    answers, _ = await until_done(app, runs)
                assert 0 <= model.stats()["requests"] - answers <= in_flight
                assert {(await app.store.run(run_id)).answer for run_id in runs} == {
                    (await app.store.run(runs[0])).answer
                }
        finally:
            server.kill()
