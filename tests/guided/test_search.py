"""What is listed and found of the thoughts of runs: as many as are shown, and exactly these."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.app.app import App
from reasonry.engine.journal import read
from reasonry.engine.open_run import CHECKPOINT_EVERY
from reasonry.engine.policy import Performers
from reasonry.engine.run import fold
from reasonry.errors import ConflictError, ModelError
from reasonry.guided.session_choice import Thinker
from reasonry.records import JobOptions, Line, RunRow, Use
from reasonry.stores.sqlite import SqliteStore

from ..engine.answering import order, record_answers
from ..engine.crashing import ALL
from ..engine.playing import LOOP, CountingModel
from ..engine.running import accept, drive, fork, resume, take_over
from .desk import Desk

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory" if request.param == "memory" else str(tmp_path / "store.db")


def saying(*texts: str) -> Performers:
    """Return a model that says these things, one for each thought of LOOP."""
    return Performers(CountingModel(reply=lambda question: texts[question.ask.facts["n"]]))


async def a_run(app: App, *texts: str) -> str:
    """Drive a run that thinks these thoughts; return its id."""
    run_id = await accept(app.engine, order(LOOP, LOOP.options(steps=len(texts))))
    await drive(app.engine, run_id, saying(*texts))
    return run_id


async def begun(app: App, steps: int, *texts: str) -> str:
    """Begin a run that its caller answers, and answer so much of it; return its id."""
    run_id = await accept(app.engine, order(LOOP, LOOP.options(steps=steps)))
    shown = await take_over(app.engine, run_id, Performers(CountingModel()))
    for text in texts:
        answers = {one["id"]: text for one in shown["questions"]}
        shown = await record_answers(app.engine, run_id, answers, Performers(CountingModel()))
    return run_id


async def session_of(app: App, run_id: str) -> str:
    return (await app.store.run(run_id)).session_id


async def listed(app: App) -> dict[str, int]:
    rows = (await app.sessions().list({"status": "all", "limit": 500}))["sessions"]
    return {row["session_id"]: row["thought_history_length"] for row in rows}


async def shown(app: App, session_id: str) -> list[dict[str, Any]]:
    return (await app.sessions().export({"session_id": session_id}))["thoughts"]


async def scanned(app: App, query: str) -> set[tuple[str, int]]:
    """Find what is searched for by looking at all that is shown."""
    return {
        (session_id, one["seq"])
        for session_id in await listed(app)
        for one in await shown(app, session_id)
        if query.casefold() in one["thought"].casefold()
    }


async def searched(app: App, query: str, limit: int = 50, **given: Any) -> list[tuple[str, int]]:
    """Search page by page."""
    found, after = list[tuple[str, int]](), dict[str, Any]()
    while True:
        page = await app.sessions().search({"query": query, "limit": limit, **given, **after})
        assert len(page["matches"]) <= limit
        found += [(one["session_id"], one["seq"]) for one in page["matches"]]
        if page["next_cursor"] is None:
            return found
        after = {"cursor": page["next_cursor"]}


# -- the list


async def test_the_list_counts_the_thoughts_of_a_run_at_every_point_of_its_life(place: str) -> None:
    async with App(place, strategies=ALL) as app:

        async def check(run_id: str, count: int) -> None:
            session_id = await session_of(app, run_id)
            assert (await listed(app))[session_id] == len(await shown(app, session_id)) == count

        fresh = await accept(app.engine, order(LOOP, LOOP.options(steps=3)))
        await check(fresh, 0)
        active = await begun(app, 3, "a", "b")
        await check(active, 2)
        await app.engine.cancel(active)
        await check(active, 2)
        await resume(app.engine, active, saying("", "", "c"))
        await check(active, 3)
        forked = await fork(app.engine, active, None, 2)
        await check(forked, 2)
        await drive(app.engine, forked, saying("", "", "d"))
        await check(forked, 3)
        await check(await fork(app.engine, active, None, 3), 3)
        broken = await accept(app.engine, order(LOOP, LOOP.options(steps=3)))
        fault = CountingModel(
            fault=lambda call: ModelError("no", code="model_refused") if call == 2 else None
        )
        result = await drive(app.engine, broken, Performers(fault))
        assert result.status == "failed"
        await check(broken, 1)


async def test_what_is_acknowledged_is_counted_in_the_same_transaction(tmp_path: Path) -> None:
    class Watching(SqliteStore):
        async def append(
            self,
            run_id: str,
            lines: Sequence[Line],
            row: RunRow | None = None,
            use: Use | None = None,
            job: JobOptions | None = None,
        ) -> None:
            await super().append(run_id, lines, row, use, job=job)
            # What another process would find if this one died here.
            entries, _ = read(run_id, await self.lines(run_id))
            session = await self.session((await self.run(run_id)).session_id)
            counts.append((session.thoughts, len(fold(entries, ALL).thoughts)))

    counts, store = list[tuple[int, int]](), Watching(tmp_path / "store.db")
    app = App(store, strategies=ALL)
    run_id = await a_run(app, *"abcde")
    await fork(app.engine, run_id, None, 2)
    await store.close()
    assert [kept for kept, _ in counts] == [told for _, told in counts]
    assert max(counts) == (5, 5)


# -- the search

TEXTS = st.text('aAbßSſİıé漢\0 "\\%_', max_size=6) | st.sampled_from(
    ["straße", "STRASSE", 'he said "no"', "a\\nb\n", "漢字", "\u0130stanbul"]
)
LIVES = st.sampled_from(["guided", "done", "active", "fresh", "cancelled", "failed", "forked", "deleted"])


async def live(app: App, kind: str, texts: list[str]) -> None:
    """Let a session come about, and the run that writes it have that fate."""
    match kind:
        case "guided":
            at, thinker = Desk(app.store), Thinker()
            at.sessions = app.sessions()
            for number, text in enumerate(texts, 1):
                await at.think(number, text.strip() or "x", thinker=thinker)
        case "active":
            await begun(app, len(texts) + 1, *texts)
        case "fresh":
            await accept(app.engine, order(LOOP, LOOP.options(steps=2)))
        case "cancelled":
            # Too many empty answers have ended it already.
            with contextlib.suppress(ConflictError):
                await app.engine.cancel(await begun(app, len(texts) + 1, *texts))
        case "failed":
            fault = CountingModel(
                fault=lambda call: ModelError("no", code="model_refused") if call == len(texts) else None,
                reply=lambda question: texts[question.ask.facts["n"]],
            )
            run_id = await accept(app.engine, order(LOOP, LOOP.options(steps=len(texts))))
            await drive(app.engine, run_id, Performers(fault))
        case _:
            run_id = await a_run(app, *texts)
            if kind == "forked":
                await fork(app.engine, run_id, None, max(len(texts) - 1, 0))
            if kind == "deleted":
                await app.sessions().delete({"session_id": await session_of(app, run_id)})


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@settings(max_examples=25, deadline=None)
@given(
    lives=st.lists(st.tuples(LIVES, st.lists(TEXTS, min_size=1, max_size=3)), max_size=6),
    queries=st.lists(TEXTS.filter(bool), min_size=1, max_size=3),
    limit=st.integers(1, 4),
    is_kept=st.booleans(),
)
async def test_a_search_finds_exactly_what_is_shown_in_a_steady_order(
    kind: str, lives: list[tuple[str, list[str]]], queries: list[str], limit: int, is_kept: bool
) -> None:
    with TemporaryDirectory() as folder:
        async with App("memory" if kind == "memory" else f"{folder}/store.db", strategies=ALL) as app:
            # A run may continue from its checkpoint.
            with patch("reasonry.engine.open_run.CHECKPOINT_EVERY", 1 if is_kept else CHECKPOINT_EVERY):
                for fate, texts in lives:
                    await live(app, fate, texts)
            for query in queries:
                found = await searched(app, query, limit)
                assert len(set(found)) == len(found)
                assert set(found) == await scanned(app, query)
                assert found == await searched(app, query, limit=500)
                for session_id in await listed(app):
                    inside = await searched(app, query, limit, session_id=session_id)
                    assert inside == [one for one in found if one[0] == session_id]
