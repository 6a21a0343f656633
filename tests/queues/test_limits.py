"""Limits hold over all workers of a store together."""

from __future__ import annotations

import asyncio
from pathlib import Path

from reasonry.app import App
from reasonry.queues import Waiting
from tests.servers import ServerProcess

from .test_workers import accept, queue_of
from .working import worker_process

LIMIT = 10


def test_two_workers_keep_a_providers_limit_together_even_if_one_is_killed(folder: Path) -> None:
    store = str(folder / "runs.db")

    async def check() -> None:
        with ServerProcess(brain="game24", latency_ms=20) as server:
            async with App(store, environ={}) as app:
                runs, queue = await accept(app, server.model, 4), queue_of(app)
                rate = "--max-requests-per-minute", f"{LIMIT}", "--concurrency", "2"
                workers = (worker_process(store, server.model, *rate) for _ in range(2))
                with next(workers) as first, next(workers):
                    await queue.put([Waiting(run_id) for run_id in runs])
                    async with asyncio.timeout(20):
                        while server.stats()["requests"] < 3:
                            await asyncio.sleep(0.02)
                        first.kill()
                        # What it had taken ahead, two calls at most, is there again after the minute alone.
                        while server.stats()["requests"] < LIMIT - 2:
                            await asyncio.sleep(0.05)
                    await asyncio.sleep(0.5)
                    assert server.stats()["requests"] <= LIMIT
                await queue.close()

    asyncio.run(check())
