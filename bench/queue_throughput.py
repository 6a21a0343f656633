"""Runs a second with 1, 2 and 4 `reasonry worker` processes on one store in PostgreSQL.

    uv run python bench/queue_throughput.py [--workers 1,2,4] [--runs 150] [--concurrency 8] [--latency-ms 60]
        [--folder DIR]

First one process accepts and drives such runs without a queue, to show what the queue adds. Each run asks a model
once. What is counted is the time from the end of a tenth of the runs to the end of nine tenths, while others are still
begun. How much of the machine's cores was in use meanwhile, by whomever, and what workers, database and model spent of
it, is measured: with more workers than the cores can serve no more is done.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from loopback import postgres_server
from plain_server import PlainServer

from reasonry.app.app import App
from reasonry.app.participants import Participants
from reasonry.app.requests import RunRequest
from reasonry.core.budget import Budget
from reasonry.records import JobOptions

ANSWER = '{"steps": ["4 and 9 make 13."], "answer": "13", "done": true}'
"""All that a run asks for, in one answer."""


def machine_s() -> tuple[float, float]:
    """Return the processor time of the machine that was used, and all there was."""
    fields = [*map(int, Path("/proc/stat").read_text("ascii").partition("\n")[0].split()[1:9])]
    return sum(fields) - fields[3] - fields[4], sum(fields)


def cpu_s(pid: int) -> float:
    """Return the processor time of a process and of all that it has started."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return own + sum(map(cpu_s, map(int, children)))


@contextmanager
def workers(store: str, model: str, count: int, concurrency: int) -> Iterator[list[int]]:
    """Start workers, and wait until they take runs; return their processes."""
    command = [sys.executable, "-m", "reasonry", "worker", "--store", store, "--models", model]
    with ExitStack() as ending:
        begun = list[subprocess.Popen[str]]()
        for _ in range(count):
            begun.append(
                subprocess.Popen(
                    [*command, "--concurrency", str(concurrency)], stderr=subprocess.PIPE, text=True
                )
            )
            ending.callback(begun[-1].communicate, timeout=30)
            ending.callback(begun[-1].terminate)
        for process in begun:
            assert process.stderr is not None
            assert "driving" in process.stderr.readline()
        yield [process.pid for process in begun]


PROBLEM, STRATEGY, BUDGET = "What is 4 + 9?", "chain_of_thought", Budget(calls=9)


async def without_queue(
    url: str, model: str, count: int, concurrency: int, database: int
) -> tuple[float, float]:
    """Return the processor time of a run that its own process drives: that process's, and the database's."""
    places = asyncio.Semaphore(concurrency)
    async with App(url, environ={}) as app:

        async def drive() -> None:
            async with places:
                await app.solve(
                    *app.order(
                        RunRequest(
                            problem=PROBLEM,
                            strategy=STRATEGY,
                            options={},
                            budget=BUDGET,
                            participants=Participants(model=model),
                        )
                    )
                )

        await drive()
        own, of_database = time.process_time(), cpu_s(database)
        await asyncio.gather(*(drive() for _ in range(count)))
        return (time.process_time() - own) / count, (cpu_s(database) - of_database) / count


async def measure(url: str, model: str, count: int, processes: list[int]) -> tuple[float, float, float]:
    """Return runs a second, processor time a run, and which part of the machine was in use."""
    async with App(url, environ={}) as app:
        order, _ = app.order(
            RunRequest(
                problem=PROBLEM,
                strategy=STRATEGY,
                options={},
                budget=BUDGET,
                participants=Participants(model=model),
            )
        )
        spent, (used, there) = sum(map(cpu_s, processes)), machine_s()
        runs = [(await app.engine.accept(order, job=JobOptions())).run_id for _ in range(count)]
        for run_id in runs:
            while (await app.store.run(run_id)).status == "active":
                await asyncio.sleep(0.02)
        spent, (used_now, there_now) = sum(map(cpu_s, processes)) - spent, machine_s()
        ended_ms = sorted([(await app.store.run(run_id)).updated_at_ms for run_id in runs])
    first, last = count // 10, count * 9 // 10
    per_s = (last - first) / (ended_ms[last] - ended_ms[first]) * 1e3
    return per_s, spent / count, (used_now - used) / (there_now - there)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--runs", type=int, default=150, help="for each worker")
    parser.add_argument("--concurrency", type=int, default=8, help="runs that a worker drives at once")
    parser.add_argument("--latency-ms", type=float, default=60)
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    alone = 0.0
    with (
        PlainServer(given.latency_ms, ANSWER) as model,
        tempfile.TemporaryDirectory(dir=given.folder) as folder,
        postgres_server(disk=folder) as server,
    ):
        spec = f"openai-compatible:{model.url}#test-model"
        driving = without_queue(server.url, spec, given.runs, given.concurrency, server.pid)
        own, of_database = asyncio.run(driving)
    print(
        f"no queue   processor of the process {own * 1e3:.1f} ms a run, of the database {of_database * 1e3:.1f} ms"
    )
    for crew in map(int, given.workers.split(",")):
        with (
            PlainServer(given.latency_ms, ANSWER) as model,
            tempfile.TemporaryDirectory(dir=given.folder) as folder,
            postgres_server(disk=folder) as server,
        ):
            spec = f"openai-compatible:{model.url}#test-model"
            with workers(server.url, spec, crew, given.concurrency) as pids:
                processes = [*pids, server.pid]
                per_s, cpu, in_use = asyncio.run(measure(server.url, spec, given.runs * crew, processes))
        alone = alone or per_s / crew
        print(
            f"{crew} workers  {per_s:6.1f} runs/s, {per_s / (alone * crew):4.0%} of linear; processor of workers and "
            f"database {cpu * 1e3:.1f} ms a run; {in_use:.0%} of {os.cpu_count()} cores in use",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
