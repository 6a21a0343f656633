"""Whatever becomes of workers, each run that was accepted comes to its end, once."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from reasonry.app import App
from reasonry.core.budget import Budget
from reasonry.core.events import Answered
from reasonry.core.machine import SET_ASIDE
from reasonry.participants import Participants
from reasonry.queues import Queue, Waiting, Worker, place_of
from reasonry.queues import queue_tables as tables
from reasonry.queues.queue_tables import kills, note_begun, note_ended
from reasonry.supervisor import Supervisor
from tests.servers import ServerProcess

from .working import worker_process

PROBLEM = "Use 4, 9, 10 and 13 to make 24"
OPTIONS = {"expand_width": 2, "max_depth": 3}


def queue_of(app: App) -> Queue:
    place = place_of(app.store)
    assert place is not None
    return Queue(place)


async def accept(app: App, model: str, runs: int) -> list[str]:
    order, _ = app.order(PROBLEM, "tree_of_thoughts", OPTIONS, Budget(calls=200), Participants(model=model))
    return [(await app.engine.accept_once(order, unattended=True))[0] for _ in range(runs)]


async def until_done(app: App, runs: list[str]) -> tuple[int, int]:
    """Return how many answers the runs recorded, and how many calls they count, once all of them are done."""
    async with asyncio.timeout(60):
        while {(await app.store.run(run_id)).status for run_id in runs} != {"done"}:
            await asyncio.sleep(0.1)
    read = [(await app.engine.read(run_id)).run for run_id in runs]
    answers = sum(isinstance(event.event, Answered) for run in read for event in run.events)
    return answers, sum(run.usage.calls for run in read)


async def open_questions(app: App, runs: list[str]) -> int:
    read = [(await app.engine.read(run_id)).run for run_id in runs]
    return sum(len(run.open_effects) for run in read)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_runs_of_a_worker_that_dies_or_ends_are_driven_on_and_only_calls_in_flight_are_paid_twice(
    folder: Path,
) -> None:
    store = str(folder / "runs.db")

    async def check() -> None:
        with ServerProcess(brain="game24", latency_ms=40) as server:
            async with App(store, environ={}) as app:
                runs, queue = await accept(app, server.model, 6), queue_of(app)
                # One of them was accepted by a process that died before it could say so.
                await queue.put([Waiting(run_id) for run_id in runs[1:]])
                with worker_process(store, server.model, "--concurrency", "4") as first:
                    while server.stats()["requests"] < 12:
                        await asyncio.sleep(0.01)
                    first.kill()
                    first.wait()
                    in_flight = await open_questions(app, runs)
                    assert in_flight
                    with worker_process(store, server.model) as second:
                        answers, calls = await until_done(app, runs)
                        # Whoever has died is no longer shown.
                        assert [one.pid for one in await queue.workers()] == [second.pid]
                        adopted = (await queue.standing()).adopted
                        begun = time.monotonic()
                        second.send_signal(signal.SIGTERM)
                        assert second.wait(10) == 0
                        assert time.monotonic() - begun < 5
                requests = server.stats()["requests"]
                assert 0 <= requests - answers <= in_flight
                assert requests <= calls <= requests + in_flight
                assert 1 <= adopted <= 4
                standing = await queue.standing()
                assert (standing.depth, standing.workers) == (0, 0)
                await queue.close()

    asyncio.run(check())


def test_a_run_that_has_cost_three_workers_their_lives_is_set_aside_and_can_be_resumed(folder: Path) -> None:
    async def check() -> None:
        async with App(str(folder / "runs.db"), environ={}) as app:
            queue = queue_of(app)
            poison, innocent = await accept(app, "offline", 2)
            for count in range(3):
                # So it stands where a worker has begun it and died.
                await queue.do(
                    lambda: queue.transact(
                        lambda connection: [
                            note_begun(connection, poison, kills(connection, poison, 0), 0),
                            note_begun(connection, innocent, min(kills(connection, innocent, 0), 1), 0),
                        ]
                    )
                )
                assert await queue.do(lambda: queue.transact(lambda c: kills(c, poison, 0))) == count + 1
            supervisor = Supervisor(app, reopen=lambda recorded: Participants(model=recorded.model))
            worker = Worker(app, queue, supervisor)
            await worker.start()
            try:
                await worker.take_up_unfinished()
                result = await asyncio.wait_for(until_ended(app, poison), 20)
                assert (result.status, result.reason) == ("failed", SET_ASIDE)
                assert (await asyncio.wait_for(until_ended(app, innocent), 20)).status == "done"
                assert (await app.engine.result(poison)).termination.code == SET_ASIDE
                # Who has found the reason resumes it: it waits, and is driven, like any other.
                async with app.engine.open(poison) as opened:
                    await opened.reopen(unattended=True)
                await queue.do(lambda: queue.transact(lambda c: note_ended(c, poison)))
                await queue.put([Waiting(poison)])
                assert (await asyncio.wait_for(until_ended(app, poison), 20)).status == "done"
            finally:
                await asyncio.gather(worker.drain(), supervisor.drain())
                await queue.close()

    asyncio.run(check())


def test_what_cannot_be_read_is_left_out_and_runs_of_a_worker_that_nobody_knows_are_taken_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonry.queues.queue_tables.DEAD_MS", 300)
    monkeypatch.setattr("reasonry.queues.worker.BEAT_S", 0.05)

    async def check() -> None:
        async with App(str(folder / "runs.db"), environ={}) as app:
            queue = queue_of(app)
            garbled, cut, orphan, plain = await accept(app, "offline", 4)
            await queue.put([Waiting(run_id) for run_id in (garbled, cut, orphan, plain)])

            def harm(connection: Any) -> None:
                garble = "UPDATE workflow_input SET inputs = :inputs WHERE workflow_uuid = :id"
                connection.execute(text(garble), {"inputs": '{"positionalArgs": 1}', "id": garbled})
                connection.execute(text("DELETE FROM workflow_input WHERE workflow_uuid = :id"), {"id": cut})
                orphaned = "UPDATE workflow_status SET status = 'PENDING', executor_id = 'x' WHERE workflow_uuid = :id"
                connection.execute(text(orphaned), {"id": orphan})

            await queue.do(lambda: queue.transact(harm))
            supervisor = Supervisor(app, reopen=lambda recorded: Participants(model=recorded.model))
            worker = Worker(app, queue, supervisor, concurrency=1)
            await worker.start()
            try:
                assert (await asyncio.wait_for(until_ended(app, plain), 20)).status == "done"
                assert (await asyncio.wait_for(until_ended(app, orphan), 20)).status == "done"
                for run_id in (garbled, cut):
                    assert (await app.store.run(run_id)).status == "active"
                assert (await queue.standing()).depth == 0
            finally:
                await asyncio.gather(worker.drain(), supervisor.drain())
                await queue.close()

    asyncio.run(check())


@pytest.mark.anyio
async def test_any_number_may_open_a_new_queue_at_once(folder: Path, postgres_url: str) -> None:
    for store, number in ((str(folder / "runs.db"), 6), (postgres_url, 2)):
        async with App(store, environ={}) as app:
            queues = [queue_of(app) for _ in range(number)]
            standings = await asyncio.gather(*(queue.standing() for queue in queues))
            assert {standing.depth for standing in standings} == {0}
            for queue in queues:
                await queue.close()


def test_a_run_counts_the_workers_that_died_with_it_and_not_those_that_put_it_back(folder: Path) -> None:
    async def check() -> None:
        async with App(str(folder / "runs.db"), environ={}) as app:
            queue = queue_of(app)
            runs = await accept(app, "offline", 2)
            await queue.put([Waiting(run_id) for run_id in runs])
            taken = text("UPDATE workflow_status SET status = 'PENDING', executor_id = workflow_uuid")

            def take_and_end() -> list[int]:
                queue.transact(lambda connection: connection.execute(taken))
                for run_id, died in zip(runs, (True, False), strict=True):
                    assert queue.adopt(run_id, died=died) == 1
                return queue.transact(lambda connection: [kills(connection, run_id, 0) for run_id in runs])

            assert await queue.do(take_and_end) == [1, 0]
            # Nobody has begun it since, so it is one death still.
            assert await queue.do(take_and_end) == [1, 0]
            assert (await queue.standing()).depth == 2
            await queue.close()

    asyncio.run(check())


async def until_ended(app: App, run_id: str):
    while (row := await app.store.run(run_id)).status == "active":
        await asyncio.sleep(0.05)
    return row


@pytest.mark.anyio
async def test_a_worker_that_was_silent_itself_gives_the_others_time_to_be_heard(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reasonry.queues.queue_tables.DEAD_MS", 600)
    monkeypatch.setattr("reasonry.queues.worker.BEAT_S", 0.05)
    async with App(str(folder / "runs.db"), environ={}) as app:
        queue = queue_of(app)
        supervisor = Supervisor(app, reopen=lambda recorded: Participants(model=recorded.model))
        worker = Worker(app, queue, supervisor)

        def beat_long_ago(connection: Any) -> None:
            tables.beat(connection, "elsewhere", tables.Process("another machine", 1), "default", 1, 0)
            connection.exec_driver_sql("UPDATE workers SET seen_ms = 0")

        def listed(connection: Any) -> bool:
            return (
                connection.exec_driver_sql("SELECT 1 FROM workers WHERE id = 'elsewhere'").first() is not None
            )

        await queue.do(lambda: queue.transact(beat_long_ago))
        await worker.start()
        try:
            begun = time.monotonic()
            while await queue.do(lambda: queue.transact(listed)):
                await asyncio.sleep(0.02)
            assert 0.5 <= time.monotonic() - begun < 10
        finally:
            await asyncio.gather(worker.drain(), supervisor.drain())
            await queue.close()


@pytest.mark.anyio
async def test_a_run_that_somebody_holds_is_not_put_into_the_queue(folder: Path) -> None:
    store = str(folder / "runs.db")
    async with App(store, environ={}) as app, App(store, environ={}) as server:
        queue = queue_of(app)
        held, lost = await accept(app, "offline", 2)
        supervisor = Supervisor(app, reopen=lambda recorded: Participants(model=recorded.model))
        worker = Worker(app, queue, supervisor, queues=["elsewhere"])
        async with server.engine.open(held):
            await worker.take_up_unfinished()
        assert await queue.find_known([held, lost]) == {lost}
        while await app.store.find_driven([held]):
            await asyncio.sleep(0.01)
        await worker.take_up_unfinished()
        assert await queue.find_known([held, lost]) == {held, lost}
        await queue.close()
