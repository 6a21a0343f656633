"""Whatever is killed, frozen or replaced, each run that was accepted comes to its end, once, and is paid for once."""

import asyncio
import os
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from reasonry.app.app import App
from reasonry.core.machine import POISONED
from tests.forked import forking_python
from tests.servers import ServerProcess
from tests.servers.postgres import postgres_server

from .hasty import POISON
from .killing import OPTIONS, PROBLEM, Part, drive_amid_kills, free_port, open_questions, open_scene
from .working import PATIENCE_S, accept, until_done, until_ended, worker_process

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's"),
]

HEALED_S = 30


async def until_asked(server: ServerProcess, requests: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while server.stats()["requests"] < requests:
            await asyncio.sleep(0.01)


def test_100_runs_end_right_whatever_is_killed_and_what_was_in_flight_alone_is_paid_twice(
    tmp_path: Path,
) -> None:
    with ExitStack() as held:
        postgres = held.enter_context(postgres_server())
        scene = open_scene(held, postgres, tmp_path, workers=4, latency_ms=100)
        report = drive_amid_kills(scene, 100, seed=1, pause_s=1.5, wait_s=400)
        report.check(100)
        assert report.kills
        log = scene.log.read_text(encoding="utf-8", errors="replace")
        assert "Traceback (" not in log


async def test_a_dead_workers_runs_go_on_within_30_s_and_those_of_replaced_ones_cost_no_extra_call(
    postgres_url: str,
) -> None:
    with ServerProcess(brain="game24", latency_ms=100) as server:
        async with App(postgres_url, environ={}) as app:
            runs = await accept(app, server.model, 6)
            with worker_process(postgres_url, server.model, "--concurrency", "6") as first:
                await until_asked(server, 12)
                first.kill()
                first.wait()
                in_flight = await open_questions(postgres_url, runs)
                assert in_flight
                asked = server.stats()["requests"]
                with worker_process(postgres_url, server.model) as second:
                    began = time.monotonic()
                    await until_asked(server, asked + 1)
                    assert time.monotonic() - began < HEALED_S
                    answers = await until_done(app, runs)
                    assert 0 <= server.stats()["requests"] - answers <= in_flight
                    asked = server.stats()["requests"]
                    more = await accept(app, server.model, 12)
                    await until_asked(server, asked + 8)
                    with worker_process(postgres_url, server.model) as third:
                        second.send_signal(signal.SIGTERM)
                        assert second.wait(PATIENCE_S) == 0
                        while (await app.store.queue_status()).depth:
                            await asyncio.sleep(0.01)
                        with worker_process(postgres_url, server.model):
                            third.send_signal(signal.SIGTERM)
                            assert third.wait(PATIENCE_S) == 0
                            assert await until_done(app, more) == server.stats()["requests"] - asked


async def test_a_frozen_workers_runs_go_on_elsewhere_and_thawed_it_writes_nothing_to_them(
    postgres_url: str,
) -> None:
    hasty = {"program": ("tests.queues.hasty",)}
    with ServerProcess(brain="game24", latency_ms=100) as server:
        async with App(postgres_url, environ={}) as app:
            runs = await accept(app, server.model, 6)
            share = "--concurrency", "3"
            with (
                worker_process(postgres_url, server.model, *share, **hasty) as frozen,
                worker_process(postgres_url, server.model, *share, **hasty) as other,
            ):
                await until_asked(server, 12)
                frozen.send_signal(signal.SIGSTOP)
                in_flight = await open_questions(postgres_url, runs)
                answers = await until_done(app, runs)
                assert 0 <= server.stats()["requests"] - answers <= in_flight
                lines = [await app.store.lines(run_id) for run_id in runs]
                frozen.send_signal(signal.SIGCONT)
                # It continues with others, those of a worker that is killed among them.
                more, asked = await accept(app, server.model, 6), server.stats()["requests"]
                await until_asked(server, asked + 8)
                other.kill()
                other.wait()
                in_flight += await open_questions(postgres_url, more)
                all_answers = await until_done(app, [*runs, *more])
                assert 0 <= server.stats()["requests"] - all_answers <= in_flight
                assert [await app.store.lines(run_id) for run_id in runs] == lines
                assert frozen.poll() is None


async def test_a_worker_whose_database_hangs_ends_and_the_next_one_goes_on_with_its_runs(
    tmp_path: Path,
) -> None:
    with postgres_server() as postgres, ServerProcess(brain="game24", latency_ms=100) as server:
        store, log = postgres.url, tmp_path / "log"
        async with App(store, environ={}) as app:
            runs = await accept(app, server.model, 20)
        program = "tests.queues.hasty", "HANGS_S=4", "STUCK_S=4"
        worker = Part("worker", log, "worker", "--store", store, "--models", server.model, program=program)
        try:
            await until_asked(server, 20)
            postgres.signal(signal.SIGSTOP)
            assert await asyncio.to_thread(worker.process.wait, PATIENCE_S) == 1
            postgres.signal(signal.SIGCONT)
            # As systemd does.
            worker.start()
            began, asked = time.monotonic(), server.stats()["requests"]
            await until_asked(server, asked + 1)
            assert time.monotonic() - began < HEALED_S
            async with App(store, environ={}) as app:
                answers = await until_done(app, runs)
            # Of each run at most what one round has in flight.
            assert server.stats()["requests"] - answers <= 4 * len(runs)
        finally:
            worker.end()


async def test_a_run_that_kills_who_drives_it_is_set_aside_and_its_neighbours_are_not(
    postgres_url: str, tmp_path: Path
) -> None:
    with ServerProcess(brain="game24", latency_ms=300) as server:
        async with App(postgres_url, environ={}) as app:
            (poison,) = await accept(app, server.model, 1, problem=f"{PROBLEM} ({POISON})")
            good = await accept(app, server.model, 12)
            given = "worker", "--store", postgres_url, "--models", server.model
            crew = [Part("worker", tmp_path / "log", *given, program=("tests.queues.hasty",)) for _ in "12"]
            deaths = 0
            try:
                async with asyncio.timeout(PATIENCE_S):
                    while (row := await app.store.run(poison)).status == "active":
                        for worker in crew:
                            if worker.process.poll() is not None:
                                deaths += 1
                                worker.start()
                        await asyncio.sleep(0.05)
                assert (row.status, row.reason, deaths) == ("failed", POISONED, 5)
                await until_done(app, good)
            finally:
                for worker in crew:
                    worker.end()


async def test_on_one_machine_what_a_killed_server_had_accepted_ends_right(folder: Path) -> None:
    store, file, log, port = str(folder / "runs.db"), folder / "problems.jsonl", folder / "log", free_port()
    with ServerProcess(brain="game24", latency_ms=60) as model:
        given = "serve", "--store", store, "--models", model.model, "--port", str(port)
        # It does not rest after a death.
        server = Part("server", log, *given, program=("tests.queues.hasty",))
        try:
            async with asyncio.timeout(PATIENCE_S):
                while b"Reasonry is at " not in log.read_bytes():
                    await asyncio.sleep(0.01)
            body = {"problem": PROBLEM, "strategy": "tree_of_thoughts", "options": OPTIONS}
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}") as client:
                runs = [client.post("/api/runs", json=body).json()["run_id"] for _ in range(8)]
            await until_asked(model, 10)
            server.kill()
            in_flight = await open_questions(store, runs)
            server.start()
            await until_asked(model, 35)
            server.kill()
            in_flight += await open_questions(store, runs)
            async with App(store, environ={}) as app:
                # Nobody is there: what the file begins the command drives itself, and leaves the others alone.
                file.write_text(f'{{"problem": "{PROBLEM}"}}\n', encoding="utf-8")
                command = [forking_python(), "-m", "reasonry", "submit", str(file), "--store", store]
                done = await asyncio.to_thread(
                    subprocess.run,
                    [*command, "--model", "offline", "--strategy", "tree_of_thoughts"],
                    capture_output=True,
                    text=True,
                )
                assert (done.returncode, "drives the runs itself" in done.stderr) == (0, True), done.stderr
                assert "active" in {(await app.store.run(run_id)).status for run_id in runs}
                server.start()
                answers = await until_done(app, runs)
                assert 0 <= model.stats()["requests"] - answers <= in_flight
                assert len({(await until_ended(app, run_id)).answer for run_id in runs}) == 1
        finally:
            server.kill()
