"""A backup is whole whoever writes meanwhile; restoring takes its place whole or not at all."""

import asyncio
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from reasonry.errors import ConflictError, ReasonryError, StoreError, UsageError
from reasonry.stores import sql
from reasonry.stores.sqlite import MemoryStore, SqliteStore
from tests.forked import ForkedProcess, forking_python

from .samples import line, refused, run_row, session_row, texts, think
from .test_sqlite import a_text, empty, foreign, newer_steps, raw

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "copies" / "backup.db"


@pytest.fixture
async def store(path: Path) -> SqliteStore:
    store = SqliteStore(path, busy_timeout_s=0.2)
    await think(store, "s", "first")
    return store


async def texts_in(path: Path) -> list[str]:
    store = SqliteStore(path, busy_timeout_s=0.2)
    try:
        return await texts(store, "s")
    finally:
        await store.close()


def names(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.iterdir())


class TestBackUp:
    async def test_what_is_being_written_goes_on_and_the_copy_is_one_moment_of_it(
        self, store: SqliteStore, copy: Path
    ) -> None:
        for number in range(60):
            await store.import_session(session_row(f"big{number}"), [])
            await think(store, f"big{number}", "x" * 50_000)
        seen, done = list[tuple[int, int]](), asyncio.Event()

        async def write() -> int:
            number = 0
            while not done.is_set():
                number += 1
                await think(store, "s", f"{number}")
            return number

        writing = asyncio.create_task(write())
        await asyncio.sleep(0.02)
        made = await store.whole.back_up(copy, on_progress=lambda *far: seen.append(far))
        done.set()
        written = await writing
        assert (made.sessions, made.runs, made.bytes) == (61, 0, copy.stat().st_size)
        assert seen[-1][0] == seen[-1][1] > 700
        copied = await texts_in(copy)
        assert copied == ["first", *(f"{number}" for number in range(1, len(copied)))]
        assert len(copied) <= written + 1
        assert names(copy.parent) == ["backup.db"]
        assert copy.stat().st_mode & 0o777 == 0o600

    async def test_a_file_that_is_there_stays_unless_told_otherwise(
        self, store: SqliteStore, path: Path, copy: Path
    ) -> None:
        await store.whole.back_up(copy)
        before = copy.read_bytes()
        await think(store, "s", "second")
        with pytest.raises(ConflictError, match="--force"):
            await store.whole.back_up(copy)
        assert copy.read_bytes() == before
        await store.whole.back_up(copy, force=True)
        assert await texts_in(copy) == ["first", "second"]
        with pytest.raises(UsageError, match="the store itself"):
            await store.whole.back_up(path, force=True)

    async def test_a_store_in_use_is_not_written_over(self, store: SqliteStore, tmp_path: Path) -> None:
        other = SqliteStore(tmp_path / "other.db")
        await think(other, "s", "of another")
        for _ in range(2):
            with pytest.raises(ReasonryError, match=r"in use|log beside"):
                await store.whole.back_up(tmp_path / "other.db", force=True)
        assert await texts(other, "s") == ["of another"]

    async def test_of_a_damaged_store_no_backup_is_made(
        self, store: SqliteStore, path: Path, copy: Path
    ) -> None:
        await store.create_run(run_row("r"), [line(1)])
        with refused("store_corrupt", r"was not copied because it is damaged.*line 1"):
            await store.whole.back_up(copy)
        assert names(copy.parent) == []

    async def test_one_that_is_given_up_leaves_nothing(self, store: SqliteStore, copy: Path) -> None:
        await store.import_session(session_row("big"), [])
        await think(store, "big", "x" * 20_000_000)
        far = asyncio.Event()
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(
            store.whole.back_up(copy, on_progress=lambda *_: loop.call_soon_threadsafe(far.set))
        )
        await far.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert names(copy.parent) == []

    async def test_memory_has_no_file(self, copy: Path) -> None:
        for attempt in (MemoryStore().whole.back_up(copy), MemoryStore().whole.restore(copy)):
            with pytest.raises(UsageError, match="has no file"):
                await attempt


def missing(path: Path) -> None:
    path.unlink()


def cut(copy: Path) -> None:
    copy.write_bytes(copy.read_bytes()[:-4096])


def with_a_damaged_run(copy: Path) -> None:
    ended = "'done', 1, 1, 'answered', NULL, '', NULL"
    row = f"(1, 'r', 's', 'x', 'm', 'p', {ended}, '', 0, 0, 0, 0, 0, NULL, 1, zeroblob(16))"
    with raw(copy) as db:
        db.execute(f"INSERT INTO run (key, {sql.RUN_ROW}, last_line, last_digest) VALUES {row}")
        db.execute("INSERT INTO line VALUES (1 << 24 | 1, x'005b5d', zeroblob(16))")


def scrambled(copy: Path) -> None:
    data, rng = bytearray(copy.read_bytes()), random.Random(1)
    for at in range(4096, len(data), 40):
        data[at] = rng.randrange(256)
    copy.write_bytes(data)


