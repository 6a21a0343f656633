"""The durable journal: microseconds a step and megabytes for 1,000 steps of 200 bytes, each on the disk.

    uv run python bench/journal.py [FOLDER]

About ten seconds. FOLDER says which disk, and is the current one if
not given. Targets: a step of `journal` takes at most 1.4 times as long as one of `bare`, and the lot 0.35 MB.
Where a sync takes 0.2 ms, the thread alone may take that long. A slower disk, for those who have none:

    strace -f --seccomp-bpf -qq -o /dev/null -e trace=fdatasync -e inject=fdatasync:delay_exit=1000 \
        python bench/journal.py

In turns, so that a busy machine is busy for all; what is shown is the median round:

* `sync` is the floor: 4 kB written to the end of a file, and synced.
* `bare` is the floor for SQLite: one connection, the same settings, one insert and commit a step, no thread, no chain.
* `thread` is `bare` from an event loop that goes on meanwhile: on a fast disk, to wake a thread and to be woken by it
  costs a third of a commit and more.
* `journal` is what a run does: encode the event, chain its digest, append, and await that it is durable.
* `thought` is what a session does: look at it, decide, write the thought, and await that it is durable.
"""

import asyncio
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from reasonry.core.events import Answered
from reasonry.engine.journal import Chain, Settled
from reasonry.records import RunRow, SessionChange, SessionRow, SessionView, ThoughtRow
from reasonry.stores.database import Source
from reasonry.stores.sqlite import SqliteStore

STEPS, ROUNDS = 1_000, 9
MOST, MOST_MB = 1.4, 0.35
TEXT = "the number is left after four and nine make thirteen so we try ten minus this next value idea step"


def text() -> str:
    return " ".join(random.choices(TEXT.split(), k=60))[:200]


def timed(act: Callable[[int], object]) -> float:
    """Return the mean microseconds of an act."""
    began = time.perf_counter()
    for number in range(STEPS):
        act(number)
    return (time.perf_counter() - began) / STEPS * 1e6


def sync(folder: Path) -> float:
    handle = os.open(folder / "sync", os.O_RDWR | os.O_CREAT)
    page = os.urandom(4096 + 24)
    flush = getattr(os, "fdatasync", os.fsync)
    result = timed(lambda number: (os.pwrite(handle, page, number * len(page)), flush(handle)))
    os.close(handle)
    return result


def inserts(path: Path) -> tuple[Callable[[int], object], Callable[[], None]]:
    """Return an act that inserts and commits one row, and how to end."""
    db = Source(path).writer()
    db.execute(
        "CREATE TABLE bare (place INTEGER PRIMARY KEY, body BLOB NOT NULL, digest BLOB NOT NULL) STRICT"
    )

    def act(number: int) -> None:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO bare VALUES (?, ?, ?)", (number, text().encode(), b"d" * 16))
        db.execute("COMMIT")

    return act, db.close


def bare(folder: Path) -> float:
    act, close = inserts(folder / "bare.db")
    result = timed(act)
    close()
    return result


async def thread(folder: Path) -> float:
    loop, jobs = asyncio.get_running_loop(), SimpleQueue[tuple[int, asyncio.Future[None]] | None]()
    act, close = inserts(folder / "thread.db")

    def work() -> None:
        while job := jobs.get():
            act(job[0])
            loop.call_soon_threadsafe(job[1].set_result, None)

    writer = threading.Thread(target=work)
    writer.start()
    began = time.perf_counter()
    for number in range(STEPS):
        done = loop.create_future()
        jobs.put((number, done))
        await done
    taken = (time.perf_counter() - began) / STEPS * 1e6
    jobs.put(None)
    writer.join()
    close()
    return taken


async def journal(folder: Path) -> tuple[float, float]:
    """Return microseconds a step, and the megabytes of the closed store."""
    path = folder / "journal.db"
    store, chain = SqliteStore(path), Chain("run")
    row = RunRow("run", "session", "linear", "offline", "How?", "active", 1, 1)
    await store.create_run(row, [])
    began = time.perf_counter()
    for number in range(STEPS):
        lines = chain.lines([Settled(str(number), Answered(text(), at_ms=number * 1_003))])
        await store.append("run", lines)
        chain.extend(lines)
    taken = (time.perf_counter() - began) / STEPS * 1e6
    await store.close()
    return taken, path.stat().st_size / 1e6


async def thought(folder: Path) -> float:
    store = SqliteStore(folder / "thought.db")

    def decide(view: SessionView) -> SessionChange:
        number = (view.row.thoughts if view.row else 0) + 1
        view.latest(20)
        row = SessionRow("session", "linear", 1, number, thoughts=number)
        return SessionChange(row=row, thought=ThoughtRow(number, number, text()))

    await store.change("session", decide)
    began = time.perf_counter()
    for _ in range(STEPS):
        await store.change("session", decide)
    taken = (time.perf_counter() - began) / STEPS * 1e6
    await store.close()
    return taken


def main() -> int:
    where = sys.argv[1] if len(sys.argv) > 1 else "."
    rows, size = list[tuple[float, ...]](), 0.0
    for number in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=where) as name:
            folder = Path(name)
            step, size = asyncio.run(journal(folder))
            rows.append(
                (
                    sync(folder),
                    bare(folder),
                    asyncio.run(thread(folder)),
                    step,
                    asyncio.run(thought(folder)),
                )
            )
        print(f"round {number + 1} of {ROUNDS}: journal {step:.0f} µs, {size:.3f} MB", file=sys.stderr)
    floor, plain, handed, step, think = (statistics.median(column) for column in zip(*rows, strict=True))
    print(f"sync     {floor:6.0f} µs a step")
    print(f"bare     {plain:6.0f} µs a step")
    print(f"thread   {handed:6.0f} µs a step   {handed / plain:.2f} x bare")
    print(
        f"journal  {step:6.0f} µs a step   {step / plain:.2f} x bare   {size:.3f} MB for {STEPS} steps of 200 bytes"
    )
    print(f"thought  {think:6.0f} µs a step   {think / plain:.2f} x bare")
    good = step <= MOST * plain and size <= MOST_MB
    print("target met" if good else "TARGET MISSED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
