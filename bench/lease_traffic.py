"""Lease traffic of many workers against one store.

    uv run python bench/lease_traffic.py [--workers 1000] [--runs 8] [--seconds 10] [--store URL]

Each worker renews the leases of its runs, all in one transaction, every quarter of a lease's life, and once a second
gives one run back and takes it again. No run is driven and no model is asked: it is what coordination alone costs. The
workers share the connections of one process. Without --store: a SQLite file in a temporary folder.
Target: the slowest of 100 renewals takes less than a quarter of a lease's life, so that no lease is lost to traffic.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import chain
from pathlib import Path

from reasonry.ids import new_id
from reasonry.records import RunRow, WholeRun
from reasonry.stores import lease_rows, open_store, runs
from reasonry.stores.leases import LEASE_S
from reasonry.stores.row_store import RowStore

EVERY_S = LEASE_S / 4


class Worker:
    def __init__(self, store: RowStore, run_ids: list[str]) -> None:
        self.store, self.run_ids, self.holder = store, run_ids, new_id()
        self.numbers: dict[str, int] = {}

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

    async def renew(self) -> None:
        await self.store._write(
            lambda tx: lease_rows.renew(tx, self.holder, self.numbers, self.store._lease_clock_ms(tx))
        )

    async def change(self) -> None:
        run_id = next(iter(self.numbers))
        await self.store._write(lambda tx: lease_rows.give_back(tx, run_id, self.holder))
        await self.take(run_id)


async def repeat(
    act: Callable[[], Awaitable[None]], every_s: float, first_s: float, until: float
) -> list[float]:
    """Act at set times, however long it takes; return how late each was done."""
    due, late = time.monotonic() + first_s, list[float]()
    while due < until:
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        await act()
        late.append(time.monotonic() - due)
        due += every_s
    return late


async def measure(url: str, workers: int, count: int, seconds: float) -> bool:
    store = open_store(url)
    assert isinstance(store, RowStore), "name a file or a database"
    names = [new_id() for _ in range(workers * count)]
    for first in range(0, len(names), 500):
        rows = (
            RunRow(name, name, "linear", "offline", "", "active", 1, 1) for name in names[first : first + 500]
        )
        await store.write_whole([WholeRun(row, ()) for row in rows])
    crew = [Worker(store, names[number * count : (number + 1) * count]) for number in range(workers)]
    for worker in crew:
        await asyncio.gather(*(worker.take(run_id) for run_id in worker.run_ids))
    cpu, began = os.times(), time.monotonic()
    until = began + seconds
    jobs = [repeat(one.renew, EVERY_S, EVERY_S * n / workers, until) for n, one in enumerate(crew)]
    changes = [repeat(one.change, 1.0, n / workers, until) for n, one in enumerate(crew)]
    done = await asyncio.gather(*jobs, *changes)
    spent, took = os.times(), time.monotonic() - began
    await store.close()
    renewals, others = (
        sorted(chain.from_iterable(done[:workers])),
        sorted(chain.from_iterable(done[workers:])),
    )
    for name, late in (("renewals", renewals), ("given back and taken", others)):
        print(
            f"{name:<21} {len(late) / took:7.0f}/s  late: median {late[len(late) // 2] * 1e3:7.1f} ms  "
            f"p99 {late[int(len(late) * 0.99)] * 1e3:7.1f} ms"
        )
    own = spent.user + spent.system - cpu.user - cpu.system
    print(f"processor time of this process: {own / took:.2f} cores")
    return renewals[int(len(renewals) * 0.99)] < EVERY_S


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=8, help="runs a worker drives at a time")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--store", help="a path or a URL; it is filled with runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.store or str(Path(folder) / "store.db")
        return not asyncio.run(measure(url, options.workers, options.runs, options.seconds))


if __name__ == "__main__":
    sys.exit(main())
