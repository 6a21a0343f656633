"""Lease and rate-limit traffic of many workers against one store, and what limits it.

    uv run python bench/lease_traffic.py [--workers 1000] [--runs 8] [--run-s 30] [--calls 1] [--seconds 10]
                                         [--processes 1] [--store postgres|URL|FILE]

Each worker renews the leases of its runs, all in one transaction, every quarter of a lease's life, gives one of them
back and takes it again as often as runs that take --run-s begin and end, and asks for its turn to call a model --calls
times a second, under a limit that all workers share and that is enough for all calls. No run is driven and no model is
asked: it is what coordination alone costs. The workers of a process share its connections, where real ones have each
their own. Without --store: a SQLite file in a temporary folder; `postgres`: a server that is started for this.
Target: the slowest of 100 renewals takes less than a quarter of a lease's life, so that no lease is lost to traffic,
and nine of ten of all three are done in time.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from postgres_server import PostgresServer, postgres

from reasonry.engine.shared_rate import Ceiling, SharedRate
from reasonry.ids import new_id
from reasonry.records import RunRow, WholeRun
from reasonry.stores import lease_rows, open_store, runs
from reasonry.stores.leases import LEASE_S
from reasonry.stores.postgres.store import UNCERTAIN, PostgresStore
from reasonry.stores.row_store import RowStore
from reasonry.stores.sql import Tx

EVERY_S = LEASE_S / 4
KINDS = ("renewals", "given back and taken", "turns to call")
TOKENS = 100

WAITS = """
SELECT CASE WHEN wait_event_type = 'Client' THEN 'the processes of the workers, for which the server waits'
  WHEN wait_event_type = 'Lock' THEN 'the one row that all workers change: the limit of the provider'
  WHEN wait_event LIKE 'WAL%' THEN 'writing the log to the disk'
  WHEN wait_event_type IS NULL THEN 'the processor of the server'
  ELSE wait_event_type || ': ' || wait_event END
FROM pg_stat_activity WHERE application_name = 'reasonry' AND state <> 'idle'
"""


class Worker:
    def __init__(self, store: RowStore, run_ids: list[str], ceiling: Ceiling) -> None:
        self.store, self.run_ids, self.holder = store, run_ids, new_id()
        self.numbers: dict[str, int] = {}
        self.rate = SharedRate(store, "rate:bench", ceiling)

    async def take(self, run_id: str) -> None:
        self.numbers[run_id] = await self.store._write(
            lambda tx: lease_rows.take(
                tx,
                runs.key_of(tx, run_id),
                run_id,
                self.holder,
                self.store._lease_clock_ms(tx),
                lambda _: None,
            )
        )

    async def write(self, work: Callable[[Tx], None]) -> None:
        """Write what need not outlive a crash of the server, as the store itself does it."""
        first = [UNCERTAIN] if isinstance(self.store, PostgresStore) else []
        await self.store._write(lambda tx: [*map(tx.execute, first), work(tx)])

    async def renew(self) -> None:
        await self.write(
            lambda tx: lease_rows.renew(tx, self.holder, self.numbers, self.store._lease_clock_ms(tx))
        )

    async def change(self) -> None:
        run_id = next(iter(self.numbers))
        await self.write(lambda tx: lease_rows.give_back(tx, run_id, self.holder))
        await self.take(run_id)

    async def call(self) -> None:
        self.rate.settle(await self.rate.wait(TOKENS), TOKENS)


class Done(NamedTuple):
    """What the workers of a process did: how late each renewal, change and turn was, and what that took."""

    late: list[list[float]]
    took_s: float
    cpu_s: float
    errors: dict[str, int]


async def repeat(
    act: Callable[[], Awaitable[None]], every_s: float, first_s: float, until: float, errors: Counter[str]
) -> list[float]:
    """Act at set times, however long it takes; return how late each was done."""
    due, late = time.monotonic() + first_s, list[float]()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(until - time.monotonic()):
            while due < until:
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                try:
                    await act()
                except Exception as error:
                    errors[getattr(error, "code", type(error).__name__)] += 1
                late.append(time.monotonic() - due)
                due += every_s
    return late


async def work(name: str, run_ids: list[str], given: argparse.Namespace, start: Any) -> Done:
    store, errors = open_store(name), Counter[str]()
    assert isinstance(store, RowStore), "name a file or a database"
    per_minute = int(given.workers * given.calls * 60 * 1.5) + 1
    ceiling = Ceiling(per_minute, per_minute * TOKENS)
    crew = [Worker(store, run_ids[n : n + given.runs], ceiling) for n in range(0, len(run_ids), given.runs)]
    for worker in crew:
        await asyncio.gather(*(worker.take(run_id) for run_id in worker.run_ids))
    await asyncio.to_thread(start.wait)
    cpu, began = os.times(), time.monotonic()
    until = began + given.seconds
    acts: list[tuple[Callable[[Worker], Callable[[], Awaitable[None]]], float]] = [
        (lambda one: one.renew, EVERY_S),
        (lambda one: one.change, given.run_s / given.runs),
        *([(lambda one: one.call, 1 / given.calls)] if given.calls else []),
    ]
    late = list[list[float]]()
    jobs = [
        asyncio.gather(
            *(repeat(act(one), every, every * n / len(crew), until, errors) for n, one in enumerate(crew))
        )
        for act, every in acts
    ]
    for found in await asyncio.gather(*jobs):
        late.append([each for some in found for each in some])
    spent, took = os.times(), time.monotonic() - began
    for worker in crew:
        if worker.rate._timer is not None:
            worker.rate._timer.cancel()
    await store.close()
    return Done(late, took, spent.user + spent.system - cpu.user - cpu.system, dict(errors))


def work_apart(name: str, run_ids: list[str], given: argparse.Namespace, start: Any, done: Any) -> None:
    done.put(asyncio.run(work(name, run_ids, given, start)))


async def add_runs(name: str, names: list[str]) -> None:
    store = open_store(name)
    for first in range(0, len(names), 500):
        rows = (
            RunRow(name, name, "linear", "offline", "", "active", 1, 1) for name in names[first : first + 500]
        )
        await store.write_whole([WholeRun(row, ()) for row in rows])
    await store.close()


def watch(url: str, seen: Counter[str], ended: threading.Event) -> None:
    """Count what the server's processes wait for."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        while not ended.wait(0.02):
            seen.update(what for (what,) in db.execute(WAITS))


