"""Lists, filters and searches over 100,000 runs, and what the index of texts adds to a durable thought.

    uv run python bench/lists.py [RUNS] [--store postgres|URL]

Target: each list, filter and search within 100 ms, the first one of a connection too: each has a store opened anew.
What it takes of the processor, at best, says more on a machine that is busy. Exit code 1 if one is missed.
The store has RUNS runs of one day each in turn of ten owners, with three thoughts each, and as many sessions. It is a
SQLite file; with --store it is in a PostgreSQL server that is started for this, or in the empty database of the URL.
"""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from many_runs import WORDS, fill, fill_postgres, text
from postgres_server import postgres

from reasonry.records import SessionChange, SessionRow, SessionView, Store, ThoughtRow
from reasonry.stores import open_store, text_search
from reasonry.stores.sqlite import SqliteStore

TARGET_MS = 100
THOUGHTS = 1_000


async def measure(name: str, count: int) -> bool:
    common, rare = WORDS[10], f"needle{count // 20_000 * 10_000 + 77}"
    last, middle = f"r{count // 2:08}", (count - 1_440) * 60_000
    asked: dict[str, Callable[[Store], Awaitable[Any]]] = {
        "runs, the first page": lambda store: store.runs(),
        "runs, a page in the middle": lambda store: store.runs(before=last),
        "runs, status failed": lambda store: store.runs(status="failed"),
        "runs, status active (none)": lambda store: store.runs(status="active"),
        "runs, reason rate_limited (none)": lambda store: store.runs(reason="rate_limited"),
        "runs, strategy and model": lambda store: store.runs(strategy="react", model="offline"),
        "runs of an owner, of the last day": lambda store: store.of_owner("owner3").runs(since_ms=middle),
        "runs, a word of many": lambda store: store.runs(query=common),
        "runs, a word of one": lambda store: store.runs(query=rare),
        "runs, three words of a phrase": lambda store: store.runs(query="the answer is needle"),
        "runs, a word that is nowhere": lambda store: store.runs(query="qqqqzzzz"),
        "runs, two letters": lambda store: store.runs(query="et"),
        "runs, a word and status failed": lambda store: store.runs(query=common, status="failed"),
        "runs, a word and status done": lambda store: store.runs(query=common, status="done"),
        "runs, a word and an owner": lambda store: store.of_owner("owner3").runs(query=common),
        "runs, a letter and an owner": lambda store: store.of_owner("owner3").runs(query="e"),
        "runs, a word and one who has none": lambda store: store.of_owner("nobody").runs(query=common),
        "sessions, the first page": lambda store: store.sessions(),
        "sessions, a strategy of an owner": lambda store: store.of_owner("owner2").sessions(strategy="react"),
        "sessions, a word of many": lambda store: store.sessions(query=common),
        "sessions, two letters": lambda store: store.sessions(query="et"),
        "sessions, a letter, one who has none": lambda store: store.of_owner("nobody").sessions(query="e"),
        "sessions, two letters, of agents (none)": lambda store: store.sessions(query="et", guided=True),
        "session ids of an owner": lambda store: store.of_owner("owner3").session_ids(f"s{count // 2:08}", 1),
        "run ids of an owner": lambda store: store.of_owner("owner3").run_ids(last, 1),
        "thoughts, a word of many": lambda store: store.search_thoughts(common),
        "thoughts, a word that is nowhere": lambda store: store.search_thoughts("qqqqzzzz"),
        "thoughts, two letters": lambda store: store.search_thoughts("et"),
        "thoughts, one letter": lambda store: store.search_thoughts("e"),
        "thoughts of an owner": lambda store: store.of_owner("owner3").search_thoughts(common),
        "thoughts, a letter and an owner": lambda store: store.of_owner("owner3").search_thoughts("e"),
        "thoughts, two letters, of one who has none": lambda store: store.of_owner("nobody").search_thoughts(
            "et"
        ),
        "usage of an owner, of the last day": lambda store: store.usage_since(middle, "owner3"),
        "usage by strategy, of all time": lambda store: store.usage_by("strategy", 0),
    }
    missed = False
    print(f"{'':44}{'first':>9}{'median':>9}{'processor':>11}   found")
    for what, ask in asked.items():
        store, took, worked = open_store(name), list[float](), list[float]()
        for _ in range(5):
            began, work = time.perf_counter(), time.process_time()
            found = await ask(store)
            took.append((time.perf_counter() - began) * 1_000)
            worked.append((time.process_time() - work) * 1_000)
        await store.close()
        median, is_missed = sorted(took)[2], max(took[0], sorted(took)[2]) > TARGET_MS
        missed |= is_missed
        size = len(found) if isinstance(found, list) else found.runs
        mark = "   MISSED" if is_missed else ""
        print(f"{what:44}{took[0]:7.1f}ms{median:7.1f}ms{min(worked):9.1f}ms   {size}{mark}")
    return missed


async def thought_us(folder: Path, *, indexed: bool, clients: int) -> tuple[float, float, float]:
    """Return what a durable thought takes, wall-clock and of the processor, in µs, and the slowest one in ms."""
    put = text_search.put
    if not indexed:
        text_search.put = lambda *_: None  # pyright: ignore[reportAttributeAccessIssue]
    store, rng = SqliteStore(folder / f"{indexed}{clients}.db"), random.Random(1)
    slowest = 0.0

    async def client(name: str) -> None:
        nonlocal slowest
        for number in range(1, THOUGHTS + 1):
            row = SessionRow(name, "linear", 1, number, thoughts=number)
            change = SessionChange(row=row, thought=ThoughtRow(number, number, text(rng, 25)))

            def decide(_: SessionView, change: SessionChange = change) -> SessionChange:
                return change

            began = time.perf_counter()
            await store.change(name, decide)
            slowest = max(slowest, time.perf_counter() - began)

    try:
        began, worked = time.perf_counter(), time.process_time()
        await asyncio.gather(*(client(f"s{number}") for number in range(clients)))
        count = clients * THOUGHTS
        wall, work = (time.perf_counter() - began) / count, (time.process_time() - worked) / count
    finally:
        text_search.put = put
        await store.close()
    return wall * 1e6, work * 1e6, slowest * 1e3


async def show_thoughts(folder: Path) -> None:
    for clients in (1, 16):
        for indexed in (False, True):
            wall, work, slowest = await thought_us(folder, indexed=indexed, clients=clients)
            how = "indexed" if indexed else "not indexed"
            print(
                f"a durable thought, {clients:2} at once, {how:12}{wall:6.0f} µs, of the processor {work:4.0f} µs, "
                f"the slowest {slowest:4.0f} ms"
            )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="?", type=int, default=100_000)
    parser.add_argument("--store", help="`postgres`, or the URL of an empty database")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path, began = Path(folder) / "lists.db", time.perf_counter()
        if not given.store:
            asyncio.run(show_thoughts(Path(folder)))
        asyncio.run(fill(path, given.runs))
        name = str(path)
        if given.store:
            name = stack.enter_context(postgres(".")).url if given.store == "postgres" else given.store
            asyncio.run(fill_postgres(name, path))
        print(f"{given.runs} runs written in {time.perf_counter() - began:.0f} s")
        missed = asyncio.run(measure(name, given.runs))
    print("TARGET MISSED" if missed else "target met")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
