"""What one PostgreSQL server takes: durable thoughts and the records of whole runs a second, and what that costs it.

    uv run python bench/postgres_store.py [--seconds 5] [--processes 2] [--clients 16] [--store URL] [--folder DIR]

Each process has a store of its own, and clients that wait for each answer before they write again: one thought of 300
characters into a session of its own; or a run, with its lease, in six transactions (begun, four answers, ended), as a
worker writes it. No model is asked and nothing goes over HTTP. Without --store a server is started for this.
The processor time of the server for one of each says what a core of a larger server takes.
"""

import argparse
import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from typing import Any

from postgres_server import PostgresServer, postgres

from reasonry.engine.journal import Begun, Chain, TermsChanged
from reasonry.records import RunRow, SessionChange, SessionRow, SessionView, Store, ThoughtRow, new_id
from reasonry.stores import open_store

TEXT = "of a text of three hundred characters " * 8
ANSWERS = 4


async def think(store: Store, session: list[str]) -> None:
    def decide(view: SessionView) -> SessionChange:
        number = view.row.thoughts + 1 if view.row else 1
        return SessionChange(
            row=SessionRow(session[0], "linear", 1, number, thoughts=number),
            thought=ThoughtRow(number, number, TEXT[:300]),
        )

    await store.change(session[0], decide)


async def run(store: Store, _: list[str]) -> None:
    run_id = new_id()
    row = RunRow(run_id, new_id(), "linear", "offline", TEXT[:80], "active", 1, 1)
    answers = [TermsChanged(paused=bool(number % 2)) for number in range(ANSWERS + 1)]
    first, *others, last = Chain(run_id).lines([Begun("linear", row.problem, {}), *answers])
    session = SessionRow(row.session_id, "linear", 1, 1, run_id=run_id)
    await store.create_run(row, [first], session, drive=True)
    async with store.drive(run_id):
        for line in others:
            await store.append(run_id, [line])
        ended = RunRow(run_id, row.session_id, "linear", "offline", row.problem, "done", 1, 2, "success", "4")
        await store.append(run_id, [last], ended)


async def work(
    url: str, act: Callable[[Store, list[str]], Awaitable[None]], given: Any, start: Any
) -> list[float]:
    store, taken = open_store(url), list[float]()
    await store.runs(limit=1)
    await asyncio.to_thread(start.wait)
    until = time.monotonic() + given.seconds

    async def client() -> None:
        session = [new_id()]
        while (began := time.monotonic()) < until:
            await act(store, session)
            taken.append(time.monotonic() - began)

    await asyncio.gather(*(client() for _ in range(given.clients)))
    await store.close()
    return taken


def work_apart(url: str, act: Any, given: Any, start: Any, done: Any) -> None:
    cpu = os.times()
    taken = asyncio.run(work(url, act, given, start))
    spent = os.times()
    done.put((taken, spent.user + spent.system - cpu.user - cpu.system))


def measure(name: str, act: Any, url: str, server: PostgresServer | None, given: Any) -> None:
    apart = multiprocessing.get_context("spawn")
    start, done = apart.Barrier(given.processes + 1), apart.Queue()
    crews = [
        apart.Process(target=work_apart, args=(url, act, given, start, done)) for _ in range(given.processes)
    ]
    for crew in crews:
        crew.start()
    start.wait()
    cpu_s, wait_s = server.cpu_s if server else 0.0, given.seconds - 0.5
    time.sleep(wait_s)
    # While the clients still have their connections.
    cpu_s = server.cpu_s - cpu_s if server else 0.0
    found = [done.get() for _ in crews]
    for crew in crews:
        crew.join()
    taken = sorted(each for some, _ in found for each in some)
    per_s = len(taken) / given.seconds
    p50, p99 = (taken[int(len(taken) * part)] * 1e3 for part in (0.5, 0.99))
    print(f"{name:18}{per_s:8,.0f}/s   p50 {p50:6.1f} ms   p99 {p99:6.1f} ms", end="")
    if server:
        print(f"   server: {cpu_s / wait_s:.2f} cores, {cpu_s / wait_s / per_s * 1e3:.2f} ms each", end="")
    print(f"   clients: {sum(cpu for _, cpu in found) / given.seconds:.2f} cores")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--clients", type=int, default=16, help="of a process")
    parser.add_argument("--store", help="the URL of a database; it is filled")
    parser.add_argument("--folder", default=".", help="which disk the started server is on")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder, ExitStack() as stack:
        server = None if given.store else stack.enter_context(postgres(folder))
        url = given.store or (server.url if server else "")
        measure("durable thoughts", think, url, server, given)
        measure("records of runs", run, url, server, given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
