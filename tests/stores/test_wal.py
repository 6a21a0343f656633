"""A log that does not belong to its file is refused, and so is a damaged one; one that does belong never is."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from reasonry.errors import StoreError
from reasonry.stores.sqlite import SqliteStore

from .samples import line, run_row, texts, think

pytestmark = pytest.mark.anyio


class Moment(NamedTuple):
    """A store's files as a copy finds them, and what was acknowledged by then."""

    file: bytes
    log: bytes
    bodies: list[bytes]


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def put(path: Path, file: bytes, log: bytes) -> None:
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    path.write_bytes(file)
    if log:
        log_of(path).write_bytes(log)


async def bodies(path: Path) -> list[bytes] | str:
    store = SqliteStore(path, busy_timeout_s=0.2)
    try:
        return [one.body for one in await store.lines("r")]
    except StoreError as error:
        return error.code
    finally:
        await store.close()


async def history(path: Path, steps: list[str]) -> list[Moment]:
    rng, moments, written = random.Random(len(steps)), list[Moment](), [line(1).body]
    store = SqliteStore(path)
    await store.create_run(run_row("r"), [line(1)])
    for step in steps:
        if step == "close":
            await store.close()
            store = SqliteStore(path)
            await store.runs()
        elif step == "checkpoint":
            with_file = apsw.Connection(str(path))
            with_file.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            with_file.close()
        elif step == "forget":
            await think(store, "s", "x" * 9000)
            await store.delete_session("s")
        else:
            written.append(rng.randbytes(int(step)))
            await store.append("r", [line(len(written), written[-1])])
        log = log_of(path)
        moments.append(Moment(path.read_bytes(), log.read_bytes() if log.exists() else b"", list(written)))
    await store.close()
    return moments


STEPS = st.lists(
    st.sampled_from(["10", "10", "10", "5000", "60000", "checkpoint", "checkpoint", "close", "forget"]),
    min_size=2,
    max_size=9,
)


@settings(max_examples=10, deadline=None, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(steps=STEPS, data=st.data())
def test_a_file_with_any_log_of_its_life_shows_what_the_log_ends_with_or_is_refused(
    steps: list[str], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        moments = asyncio.run(history(path, steps))
        for moment in moments:
            put(path, moment.file, moment.log)
            assert asyncio.run(bodies(path)) == moment.bodies
        for _ in range(8):
            old, new = data.draw(st.sampled_from(moments)), data.draw(st.sampled_from(moments))
            if new.log:
                put(path, old.file, new.log)
                assert asyncio.run(bodies(path)) in (new.bodies, "store_corrupt")


async def moments_of(path: Path, *steps: str) -> list[Moment]:
    moments = await history(path, list(steps))
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    return moments


async def test_an_old_copy_put_back_beside_a_newer_log_is_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    old, _, _, _, new = await moments_of(path, "close", "5000", "close", "10", "10")
    put(path, old.file, new.log)
    store = SqliteStore(path)
    for attempt in (store.lines("r"), store.append("r", [line(9)])):
        with pytest.raises(StoreError, match=r"belongs to another state.*reasonry store restore") as caught:
            await attempt
        assert caught.value.code == "store_corrupt"
    await store.close()
    assert (path.read_bytes(), log_of(path).read_bytes()) == (old.file, new.log)
    log_of(path).unlink()
    assert await bodies(path) == old.bodies


async def test_a_newer_file_beside_an_old_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    old, _, _, new = await moments_of(path, "10", "close", "10", "close")
    put(path, new.file, old.log)
    assert await bodies(path) == "store_corrupt"


async def test_the_log_of_another_store_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    _, one = await moments_of(path, "close", "10")
    _, other = await moments_of(path, "close", "10")
    put(path, one.file, other.log)
    assert await bodies(path) == "store_corrupt"


async def test_the_log_of_another_application_is_refused(tmp_path: Path) -> None:
    path, stranger = tmp_path / "store.db", tmp_path / "stranger.db"
    (moment,) = await moments_of(path, "close")
    db = apsw.Connection(str(stranger))
    db.execute("PRAGMA journal_mode = WAL").fetchone()
    db.execute("CREATE TABLE t (x)")
    put(path, moment.file, log_of(stranger).read_bytes())
    assert await bodies(path) == "store_corrupt"
    db.close()


@pytest.mark.parametrize("place", [0, 9, 20, 30, 32 + 24 + 500, 32 + 4120 + 24 + 4000])
async def test_a_log_damaged_before_its_last_commits_is_refused(tmp_path: Path, place: int) -> None:
    path = tmp_path / "store.db"
    *_, moment = await moments_of(path, "close", "10", "10", "10", "10")
    log = bytearray(moment.log)
    log[place] ^= 1
    put(path, moment.file, bytes(log))
    store = SqliteStore(path)
    with pytest.raises(StoreError, match=r"is damaged|of another file"):
        await store.lines("r")
    await store.close()


@pytest.mark.parametrize("cut", [1, 2000, 4119, 4120, 6000])
async def test_a_log_whose_last_commit_is_half_written_is_a_crash_and_not_damage(
    tmp_path: Path, cut: int
) -> None:
    path = tmp_path / "store.db"
    *_, before, moment = await moments_of(path, "close", "10", "10", "10")
    head, tail = moment.log[:-cut], moment.log[-cut:]
    for other in (b"", bytes(byte ^ 0xFF for byte in tail), os.urandom(cut - 1) + bytes([tail[-1] ^ 1])):
        log = head + other
        put(path, moment.file, log)
        assert await bodies(path) == before.bodies


async def test_a_log_that_was_begun_and_got_no_further_is_none(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    (moment,) = await moments_of(path, "close")
    for log in (bytes(32), bytes(9000), b"\x37\x7f"):
        put(path, moment.file, log)
        assert await bodies(path) == moment.bodies


async def test_a_log_removed_or_replaced_in_use_is_noticed_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    for act in (lambda log: log.unlink(), lambda log: shutil.copy(log.rename(tmp_path / "away"), log)):
        store = SqliteStore(path)
        before = await texts(store, "s") if path.exists() else []
        await think(store, "s", "first")
        await store.runs()
        act(log_of(path))
        for attempt in (store.runs(), think(store, "s", "never")):
            with pytest.raises(StoreError, match="log was removed or replaced") as caught:
                await attempt
            assert caught.value.code == "store_unavailable"
        await think(store, "s", "second")
        await store.close()
        again = SqliteStore(path)
        assert await texts(again, "s") == [*before, "first", "second"]
        await again.close()
