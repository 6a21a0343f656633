"""A process that writes to a store until it is done or killed, and says what was acknowledged to it."""

import asyncio
import contextlib
import ctypes
import os
import sys
import time
import traceback
from pathlib import Path
from typing import NoReturn

from reasonry.errors import StoreError
from reasonry.stores.sqlite import SqliteStore

from .samples import line, run_row, think


def tell(what: str, number: int) -> None:
    # A few bytes in one write to a pipe arrive whole or not at all.
    os.write(1, f"{what} {number}\n".encode())


async def append(store: SqliteStore, name: str, count: int) -> None:
    await store.create_run(run_row(name), [line(1)])
    tell(name, 1)
    for seq in range(2, count + 1):
        await store.append(name, [line(seq, f"{name} {seq} ".encode() * (seq % 50))])
        tell(name, seq)


async def think_on(store: SqliteStore, name: str, session_id: str, count: int) -> None:
    for number in range(count):
        await think(store, session_id, f"{name} {number}")
        tell(f"{name}@{session_id}", number)


async def write(path: str, name: str, count: int) -> None:
    """Append to two runs and think in one session at once, with few pages in the log between checkpoints."""
    store = SqliteStore(Path(path))
    try:
        await store.write(lambda tx: tx.execute("PRAGMA wal_autocheckpoint = 20"))
        await asyncio.gather(
            append(store, f"{name}1", count),
            append(store, f"{name}2", count),
            think_on(store, name, "s", count),
        )
    except StoreError as error:
        tell(error.code, 0)
    await store.close()


async def share(path: str, name: str, count: int) -> None:
    """Think in a session of one's own, and every fifth thought in one that others think in too."""
    store = SqliteStore(Path(path))
    for number in range(count):
        await think(store, "shared" if number % 5 == 0 else name, f"{name} {number}")
    await store.close()


async def visit(path: str, name: str, count: int) -> None:
    """Open, think, delete, and close, again and again."""
    for number in range(count):
        store = SqliteStore(Path(path))
        await think(store, name, f"{name} {number}")
        await think(store, f"{name}-private", "SECRET")
        await store.delete_session(f"{name}-private")
        await store.close()


def fork_writers() -> None:
    """Fork a writer for each path on standard input; everything is imported by then, so each is cheap."""
    for row in sys.stdin:
        if os.fork() == 0:
            begin_traced(row.rstrip("\n"))
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    with contextlib.suppress(ChildProcessError):
        while os.wait():
            pass


def begin_traced(path: str) -> NoReturn:
    """Write as soon as somebody traces this process; what it tells and its errors go into files beside the store."""
    code = 1
    try:
        ctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(-1), 0, 0, 0)  # PR_SET_PTRACER: anybody may.
        os.write(1, f"{os.getpid()}\n".encode())
        for stream, name in ((1, "told"), (2, "errors")):
            os.dup2(os.open(f"{path}.{name}", os.O_WRONLY | os.O_CREAT, 0o600), stream)
        until = time.monotonic() + 30
        while "TracerPid:\t0\n" in Path("/proc/self/status").read_text("utf-8"):
            assert time.monotonic() < until
            time.sleep(0.002)
        time.sleep(0.01)  # Until the tracer has stopped it.
        asyncio.run(write(path, "a", 5))
        code = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "fork":
        fork_writers()
    else:
        work = {"write": write, "share": share, "visit": visit}[sys.argv[1]]
        asyncio.run(work(sys.argv[2], sys.argv[3], int(sys.argv[4])))
