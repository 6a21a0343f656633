"""On a full disk all that was acknowledged is there, and with room again the store continues."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from reasonry.errors import NotFoundError, StoreError
from reasonry.stores.sqlite import SqliteStore

from .samples import line, refused, run_row, texts, think

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
    await think(store, "large", "L" * MB)
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


async def check(path: Path) -> None:
    store = SqliteStore(path)
    findings = [finding async for finding in store.whole.verify()]
    await store.close()
    assert findings[0].state == "whole"
    assert [one for one in findings if one.kind == "session" and one.state == "damaged"] == []


async def test_on_a_full_disk_all_is_read_and_with_room_again_thinking_goes_on(disk: Path) -> None:
    path = disk / "store.db"
    store = await filled(path)
    fill(disk)
    with refused("store_full", "free some space"):
        await think(store, "large", "L" * MB)
    assert len(await store.sessions()) == 41
    assert [one.seq for one in await store.lines("r")] == [1, 2]
    subprocess.run(["mount", "-o", f"remount,size={24 * MB}", str(disk)], check=True)
    for number in range(30):
        await store.delete_session(f"s{number}")
    async with store.drive("r"):
        await store.delete_run("r")
    with pytest.raises(NotFoundError):
        await store.run("r")
    await think(store, "after", "there is room again")
    await store.close()
    await check(path)


async def test_a_process_begun_on_a_full_disk_reads(disk: Path) -> None:
    path = disk / "store.db"
    await (await filled(path)).close()
    fill(disk)
    store = SqliteStore(path)
    assert len(await store.sessions()) == 41
    await store.close()
    (disk / "other").unlink()
    await check(path)


async def test_a_store_that_was_closed_is_read_where_nothing_can_be_written_beside_it(disk: Path) -> None:
    path = disk / "store.db"
    store = SqliteStore(path)
    await think(store, "s", "one")
    await store.close()
    fill(disk)
    store = SqliteStore(path)
    for _ in range(2):
        assert await texts(store, "s") == ["one"]
        assert {finding.state async for finding in store.whole.verify()} == {"whole"}
        with refused("store_full"):
            await think(store, "s", "two")
    (disk / "other").unlink()
    await think(store, "s", "two")
    assert await texts(store, "s") == ["one", "two"]
    await store.close()
    await check(path)
