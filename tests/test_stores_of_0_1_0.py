"""A store written by 0.1.0 goes on working: every run reads, replays and resumes, every session reads and goes on.

The store and what 0.1.0 itself said of it are in `fixtures/store_0_1_0`; the README there says how they were written.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Awaitable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from reasonry.app import App
from reasonry.core.budget import Budget
from reasonry.core.effects import Verify
from reasonry.core.events import Answered, Failed, Verified
from reasonry.engine.coach import Coach
from reasonry.engine.engine import Engine
from reasonry.engine.journal import Begun, Settled, fold
from reasonry.engine.policy import Performers
from reasonry.engine.ports import OnText, Question
from reasonry.errors import AnswerRefusedError, ConflictError, ModelError, ToolError
from reasonry.guided.replies import rows_of_run
from reasonry.guided.sessions import Sessions
from reasonry.guided.settings import SessionSettings
from reasonry.stores import open_store
from reasonry.strategies import STRATEGIES

from .engine.answering import record_answers
from .engine.playing import by

FIXTURE = Path(__file__).parent / "fixtures" / "store_0_1_0"

Document = dict[str, Any]


@cache
def manifest() -> Document:
    """Return what 0.1.0 said of its store."""
    return json.loads(gzip.decompress((FIXTURE / "manifest.json.gz").read_bytes()))


def _named(rows: list[Document]) -> Any:
    """Parametrize over rows, by what they are."""
    seen = Counter[str]()
    ids = []
    for row in rows:
        strategy = row.get("strategy") or row["export"]["strategy"]
        name = f"{strategy} {row['kind']}".replace(" ", "-").replace(",", "")
        seen[name] += 1
        ids.append(f"{name}-{seen[name]}")
    return pytest.mark.parametrize("wanted", rows, ids=ids)


RUNS: list[Document] = manifest()["runs"]
SESSIONS: list[Document] = manifest()["sessions"]
UNFINISHED = [one for one in RUNS if "continued" in one]
each_run = _named(RUNS)
each_unfinished = _named(UNFINISHED)
each_session = _named(SESSIONS)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The store as 0.1.0 left it."""
    path = tmp_path_factory.mktemp("store") / "store.db"
    path.write_bytes(gzip.decompress((FIXTURE / "store.db.gz").read_bytes()))
    return path


def _copy(written: Path, name: str) -> Iterator[Any]:
    shutil.copy(written, written.with_name(name))
    opened = open_store(str(written.with_name(name)))
    yield opened
    asyncio.run(opened.close())


@pytest.fixture(scope="module")
def store(written: Path) -> Iterator[Any]:
    """A copy for looking."""
    yield from _copy(written, "looked-at.db")


@pytest.fixture(scope="module")
def going_on(written: Path) -> Iterator[Any]:
    """A copy for writing; no two tests write to the same run or session."""
    yield from _copy(written, "written-to.db")


def _digest(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]


class Recorded:
    """Model, tools and verifier that say what was said when 0.1.0 went on with the run; counts what it is asked."""

    name = "world"

    def __init__(self, continued: Document, strategy: str) -> None:
        self.strategy = STRATEGIES[strategy]
        self.answers, self.tools, self.verdicts = (
            continued["answers"],
            continued["tools"],
            continued["verdicts"],
        )
        self.asked = Counter[str]()

    def performers(self) -> Performers:
        return Performers(self, verifier=self, tools=self)

    def say(self, effect_id: str, stage: str) -> Answered | Failed:
        """Return what was said; to a question that 0.1.0 did not ask, the example of its stage."""
        self.asked[effect_id] += 1
        if effect_id not in self.answers:
            rows = (one.by_name.get(stage) for one in (self.strategy, *STRATEGIES.values()))
            return Answered(json.dumps(next(row.example for row in rows if row is not None and row.example)))
        # What is asked today was not asked then where a stage has changed; nobody answers it.
        unasked = {"type": "failed", "code": "provider_error", "message": "0.1.0 was not asked this"}
        return msgspec.convert(self.answers.get(effect_id, unasked), Answered | Failed)

    async def answer(self, question: Question, on_text: OnText | None = None) -> Answered:
        said = self.say(question.id, question.stage)
        if isinstance(said, Failed):
            raise ModelError(said.message, code=said.code)
        return said

    async def call(self, name: str, arguments: dict[str, Any]) -> Any:
        said = self.tools[_key(name, arguments)]
        if "error" in said:
            raise ToolError(said["error"])
        return said["value"]

    async def verify(self, claim: Verify) -> Verified:
        return msgspec.convert(self.verdicts[_key(claim.path, claim.final)], Verified)

    async def close(self) -> None:
        pass


