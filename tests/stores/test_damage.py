"""Damage shows: whatever is changed in a store's file, nothing is read otherwise than it was written without a word.

The file is a real one, of real runs and sessions.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonry.app.app import App
from reasonry.errors import StoreError
from reasonry.records import Finding
from reasonry.stores.sqlite import SqliteStore

from .observing import changed, fill, names, observe, think
from .samples import refused

pytestmark = pytest.mark.anyio

PAGE = 4096


class Sample:
    """The bytes of a store, and what is read in it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sample.db"
        asyncio.run(self._fill())
        self.bytes = self.path.read_bytes()

    async def _fill(self) -> None:
        async with App(str(self.path), environ={}) as app:
            await fill(app)
        store = SqliteStore(self.path)
        self.names = await names(store)
        self.seen = await observe(store, self.names)
        await store.close()


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    return Sample(tmp_path_factory.mktemp("damage"))


@pytest.fixture
def path(tmp_path: Path, sample: Sample) -> Path:
    copy = tmp_path / "store.db"
    copy.write_bytes(sample.bytes)
    copy.chmod(0o600)
    return copy


def spoil(path: Path, *statements: str) -> None:
    with contextlib.closing(apsw.Connection(str(path))) as db:
        for statement in statements:
            db.execute(statement)


@contextlib.asynccontextmanager
async def opened(path: Path) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(path)
    try:
        yield store
    finally:
        await store.close()


async def seen_in(path: Path, sample: Sample) -> dict[str, Any]:
    async with opened(path) as store:
        return await observe(store, sample.names)


async def found_by_verify(path: Path) -> list[Finding]:
    found = list[Finding]()
    async with opened(path) as store:
        async for finding in store.whole.verify():
            found.append(finding)
            assert len(found) < 100, "it goes round and round"
    return [finding for finding in found if finding.state != "whole"]


# The first page says what the whole file is, and pages begin with what says where everything else on them is.
BITS = st.one_of(
    st.integers(0, 8 * 100 - 1),
    st.tuples(st.integers(0, 60), st.integers(0, 8 * 48 - 1)).map(lambda at: at[0] * PAGE * 8 + at[1]),
    st.integers(0, 2**31),
)


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bit=BITS)
async def test_no_bit_of_the_file_changes_what_is_read_without_a_word(
    tmp_path: Path, sample: Sample, bit: int
) -> None:
    bit %= 8 * len(sample.bytes)
    spoiled = bytearray(sample.bytes)
    spoiled[bit // 8] ^= 1 << bit % 8
    path = tmp_path / "store.db"
    for old in tmp_path.glob("store.db*"):
        old.unlink()
    path.write_bytes(spoiled)
    path.chmod(0o600)
    after = await seen_in(path, sample)
    assert changed(sample.seen, after) == {}
    if after != sample.seen:
        with contextlib.suppress(StoreError):
            assert await found_by_verify(path) != []


async def test_each_page_is_verified(path: Path, sample: Sample) -> None:
    for page in range(1, len(sample.bytes) // PAGE):
        spoiled = bytearray(sample.bytes)
        spoiled[page * PAGE + PAGE // 2] ^= 1
        path.write_bytes(spoiled)
        assert await found_by_verify(path) != [], page


class TestJournals:
    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM line WHERE place = (1 << 24) + 3",
            "DELETE FROM line WHERE place = (SELECT max(place) FROM line WHERE place < 2 << 24)",
            "UPDATE line SET body = x'005b5d' WHERE place = (1 << 24) + 4",
            "UPDATE line SET body = x'ff' WHERE place = (1 << 24) + 4",
            "UPDATE line SET (body, digest) = (SELECT body, digest FROM line WHERE place = (2 << 24) + 4)"
            " WHERE place = (1 << 24) + 4",
            "UPDATE run SET last_line = last_line + 1 WHERE key = 1",
        ],
    )
    async def test_a_lost_or_foreign_line_shows_where_the_journal_is_read(
        self, path: Path, sample: Sample, statement: str
    ) -> None:
        spoil(path, statement)
        after = await seen_in(path, sample)
        assert after[f"journal {sample.names.runs[1]}"] == "store_corrupt"
        assert changed(sample.seen, after) == {}
        assert [finding.id for finding in await found_by_verify(path)] == [sample.names.runs[1]]

    async def test_lines_without_their_run_are_found_by_verify(self, path: Path) -> None:
        spoil(path, "DELETE FROM run WHERE key = 1")
        (finding,) = await found_by_verify(path)
        assert (finding.kind, finding.message) == ("run", "lines of a run that does not exist")

    async def test_a_run_whose_journal_is_damaged_can_be_deleted(self, path: Path, sample: Sample) -> None:
        spoil(path, "DELETE FROM line WHERE place = (1 << 24) + 3")
        async with opened(path) as store:
            await store.delete_run(sample.names.runs[1])
        assert await found_by_verify(path) == []


class TestSessions:
    KEY = 3
    """Of the first session that an agent has written."""

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM thought WHERE place = (3 << 24) + 3",
            "DELETE FROM thought WHERE place = (3 << 24) + 6",
            "UPDATE thought SET text = 'another' WHERE place = (3 << 24) + 3",
            "UPDATE thought SET branch = 'another' WHERE place = (3 << 24) + 3",
            "UPDATE thought SET body = CAST('{}' AS BLOB) WHERE place = (3 << 24) + 4",
            "UPDATE thought SET digest = zeroblob(16) WHERE place = (3 << 24) + 3",
            "UPDATE thought SET place = place - 1 WHERE place = (3 << 24) + 1",
        ],
    )
    async def test_a_lost_changed_or_moved_thought_shows_where_it_is_read(
        self, path: Path, sample: Sample, statement: str
    ) -> None:
        spoil(path, statement)
        after = await seen_in(path, sample)
        spoiled = [name for name in sample.names.sessions if after[f"thoughts {name}"] == "store_corrupt"]
        assert len(spoiled) == 1
        # A search reads texts alone; the chain shows a change where the session is read.
        assert {*changed(sample.seen, after)} <= {"search"}
        assert spoiled[0] in [finding.id for finding in await found_by_verify(path)]
        async with opened(path) as store, App(store, environ={}) as app:
            with refused("store_corrupt"):
                await app.sessions().resume({"session_id": spoiled[0]})

    async def test_thoughts_without_their_session_are_found_by_verify(self, path: Path) -> None:
        spoil(path, f"DELETE FROM session WHERE key = {self.KEY}")
        (finding,) = await found_by_verify(path)
        assert (finding.kind, finding.message) == ("session", "thoughts of a session that does not exist")


class TestVerify:
    async def test_it_walks_a_store_that_is_being_written_to(self, path: Path, sample: Sample) -> None:
        async with App(str(path), environ={}) as app, App(str(path), environ={}) as other:
            writing = asyncio.gather(
                *(think(app, None, f"more {number}", 1, 6) for number in range(10)), fill(app, 3, 0)
            )
            rounds = 0
            while not writing.done() or rounds == 0:
                found = [finding async for finding in other.store.whole.verify()]
                assert [finding for finding in found if finding.state != "whole"] == []
                rounds += 1
            await writing
        assert len(found) >= 6

    async def test_it_counts_what_it_has_looked_at(self, path: Path, sample: Sample) -> None:
        file, *parts = [finding async for finding in SqliteStore(path).whole.verify()]
        assert (file.kind, file.entries) == ("file", len(parts))
        assert [one.id for one in parts if one.kind == "run"] == sample.names.runs[::-1]
        assert {one.entries for one in parts if one.kind == "session"} == {20, 6}
