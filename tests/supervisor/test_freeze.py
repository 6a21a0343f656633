"""A process that is stopped in the middle of a run, and continues when another has taken the run over."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from reasonry.app.app import App
from reasonry.engine.drive import drive_run
from reasonry.errors import ConflictError
from reasonry.records import Line
from reasonry.stores.database import connect
from tests.servers import ServerProcess

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="processes cannot be stopped here"),
]

LEASE_S = 0.5

DRIVING = f"""
import asyncio, sys
from reasonry.stores import leases
leases.LEASE_S = {LEASE_S}
from tests.supervisor.accepting import accept
asyncio.run(accept(sys.argv[1], sys.argv[2], 1))
"""


def stop(pid: int, path: str) -> None:
    """Stop a process, but not in the middle of a transaction, in which nobody else could write."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)
        db = connect(Path(path), 0)
        try:
            db.execute("BEGIN IMMEDIATE")
        except apsw.BusyError:
            os.kill(pid, signal.SIGCONT)
        else:
            return
        finally:
            db.close()


@contextmanager
def stopped(path: str, server: ServerProcess) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Begin a run in a process and stop that in the middle of it; yield the process and the run."""
    command = [sys.executable, "-c", DRIVING, path, server.model]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    ) as driver:
        assert driver.stdout is not None
        run_id = driver.stdout.readline().strip()
        while server.stats()["requests"] < 4:
            time.sleep(0.01)
        stop(driver.pid, path)
        yield driver, run_id
        driver.kill()


async def take_over(app: App, run_id: str) -> float:
    """Drive a run to its end once its lease has expired; return how long that took."""
    began = time.monotonic()
    while True:
        try:
            async with app.engine.open(run_id) as opened:
                waited = time.monotonic() - began
                result = await drive_run(opened, await app.reopen(opened))
        except ConflictError as error:
            if error.code != "conflict" or time.monotonic() - began > 20 * LEASE_S:
                raise
            await asyncio.sleep(0.02)
        else:
            assert result.status == "done"
            return waited


async def until_written(app: App, run_id: str, more: int) -> None:
    before = len(await app.store.lines(run_id))
    while len(await app.store.lines(run_id)) < before + more:
        await asyncio.sleep(0.01)


def thaw(driver: subprocess.Popen[str]) -> str:
    """Let a process continue; return what became of its drive."""
    os.kill(driver.pid, signal.SIGCONT)
    assert driver.stdout is not None
    return driver.stdout.readline().strip()


@pytest.mark.parametrize("goes_on", ["during the other's drive", "after it"])
def test_a_process_that_was_stopped_writes_nothing_to_a_run_that_another_has_taken_over(
    folder: Path, goes_on: str
) -> None:
    path = str(folder / "runs.db")

    async def work(driver: subprocess.Popen[str], run_id: str) -> tuple[str, list[Line], list[Line], bool]:
        async with App(path, environ={}) as app:
            driving = asyncio.create_task(take_over(app, run_id))
            if goes_on == "after it":
                assert await driving > LEASE_S / 4
                before = await app.store.lines(run_id)
                outcome = await asyncio.to_thread(thaw, driver)
            else:
                await until_written(app, run_id, 1)
                outcome = await asyncio.to_thread(thaw, driver)
                await driving
                before = await app.store.lines(run_id)
            after = await app.store.lines(run_id)
            return outcome, before, after, (await app.engine.replay(run_id))["replay"]["identical"]

    with ServerProcess(brain="game24", latency_ms=40) as server, stopped(path, server) as (driver, run_id):
        outcome, before, after, replayed = asyncio.run(work(driver, run_id))
    # Whoever waits for the run there is told how it ended.
    assert outcome == "done"
    assert after == before
    assert replayed
