"""Which runs a worker drives, and which it leaves to others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from reasonry.app import App
from reasonry.engine import journal
from reasonry.participants import Participants
from reasonry.queues import Queue, Waiting, Worker
from reasonry.supervisor import Supervisor

from .test_workers import accept, queue_of, until_ended

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def working(app: App, queue: Queue, **settings: int) -> AsyncIterator[Worker]:
    supervisor = Supervisor(app, reopen=lambda recorded: Participants(model=recorded.model))
    worker = Worker(app, queue, supervisor, **settings)
    await worker.start()
    try:
        yield worker
    finally:
        await asyncio.gather(worker.drain(), supervisor.drain())
        await queue.close()


async def test_runs_are_begun_by_priority_those_of_a_time_to_come_not_before_it_and_no_others_queue(
    folder: Path,
) -> None:
    async with App(str(folder / "runs.db"), environ={}) as app:
        low, middle, high, late, other = await accept(app, "offline", 5)
        queue = queue_of(app)
        waiting = [Waiting(low, priority=9), Waiting(middle), Waiting(late, priority=0, delay_s=1.5)]
        await queue.put([*waiting, Waiting(high, priority=0), Waiting(other, queue="elsewhere")])
        async with working(app, queue, concurrency=1):
            rows = [await until_ended(app, run_id) for run_id in (high, middle, low)]
            assert [row.status for row in rows] == ["done"] * 3
            assert [row.updated_at_ms for row in rows] == sorted(row.updated_at_ms for row in rows)
            assert (await app.store.run(late)).status == "active"
            ended = await until_ended(app, late)
            assert ended.updated_at_ms - ended.created_at_ms >= 1500
            assert (await app.store.run(other)).status == "active"


async def test_a_run_of_a_newer_version_is_left_to_a_worker_of_that_version(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonry.queues.queue.KNOWN_S", 0.3)
    monkeypatch.setattr("reasonry.queues.worker.SETTLED_MS", 0)
    monkeypatch.setattr("reasonry.queues.worker.BEAT_S", 0.05)
    async with App(str(folder / "runs.db"), environ={}) as app:
        with monkeypatch.context() as newer:
            newer.setattr("reasonry.engine.engine.Begun", partial(journal.Begun, schema=journal.SCHEMA + 1))
            (of_newer,) = await accept(app, "offline", 1)
        (of_own,) = await accept(app, "offline", 1)
        queue, lines = queue_of(app), await app.store.lines(of_newer)
        await queue.put([Waiting(of_newer, priority=0), Waiting(of_own)])
        async with working(app, queue, concurrency=1):
            # It does not hold up what the worker can drive.
            assert (await until_ended(app, of_own)).status == "done"
            assert await app.store.lines(of_newer) == lines
            with monkeypatch.context() as newer:
                newer.setattr(journal, "SCHEMA", journal.SCHEMA + 1)
                assert (await until_ended(app, of_newer)).status == "done"
