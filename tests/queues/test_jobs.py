"""Which jobs a worker drives, in which order, and which it leaves to others."""

import asyncio
import os
import re
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from reasonry.app.app import App
from reasonry.engine import journal
from reasonry.engine.policy import Policy
from reasonry.errors import StoreError, UsageError
from reasonry.queues import Later, perform_job, postgres_store
from reasonry.records import JobOptions
from reasonry.stores.copy import copy_store
from reasonry.stores.postgres import jobs
from reasonry.stores.row_store import RowStore
from reasonry.supervisor import Supervisor
from tests.engine.playing import STRATEGIES, GatedModel
from tests.engine.test_engine import order
from tests.servers.postgres import postgres_server
from tests.surfaces.http.serving import serve_in_thread

from .working import PATIENCE_S, accept, until_ended, working

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose connections hang ends its process, which is that of the tests here: busy machines are slow."""
    monkeypatch.setattr("reasonry.queues.worker.STUCK_S", PATIENCE_S)


async def test_jobs_are_begun_by_priority_those_of_a_time_to_come_not_before_it_and_no_others_queue(
    postgres_url: str,
) -> None:
    async with App(postgres_url, environ={}) as app:
        now = time.time()
        tomorrow = JobOptions(priority=0, at_ms=int((now + 86_400) * 1_000))
        soon = JobOptions(priority=0, at_ms=int((now + 1) * 1_000))
        (low,) = await accept(app, "offline", 1, JobOptions(priority=9))
        (middle,) = await accept(app, "offline", 1)
        (much_later,) = await accept(app, "offline", 1, tomorrow)
        (high,) = await accept(app, "offline", 1, JobOptions(priority=0))
        (other,) = await accept(app, "offline", 1, JobOptions(queue="elsewhere"))
        assert (await app.store.queue_status()).depth == 4
        (late,) = await accept(app, "offline", 1, soon)
        async with working(app, concurrency=1):
            rows = [await until_ended(app, run_id) for run_id in (high, middle, low)]
            assert [row.status for row in rows] == ["done"] * 3
            assert [row.updated_at_ms for row in rows] == sorted(row.updated_at_ms for row in rows)
            assert (await until_ended(app, late)).updated_at_ms >= (soon.at_ms or 0)
            for waits in (other, much_later):
                assert (await app.store.run(waits)).status == "active"
            queue = await app.store.queue_status()
            assert (queue.depth, queue.workers) == (1, 1)
            assert len(await postgres_store(app.store).workers()) == 1
    async with App(postgres_url, environ={}) as app:
        assert (await app.store.queue_status()).workers == 0


async def test_of_two_owners_the_one_with_few_runs_does_not_wait_for_the_one_with_many(
    postgres_url: str,
) -> None:
    async with App(postgres_url, environ={}) as app:
        many = await accept(app.for_owner("ann"), "offline", 200)
        few = await accept(app.for_owner("bob"), "offline", 5)
        async with working(app, concurrency=4):
            ended = max([(await until_ended(app, run_id)).updated_at_ms for run_id in few])
        of_many = await app.for_owner("ann").store.runs(limit=1000)
        assert len(of_many) == len(many)
        assert sum(row.status == "done" and row.updated_at_ms <= ended for row in of_many) < 50


async def test_a_job_comes_with_its_run_or_not_at_all_and_one_that_was_lost_is_put_again(
    postgres_url: str,
) -> None:
    async with App(postgres_url, environ={}) as app:
        store = postgres_store(app.store)
        first, second = await accept(app, "offline", 2)

        def lose(tx: jobs.sql.Tx) -> None:
            tx.execute("DELETE FROM procrastinate_jobs WHERE args->>'run_id' = $1", (first,))

        await store.write(lose)
        async with app.engine.open(second) as opened:
            await opened.stop("cancelled", "by its user")
            # Whoever resumes it as a job gives it out of hand at once.
            await opened.reopen(job=JobOptions())
            async with App(postgres_url, environ={}) as another:
                assert await another.store.find_driven([second]) == set()
        assert await store.put_missing_jobs() == 1
        assert await store.put_missing_jobs() == 0
        async with working(app):
            assert (await until_ended(app, first)).status == "done"
            assert (await until_ended(app, second)).status == "done"


def test_a_database_that_goes_while_a_job_is_put_is_told_as_one_that_goes_at_any_other_time(
    postgres_url: str,
) -> None:
    gone = psycopg.connect(re.sub(r"[?&]reasonry_schema=\w+", "", postgres_url))
    gone.close()
    tx: Any = SimpleNamespace(rows=lambda *_: [(0,)], connection=gone)
    with pytest.raises(psycopg.OperationalError):
        jobs.put(tx, "run", "owner", JobOptions())


async def test_a_store_that_was_copied_has_its_jobs(postgres_url: str, folder: Path) -> None:
    async with App(str(folder / "runs.db"), environ={}) as source, App(postgres_url, environ={}) as app:
        (run_id,) = await accept(source, "offline", 1)
        await copy_store(source.store, app.store)
        assert (await app.store.queue_status()).depth == 1
        async with working(app):
            assert (await until_ended(app, run_id)).status == "done"


async def test_a_run_of_a_newer_version_is_left_to_a_worker_of_that_version(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with App(postgres_url, environ={}) as app:
        with monkeypatch.context() as newer:
            newer.setattr("reasonry.app.requests.Begun", partial(journal.Begun, schema=journal.SCHEMA + 1))
            (of_newer,) = await accept(app, "offline", 1)
        (of_own,) = await accept(app, "offline", 1)
        lines = await app.store.lines(of_newer)
        with pytest.raises(Later) as later:
            await perform_job(Supervisor(app), of_newer)
        assert later.value.delay_s == 60
        async with working(app, concurrency=1):
            # It does not hold up what the worker can drive.
            assert (await until_ended(app, of_own)).status == "done"
        assert await app.store.lines(of_newer) == lines


async def test_what_older_workers_need_of_the_tables_stays_until_they_have_ended(postgres_url: str) -> None:
    last = max(name for name in jobs.pending_scripts(frozenset()) if "_post_" in name)

    async def applied() -> bool:
        async with App(postgres_url, environ={}) as app:
            store = postgres_store(app.store)
            found = await store.read(lambda tx: tx.rows("SELECT 1 FROM migration WHERE name = $1", (last,)))
            return bool(found)

    async def change(*statements: str) -> None:
        async with App(postgres_url, environ={}) as app:
            for statement in statements:
                await postgres_store(app.store).write(lambda tx, text=statement: tx.execute(text))

    assert await applied()
    await change(
        "INSERT INTO procrastinate_workers DEFAULT VALUES", f"DELETE FROM migration WHERE name = '{last}'"
    )
    assert not await applied()
    await change("DELETE FROM procrastinate_workers")
    assert await applied()


async def test_procrastinates_own_command_sees_the_queue(postgres_url: str) -> None:
    async with App(postgres_url, environ={}) as app:
        await accept(app, "offline", 2)
    words = "procrastinate --app reasonry.queues.shell.app shell list_queues"
    command, environ = [sys.executable, "-m", *words.split()], {**os.environ, "REASONRY_STORE": postgres_url}
    done = await asyncio.to_thread(subprocess.run, command, env=environ, capture_output=True, text=True)
    assert "default: 2 jobs" in done.stdout, done


def test_a_worker_is_for_postgresql_and_says_so(folder: Path) -> None:
    with pytest.raises(UsageError, match="reasonry worker needs a PostgreSQL store"):
        postgres_store(App(str(folder / "runs.db"), environ={}).store, "reasonry worker")


def test_a_server_refuses_jobs_that_too_many_wait_before_and_takes_what_it_has_taken_before(
    folder: Path,
) -> None:
    with serve_in_thread(str(folder / "runs.db"), concurrency=0, max_queued=1) as serving:
        client, asked = serving.client(), {"problem": "Use 12 and 30 to make 42", "model": "offline"}
        first = client.post("/api/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert first.status_code == 201, first.text
        deadline = time.monotonic() + 60
        while client.get("/api/queue").json()["depth"] < 1:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        refused = client.post("/api/runs", json=asked)
        assert (refused.status_code, "overloaded" in refused.text) == (503, True), refused.text
        assert int(refused.headers["Retry-After"]) >= 1
        assert len(client.get("/api/runs").json()["runs"]) == 1
        again = client.post("/api/runs", json=asked, headers={"Idempotency-Key": "one"})
        assert again.json()["run_id"] == first.json()["run_id"]


@pytest.mark.parametrize("opens", ["before", "after"])
async def test_a_job_that_is_paused_elsewhere_and_resumed_while_its_calls_are_in_flight_ends(
    postgres_url: str, opens: str
) -> None:
    async with (
        App(postgres_url, Policy(max_concurrency=2), environ={}, strategies=STRATEGIES) as app,
        App(postgres_url, environ={}, strategies=STRATEGIES) as another,
        working(app),
        asyncio.timeout(PATIENCE_S),
    ):
        for _ in range(4):
            model = GatedModel()
            for each in (app, another):
                each.pool._recorded_model = lambda spec, named, model=model: model  # pyright: ignore
            run_id = (await app.engine.accept(order(steps=1, width=6), job=JobOptions())).run_id
            while model.calls < 2:
                await asyncio.sleep(0.01)
            server = Supervisor(another)
            await server.pause(another, run_id)
            if opens == "before":
                model.gate.set()
            await server.resume(another, run_id, job=JobOptions())
            model.gate.set()
            row = await until_ended(app, run_id)
            assert (row.outcome, model.calls) == ("answered", 6)
            await server.resume(another, run_id, job=JobOptions())


async def test_answers_that_come_in_while_the_database_is_away_are_paid_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the leases run out meanwhile, and other workers wait for the jobs."""
    monkeypatch.setattr("reasonry.stores.leases.LEASE_S", 1.0)
    refused, append, gated = list[str](), RowStore.append, GatedModel()

    async def note_refused(self: RowStore, run_id: str, *rest: Any, **named: Any) -> None:
        try:
            await append(self, run_id, *rest, **named)
        except StoreError:
            refused.append(run_id)
            raise

    monkeypatch.setattr(RowStore, "append", note_refused)
    with postgres_server() as postgres:
        async with (
            App(postgres.url, environ={}, strategies=STRATEGIES) as one,
            App(postgres.url, environ={}, strategies=STRATEGIES) as other,
            working(one),
            working(other),
            asyncio.timeout(PATIENCE_S),
        ):
            for each in (one, other):
                each.pool._recorded_model = lambda spec, named: gated  # pyright: ignore
            runs = [(await one.engine.accept(order(steps=2), job=JobOptions())).run_id for _ in range(12)]
            while gated.calls < 12:
                await asyncio.sleep(0.01)
            postgres.kill()
            gated.gate.set()
            while {*refused} != {*runs}:
                await asyncio.sleep(0.01)
            postgres.start()
            rows = [await until_ended(one, run_id) for run_id in runs]
            assert ({row.outcome for row in rows}, gated.calls) == ({"answered"}, 24)


