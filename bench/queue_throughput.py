"""Runs a second with 1, 2 and 4 `reasonry worker` processes on one queue.

    uv run python bench/queue_throughput.py [--workers 1,2,4] [--runs 150] [--concurrency 2] [--store sqlite|postgres]…
        [--latency-ms 60] [--folder DIR]

Each run asks a model once. It is put into the queue while all workers wait; what is counted is the time from the end of
a tenth of the runs to the end of nine tenths. How much of the machine's cores was in use meanwhile, by whomever, and
what workers, database and model spent of it, is measured: with more workers than the cores can serve no more is done.
Target: at least 90 % of what one worker does, times the workers, until 90 % of the cores are in use. Where others use
more than a tenth of them, a miss says nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

from plain_server import PlainServer
from queue_places import ANSWER, KINDS, accept, cpu_s, new_store, queue_of, until_ended, workers

from reasonry.app import App
from reasonry.queues import Waiting

LINEAR, FULL, OTHERS = 0.9, 0.9, 0.1


def machine_s() -> tuple[float, float]:
    """Return the processor time of the machine that was used, and all there was."""
    fields = [*map(int, Path("/proc/stat").read_text("ascii").partition("\n")[0].split()[1:9])]
    return sum(fields) - fields[3] - fields[4], sum(fields)


async def measure(url: str, spec: str, count: int, processes: list[int]) -> tuple[float, float, float]:
    """Return runs a second, which part of the machine was in use, and how many cores the processes used."""
    async with App(url, environ={}) as app:
        queue = queue_of(app)
        runs = [await accept(app, spec) for _ in range(count)]
        spent, began, (used, there) = sum(map(cpu_s, processes)), time.monotonic(), machine_s()
        await queue.put([Waiting(run_id) for run_id in runs])
        await until_ended(app, runs)
        took, (used_now, there_now) = time.monotonic() - began, machine_s()
        spent = sum(map(cpu_s, processes)) - spent
        await queue.close()
        ended_ms = sorted([(await app.store.run(run_id)).updated_at_ms for run_id in runs])
    first, last = count // 10, count * 9 // 10
    per_s = (last - first) / (ended_ms[last] - ended_ms[first]) * 1e3
    return per_s, (used_now - used) / (there_now - there), spent / took


def measure_store(
    kind: str, folder: str, crews: list[int], runs: int, concurrency: int, latency_ms: float
) -> bool:
    alone, good = 0.0, True
    for crew in crews:
        with PlainServer(latency_ms, ANSWER) as model, new_store(kind, folder) as (url, database):
            spec = f"openai-compatible:{model.url}#test-model"
            with workers(url, spec, crew, concurrency) as pids:
                processes = [*pids, model.pid, *([] if database is None else [database])]
                per_s, in_use, cores = asyncio.run(measure(url, spec, runs * crew, processes))
        alone = alone or per_s / crew
        linear, others = per_s / (alone * crew), in_use - cores / (os.cpu_count() or 1)
        is_full = in_use >= FULL and others <= OTHERS
        print(
            f"{kind:9} {crew} workers  {per_s:7.1f} runs/s  {linear:4.0%} of linear  "
            f"{in_use:4.0%} of {os.cpu_count()} cores in use, {cores:.2f} of them by this"
            f"{'  (full)' if is_full else '  (others use the rest)' if others > OTHERS else ''}",
            flush=True,
        )
        good = good and (linear >= LINEAR or is_full)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--runs", type=int, default=150, help="for each worker")
    parser.add_argument("--concurrency", type=int, default=2, help="runs that a worker drives at once")
    parser.add_argument("--store", choices=KINDS, action="append")
    parser.add_argument("--latency-ms", type=float, default=60)
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    crews = [*map(int, given.workers.split(","))]
    missed = [
        kind
        for kind in given.store or KINDS
        if not measure_store(kind, given.folder, crews, given.runs, given.concurrency, given.latency_ms)
    ]
    print(f"TARGET MISSED: {', '.join(missed)}" if missed else "target met")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
