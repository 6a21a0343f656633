"""Damage shows: whatever is changed in a store's file, nothing is read otherwise than it was written without a word.

The file is a real one, of real runs and sessions.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonry.app import App
from reasonry.engine import journal
from reasonry.errors import NotFoundError, StoreError
from reasonry.records import Damaged, Finding, Sweep, ThoughtRow
from reasonry.stores.sqlite import SqliteStore

from .observing import changed, fill, names, observe, think

pytestmark = pytest.mark.anyio

PAGE = 4096


INDEXES = """
(SELECT name FROM sqlite_schema WHERE name IN ('run_list', 'session_list', 'in_journal', 'unindexed')
  OR name LIKE 'word_%')
"""
"""What lists by filter and searches go by."""


class Sample:
    """The bytes of a store, and what is read in it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sample.db"
        asyncio.run(self._fill())
        self.bytes = self.path.read_bytes()
        with contextlib.closing(apsw.Connection(str(self.path))) as db:
            self.index_pages = {
                page for (page,) in db.execute(f"SELECT pageno FROM dbstat WHERE name IN {INDEXES}")
            }
            ((self.session_page,),) = db.execute("SELECT pageno FROM dbstat WHERE name = 'session'")

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
    db = apsw.Connection(str(path))
    for statement in statements:
        db.execute(statement)
    db.close()


async def with_store(path: Path, work: Callable[[SqliteStore], Awaitable[Any]]) -> Any:
    store = SqliteStore(path)
    try:
        return await work(store)
    finally:
        await store.close()


async def seen_in(path: Path, sample: Sample) -> dict[str, Any]:
    return await with_store(path, lambda store: observe(store, sample.names))


async def found_by_verify(path: Path) -> list[Finding]:
    async def work(store: SqliteStore) -> list[Finding]:
        return [finding async for finding in store.verify() if finding.state != "whole"]

    return await with_store(path, work)


# Pages and cells begin with what says where everything else is, so a bit there matters most.
BITS = st.one_of(
    st.integers(0, 8 * 100 - 1),
    st.tuples(st.integers(0, 40), st.integers(0, 8 * 48 - 1)).map(lambda at: at[0] * PAGE * 8 + at[1]),
    st.integers(0, 2**31),
)


