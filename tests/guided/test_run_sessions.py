"""The session of a run: its thoughts, read like any other's, and what becomes of it when it is deleted."""

import asyncio
from typing import Any
from unittest.mock import patch

import pytest

from reasonry.app.app import App
from reasonry.app.run_thoughts import thought_rows
from reasonry.core.strategy import Strategy
from reasonry.engine.policy import Performers
from reasonry.errors import ConflictError, NotFoundError
from reasonry.guided.sessions import Sessions

from ..engine.answering import coach_on, order, performers_of
from ..engine.crashing import ALL
from ..engine.playing import LOOP, CountingModel
from ..engine.running import accept, drive, trace_of
from ..test_every_strategy import each_driven, options, world

pytestmark = pytest.mark.anyio


async def pages(sessions: Sessions, session_id: str) -> list[dict[str, Any]]:
    found, cursor = list[dict[str, Any]](), ""
    while cursor is not None:
        page = await sessions.get({"session_id": session_id, "limit": 3, "cursor": cursor})
        found += page["thoughts"]
        cursor = page["next_cursor"]
    return found


@each_driven
async def test_it_shows_the_thoughts_of_the_run_in_their_order(strategy: Strategy[Any, Any]) -> None:
    async with App("memory") as app:
        run_id = await accept(app.engine, order(strategy, options(strategy, 1)))
        result = await drive(app.engine, run_id, performers_of(world(strategy, 1, 0.0)))
        trace, sessions = await trace_of(app.engine, run_id), app.sessions()
        shown = await pages(sessions, result.session_id)
        assert trace["thoughts"]
        assert [one["thought_number"] for one in shown] == list(range(1, len(shown) + 1))
        for thought, seen in zip(trace["thoughts"], shown, strict=True):
            same = {"thought": "text", "stage": "stage", "branch_id": "branch", "score": "score"}
            assert {name: seen.get(name) for name in same} == {a: thought.get(b) for a, b in same.items()}
        listed = await sessions.list({})
        assert [(one["session_id"], one["run_id"]) for one in listed["sessions"]] == [
            (result.session_id, run_id)
        ]
        exported = await sessions.export({"session_id": result.session_id})
        assert len(exported["thoughts"]) == len(shown)


@each_driven
async def test_it_has_each_thought_at_once_though_the_run_is_read_from_its_checkpoint(
    strategy: Strategy[Any, Any],
) -> None:
    async with App("memory") as app:
        with patch("reasonry.engine.open_run.CHECKPOINT_EVERY", 1):
            for seed in range(3):
                run_id = await accept(app.engine, order(strategy, options(strategy, seed)))
                for most in (1, 2, 4, None):
                    await coach_on(
                        app.engine, run_id, world(strategy, seed, 0.0), most, lambda asked: asked[:1]
                    )
                    row, record = await app.store.run(run_id), await app.engine.record(run_id)
                    stored = await app.store.thoughts(row.session_id, limit=500)
                    assert stored == thought_rows(record.thoughts())
                    assert (await app.store.session(row.session_id)).thoughts == len(stored)


async def a_run(app: App, steps: int = 3) -> str:
    return await accept(app.engine, order(LOOP, LOOP.options(steps=steps)))


async def test_a_page_of_sessions_takes_one_read_of_their_runs() -> None:
    async with App("memory", strategies={"loop": LOOP}) as app:
        run_ids = [await a_run(app) for _ in range(3)]
        for run_id in run_ids[1:]:
            await drive(app.engine, run_id, Performers(CountingModel()))
        with (
            patch.object(app.store, "rows", wraps=app.store.rows) as rows,
            patch.object(app.store, "run") as run,
        ):
            listed = (await app.sessions().list({}))["sessions"]
        assert [one["status"] for one in listed] == ["answered", "answered", "active"]
        assert (rows.call_count, run.call_count) == (1, 0)


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Any) -> str:
    return "memory" if request.param == "memory" else str(tmp_path / "store.db")


@pytest.mark.parametrize("is_done", [True, False])
async def test_deleting_it_deletes_the_run_that_nobody_drives(store: str, is_done: bool) -> None:
    async with App(store, strategies=ALL) as app:
        run_id = await a_run(app)
        session = {"session_id": (await app.store.run(run_id)).session_id}
        if is_done:
            await drive(app.engine, run_id, Performers(CountingModel()))
        await app.sessions().delete(session)
        for gone in (trace_of(app.engine, run_id), app.sessions().get(session)):
            with pytest.raises(NotFoundError):
                await gone
        assert await app.store.runs() == []


async def test_nobody_else_thinks_in_it_or_clears_it(store: str) -> None:
    async with App(store, strategies=ALL) as app:
        run_id = await a_run(app)
        session = {"session_id": (await app.store.run(run_id)).session_id}
        call = {"thought": "me too", "thought_number": 1, "total_thoughts": 1, "next_thought_needed": True}
        for attempt in (app.sessions().think({**call, **session}), app.sessions().resume(session)):
            with pytest.raises(ConflictError, match=run_id):
                await attempt
        assert await app.sessions().clear(confirm=True) == 0


async def test_it_is_read_while_the_run_goes_on_and_not_deleted_from_under_it(store: str) -> None:
    async with App(store, strategies=ALL) as app:
        run_id = await a_run(app, steps=10)
        session_id = (await app.store.run(run_id)).session_id
        assert (await app.sessions().get({"session_id": session_id}))["thoughts"] == []
        task = asyncio.create_task(drive(app.engine, run_id, Performers(CountingModel(latency_s=0.02))))
        while not (await app.sessions().get({"session_id": session_id}))["thoughts"]:
            await asyncio.sleep(0.005)
        with pytest.raises(ConflictError, match=run_id):
            await app.sessions().delete({"session_id": session_id})
        result = await task
        assert result.status == "done"
        assert len((await app.sessions().get({"session_id": session_id}))["thoughts"]) == 10


async def test_a_run_that_is_refused_leaves_no_session(store: str) -> None:
    async with App(store, strategies=ALL) as app:
        run_id = await a_run(app)
        session_id = (await app.store.run(run_id)).session_id
        with pytest.raises(ConflictError):
            await app.engine.accept(order(LOOP, LOOP.options(steps=1)), session_id=session_id)
        assert [one.run_id for one in await app.store.runs()] == [run_id]
        assert len(await app.store.sessions()) == 1