def _key(*parts: Any) -> str:
    return json.dumps(parts, sort_keys=True, ensure_ascii=False)


async def coach_to_the_end(engine: Engine, run_id: str, caller: Recorded) -> None:
    """Answer all that a run asks, as its caller."""
    who = caller.performers()
    shown = await Coach(engine).take_over(run_id, by(who))
    while shown["status"] == "active":
        answers: dict[str, str] = {}
        for one in shown["questions"]:
            said = caller.say(one["id"], one["stage"])
            if isinstance(said, Failed):
                return
            answers[one["id"]] = said.text
        try:
            shown = await Coach(engine).answer(run_id, answers, by(who))
        except AnswerRefusedError as refusal:
            # 0.1.0 took what cannot be read, and asked again.
            refused = {entry["id"]: answers[entry["id"]] for entry in refusal.details["refused"]}
            shown = await record_answers(engine, run_id, refused, who)


# -- runs


def _replies(event: Document) -> list[str]:
    """Return the replies an event holds: those of a question that failed are with its failure."""
    return [event["text"]] if "text" in event else list(event.get("replies", ()))


@each_run
def test_a_run_shows_what_was_recorded_of_it(store: Any, wanted: Document) -> None:
    """Row, thoughts and every reply are there, whatever became of prompts, forms and stages since."""

    async def work() -> None:
        engine = Engine(store, STRATEGIES)
        row, trace = await store.run(wanted["run_id"]), await engine.trace(wanted["run_id"])
        shown = wanted["show"]
        for name in ("run_id", "session_id", "strategy", "problem", "status", "answer"):
            assert trace[name] == shown[name], name
        assert trace["termination"]["reason"] == shown["termination"]["reason"]
        assert len(trace["events"]) == wanted["events"]
        replies = Counter(_digest(reply) for event in trace["events"] for reply in _replies(event))
        assert not Counter(one["reply"] for one in shown["questions"] if one["reply"] is not None) - replies
        assert {name: getattr(row, name) for name in wanted["row"]} == wanted["row"]
        session = await _sessions(store, engine).export({"sessionId": row.session_id})
        assert [one["thought"] for one in session["thoughts"]] == [one["text"] for one in trace["thoughts"]]
        await _is_refused(engine.replay(wanted["run_id"]))

    asyncio.run(work())


@each_unfinished
def test_an_unfinished_run_goes_on_or_says_how(going_on: Any, wanted: Document) -> None:
    """Where its recorded answers still fit it comes to an end and none is asked for again; else nothing changes."""

    async def work() -> None:
        engine, run_id = Engine(going_on, STRATEGIES), wanted["run_id"]
        before = await going_on.lines(run_id)
        world = Recorded(wanted["continued"], wanted["strategy"])
        if await _is_refused(_go_on(engine, going_on, world, wanted)):
            assert await going_on.lines(run_id) == before
            return
        run = (await engine.read(run_id)).run
        answered = [one.id for one in run.events if isinstance(one.event, Answered)]
        assert len(answered) == len(set(answered))
        assert set(world.asked.values()) <= {1}
        replayed = (await engine.replay(run_id))["replay"]
        assert replayed["identical"] is (None if (await going_on.run(run_id)).status == "active" else True)

    asyncio.run(work())


async def _go_on(engine: Engine, store: Any, world: Recorded, wanted: Document) -> None:
    run_id = wanted["run_id"]
    if wanted["kind"] == "killed, offline":
        await App(store).resume(run_id)
    elif (await store.run(run_id)).model == "caller":
        await coach_to_the_end(engine, run_id, world)
    else:
        await engine.resume(run_id, world.performers(), budget=Budget())


async def _is_refused(work: Awaitable[Any]) -> bool:
    """Whether a run is refused since its strategy has changed, with the way on."""
    try:
        await work
    except ConflictError as refusal:
        error = refusal
    else:
        return False
    assert error.code == "strategy_changed"
    assert "runs fork" in error.message
    return True