BAD = [missing, empty, a_text, foreign, newer_steps, cut, with_a_damaged_run, scrambled]


def garbage(path: Path) -> None:
    path.write_bytes(b"garbage" * 5000)


def nothing_but_a_log(path: Path) -> None:
    path.rename(f"{path}-wal")


def a_strange_log(path: Path) -> None:
    path.with_name("store.db-wal").write_bytes(os.urandom(9000))


class TestRestore:
    @pytest.fixture
    async def backup(self, store: SqliteStore, copy: Path) -> Path:
        await store.whole.back_up(copy)
        await think(store, "s", "second")
        await store.close()
        return copy

    async def test_the_backup_takes_the_place_of_everything(self, backup: Path, path: Path) -> None:
        told = await SqliteStore(path).whole.restore(backup)
        assert (told.file, told.sessions) == (str(backup), 1)
        assert await texts_in(path) == ["first"]
        assert names(path.parent) == ["copies", "store.db"]
        await think(store := SqliteStore(path), "s", "on")
        await store.close()
        assert await texts_in(backup) == ["first"]

    @pytest.mark.parametrize("spoil", BAD, ids=lambda one: one.__name__)
    async def test_what_is_no_whole_store_is_refused_and_the_store_stays(
        self, backup: Path, path: Path, spoil: Callable[[Path], None]
    ) -> None:
        spoil(backup)
        before, file = path.read_bytes(), backup.read_bytes() if backup.exists() else b""
        with pytest.raises(ReasonryError, match=r"backup\.db") as caught:
            await SqliteStore(path).whole.restore(backup)
        assert caught.value.code in ("invalid_request", "store_corrupt", "store_newer")
        assert ".new" not in caught.value.message
        assert path.read_bytes() == before
        assert names(path.parent) == ["copies", "store.db"]
        assert (backup.read_bytes() if backup.exists() else b"") == file
        assert await texts_in(path) == ["first", "second"]

    @pytest.mark.parametrize(
        "spoil", [missing, empty, garbage, nothing_but_a_log, a_strange_log], ids=lambda one: one.__name__
    )
    async def test_a_store_that_is_lost_or_damaged_is_replaced(
        self, backup: Path, path: Path, spoil: Callable[[Path], None]
    ) -> None:
        spoil(path)
        await SqliteStore(path).whole.restore(backup)
        assert await texts_in(path) == ["first"]
        assert names(path.parent) == ["copies", "store.db"]

    async def test_a_backup_that_may_only_be_read_is_restored(self, backup: Path, path: Path) -> None:
        backup.chmod(0o400)
        backup.parent.chmod(0o500)
        await SqliteStore(path).whole.restore(backup)
        backup.parent.chmod(0o700)
        assert names(backup.parent) == ["backup.db"]
        assert await texts_in(path) == ["first"]

    async def test_a_store_that_someone_has_open_is_not_replaced(self, backup: Path, path: Path) -> None:
        mine = SqliteStore(path)
        await mine.sessions()
        with refused("store_busy", "in use"):
            await mine.whole.restore(backup)
        await mine.close()
        code = (
            "import asyncio, sys; from reasonry.stores import open_store; store = open_store(sys.argv[1])\n"
            "asyncio.run(store.sessions()); print('open', flush=True); sys.stdin.read()"
        )
        with ForkedProcess(
            [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "open\n"
            with pytest.raises(StoreError, match="in use"):
                await SqliteStore(path).whole.restore(backup)
            assert await texts_in(path) == ["first", "second"]
            child.kill()
            child.wait()
        await SqliteStore(path).whole.restore(backup)
        assert await texts_in(path) == ["first"]

    async def test_where_the_disk_fails_the_store_is_put_back(
        self, backup: Path, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> bool:
            raise OSError(5, "the disk is broken")

        monkeypatch.setattr("reasonry.stores.backup.publish", fail)
        with pytest.raises(StoreError, match="the disk is broken"):
            await SqliteStore(path).whole.restore(backup)
        assert await texts_in(path) == ["first", "second"]
        assert names(path.parent) == ["copies", "store.db"]

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="kills children that were forked")
    async def test_killed_at_any_point_the_store_is_the_old_or_the_new(self, tmp_path: Path) -> None:
        path, other = tmp_path / "store.db", SqliteStore(tmp_path / "other.db")
        await think(other, "s", "new")
        await other.whole.back_up(tmp_path / "backup.db")
        await other.close()
        for text in ("old", "in the log"):
            store = SqliteStore(path)
            await think(store, "s", text)
            for end in ("", "-wal"):
                shutil.copy(f"{path}{end}", f"{path}{end}.kept")
            await store.close()
        for end in ("", "-wal"):
            shutil.move(f"{path}{end}.kept", f"{path}{end}")
        done = subprocess.run(
            [forking_python(), "-m", "tests.stores.restoring", str(tmp_path)],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stderr == ""
        states = done.stdout.split()
        assert states[0] == "old"
        assert states[-1] == "new"
        assert {*states} == {"old", "new"}
