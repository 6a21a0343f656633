"""A run continued as a session: its thoughts are copied, and what the run wrote stays as it is."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from reasonry.app.app import App
from reasonry.core.strategy import Strategy
from reasonry.engine.policy import Performers
from reasonry.errors import ConflictError, ReasonryError, UsageError
from reasonry.guided.transcripts import continuation_id
from reasonry.records import new_id
from reasonry.strategies import STRATEGIES

from ..engine.answering import order, performers_of
from ..engine.crashing import ALL
from ..engine.playing import LOOP, CountingModel
from ..engine.running import accept, drive, trace_of
from ..test_every_strategy import each_driven, options, world

pytestmark = pytest.mark.anyio


def call(number: int, session_id: str, **more: Any) -> dict[str, Any]:
    plain = {
        "thought": "And now?",
        "thought_number": number,
        "total_thoughts": number,
        "next_thought_needed": True,
    }
    return {**plain, "session_id": session_id, **more}


async def a_run(app: App, strategy: Strategy[Any, Any], seed: int = 1) -> tuple[str, str]:
    """Return the session and the id of a run that has ended."""
    run_id = await accept(app.engine, order(strategy, options(strategy, seed)))
    result = await drive(app.engine, run_id, performers_of(world(strategy, seed, 0.0)))
    return result.session_id, run_id


@each_driven
async def test_a_run_of_any_strategy_goes_on_with_all_it_thought(strategy: Strategy[Any, Any]) -> None:
    async with App("memory") as app:
        session_id, run_id = await a_run(app, strategy)
        sessions = app.sessions()
        before = await trace_of(app.engine, run_id), await sessions.export({"session_id": session_id})
        reply = await sessions.think(call(1_000, session_id))
        notice = next(one for one in reply["notices"] if one["reason"] == "run_continued")
        assert notice["requested_session_id"] == session_id
        assert run_id in notice["message"]
        copy = await sessions.export({"session_id": reply["session_id"]})
        *copied, latest = copy["thoughts"]
        assert latest["thought"] == "And now?"
        run = await app.store.run(run_id)
        if run.answer:
            answer = copied.pop()
            assert (answer["thought"], answer["stage"]) == (run.answer, strategy.stages[-1].name)
            assert reply["stage"] == latest["stage"] == answer["stage"]
        ended = await sessions.think(call(1_001, reply["session_id"], next_thought_needed=False))
        assert "not tested" not in ended.get("left_open", "")
        assert "built on" not in ended.get("left_open", "")
        for old, new in zip(before[1]["thoughts"], copied, strict=True):
            same = ("thought", "thought_number", "branch_id")
            assert {name: old.get(name) for name in same} == {name: new.get(name) for name in same}
            assert new.get("stage", "") in ("", *STRATEGIES[copy["strategy"]].by_name)
        assert (
            await trace_of(app.engine, run_id),
            await sessions.export({"session_id": session_id}),
        ) == before
        again = await sessions.import_({**copy, "session_id": "a-copy"})
        walked = await sessions.export({"session_id": again["session_id"]})
        assert [one["thought"] for one in walked["thoughts"]] == [one["thought"] for one in copy["thoughts"]]


@each_driven
async def test_stages_scores_and_branches_come_along_where_the_table_leads_there(
    strategy: Strategy[Any, Any],
) -> None:
    async with App("memory") as app:
        session_id, _ = await a_run(app, strategy)
        sessions = app.sessions()
        old = (await sessions.export({"session_id": session_id}))["thoughts"]
        new = (await sessions.resume({"session_id": session_id}))["session_id"]
        copied = (await sessions.export({"session_id": new}))["thoughts"][: len(old)]
        assert len(copied) == len(old)
        last = strategy.stages[-1].name
        fits = [(one["stage"], two.get("stage")) for one, two in zip(old, copied, strict=True)]
        own = [pair for pair in fits if pair[0] in strategy.by_name and pair[0] != last]
        assert all(old_stage == new_stage for old_stage, new_stage in own)
        scores = [
            (one.get("score"), (two.get("data") or {}).get("score"))
            for one, two in zip(old, copied, strict=True)
        ]
        assert all(was is None or was == now for was, now in scores)


async def test_naming_the_runs_session_again_goes_on_in_the_same_one(tmp_path: Path) -> None:
    async with App(str(tmp_path / "s.db"), strategies=ALL) as app:
        session_id = await a_loop(app)
        sessions = app.sessions()
        texts = [f"And now, {n}?" for n in range(5)]
        replies = await asyncio.gather(*(sessions.think(call(4, session_id, thought=one)) for one in texts))
        ids = {reply["session_id"] for reply in replies}
        assert len(ids) == 1
        assert ids != {session_id}
        later = await sessions.think(call(5, session_id))
        assert later["session_id"] in ids
        assert later["thought_history_length"] == 4 + 5 + 1
        own = await sessions.think(call(6, later["session_id"]))
        assert not [one for one in own.get("notices", ()) if one["reason"] == "run_continued"]


async def a_loop(app: App, steps: int = 3) -> str:
    run_id = await accept(app.engine, order(LOOP, LOOP.options(steps=steps)))
    return (await drive(app.engine, run_id, Performers(CountingModel()))).session_id


async def test_a_refused_thought_makes_no_session(tmp_path: Path) -> None:
    async with App(str(tmp_path / "s.db"), strategies=ALL) as app:
        session_id = await a_loop(app)
        sessions = app.sessions()
        for wrong in (
            {"stage": "no_such"},
            {"revises_thought": 99},
            {"merge_branch": "B"},
            {"thought_number": 0},
        ):
            with pytest.raises(UsageError):
                await sessions.think(call(4, session_id, **wrong))
        assert [row.session_id for row in await app.store.sessions()] == [session_id]


async def test_a_run_that_goes_on_is_not_thought_into(tmp_path: Path) -> None:
    async with App(str(tmp_path / "s.db"), strategies=ALL) as app:
        run_id = await accept(app.engine, order(LOOP, LOOP.options(steps=3)))
        session_id = (await app.store.run(run_id)).session_id
        for act in (
            app.sessions().think(call(4, session_id)),
            app.sessions().resume({"session_id": session_id}),
        ):
            with pytest.raises(ConflictError, match=run_id) as caught:
                await act
            assert "coach" in caught.value.message
        assert len(await app.store.sessions()) == 1


async def test_resume_begins_it_and_shows_what_was_thought(tmp_path: Path) -> None:
    async with App(str(tmp_path / "s.db"), strategies=ALL) as app:
        session_id = await a_loop(app)
        shown = await app.sessions().resume({"session_id": session_id})
        assert [one["reason"] for one in shown["notices"]] == ["run_continued"]
        assert (len(shown["thought_history"]), shown["history_truncated"]) == (3, True)
        again = await app.sessions().resume({"session_id": session_id})
        assert again["session_id"] == shown["session_id"] != session_id
        reply = await app.sessions().think(call(4, shown["session_id"]))
        assert reply["thought_history_length"] == 5


async def test_of_a_long_run_the_latest_thoughts_are_copied(tmp_path: Path) -> None:
    environ = {"REASONRY_MAX_THOUGHTS": "20"}
    async with App(str(tmp_path / "s.db"), strategies=ALL, environ=environ) as app:
        session_id = await a_loop(app, steps=30)
        reply = await app.sessions().think(call(31, session_id))
        assert reply["thought_history_length"] == 12
        assert any("20 left out" in notice["message"] for notice in reply["notices"])
        copied = (await app.sessions().export({"session_id": reply["session_id"]}))["thoughts"]
        assert [one["thought_number"] for one in copied] == [*range(21, 32), 31]


async def test_clearing_begins_an_empty_session_and_leaves_the_run(tmp_path: Path) -> None:
    async with App(str(tmp_path / "s.db"), strategies=ALL) as app:
        session_id = await a_loop(app)
        reply = await app.sessions().think(call(1, session_id, clear_session=True))
        assert reply["thought_history_length"] == 1
        assert len((await app.sessions().export({"session_id": session_id}))["thoughts"]) == 3


async def test_a_tool_of_one_session_does_not_write_into_a_run(tmp_path: Path) -> None:
    async with App(str(tmp_path / "s.db"), strategies=ALL) as app:
        session_id = await a_loop(app)
        with pytest.raises(ReasonryError, match="record of run"):
            await app.sessions().think(call(4, session_id), exact_id=session_id)


def test_the_id_follows_from_that_of_the_run_and_is_of_its_time() -> None:
    for session_id in (new_id(), new_id()):
        made = uuid.UUID(continuation_id(session_id))
        assert continuation_id(session_id) == str(made)
        assert (made.version, made.variant) == (7, uuid.RFC_4122)
    first = new_id()
    assert continuation_id(first)[:13] == first[:13]
    assert len({continuation_id(new_id()) for _ in range(100)}) == 100