async def test_a_worker_that_may_not_write_says_why(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with App(postgres_url, environ={}) as app:
        await app.store.runs()
    with psycopg.connect(re.sub(r"[?&]reasonry_schema=\w+", "", postgres_url), autocommit=True) as db:
        db.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN SUPERUSER")
        db.execute("ALTER ROLE reader SET default_transaction_read_only = on")
    url = re.sub(r"://[^@/]*@", "://reader@", postgres_url)
    async with App(url, environ={}) as reading, working(reading), asyncio.timeout(PATIENCE_S):
        while "the queue cannot be used at present" not in caplog.text:
            await asyncio.sleep(0.05)
    assert "ReadOnlySqlTransaction: cannot execute" in caplog.text


async def test_of_two_servers_on_one_machine_one_drives_the_jobs_and_the_other_takes_over(
    folder: Path,
) -> None:
    store = str(folder / "runs.db")
    async with App(store, environ={}) as one, App(store, environ={}) as other:
        runs = await accept(one, "offline", 2)
        assert [row.run_id for row in await one.store.waiting()] == runs[:1]
        assert await one.store.waiting(runs) == []
        assert await other.store.waiting() == []
        assert (await other.store.queue_status()).workers == 1
        await one.store.close()
        assert [row.run_id for row in await other.store.waiting()] == runs[:1]
    await asyncio.sleep(0)