class TestBits:
    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(bit=BITS)
    async def test_no_bit_changes_what_is_read_without_a_word(
        self, tmp_path: Path, sample: Sample, bit: int
    ) -> None:
        bit %= 8 * len(sample.bytes)
        spoiled = bytearray(sample.bytes)
        spoiled[bit // 8] ^= 1 << bit % 8
        path = tmp_path / "store.db"
        for old in tmp_path.glob("store.db*"):
            if old.is_file():
                old.unlink()
        path.write_bytes(spoiled)
        path.chmod(0o600)
        after = await seen_in(path, sample)
        # The header's own version number alone says that a newer version wrote the store.
        if not 60 <= bit // 8 < 64:
            silent = changed(sample.seen, after)
            # What an index alone has may be hidden from lists and searches; it never reads as something else.
            if bit // 8 // PAGE + 1 in sample.index_pages:
                silent = {name: silent[name] for name in silent if name not in ("done", "sessions", "search")}
            assert silent == {}

    async def test_no_bit_that_says_where_rows_begin_hides_what_is_searched(
        self, tmp_path: Path, sample: Sample
    ) -> None:
        for bit in range(8 * 3, 8 * 18):
            path = tmp_path / f"{bit}.db"
            spoiled = bytearray(sample.bytes)
            spoiled[(sample.session_page - 1) * PAGE + bit // 8] ^= 1 << bit % 8
            path.write_bytes(spoiled)
            path.chmod(0o600)
            after = await seen_in(path, sample)
            assert changed(sample.seen, after) == {}, bit

    async def test_each_bit_of_a_thought_counts(self, path: Path, sample: Sample) -> None:
        found = [one for _, _, one in sample.seen["search"] if isinstance(one, ThoughtRow)]
        text = next(one.text for one in found if one.number == 3)
        at = sample.bytes.index(text.encode())
        for offset in range(0, len(text), 7):
            spoiled = bytearray(sample.bytes)
            spoiled[at + offset] ^= 1 << offset % 8
            path.write_bytes(spoiled)
            after = await seen_in(path, sample)
            assert changed(sample.seen, after) == {}
            assert after != sample.seen


class TestRuns:
    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE run SET answer = '42' WHERE key = 1",
            "UPDATE run SET status = 'active', reason = NULL, answer = NULL WHERE key = 1",
            "UPDATE run SET problem = 'another' WHERE key = 1",
            "UPDATE run SET last_line = last_line - 1 WHERE key = 1",
            "UPDATE run SET checksum = x'' WHERE key = 1",
            "DELETE FROM line WHERE place = (SELECT max(place) FROM line WHERE place >> 24 = 1)",
            "DELETE FROM line WHERE place >> 24 = 1 AND place & 16777215 > 5",
            "DELETE FROM line WHERE place >> 24 = 1",
            "INSERT INTO line SELECT place + 1, body, digest FROM line WHERE place ="
            " (SELECT max(place) FROM line WHERE place >> 24 = 1)",
        ],
    )
    async def test_a_forged_row_or_a_lost_tail_is_an_error_and_a_mark_in_lists(
        self, path: Path, sample: Sample, statement: str
    ) -> None:
        spoil(path, statement)
        after = await seen_in(path, sample)
        newest, oldest = sample.names.runs
        assert after[f"row {oldest}"] == after[f"journal {oldest}"] == "store_corrupt"
        # A list by status goes by what is stored of it.
        for name in ("runs",) if "SET status" in statement else ("runs", "done"):
            whole, marked = after[name]
            assert whole == sample.seen[name][0]
            assert (marked.run_id, marked.status, marked.answer) == (oldest, "damaged", None)
        assert {name for name in after if after[name] != sample.seen[name]} == {
            "runs",
            "done",
            f"row {oldest}",
            f"journal {oldest}",
        }
        assert after[f"row {newest}"].answer is not None
        (finding,) = await found_by_verify(path)
        assert (finding.kind, finding.id, finding.state) == ("run", oldest, "damaged")

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM line WHERE place = (1 << 24) + 4",
            "UPDATE line SET body = (SELECT body FROM line WHERE place = (2 << 24) + 4), digest ="
            " (SELECT digest FROM line WHERE place = (2 << 24) + 4) WHERE place = (1 << 24) + 4",
            "UPDATE line SET body = 7 WHERE place = (1 << 24) + 4",
        ],
    )
    async def test_a_lost_or_foreign_line_shows_where_the_journal_is_read(
        self, path: Path, sample: Sample, statement: str
    ) -> None:
        spoil(path, "PRAGMA ignore_check_constraints = ON", *_loosened(statement))
        after = await seen_in(path, sample)
        assert after[f"journal {sample.names.runs[1]}"] == "store_corrupt"
        assert changed(sample.seen, after) == {}
        assert [finding.id for finding in await found_by_verify(path)] == [sample.names.runs[1]]

    async def test_two_rows_that_change_places_are_both_damaged(self, path: Path, sample: Sample) -> None:
        spoil(
            path, *(f"UPDATE run SET key = {new} WHERE key = {old}" for old, new in ((1, 9), (2, 1), (9, 2)))
        )
        after = await seen_in(path, sample)
        assert [row.status for row in after["runs"]] == ["damaged", "damaged"]
        assert {finding.id for finding in await found_by_verify(path)} == {*sample.names.runs}

    async def test_a_row_rolled_back_to_an_older_one_does_not_fit_its_journal(self, tmp_path: Path) -> None:
        path = tmp_path / "store.db"
        async with App(str(path), environ={}) as app:
            await fill(app, 1, 0)
            run_id = (await app.store.runs())[0].run_id
        db = apsw.Connection(str(path))
        old = next(iter(db.execute("SELECT * FROM run")))
        db.close()
        async with App(str(path), environ={}) as app:
            entries, chain = journal.read(run_id, await app.store.lines(run_id))
            row = await app.store.run(run_id)
            await app.store.append(run_id, chain.lines([entries[2]]), row)
        db = apsw.Connection(str(path))
        db.execute("DELETE FROM run")
        db.execute(f"INSERT INTO run VALUES ({', '.join('?' * len(old))})", old)
        db.close()
        (finding,) = await found_by_verify(path)
        assert finding.id == run_id
        async with App(str(path), environ={}) as app:
            assert (await app.store.runs())[0].status == "damaged"
            with pytest.raises(StoreError) as caught:
                await app.engine.trace(run_id)
            assert caught.value.code == "store_corrupt"
            with pytest.raises(StoreError) as caught:
                await app.resume(run_id)
            assert caught.value.code == "store_corrupt"

    async def test_a_run_whose_row_is_gone_leaves_lines_that_verify_finds(
        self, path: Path, sample: Sample
    ) -> None:
        spoil(path, "DELETE FROM run WHERE key = 1")
        (finding,) = await found_by_verify(path)
        assert (finding.kind, finding.message) == ("run", "lines of a run that does not exist")

    async def test_a_hidden_run_is_not_said_not_to_be_there(self, path: Path, sample: Sample) -> None:
        # The index forgets the run, as when its page is damaged; the table still has it.
        spoil(
            path,
            "PRAGMA writable_schema = ON",
            "CREATE TABLE copy (run_id TEXT UNIQUE)",
            "UPDATE sqlite_schema SET rootpage = (SELECT rootpage FROM sqlite_schema WHERE name ="
            " 'sqlite_autoindex_copy_1') WHERE name = 'sqlite_autoindex_run_1'",
        )
        after = await seen_in(path, sample)
        for run_id in sample.names.runs:
            assert after[f"row {run_id}"] == "store_corrupt"
        assert after["runs"] == "store_corrupt"

    async def test_a_damaged_run_can_be_deleted(self, path: Path, sample: Sample) -> None:
        spoil(path, "UPDATE run SET answer = '42' WHERE key = 1")
        await with_store(path, lambda store: store.delete_run(sample.names.runs[1]))
        assert await found_by_verify(path) == []