def test_all_strategies_and_all_ways_to_end_are_there() -> None:
    kinds = {(one["strategy"], one["kind"]) for one in RUNS}
    for name in STRATEGIES:
        for kind in (
            "finished",
            "forked",
            "failed",
            "stopped by a limit of calls",
            "cancelled by its user",
            "killed at a commit",
            "killed with effects in flight",
            "killed where a question is asked again",
            "resumed after a limit",
            "asked again",
            "coached, waiting half-way",
            "coached to its end",
        ):
            assert (name, kind) in kinds
    assert {one["strategy"] for one in RUNS if one["kind"] == "killed with tools in flight"} >= {
        "react",
        "rewoo",
        "self_ask",
    }
    unfinished = {one["run_id"] for one in UNFINISHED}
    assert {one["run_id"] for one in RUNS if one["row"]["status"] == "active"} <= unfinished


# -- sessions


def _sessions(store: Any, engine: Engine) -> Sessions:
    """Return the sessions at the time the store was written, before any of them expires."""

    async def thoughts_of(run_id: str) -> Any:
        record = await engine.record(run_id)
        return rows_of_run(record.thoughts())

    settings, at_ms = SessionSettings(), manifest()["at_ms"]
    return Sessions(store, STRATEGIES, settings, lambda: at_ms, run_thoughts=thoughts_of)


@each_session
def test_a_session_reads_as_it_did_and_goes_on(going_on: Any, wanted: Document) -> None:
    async def work() -> None:
        sessions = _sessions(going_on, Engine(going_on, STRATEGIES))
        assert await sessions.export({"sessionId": wanted["sessionId"]}) == wanted["export"]
        _says_the_same(await sessions.think(wanted["call"]), wanted["reply"])
        session = await sessions.get({"sessionId": wanted["sessionId"], "limit": 500})
        assert session["strategy"] == wanted["reply"]["strategy"]
        assert session["status"] == "active"
        assert session["thoughts"][-1]["thought"] == wanted["call"]["thought"]
        assert len(session["thoughts"]) == len(wanted["export"]["thoughts"]) + 1

    asyncio.run(work())


def _says_the_same(reply: Document, before: Document) -> None:
    """Check a reply against that of 0.1.0.

    That one described the next stages, showed at most 20 thoughts, and had also what says nothing.
    """
    assert [then["name"] for then in reply["nextStages"]] == [then["name"] for then in before["nextStages"]]
    assert (reply.get("notices", []), reply.get("summary")) == (before["notices"], before["summary"])
    shown = before["thoughtHistory"]
    assert reply["thoughtHistory"][-len(shown) :] == shown
    others = before.keys() - {
        "nextStages",
        "notices",
        "summary",
        "strategy",
        "thoughtHistory",
        "historyTruncated",
    }
    assert {name: reply[name] for name in others} == {name: before[name] for name in others}


def test_sessions_of_all_kinds_are_there() -> None:
    assert {one["export"]["strategy"] for one in SESSIONS} == set(STRATEGIES)
    exported = [one["export"] for one in SESSIONS]
    assert {one["status"] for one in exported} == {"active", "archived"}
    assert {one["pinned"] for one in exported} == {True, False}
    assert {one["ended"] for one in exported} == {True, False}
    thoughts = [thought for one in exported for thought in one["thoughts"]]
    for part in ("branchId", "revisesThought", "mergeBranch", "data", "needsMoreThoughts"):
        assert any(part in one for one in thoughts), part


def test_an_analysis_whose_tasks_0_1_0_took_in_another_order_is_refused_with_a_code() -> None:
    """A failed tool call sent its task back to conversion at once; now what was written for the others runs first."""
    tasks = [{"resource_name": name, "task_query": "x"} for name in ("search", "py_executor")]
    options = {
        "candidate_plans": 1,
        "complexity_analysis": False,
        "concurrent_tasks": True,
        "tools": [{"name": "search"}, {"name": "py_executor"}],
    }
    written = json.dumps({"tool_input": {}})
    told: list[tuple[str, Any]] = [
        ("e1", Answered(json.dumps({"tasks": tasks}))),
        ("e2", Answered(written)),
        ("e3", Failed("tool_error", "down")),
        ("e4", Answered(json.dumps({"code": "6 * 7"}))),
    ]
    begun = Begun("analysis", "P", options)
    fold([begun, *(Settled(*one) for one in told)], STRATEGIES)
    with pytest.raises(ConflictError) as error:
        fold([begun, *(Settled(*one) for one in [*told, ("e5", Answered(written))])], STRATEGIES)
    assert error.value.code == "strategy_changed"
    assert "runs fork" in error.value.message
