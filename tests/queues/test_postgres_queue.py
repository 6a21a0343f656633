"""The queue in PostgreSQL: workers that share it drive each run once."""

from __future__ import annotations

import asyncio

from reasonry.app import App
from reasonry.participants import Participants
from reasonry.queues import Worker
from reasonry.supervisor import Supervisor

from .test_workers import accept, queue_of, until_ended


def test_runs_in_postgresql_wait_in_its_queue_until_a_worker_drives_them(postgres_url: str) -> None:
    async def check() -> None:
        async with App(postgres_url, environ={}) as app:
            queue = queue_of(app)
            runs = await accept(app, "offline", 3)
            supervisor = Supervisor(app, reopen=lambda recorded: Participants(model=recorded.model))
            worker = Worker(app, queue, supervisor)
            await worker.start()
            try:
                await worker.take_up_unfinished()
                async with asyncio.timeout(30):
                    assert {(await until_ended(app, run_id)).status for run_id in runs} == {"done"}
                standing = await queue.standing()
                assert (standing.depth, standing.workers, standing.adopted) == (0, 1, 0)
            finally:
                await asyncio.gather(worker.drain(), supervisor.drain())
                await queue.close()

    asyncio.run(check())
