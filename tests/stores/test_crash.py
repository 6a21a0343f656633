"""Processes are killed and disks fail at every point; what was acknowledged is there."""

import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import apsw
import pytest

from reasonry.stores.sqlite import SqliteStore
from tests.forked import ForkedProcess

from .samples import texts, think

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
STRACE = shutil.which("strace")

Acknowledged = dict[str, set[int]]


def child(*words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.stores.crashing", *words]
    return ForkedProcess(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    )


def read(out: str, told: Acknowledged) -> None:
    for what, number in (row.split() for row in out.splitlines()):
        told.setdefault(what, set()).add(int(number))


async def check(path: Path, told: Acknowledged) -> None:
    """All that was acknowledged is there, whole, and the store can be written to."""
    store = SqliteStore(path)
    said = (
        set(await texts(store, "s"))
        if "s" in {row.session_id for row in await store.sessions()}
        else set[str]()
    )
    for what, numbers in told.items():
        name, _, session = what.partition("@")
        if session:
            assert said >= {f"{name} {number}" for number in numbers}
        elif not what.startswith("store_"):
            lines = await store.lines(name)
            assert [one.seq for one in lines] == list(range(1, len(lines) + 1))
            assert len(lines) >= max(numbers)
            assert all(one.body == f"{name} {one.seq} ".encode() * (one.seq % 50) for one in lines[1:])
    await think(store, "after", "still writable")
    await store.close()
    db = apsw.Connection(str(path))
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


async def test_killed_at_random_instants_a_process_loses_nothing_acknowledged(folder: Path) -> None:
    rng, acknowledged = random.Random(11), 0
    for path in (folder / f"{number}.db" for number in range(6)):
        told = Acknowledged()
        for name in "abcdefghij":
            with child("write", str(path), name, "100000") as writer:
                assert writer.stdout is not None
                # Some are killed before they have begun, the others at their next writes.
                first = "".join(writer.stdout.readline() for _ in range(rng.choice([0, 1, *range(4, 44, 4)])))
                time.sleep(rng.uniform(0, 0.02) if first else rng.uniform(0.05, 0.2))
                writer.kill()
                read(first + writer.stdout.read(), told)
        acknowledged += sum(len(numbers) for numbers in told.values())
        await check(path, told)
    assert acknowledged > 500


def points() -> list[tuple[str, int]]:
    """Name every call of an undisturbed run that changes files; of the writes, every third."""
    return [
        *(("fsync,fdatasync", number) for number in range(1, 34)),
        *(("link,ftruncate", number) for number in range(1, 4)),
        *(("unlink", number) for number in range(1, 8)),
        *(("pwrite64", number) for number in range(1, 90, 3)),
    ]


class Writers:
    """Writers of five lines and thoughts each, forked from one process and disturbed by strace."""

    def __init__(self, parent: subprocess.Popen[str]) -> None:
        self._parent, self._lock = parent, threading.Lock()

    def _fork(self, path: Path) -> int:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        with self._lock:
            self._parent.stdin.write(f"{path}\n")
            self._parent.stdin.flush()
            return int(self._parent.stdout.readline())

    def disturbed(self, path: Path, calls: str, number: int, fault: str) -> Acknowledged:
        inject = f"inject={calls}:{fault}:when={number}"
        command = [str(STRACE), "-f", "-qq", "-o", "/dev/null", "-e", inject, "-p", str(self._fork(path))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.stderr == ""
        assert Path(f"{path}.errors").read_text("utf-8") == ""
        told = Acknowledged()
        read(Path(f"{path}.told").read_text("utf-8"), told)
        return told


@pytest.fixture(scope="module")
def writers() -> Iterator[Writers]:
    command = [sys.executable, "-m", "tests.stores.crashing", "fork"]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        yield Writers(parent)
        assert parent.stdin is not None
        parent.stdin.close()


@pytest.mark.skipif(STRACE is None, reason="needs strace")
async def test_killed_at_any_call_that_changes_files_a_process_loses_nothing_acknowledged(
    folder: Path, writers: Writers
) -> None:
    with ThreadPoolExecutor(3) as pool:
        jobs = [
            (
                folder / f"{calls}{number}.db",
                pool.submit(
                    writers.disturbed, folder / f"{calls}{number}.db", calls, number, "signal=SIGKILL"
                ),
            )
            for calls, number in points()
        ]
    killed = 0
    for path, job in jobs:
        told = job.result()
        killed += sum(len(numbers) for numbers in told.values()) < 15
        await check(path, told)
    assert killed > 0.8 * len(jobs)


@pytest.mark.skipif(STRACE is None, reason="needs strace")
@pytest.mark.parametrize(("calls", "error"), [("fsync,fdatasync", "EIO"), ("pwrite64", "ENOSPC")])
async def test_where_a_call_fails_the_store_says_so_and_keeps_what_it_acknowledged(
    folder: Path, writers: Writers, calls: str, error: str
) -> None:
    with ThreadPoolExecutor(3) as pool:
        jobs = [
            (
                folder / f"{number}.db",
                pool.submit(writers.disturbed, folder / f"{number}.db", calls, number, f"error={error}"),
            )
            for number in range(1, 40, 2)
        ]
    codes = set[str]()
    for path, job in jobs:
        told = job.result()
        codes |= {what for what in told if what.startswith("store_")}
        await check(path, told)
    assert codes
    assert codes <= {"store_unavailable", "store_full"}


async def test_eight_processes_share_a_store_and_no_thought_is_lost_or_mixed(folder: Path) -> None:
    path, names = folder / "store.db", [f"p{number}" for number in range(8)]
    with ExitStack() as stack:
        children = [stack.enter_context(child("share", str(path), name, "500")) for name in names]
        errors = [one.communicate(timeout=100)[1] for one in children]
    assert errors == [""] * 8
    store = SqliteStore(path)
    for name in names:
        assert await texts(store, name) == [f"{name} {number}" for number in range(500) if number % 5]
    shared = await store.thoughts("shared", limit=10_000)
    assert [one.seq for one in shared] == list(range(1, 801))
    for name in names:
        mine = [one.text for one in shared if one.text.startswith(f"{name} ")]
        assert mine == [f"{name} {number}" for number in range(0, 500, 5)]


async def test_processes_that_come_and_go_leave_the_store_whole(
    folder: Path,
) -> None:
    path, names = folder / "store.db", [f"p{number}" for number in range(4)]
    with ExitStack() as stack:
        children = [stack.enter_context(child("visit", str(path), name, "25")) for name in names]
        errors = [one.communicate(timeout=100)[1] for one in children]
    assert errors == [""] * 4
    assert sorted(found.name for found in folder.iterdir()) == ["store.db"]
    store = SqliteStore(path)
    for name in names:
        assert await texts(store, name) == [f"{name} {number}" for number in range(25)]