def _loosened(statement: str) -> list[str]:
    """Return a statement as it has to be run where a strict table would refuse it."""
    if "= 7" not in statement:
        return [statement]
    strict = "UPDATE sqlite_schema SET sql = replace(sql, {}) WHERE name = 'line'"
    return [
        "PRAGMA writable_schema = ON",
        strict.format("'STRICT', ''"),
        "PRAGMA writable_schema = RESET",
        statement,
    ]


class TestSessions:
    KEY = "(SELECT key FROM session WHERE run_id IS NULL ORDER BY key LIMIT 1)"

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE session SET status = 'archived' WHERE key = {key}",
            "UPDATE session SET pinned = 1 WHERE key = {key}",
            "UPDATE session SET used_at_ms = 1 WHERE key = {key}",
            "UPDATE session SET thoughts = 2 WHERE key = {key}",
            "UPDATE session SET purpose = 'another' WHERE key = {key}",
            "UPDATE session SET strategy = 'react' WHERE key = {key}",
            "UPDATE session SET run_id = (SELECT run_id FROM run LIMIT 1) WHERE key = {key}",
            'UPDATE session SET head = CAST(\'{{"main":["x"]}}\' AS BLOB) WHERE key = {key}',
            "UPDATE session SET used_steady_ms = 1 WHERE key = {key}",
            "UPDATE session SET due_steady_ms = 1, due_after_ms = 1 WHERE key = {key}",
            "UPDATE session SET last_thought = 0, last_digest = NULL WHERE key = {key}",
            "DELETE FROM thought WHERE place = ({key} << 24) + 6",
            "DELETE FROM thought WHERE place > ({key} << 24) + 2 AND place < ({key} + 1) << 24",
        ],
    )
    async def test_a_forged_row_or_a_lost_tail_is_an_error_and_a_mark_in_lists(
        self, path: Path, sample: Sample, statement: str
    ) -> None:
        spoil(path, statement.format(key=self.KEY))
        after = await seen_in(path, sample)
        spoiled = [name for name in sample.names.sessions if after[f"session {name}"] == "store_corrupt"]
        assert len(spoiled) == 1
        assert after[f"thoughts {spoiled[0]}"] == after[f"later {spoiled[0]}"] == "store_corrupt"
        assert [row.session_id for row in after["sessions"] if row.status == "damaged"] == spoiled
        assert [owner for _, owner, one in after["search"] if isinstance(one, Damaged)] == spoiled
        assert changed(sample.seen, after) == {}
        (finding,) = await found_by_verify(path)
        assert (finding.kind, finding.id, finding.state) == ("session", spoiled[0], "damaged")

    @pytest.mark.parametrize(
        "statement",
        [
            "DELETE FROM thought WHERE place = ({key} << 24) + 3",
            "UPDATE thought SET text = 'another' WHERE place = ({key} << 24) + 3",
            "UPDATE thought SET number = 33 WHERE place = ({key} << 24) + 3",
            "UPDATE thought SET branch = 'another' WHERE place = ({key} << 24) + 3",
            "UPDATE thought SET body = '{{}}' WHERE place = ({key} << 24) + 3",
            "UPDATE thought SET digest = NULL WHERE place = ({key} << 24) + 3",
            "UPDATE thought SET place = ({key} << 24) + 9 - (place & 16777215)"
            " WHERE place IN (({key} << 24) + 3, ({key} << 24) + 4)",
        ],
    )
    async def test_a_lost_changed_or_moved_thought_shows_where_it_is_read(
        self, path: Path, sample: Sample, statement: str
    ) -> None:
        if "- (place" in statement:
            swap = ((3, 99), (4, 3), (99, 4))
            one = "UPDATE thought SET place = ({key} << 24) + {new} WHERE place = ({key} << 24) + {old}"
            statements = [one.format(key=self.KEY, old=old, new=new) for old, new in swap]
        else:
            statements = [statement.replace("'{{}}'", "CAST('{{}}' AS BLOB)").format(key=self.KEY)]
        spoil(path, *statements)
        after = await seen_in(path, sample)
        assert changed(sample.seen, after) == {}
        spoiled = [name for name in sample.names.sessions if after[f"thoughts {name}"] == "store_corrupt"]
        assert len(spoiled) == 1
        assert [finding.id for finding in await found_by_verify(path)] == spoiled

        async def go_on(store: SqliteStore) -> None:
            async with App(store, environ={}) as app:
                whole = await app.sessions().get({"sessionId": spoiled[0], "limit": 1})
                assert [one["thoughtNumber"] for one in whole["thoughts"]] == [1]
                with pytest.raises(StoreError) as caught:
                    await app.sessions().resume({"sessionId": spoiled[0]})
                assert caught.value.code == "store_corrupt"

        await with_store(path, go_on)

    async def test_thoughts_without_their_session_are_found_by_verify(self, path: Path) -> None:
        spoil(path, f"DELETE FROM session WHERE key = {self.KEY}")
        (finding,) = await found_by_verify(path)
        assert (finding.kind, finding.message) == ("session", "thoughts of a session that does not exist")

    async def test_a_damaged_session_neither_expires_nor_is_purged_and_can_be_deleted(
        self, path: Path, sample: Sample
    ) -> None:
        spoil(path, f"UPDATE session SET used_at_ms = 1, pinned = 0 WHERE key = {self.KEY}")

        async def work(store: SqliteStore) -> None:
            await store.sweep_sessions(Sweep(now_ms=1_000, ttl_ms=1, retention_ms=1, delete=True))
            (damaged,) = [row for row in await store.sessions() if row.status == "damaged"]
            async with App(store, environ={}) as app:
                listed = (await app.sessions().list({"status": "all"}))["sessions"]
                assert {"sessionId": damaged.session_id, "status": "damaged"} in listed
                await app.sessions().delete({"sessionId": damaged.session_id})
                with pytest.raises(NotFoundError):
                    await app.store.session(damaged.session_id)

        await with_store(path, work)
        assert await found_by_verify(path) == []

    async def test_a_count_of_time_that_is_damaged_deletes_nothing(self, path: Path, sample: Sample) -> None:
        spoil(path, "UPDATE steady SET steady_ms = 1 << 60")

        async def work(store: SqliteStore) -> None:
            newest = max(row.used_at_ms for row in await store.sessions())
            await store.sweep_sessions(Sweep(now_ms=newest, ttl_ms=60_000, retention_ms=60_000, delete=True))
            assert await store.sessions() == sample.seen["sessions"]

        await with_store(path, work)

    async def test_a_run_goes_on_though_its_session_is_damaged(self, path: Path, sample: Sample) -> None:
        spoil(path, "UPDATE session SET purpose = 'another' WHERE run_id IS NOT NULL")

        async def work(store: SqliteStore) -> None:
            async with App(store, environ={}) as app:
                run_id = sample.names.runs[0]
                assert (await app.engine.fork(run_id, None, 2)) != run_id
                entries, chain = journal.read(run_id, await store.lines(run_id))
                await store.append(run_id, chain.lines(entries[1:2]), None, None)

        await with_store(path, work)


