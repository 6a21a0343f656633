"""A store that version 0.1.0 wrote goes on working, and gets the checksums that version did not keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from reasonry.app import App
from reasonry.errors import StoreError
from reasonry.records import Finding
from reasonry.stores import first_checksums
from reasonry.stores.sqlite import SqliteStore

from .observing import think

pytestmark = pytest.mark.anyio

SOLVED, LIMITED, FORKED, COACHED = 1, 2, 3, 4
"""Keys of the runs of the old store; the first ended, the third is a fork of all of it, the fourth is under way."""

MAIN, PINNED = 5, 6
"""Keys of its guided sessions."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    db = apsw.Connection(str(path))
    db.execute("PRAGMA journal_mode = WAL")
    db.execute(Path(__file__).with_name("store_0_1_0.sql").read_text("utf-8"))
    db.close()
    path.chmod(0o600)
    return path


def spoil(path: Path, *statements: str) -> None:
    db = apsw.Connection(str(path))
    for statement in statements:
        db.execute(statement)
    db.close()


def column(path: Path, statement: str) -> list[Any]:
    db = apsw.Connection(str(path))
    values = [value for (value,) in db.execute(statement)]
    db.close()
    return values


async def found(path: Path) -> list[Finding]:
    store = SqliteStore(path)
    try:
        return [finding async for finding in store.verify() if finding.state != "whole"]
    finally:
        await store.close()


async def test_all_of_it_is_read_as_before_and_covered_from_then_on(path: Path) -> None:
    answers, ids = (
        column(path, f"SELECT {name} FROM run ORDER BY key DESC") for name in ("answer", "run_id")
    )
    told = column(path, "SELECT text FROM thought ORDER BY place")
    async with App(str(path), environ={}) as app:
        rows = await app.store.runs()
        assert [(row.run_id, row.answer) for row in rows] == list(zip(ids, answers, strict=True))
        for row in rows:
            trace = await app.engine.trace(row.run_id)
            assert (trace["answer"], trace["status"]) == (row.answer, row.status)
        guided = [row for row in await app.store.sessions() if row.run_id is None]
        texts = [one.text for row in guided[::-1] for one in await app.store.thoughts(row.session_id)]
        assert texts == told
    assert await found(path) == []
    assert column(path, "SELECT count(*) FROM thought WHERE digest IS NULL") == [0]
    spoil(
        path, "UPDATE thought SET text = 'another' WHERE place & 16777215 = 2", "UPDATE run SET answer = '42'"
    )
    assert [finding.state for finding in await found(path)] == ["damaged"] * 6


async def test_its_runs_and_sessions_go_on(path: Path) -> None:
    async with App(str(path), environ={}) as app:
        coached = (await app.store.runs(status="active"))[0].run_id
        (asked,) = (await app.coach().status(coached))["questions"]
        done = await app.coach_answer(
            coached, [{"id": asked["id"], "answer": '{"steps": ["6 * 7"], "answer": "42"}'}]
        )
        assert done["status"] in ("active", "done")
        for row in [row for row in await app.store.sessions() if row.run_id is None]:
            assert await think(app, row.session_id, "more", 6, 8) == row.session_id
    assert await found(path) == []


@pytest.mark.parametrize("key", [SOLVED, LIMITED])
@pytest.mark.parametrize("left", [0, 1, 4])
async def test_a_tail_that_was_lost_before_is_not_blessed(path: Path, key: int, left: int) -> None:
    spoil(path, f"DELETE FROM line WHERE place > ({key} << 24) + {left} AND place < ({key} + 1) << 24")
    (damaged,) = column(path, f"SELECT run_id FROM run WHERE key = {key}")
    async with App(str(path), environ={}) as app:
        assert [row.run_id for row in await app.store.runs() if row.status == "damaged"] == [damaged]
        with pytest.raises(StoreError) as caught:
            await app.engine.trace(damaged)
        assert caught.value.code == "store_corrupt"
    assert [finding.id for finding in await found(path)] == [damaged]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM thought WHERE place = (5 << 24) + 3",
        "DELETE FROM thought WHERE place = (5 << 24) + 5",
        "UPDATE session SET thoughts = 4 WHERE key = 5",
        "UPDATE thought SET text = CAST(x'ff' AS TEXT) WHERE place = (5 << 24) + 3",
    ],
)
@pytest.mark.parametrize("at_once", [50_000, 0])
async def test_a_thought_that_was_lost_before_is_not_blessed(
    path: Path, monkeypatch: pytest.MonkeyPatch, statement: str, at_once: int
) -> None:
    monkeypatch.setattr(first_checksums, "THOUGHTS_AT_ONCE", at_once)
    spoil(path, statement)
    damaged, whole = column(path, "SELECT session_id FROM session WHERE run_id IS NULL ORDER BY key")
    async with App(str(path), environ={}) as app:
        with pytest.raises(StoreError) as caught:
            await think(app, damaged, "more", 6, 6)
        assert caught.value.code == "store_corrupt"
        await think(app, whole, "more", 6, 6)
    again = [finding for finding in await found(path) if finding.id == damaged]
    assert [finding.state for finding in again] in (["damaged"], ["unchecked"])


async def test_thoughts_of_a_large_store_stay_unchecked_until_their_session_is_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_checksums, "THOUGHTS_AT_ONCE", 9)
    older, newer = column(path, "SELECT session_id FROM session WHERE run_id IS NULL ORDER BY used_at_ms")
    assert [(one.id, one.state, one.entries) for one in await found(path)] == [(older, "unchecked", 5)]
    async with App(str(path), environ={}) as app:
        assert len(await app.store.thoughts(older)) == len(await app.store.thoughts(newer)) == 5
        assert len(await app.store.search_thoughts("of session")) >= 10
        await app.sessions().pin({"sessionId": older})
    assert await found(path) == []
    spoil(path, "UPDATE session SET last_digest = NULL")
    assert {one.state for one in await found(path)} == {"damaged"}


async def test_what_cannot_be_read_as_json_is_an_error_and_no_traceback(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_checksums, "THOUGHTS_AT_ONCE", 0)
    spoil(path, "UPDATE thought SET body = x'7b'", "UPDATE session SET head = x'00' WHERE key = 6")
    async with App(str(path), environ={}) as app:
        for session_id in column(path, "SELECT session_id FROM session WHERE run_id IS NULL"):
            with pytest.raises(StoreError) as caught:
                await app.sessions().get({"sessionId": session_id})
            assert caught.value.code == "store_corrupt"
