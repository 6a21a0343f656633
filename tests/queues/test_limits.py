"""Limits hold over all workers of a store together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from reasonry.app import App
from reasonry.errors import OverloadedError
from reasonry.queues import Waiting
from tests.servers import ServerProcess
from tests.surfaces.http.serving import serve_in_thread

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


def test_all_workers_together_drive_no_more_runs_of_a_queue_than_may_be(folder: Path) -> None:
    store = str(folder / "runs.db")

    async def check() -> None:
        with ServerProcess(brain="game24", latency_ms=100) as server:
            async with App(store, environ={}) as app:
                runs, queue, most = await accept(app, server.model, 7), queue_of(app), 0
                await queue.put([Waiting(runs.pop(), delay_s=3_600)])
                await queue.check_room(2)
                with pytest.raises(OverloadedError):
                    await queue.check_room(1)
                limit = "--max-running", "3", "--concurrency", "2"
                workers = (worker_process(store, server.model, *limit) for _ in range(2))
                with next(workers), next(workers):
                    await queue.put([Waiting(run_id) for run_id in runs])
                    async with asyncio.timeout(40):
                        while (await queue.standing()).depth:
                            most = max(most, await queue.do(lambda: queue.transact(count_at_work)))
                            await asyncio.sleep(0.02)
                assert most == 3
                await queue.close()

    asyncio.run(check())


def count_at_work(connection: Connection) -> int:
    found = connection.execute(text("SELECT count(*) FROM workflow_status WHERE status = 'PENDING'"))
    return found.scalar() or 0


def test_a_server_refuses_what_would_wait_in_a_full_queue_and_takes_what_it_has_taken_before(
    folder: Path,
) -> None:
    with serve_in_thread(str(folder / "runs.db"), queued=True, max_queued=1) as serving:
        client, asked = serving.client(), {"problem": "12 + 30", "model": "offline"}
        first = client.post("/api/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert first.status_code in (200, 201, 202), first.text
        refused = client.post("/api/runs", json=asked)
        assert (refused.status_code, "overloaded" in refused.text) == (503, True), refused.text
        assert int(refused.headers["Retry-After"]) >= 1
        assert len(client.get("/api/runs").json()["runs"]) == 1
        again = client.post("/api/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert again.json()["run_id"] == first.json()["run_id"]