class TestVerify:
    async def test_it_walks_a_store_that_is_being_written_to(self, path: Path, sample: Sample) -> None:
        async with App(str(path), environ={}) as app, App(str(path), environ={}) as other:
            writing = asyncio.gather(
                *(think(app, None, f"more {number}", 1, 6) for number in range(10)), fill(app, 3, 0)
            )
            rounds = 0
            while not writing.done() or rounds == 0:
                found = [finding async for finding in other.store.verify()]
                assert {finding.state for finding in found} == {"whole"}
                rounds += 1
            await writing
        assert len(found) >= 6

    async def test_it_counts_what_it_has_looked_at(self, path: Path, sample: Sample) -> None:
        async def work(store: SqliteStore) -> list[Finding]:
            return [finding async for finding in store.verify()]

        file, *parts = await with_store(path, work)
        assert (file.kind, file.entries) == ("file", len(parts))
        assert [one.id for one in parts if one.kind == "run"] == sample.names.runs[::-1]
        assert {one.entries for one in parts if one.kind == "session"} == {20, 6}

    async def test_it_says_where_the_file_itself_is_damaged(self, path: Path, sample: Sample) -> None:
        spoiled = bytearray(sample.bytes)
        # The number of cells on some leaf page of the thoughts.
        page = sample.bytes.index(b"session 1, thought 1") // PAGE
        spoiled[page * PAGE + 4] -= spoiled[page * PAGE + 4] > 0
        path.write_bytes(spoiled)
        found = await found_by_verify(path)
        assert found[0].kind == "file" or found[0].state == "damaged"
        assert found != []
