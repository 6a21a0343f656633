"""On a full disk everything is still there, and what is deleted is gone: on a small file system of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from reasonry.errors import NotFoundError, StoreError
from reasonry.records import Sweep
from reasonry.stores.reserve import reserve_of
from reasonry.stores.sqlite import SqliteStore

from .samples import line, run_row, session_row, think

pytestmark = pytest.mark.anyio

MB = 1 << 20


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 12 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={12 * MB}", "tmpfs", str(folder)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs the right to mount a small file system")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> None:
    """Take all the room that is left."""
    with (disk / "other").open("ab", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    assert os.statvfs(disk).f_bavail == 0


async def filled(path: Path) -> SqliteStore:
    """Think until the disk is full."""
    store = SqliteStore(path, busy_timeout_s=0.2)
    await store.create_run(run_row("r"), [line(1), line(2, os.urandom(300_000))])
    await think(store, "large", "L" * 3 * MB)
    number = 0
    try:
        while number < 10_000:
            await think(store, f"s{number % 40}", f"secret {number} " * 1_500)
            number += 1
    except StoreError as error:
        if error.code != "store_full":
            raise
    assert 40 < number < 10_000
    return store


async def delete(store: SqliteStore, session_id: str) -> None:
    """Delete a session; bytes of it may still be there for want of room."""
    try:
        await store.delete_session(session_id)
    except StoreError as error:
        if (error.code, error.details.get("deleted")) != ("store_full", True):
            raise
    with pytest.raises(NotFoundError):
        await store.session(session_id)


async def check(path: Path) -> None:
    store = SqliteStore(path)
    findings = [finding async for finding in store.verify()]
    await store.close()
    assert findings[0].state == "whole"
    assert [one for one in findings if one.kind == "session" and one.state == "damaged"] == []


async def test_in_the_process_that_filled_it_sessions_and_runs_are_deleted_and_thinking_goes_on(
    disk: Path,
) -> None:
    store = await filled(disk / "store.db")
    fill(disk)
    for number in range(30):
        await delete(store, f"s{number}")
    async with store.drive("r"):
        with suppress(StoreError):
            await store.delete_run("r")
    with pytest.raises(NotFoundError):
        await store.run("r")
    await think(store, "after", "there is room again")
    await store.close()
    await check(disk / "store.db")


@pytest.mark.parametrize("what", ["s1", "large"])
async def test_a_process_begun_on_a_full_disk_reads_and_deletes(disk: Path, what: str) -> None:
    path = disk / "store.db"
    await (await filled(path)).close()
    fill(disk)
    store = SqliteStore(path)
    assert len(await store.sessions()) == 41
    await delete(store, what)
    assert len(await store.sessions()) == 40
    await store.close()
    await check(path)


async def test_what_is_kept_long_enough_is_deleted(disk: Path) -> None:
    path = disk / "store.db"
    store = await filled(path)
    await store.close()
    fill(disk)
    store = SqliteStore(path)
    up = store.uptime()
    store.uptime = lambda: up._replace(ms=up.ms + 10**6)
    await store.sweep_sessions(Sweep(now_ms=0, ttl_ms=10**3, retention_ms=10**4, delete=False))
    assert await store.sessions() == []
    await store.close()
    await check(path)


async def test_what_is_deleted_from_the_shell_is_gone_and_its_bytes_are_when_there_is_room(
    disk: Path,
) -> None:
    path = disk / "store.db"
    await (await filled(path)).close()
    fill(disk)
    environ = {"PATH": os.environ["PATH"], "HOME": str(disk), "REASONRY_STORE": str(path)}
    command = [sys.executable, "-m", "reasonry", "sessions", "delete"]
    done = subprocess.run(
        [*command, "s1", "--json"], env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["deleted"] is True
    assert [one["reason"] for one in document["notices"]] == ["bytes_remain"]
    subprocess.run(["mount", "-o", f"remount,size={64 * MB}", str(disk)], check=True)
    done = subprocess.run(
        [*command, "s2", "--json"], env=environ, capture_output=True, text=True, check=False
    )
    assert (done.returncode, json.loads(done.stdout)["notices"]) == (0, [])
    assert b"secret 1 " not in path.read_bytes()
    assert reserve_of(path).stat().st_size >= 1 << 16


async def test_room_is_kept_only_where_there_is_much_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for free, size in ((10**9, 4 * MB), (4 * MB, MB // 2), (MB // 4, None)):
        path = tmp_path / str(free) / "store.db"
        monkeypatch.setattr("reasonry.stores.reserve.free_bytes", lambda _, free=free: free)
        store = SqliteStore(path)
        await think(store, "s", "x")
        await store.close()
        file = reserve_of(path)
        assert (file.stat().st_size if file.exists() else None) == size
        if file.exists():
            assert file.stat().st_mode & 0o777 == 0o600


async def test_without_room_for_overwriting_it_is_deleted_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "store.db")
    await store.import_session(session_row("s"), [])
    await think(store, "s", "x" * MB)
    tried = list[str]()
    commit = store._writer._commit

    def full(batch: object) -> object:
        assert store._writer._db is not None
        how = store._writer._db.execute("PRAGMA secure_delete").fetchone()
        tried.append(str(how))
        if how == (1,):
            raise apsw.FullError("database or disk is full")
        return commit(batch)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(store._writer, "_commit", full)
    await delete(store, "s")
    assert tried == ["(1,)", "(1,)", "(2,)"]
    await store.close()
