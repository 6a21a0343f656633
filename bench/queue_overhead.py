"""What the queue costs a run: runs driven by way of it, beside the same runs driven directly.

    uv run python bench/queue_overhead.py [--runs 300] [--store sqlite|postgres]… [--latency-ms 60] [--folder DIR]

Each run asks a model once, which is another process. Directly: a supervisor takes up runs that were accepted, as many
at once as a worker would. By way of the queue: the same runs are put into it, and a worker of this process drives
them. Both are done in turns, a few times. Processor time is that of this process and of the database.
Target: the queue costs a run at most 12 ms with SQLite and 20 ms with PostgreSQL, by the clock and of processor time.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from plain_server import PlainServer
from queue_places import ANSWER, KINDS, accept, cpu_s, new_store, queue_of, until_ended

from reasonry.app import App
from reasonry.participants import Participants
from reasonry.queues import Waiting, Worker
from reasonry.queues.worker import CONCURRENCY
from reasonry.supervisor import Supervisor

AT_MOST_MS = {"sqlite": 12.0, "postgres": 20.0}
ROUNDS = 3


async def drive_directly(supervisor: Supervisor, runs: list[str]) -> None:
    room = asyncio.Semaphore(CONCURRENCY)

    async def drive(run_id: str) -> None:
        async with room:
            ended = await supervisor.take_up(run_id)
            assert ended is not None
            await ended

    await asyncio.gather(*map(drive, runs))


async def measure(url: str, database: int | None, model: str, count: int) -> dict[str, tuple[float, float]]:
    """Return milliseconds a run, by the clock and of processor time, for each of both ways."""
    found = dict[str, list[tuple[float, float]]]()
    async with App(url, environ={}) as app:
        queue = queue_of(app)
        supervisor = Supervisor(app, reopen=lambda recorded: Participants(model=recorded.model))
        worker = Worker(app, queue, supervisor)

        async def through_queue(runs: list[str]) -> None:
            await queue.put([Waiting(run_id) for run_id in runs])
            await until_ended(app, runs)

        async def directly(runs: list[str]) -> None:
            await drive_directly(supervisor, runs)

        async def take(way: Callable[[list[str]], Awaitable[None]], runs: list[str]) -> tuple[float, float]:
            spent, began = time.process_time() + cpu_s(database), time.perf_counter()
            await way(runs)
            took = time.perf_counter() - began
            # Of the worker too what it does after the runs: what is over is forgotten.
            await asyncio.sleep(2)
            spent = time.process_time() + cpu_s(database) - spent
            return took / len(runs) * 1e3, spent / len(runs) * 1e3

        await worker.start()
        try:
            idle_s = time.process_time() + cpu_s(database)
            await asyncio.sleep(2)
            print(
                f"  before the first run: {(time.process_time() + cpu_s(database) - idle_s) / 2:.1%} of a core"
            )
            for number in range(ROUNDS + 1):
                for name, way in {"directly": directly, "queue": through_queue}.items():
                    runs = [await accept(app, model) for _ in range(count if number else 20)]
                    taken = await take(way, runs)
                    if number:
                        found.setdefault(name, []).append(taken)
            idle_s = time.process_time() + cpu_s(database)
            await asyncio.sleep(3)
            idle = (time.process_time() + cpu_s(database) - idle_s) / 3
        finally:
            await asyncio.gather(worker.drain(), supervisor.drain())
            await queue.close()
    print(f"  a worker that waits: {idle:.1%} of a core")
    return {
        name: (statistics.median(ms for ms, _ in taken), statistics.median(ms for _, ms in taken))
        for name, taken in found.items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--store", choices=KINDS, action="append")
    parser.add_argument("--latency-ms", type=float, default=60)
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    missed = list[str]()
    for kind in given.store or KINDS:
        print(kind, flush=True)
        with (
            PlainServer(given.latency_ms, ANSWER) as server,
            new_store(kind, given.folder) as (url, database),
        ):
            model = f"openai-compatible:{server.url}#test-model"
            found = asyncio.run(measure(url, database, model, given.runs))
        for name, (clock, cpu) in found.items():
            print(f"  {name:9} {clock:6.1f} ms a run by the clock, {cpu:6.1f} ms of processor time")
        (direct_clock, direct_cpu), (clock, cpu) = found["directly"], found["queue"]
        clock, cpu = clock - direct_clock, cpu - direct_cpu
        print(f"  the queue's part: {clock:.1f} ms by the clock, {cpu:.1f} ms of processor time", flush=True)
        if max(clock, cpu) > AT_MOST_MS[kind]:
            missed.append(kind)
    print(f"TARGET MISSED: {', '.join(missed)}" if missed else "target met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
