"""What workers show: their metrics at a port of the loopback, the runs that each drives, deaths and lost leases."""

import asyncio
import json
import re
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from reasonry.app.app import App
from reasonry.engine.policy import Policy
from reasonry.errors import ConflictError
from reasonry.queues import postgres_store
from reasonry.supervisor import Supervisor
from reasonry.surfaces.http.health import Health
from reasonry.surfaces.http.metrics import Metrics
from tests.forked import ForkedProcess
from tests.in_process import run

from ..servers import Fault, ModelServer, Player
from ..supervisor.test_supervising import die_with
from .working import accept, until_ended, worker_process, working

pytestmark = pytest.mark.anyio

WORKER = [sys.executable, "-m", "reasonry", "worker"]


async def test_a_worker_serves_its_metrics(postgres_url: str) -> None:
    command = [*WORKER, "--store", postgres_url, "--metrics-port", "0"]
    async with App(postgres_url, environ={}) as app:
        (run_id,) = await accept(app, "offline", 1)
        with ForkedProcess(
            command, stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        ) as process:
            assert process.stderr is not None
            said = await asyncio.to_thread(process.stderr.readline)
            (url,) = re.findall(r"metrics are at (http://127\.0\.0\.1:\d+/metrics)", said)
            assert (await until_ended(app, run_id)).status == "done"

            def read() -> str:
                with urllib.request.urlopen(url, timeout=10) as reply:
                    return reply.read().decode()

            while 'reasonry_runs_total{outcome="solved"} 1.0' not in (text := await asyncio.to_thread(read)):
                await asyncio.sleep(0.05)
            process.kill()
    assert re.search(r'reasonry_calls_total\{model="offline",provider="offline"\} [1-9]', text)
    for name in ("workers", "queue_depth", "queue_oldest_seconds", "loop_lag_seconds", "runs_driven"):
        assert f"\nreasonry_{name} " in text


@pytest.mark.parametrize("is_taken", [True, False])
def test_a_port_that_metrics_cannot_have_is_a_mistake_of_its_user(
    postgres_url: str, is_taken: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1] if is_taken else 65_536
        assert run(["worker", "--store", postgres_url, "--metrics-port", str(port), "--json"]) == 2
    error = json.loads(capfd.readouterr().out)["error"]
    assert (error["code"], error["option"]) == ("invalid_request", "metrics_port")
    assert f"metrics cannot be served at port {port}: " in error["message"]
    assert "--metrics-port takes another port" in error["message"]


async def test_the_list_of_workers_says_which_runs_each_drives(
    postgres_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    hangs = Fault(kind="hang")
    with ModelServer(reply=Player(), faults=(hangs,)) as model:
        async with App(postgres_url, environ={}) as app:
            (run_id,) = await accept(app, model.model, 1)
            with worker_process(postgres_url, model.model) as process:
                while not await app.store.find_driven([run_id]):
                    await asyncio.sleep(0.02)
                (worker,) = await postgres_store(app.store).workers()
                assert worker.process.startswith(f"{process.pid}@")
                assert worker.runs == [run_id]
                command = [*WORKER, "--list", "--json", "--store", postgres_url]
                listed = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
                assert json.loads(listed.stdout)["workers"][0]["runs"] == [run_id]


async def test_deaths_and_lost_leases_are_counted(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = Metrics()
    async with App(postgres_url, Policy(), environ={}) as app:
        supervisor = Supervisor(app)
        metrics.follow(app.engine.policy, supervisor, Health(app.store, 5))
        first, second = await accept(app, "offline", 2)
        await die_with(app, first, 1, ago_s=10)
        async with working(app):
            await until_ended(app, first)
            await until_ended(app, second)

        async def lose(*_: object, **__: object) -> None:
            raise ConflictError("it continues there", code="lease_lost")

        (third,) = await accept(app, "offline", 1)
        monkeypatch.setattr("reasonry.supervisor.supervisor.drive_run", lose)
        ended = await supervisor.drive_job(third)
        assert ended is not None
        await asyncio.wait([ended])
    text = metrics.text()[0].decode()
    assert "\nreasonry_lost_leases_total 1.0\n" in text
    assert "\nreasonry_deaths_total 1.0\n" in text