def show(done: list[Done], given: argparse.Namespace, server_cores: float | None, seen: Counter[str]) -> bool:
    took, late = max(each.took_s for each in done), dict[str, list[float]]()
    times = {KINDS[0]: EVERY_S, KINDS[1]: given.run_s / given.runs}
    if given.calls:
        times[KINDS[2]] = 1 / given.calls
    for number, (kind, every) in enumerate(times.items()):
        late[kind] = sorted(each for one in done for each in one.late[number])
        median, p99 = (late[kind][int(len(late[kind]) * part)] * 1e3 for part in (0.5, 0.99))
        print(
            f"{kind:<21}{len(late[kind]) / took:7.0f}/s of {given.workers / every:5.0f}/s"
            f"   late: median {median:7.1f} ms, p99 {p99:7.1f} ms"
        )
    for code, count in sum((Counter(each.errors) for each in done), Counter[str]()).items():
        print(f"{code}: {count} times")
    cores = [each.cpu_s / each.took_s for each in done]
    print(
        "processor, in cores: "
        + ", ".join(f"{each:.2f}" for each in cores)
        + " for the processes of the workers",
        end="",
    )
    print("" if server_cores is None else f", {server_cores:.2f} for the server", end="")
    print(f"; the machine has {os.cpu_count()}")
    keeps_up = all(len(late[kind]) > 0.9 * given.workers / every * took for kind, every in times.items())
    met = late[KINDS[0]][int(len(late[KINDS[0]]) * 0.99)] < EVERY_S and keeps_up
    what = "nothing is at its limit; nearest is" if met else "the bottleneck is"
    if max(cores) > 0.85:
        print(f"{what} a process of the workers: one core of the processor is all it can use")
    elif (server_cores or 0) + sum(cores) > 0.9 * (os.cpu_count() or 1):
        print(f"{what} the processor of this machine, which the server and the workers share")
    elif seen:
        (first, count), total = seen.most_common(1)[0], seen.total()
        print(f"{what} {first} ({100 * count / total:.0f} % of {total:,} looks at busy connections)")
    else:
        print(f"{what} the one writer of the file, which commits what waits together")
    print("target met" if met else "TARGET MISSED")
    return met


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=8, help="runs a worker drives at a time")
    parser.add_argument("--run-s", type=float, default=30, help="how long a run takes")
    parser.add_argument(
        "--calls", type=float, default=1, help="calls a second and worker; 0: no limit at all"
    )
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--store", help="`postgres`, a path or a URL; it is filled with runs")
    parser.add_argument("--folder", default=".", help="which disk the store is on")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, ExitStack() as stack:
        server: PostgresServer | None = None
        name = given.store or str(Path(folder) / "store.db")
        if name == "postgres":
            server = stack.enter_context(postgres(folder))
            name = server.url
        names = [new_id() for _ in range(given.workers * given.runs)]
        asyncio.run(add_runs(name, names))
        apart = multiprocessing.get_context("spawn")
        start, done = apart.Barrier(given.processes + 1), apart.Queue()
        share = given.workers // given.processes * given.runs
        crews = [
            apart.Process(
                target=work_apart, args=(name, names[n * share : (n + 1) * share], given, start, done)
            )
            for n in range(given.processes)
        ]
        for crew in crews:
            crew.start()
        seen, ended = Counter[str](), threading.Event()
        watching = threading.Thread(target=watch, args=(name, seen, ended))
        start.wait()
        cpu_s = server.cpu_s if server else None
        if "://" in name:
            watching.start()
        time.sleep(given.seconds - 0.5)
        # While the workers still have their connections.
        cores = (server.cpu_s - cpu_s) / (given.seconds - 0.5) if server and cpu_s is not None else None
        ended.set()
        found = [done.get() for _ in crews]
        for crew in crews:
            crew.join()
        return not show(found, given, cores, seen)


if __name__ == "__main__":
    sys.exit(main())
