"""What the SQLite store promises beyond the contract: its file, its refusals, its durability's cost and limits."""

import asyncio
import hashlib
import itertools
import os
import random
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import apsw
import pytest

from reasonry.app.app import App
from reasonry.errors import ConflictError, StoreError, UsageError
from reasonry.records import Line, ThoughtRow
from reasonry.stores import database, default_path, open_store, sql, text_search
from reasonry.stores.database import Source, connect, create, is_file
from reasonry.stores.run_rows import pack, unpack
from reasonry.stores.schema import MIGRATIONS
from reasonry.stores.sqlite import MemoryStore, SqliteDatabase, SqliteStore

from .samples import line, refused, run_row, session_row, texts, think, thoughts

pytestmark = pytest.mark.anyio


@pytest.fixture
def store(path: Path) -> SqliteStore:
    return SqliteStore(path, busy_timeout_s=0.2)


async def filled(path: Path) -> None:
    store = SqliteStore(path)
    await store.create_run(run_row("r"), [line(1)])
    await think(store, "s", "one")
    await store.close()


def raw(path: Path) -> closing[apsw.Connection]:
    return closing(apsw.Connection(str(path)))


def print_of(path: Path) -> tuple[str, int]:
    return hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns


class TestTheFile:
    async def test_everything_is_the_owners_alone_whatever_the_umask(self, tmp_path: Path) -> None:
        path = tmp_path / "folder" / "store.db"
        before = os.umask(0)
        try:
            store = SqliteStore(path)
            await store.create_run(run_row("r"), [line(1)])
            await store.run("r")
            async with store.drive("r"):
                modes = {
                    str(found.relative_to(tmp_path)): stat.S_IMODE(found.stat().st_mode)
                    for found in tmp_path.rglob("*")
                }
        finally:
            os.umask(before)
        assert modes == {
            "folder": 0o700,
            "folder/store.db": 0o600,
            "folder/store.db-wal": 0o600,
            "folder/store.db-shm": 0o600,
        }

    async def test_commits_are_synced_in_full_and_the_sqlite_is_a_sound_one(self, path: Path) -> None:
        wanted = {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1, "foreign_keys": 1}
        with closing(Source(path).writer()) as db:
            assert {name: db.pragma(name) for name in wanted} == wanted
        assert tuple(map(int, apsw.sqlite_lib_version().split("."))) >= (3, 51, 3)

    async def test_a_thousand_lines_of_200_bytes_take_less_than_0_35_mb(
        self, store: SqliteStore, path: Path
    ) -> None:
        await store.create_run(run_row("r"), [line(1)])
        rng, lines = random.Random(1), list[Line]()
        for seq in range(2, 1002):
            text = "".join(rng.choices("abcdefghijklmnopqrstuvwxyz     ", k=200))
            body = f'["took","{seq}",{{"type":"answered","text":"{text}","at_ms":{seq * 977}}}]'.encode()
            lines.append(line(seq, body))
        await asyncio.gather(*(store.append("r", [each]) for each in lines))
        await store.close()
        empty = SqliteStore(path.with_name("empty.db"))
        await empty.runs()
        await empty.close()
        assert path.stat().st_size - empty.path.stat().st_size <= 350_000

    async def test_importing_the_stores_loads_no_sqlite(self) -> None:
        code = (
            "import sys, reasonry.stores as s; s.open_store('memory'); s.open_store('/nowhere/x'); "
            "sys.exit(any(m in sys.modules for m in ('apsw', 'sqlite3', 'platformdirs', 'filelock')))"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestOpening:
    @pytest.mark.parametrize("spec", ["", "sqlite:", "sqlite:///x", "a\x00b", "http://h/x", "//x", "a\ud800"])
    async def test_what_is_no_store_is_refused(self, spec: str) -> None:
        with pytest.raises(UsageError) as caught:
            open_store(spec)
        assert caught.value.details["choices"][:3] == ["memory", "PATH", "sqlite:PATH"]

    async def test_memory_a_path_and_nothing_are_understood(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        monkeypatch.setenv("HOME", str(tmp_path))
        assert isinstance(open_store("memory"), MemoryStore)
        for spec, path in (
            (None, default_path()),
            ("~/x.db", tmp_path / "x.db"),
            ("sqlite:x.db", Path("x.db")),
            (str(tmp_path / "a?b#c%d.db"), tmp_path / "a?b#c%d.db"),
        ):
            store = open_store(spec)
            assert isinstance(store, SqliteStore)
            assert store.path == path
        assert default_path() == tmp_path / "reasonry" / "reasonry.db"

    @pytest.mark.parametrize("name", ["a?b#c%d &'.db", "ümlaut \U0001f600.db", "-v", "file:x"])
    async def test_a_strange_name_is_a_name(self, tmp_path: Path, name: str) -> None:
        await filled(tmp_path / name)
        store = open_store(f"sqlite:{tmp_path / name}")
        assert (await store.run("r")).run_id == "r"
        await store.close()
        assert name in [found.name for found in tmp_path.iterdir()]


def a_link(path: Path) -> None:
    target = path.with_name("real.db")
    shutil.move(path, target)
    path.symlink_to(target)


def a_dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("nowhere"))


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def a_socket(path: Path) -> None:
    path.unlink()
    with socket.socket(socket.AF_UNIX) as end:
        end.bind(str(path))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def a_text(path: Path) -> None:
    path.write_text("dear diary\n" * 1000)


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def foreign(path: Path) -> None:
    path.unlink()
    with raw(path) as db:
        db.execute("CREATE TABLE run (id)")


def newer_steps(path: Path) -> None:
    with raw(path) as db:
        db.execute("INSERT INTO migration VALUES ('0099_from_the_future', 1)")


def read_only(path: Path) -> None:
    path.chmod(0o400)


NOT_ROOT = pytest.mark.skipif(os.geteuid() == 0, reason="the owner of all files may write to any")
REFUSALS: list[Any] = [
    (a_link, "store_unavailable", "not a regular file"),
    (a_dangling_link, "store_unavailable", "not a regular file"),
    (a_pipe, "store_unavailable", "not a regular file"),
    (a_socket, "store_unavailable", "not a regular file"),
    (empty, "store_corrupt", "empty"),
    (a_text, "store_corrupt", "not a SQLite file"),
    (cut_short, "store_corrupt", "damaged"),
    (foreign, "store_corrupt", "another application"),
    (newer_steps, "store_newer", "another version"),
    pytest.param(read_only, "store_unavailable", "read-only", marks=NOT_ROOT),
]


class TestRefusals:
    @pytest.mark.parametrize(
        ("spoil", "code", "words"), REFUSALS, ids=lambda value: getattr(value, "__name__", "")
    )
    async def test_what_is_no_store_of_ours_is_refused_and_left_as_it_is(
        self, path: Path, spoil: Callable[[Path], None], code: str, words: str
    ) -> None:
        await filled(path)
        spoil(path)
        before = print_of(path) if path.is_file() else None
        names = sorted(found.name for found in path.parent.iterdir())
        store = SqliteStore(path)
        for attempt in (store.run("r"), store.append("r", [line(2)])):
            with refused(code, words) as caught:
                await attempt
            assert caught.value.details["path"] == str(path)
        await store.close()
        assert (print_of(path) if path.is_file() else None) == before
        assert sorted(found.name for found in path.parent.iterdir()) == names

    async def test_a_folder_and_a_path_below_a_file_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("x")
        for path, words in ((tmp_path, "folder"), (tmp_path / "file" / "x.db", "directory")):
            with pytest.raises(StoreError, match=words):
                await SqliteStore(path).runs()

    @NOT_ROOT
    async def test_a_read_only_folder_is_refused(self, tmp_path: Path) -> None:
        folder = tmp_path / "folder"
        folder.mkdir(mode=0o500)
        store = SqliteStore(folder / "store.db")
        with pytest.raises(StoreError, match=r"permissions|denied"):
            await store.runs()
        folder.chmod(0o700)
        assert await store.runs() == []

    async def test_a_store_copied_over_another_whose_log_is_there_is_refused(
        self, store: SqliteStore, path: Path, tmp_path: Path
    ) -> None:
        await think(store, "s", "one")
        backup = tmp_path / "backup.db"
        await store.whole.back_up(backup)
        await think(store, "s", "two")
        log = path.with_name("store.db-wal").read_bytes()
        await store.close()
        shutil.copy(backup, path)
        path.with_name("store.db-wal").write_bytes(log)
        again = SqliteStore(path)
        with refused("store_corrupt", "store restore"):
            await again.sessions()
        await again.close()
        await SqliteStore(path).whole.restore(backup)
        assert await texts(SqliteStore(path), "s") == ["one"]

    async def test_a_store_with_checksums_is_not_written_where_they_cannot_be(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await filled(path)
        before = print_of(path)
        monkeypatch.setattr("reasonry.stores.database.checksum_vfs", lambda: None)
        with pytest.raises(StoreError, match="checksums"):
            await SqliteStore(path).run("r")
        assert print_of(path) == before

    async def test_a_log_whose_store_is_gone_is_not_taken_for_a_new_stores(
        self, path: Path, tmp_path: Path
    ) -> None:
        store, backup = SqliteStore(path), tmp_path / "backup.db"
        await think(store, "s", "one")
        await store.whole.back_up(backup)
        shutil.copy(f"{path}-wal", path.with_name("kept"))
        await store.close()
        path.unlink()
        path.with_name("kept").rename(f"{path}-wal")
        again = SqliteStore(path)
        with refused("store_corrupt", "the store is missing"):
            await again.runs()
        assert not path.exists()
        await again.whole.restore(backup)
        assert await texts(SqliteStore(path), "s") == ["one"]

    async def test_a_store_removed_or_replaced_in_use_is_noticed(
        self, store: SqliteStore, path: Path
    ) -> None:
        await store.create_run(run_row("r"), [line(1)])
        await store.run("r")
        path.rename(path.with_name("elsewhere.db"))
        for _ in range(2):
            for attempt in (store.append("r", [line(2)]), store.run("r")):
                with pytest.raises(StoreError, match="removed"):
                    await attempt
        assert not path.exists()
        path.with_name("elsewhere.db").rename(path)
        await store.append("r", [line(2)])
        assert len(await store.lines("r")) == 2


class TestMigrations:
    async def test_a_store_of_an_older_version_takes_the_missing_steps_and_keeps_its_rows(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await filled(path)
        step = type(MIGRATIONS[0])("9000_more", ("CREATE TABLE more (x INTEGER) STRICT",))
        monkeypatch.setattr("reasonry.stores.schema.MIGRATIONS", (*MIGRATIONS, step))
        stores = [SqliteStore(path) for _ in range(3)]
        rows = await asyncio.gather(
            *(store.run("r") for store in stores), *(think(s, "s", "x") for s in stores)
        )
        assert rows[0] == run_row("r")
        with raw(path) as db:
            assert db.execute("SELECT count(*) FROM migration").fetchone() == (len(MIGRATIONS) + 1,)
            assert db.execute("SELECT * FROM more").fetchall() == []
        monkeypatch.undo()
        with refused("store_newer", "9000_more"):
            await SqliteStore(path).run("r")

    async def test_a_store_whose_step_had_other_statements_is_one_of_another_version(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = MIGRATIONS[0]
        without = first._replace(
            statements=tuple(text.replace("samples {integer} NOT NULL,", "") for text in first.statements),
            sqlite=tuple(text.replace(" samples,", "") for text in first.sqlite),
        )
        monkeypatch.setattr("reasonry.stores.schema.MIGRATIONS", (without,))
        await think(SqliteStore(path), "s", "x")
        monkeypatch.undo()
        with refused("store_newer", "another version"):
            await SqliteStore(path).runs()

    async def test_a_step_that_fails_leaves_the_store_as_it_was(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await filled(path)
        step = type(MIGRATIONS[0])(
            "9000_broken", ("CREATE TABLE more (x INTEGER)", "CREATE TABLE run (x INTEGER)")
        )
        monkeypatch.setattr("reasonry.stores.schema.MIGRATIONS", (*MIGRATIONS, step))
        store = SqliteStore(path)
        with pytest.raises(StoreError):
            await store.run("r")
        monkeypatch.undo()
        assert (await store.run("r")).run_id == "r"

    async def test_stores_that_begin_at_once_begin_one(self, path: Path) -> None:
        stores = [SqliteStore(path) for _ in range(6)]
        await asyncio.gather(*(think(store, "s", f"t{n}") for n, store in enumerate(stores)))
        for store in stores:
            assert sorted(await texts(store, "s")) == [f"t{n}" for n in range(6)]
            await store.close()
        assert sorted(found.name for found in path.parent.iterdir()) == ["store.db"]

    async def test_drafts_that_a_crash_has_left_are_swept_up(self, path: Path) -> None:
        old, young = path.with_name(".store.db.aa.new"), path.with_name(".store.db.bb.new")
        for draft in (old, young):
            draft.write_bytes(b"half a store")
        os.utime(old, (1, 1))
        await filled(path)
        assert (old.exists(), young.exists()) == (False, True)

    async def test_a_store_that_is_there_is_never_replaced(self, path: Path) -> None:
        await filled(path)
        before = print_of(path)
        create(path)
        assert print_of(path) == before


class TestForgetting:
    async def test_deleted_bytes_are_in_no_file_after_a_vacuum(self, store: SqliteStore, path: Path) -> None:
        for number in range(30):
            await think(store, f"s{number}", f"keep {number} " * 200)
            await think(store, f"t{number}", f"SECRET {number} " * 200)
        for number in range(30):
            await store.delete_session(f"t{number}")
        before = (await store.stats()).bytes
        await store.whole.vacuum()
        for file in path.parent.iterdir():
            assert b"SECRET" not in file.read_bytes()
            assert b"secret" not in file.read_bytes()
        assert path.stat().st_size < before
        assert (await store.stats()).free_bytes == 0

    async def test_a_reader_in_the_way_of_a_vacuum_is_told_of(self, store: SqliteStore, path: Path) -> None:
        await think(store, "s", "one")
        with raw(path) as other:
            other.execute("BEGIN")
            other.execute("SELECT * FROM session").fetchone()
            with refused("store_busy", "another process"):
                await store.whole.vacuum()
        await store.whole.vacuum()
        assert await texts(store, "s") == ["one"]


class TestTrouble:
    async def test_a_store_locked_too_long_is_busy_and_then_serves_again(
        self, store: SqliteStore, path: Path
    ) -> None:
        await store.create_run(run_row("r"), [line(1)])
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            with refused("store_busy", "another process") as caught:
                await store.append("r", [line(2)])
            assert caught.value.retryable
            assert len(await store.lines("r")) == 1
            other.execute("ROLLBACK")
        await store.append("r", [line(2)])

    async def test_the_stores_of_a_process_write_in_turn(self, store: SqliteStore, path: Path) -> None:
        other = SqliteStore(path, busy_timeout_s=0.1)
        await think(store, "s", "one")
        is_writing, may_end = threading.Event(), threading.Event()

        def hold(tx: sql.Tx) -> bool:
            is_writing.set()
            return may_end.wait(60)

        held = asyncio.create_task(store.write(hold))
        await asyncio.to_thread(is_writing.wait)
        thinking = asyncio.create_task(think(other, "t", "two"))
        # SQLite's own wait is over.
        await asyncio.sleep(0.5)
        may_end.set()
        await asyncio.gather(held, thinking)
        assert await texts(store, "t") == ["two"]

    async def test_while_another_process_writes_everything_is_read_at_once(
        self, path: Path, tmp_path: Path
    ) -> None:
        store = SqliteStore(path)
        await think(store, "s", "one")
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            async with App(store, environ={}) as app:
                async with asyncio.timeout(5):
                    listed = await app.sessions().list({})
                    assert [one["session_id"] for one in listed["sessions"]] == ["s"]
                    assert await texts(store, "s") == ["one"]
                    assert await store.runs() == []
                    assert {one.state async for one in store.whole.verify()} == {"whole"}
                    assert (await store.whole.back_up(tmp_path / "backup.db")).sessions == 1
            other.execute("ROLLBACK")

    async def test_a_full_store_says_so_keeps_what_it_has_and_goes_on_with_what_fits(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = Source.writer

        def small(source: Source) -> object:
            db = opened(source)
            db.execute("PRAGMA max_page_count = 20")
            return db

        monkeypatch.setattr(Source, "writer", small)
        store = SqliteStore(path)
        await store.create_run(run_row("r"), [line(1)])
        huge = os.urandom(200_000)
        results = await asyncio.gather(
            store.append("r", [line(2)]),
            store.append("r", [line(3, huge)]),
            store.append("r", [line(4)]),
            return_exceptions=True,
        )
        assert [getattr(result, "code", None) for result in results] == [None, "store_full", None]
        assert [one.seq for one in await store.lines("r")] == [1, 2, 4]

    @pytest.mark.skipif(sys.platform != "linux", reason="limits a file's size by prlimit")
    async def test_a_disk_that_fails_makes_the_store_suspect_until_it_is_sound_again(
        self, path: Path
    ) -> None:
        import resource

        store = SqliteStore(path)
        await store.create_run(run_row("r"), [line(1)])
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65_536, hard))
        try:
            for _ in range(2):
                with pytest.raises(StoreError) as caught:
                    await store.append("r", [line(2, os.urandom(300_000))])
                assert caught.value.code in ("store_unavailable", "store_full")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await store.append("r", [line(2, b"fits")])
        assert [one.body for one in await store.lines("r")] == [line(1).body, b"fits"]

    async def test_after_a_failed_disk_the_file_is_opened_anew(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        opened = list[object]()
        writer = Source.writer

        def watched(source: Source) -> object:
            opened.append(db := writer(source))
            return db

        def fail(tx: object) -> None:
            raise apsw.IOError("disk I/O error")

        monkeypatch.setattr(Source, "writer", watched)
        database = SqliteDatabase(Source(path), "store")
        with pytest.raises(StoreError, match="disk failed"):
            await database.write(fail)
        assert await database.write(lambda tx: tx.execute("SELECT 1").fetchone()) == (1,)
        await database.write(lambda tx: None)
        assert len(opened) == 2
        await database.close()


class TestGroupCommit:
    async def test_what_waits_together_is_committed_together(self, path: Path) -> None:
        database, release = SqliteDatabase(Source(path), "store"), threading.Event()
        states = list[tuple[int]]()
        await database.write(lambda tx: tx.execute("CREATE TABLE note (x)"))
        first = asyncio.create_task(database.write(lambda tx: release.wait()))
        await asyncio.sleep(0.01)
        waiting = [
            asyncio.create_task(database.write(lambda tx: tx.rows("INSERT INTO note VALUES (1)")))
            for _ in range(100)
        ]
        await asyncio.sleep(0)
        with raw(path) as other:
            release.set()
            while not all(task.done() for task in waiting):
                states.append(other.execute("SELECT count(*) FROM note").fetchone())
                await asyncio.sleep(0)
            states.append(other.execute("SELECT count(*) FROM note").fetchone())
        assert set(states) <= {(0,), (100,)}
        assert states[-1] == (100,)
        await first
        await database.close()

    @pytest.mark.parametrize("failing", [0, 1, 2])
    async def test_a_failing_job_undoes_its_own_work_alone(self, path: Path, failing: int) -> None:
        database, release = SqliteDatabase(Source(path), "store"), threading.Event()
        await database.write(lambda tx: tx.execute("CREATE TABLE note (x)"))

        def add(number: int, tx: sql.Tx) -> None:
            tx.execute("INSERT INTO note VALUES ($1)", (number,))
            if number == failing:
                raise ConflictError("no")

        first = asyncio.create_task(database.write(lambda tx: release.wait()))
        await asyncio.sleep(0.01)
        waiting = [asyncio.create_task(database.write(partial(add, number))) for number in range(3)]
        await asyncio.sleep(0)
        release.set()
        ended = await asyncio.gather(first, *waiting, return_exceptions=True)
        assert [isinstance(each, ConflictError) for each in ended[1:]] == [
            number == failing for number in range(3)
        ]
        kept = await database.read(lambda tx: tx.rows("SELECT x FROM note ORDER BY x"))
        assert kept == [(number,) for number in range(3) if number != failing]
        await database.close()

    async def test_event_loops_share_a_store(self, store: SqliteStore) -> None:
        await store.create_run(run_row("r"), [line(1)])

        def elsewhere(seq: int) -> None:
            asyncio.run(store.append("r", [line(seq)]))

        await asyncio.gather(*(asyncio.to_thread(elsewhere, seq) for seq in range(2, 12)))
        assert [one.seq for one in await store.lines("r")] == list(range(1, 12))


class TestPacking:
    @pytest.mark.parametrize("body", [b"", b"\x00", b"\x01", b"{}", b"x" * 100_000, bytes(range(256)) * 40])
    async def test_what_was_packed_is_unpacked(self, body: bytes) -> None:
        assert unpack(pack(body)) == body
        assert len(pack(body)) <= len(body) + 8

    @pytest.mark.parametrize("stored", [b"", b"{}", b"\x01", b"\xff\xff", pack(b"y" * 99)[:-1]])
    async def test_what_was_not_packed_is_refused(self, stored: bytes) -> None:
        with pytest.raises(zlib.error):
            unpack(stored)


class TestLeases:
    async def test_threads_that_want_one_run_get_it_one_at_a_time(self, path: Path) -> None:
        holding, most = [0], [0]

        async def drive(store: SqliteStore) -> None:
            driven = 0
            while driven < 10:
                with suppress(ConflictError):
                    async with store.drive("r"):
                        holding[0] += 1
                        most[0] = max(most[0], holding[0])
                        driven += 1
                        await asyncio.sleep(0.0001)
                        holding[0] -= 1
                await asyncio.sleep(0.0005)

        stores = [SqliteStore(path) for _ in range(4)]
        await stores[0].create_run(run_row("r"), [line(1)])
        await asyncio.gather(*(asyncio.to_thread(asyncio.run, drive(store)) for store in stores))
        assert most == [1]


async def test_thoughts_out_of_order_keep_the_index_small(store: SqliteStore, path: Path) -> None:
    await store.import_session(session_row("s"), thoughts(*("x" for _ in range(500))))
    await store.import_session(session_row("t"), [ThoughtRow(seq, 7, "x") for seq in range(1, 11)])
    with closing(connect(path, 1.0)) as db:
        index = db.execute("SELECT count(*) FROM thought WHERE number <> (place & 16777215)").fetchone()
        plan = db.execute(f"EXPLAIN QUERY PLAN {sql.ODD_NUMBER}", (1, 5)).fetchall()
    assert index == (9,)
    assert "thought_odd_number" in str(plan)


@pytest.mark.parametrize("name", sql.RUN_FILTERS)
async def test_a_filter_of_runs_reads_an_index_alone(store: SqliteStore, path: Path, name: str) -> None:
    await store.create_run(run_row("r"), [line(1)])
    statement = sql.RUN_LIST.format(
        hint=" INDEXED BY run_list", tests="AND " + sql.RUN_FILTERS[name].format("$2"), limit=50
    )
    with closing(connect(path, 1.0)) as db:
        plan = db.execute(f"EXPLAIN QUERY PLAN {statement}", (sql.MAX_INT, 1)).fetchall()
    assert "COVERING INDEX run_list" in str(plan)


async def test_threads_that_open_a_new_store_at_the_same_time_all_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = itertools.count()

    def look_slowly(path: Path) -> bool:
        found = is_file(path)
        time.sleep(0.2 * (next(looks) > 0))
        return found

    monkeypatch.setattr(database, "is_file", look_slowly)
    store = SqliteStore(tmp_path / "new.db")
    assert await asyncio.gather(*(store.runs() for _ in range(3))) == [[]] * 3


class TestTheIndexOfTexts:
    def test_a_text_is_found_before_and_after_the_index_has_it(self) -> None:
        draw, known = random.Random(7), dict[int, str]()
        with closing(apsw.Connection(":memory:")) as db:
            database.migrate(db, "memory")
            tx = sql.Tx(db, sql.SQLITE)
            waited = set[int]()
            for number in range(600):
                key, word = draw.randrange(1, 300), draw.choice(["heron", "HERON", "crane", "tern and crane"])
                if key in known and draw.random() < 0.4:
                    del known[key]
                    tx.execute(sql.DROP_TEXTS, sql.places(key))
                else:
                    known[key] = word + " far away" * (3_000 if number % 150 == 149 else 1)
                    text_search.put(tx, [(sql.place(key, 0), known[key])])
                waited.add(tx.rows("SELECT count(*) FROM unindexed")[0][0])
                for part in ("heron", "crane", "n a", "far away far away"):
                    found = text_search.sessions_with(tx, part, "$1")
                    keys = sorted(key for key, text in known.items() if part in text.casefold())
                    assert found == (
                        (f"AND key IN ({', '.join(map(str, keys))})" if keys else "AND FALSE"),
                        [],
                    )
            assert waited == {*range(64)}
