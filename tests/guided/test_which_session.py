"""Which session a thought without an id goes to; and that none is lost, whatever is called."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonry.app.wiring import App
from reasonry.errors import NotFoundError, UsageError
from reasonry.guided.lines import Head, ThoughtLine
from reasonry.guided.thinker import Thinker
from reasonry.guided.thinking_tool import ThinkingCall
from reasonry.guided.which_session import KnownSession, choose
from reasonry.records import SessionRow, SessionView, ThoughtRow

from ..engine.answering import order
from ..engine.crashing import ALL
from ..engine.playing import LOOP
from .desk import Desk, desk

pytestmark = pytest.mark.anyio


class Numbers:
    """A view of a session that has the thoughts 1 to `count`."""

    row = None

    def __init__(self, count: int) -> None:
        self._count = count

    def with_number(self, number: int) -> list[ThoughtRow]:
        return [ThoughtRow(number, number, "…")] if 1 <= number <= self._count else []

    def latest(self, count: int) -> list[ThoughtRow]:
        raise NotImplementedError

    def other(self, session_id: str) -> SessionView:
        raise NotImplementedError


def session(
    name: str, number: int, *, strategy: str = "linear", stage: str = "", ended: bool = False
) -> KnownSession:
    head = Head(ThoughtLine(stage, number=number, thoughts=number), thoughts=number, ended=ended)
    return KnownSession(SessionRow(name, strategy, 1, 1, thoughts=number), head, Numbers(number))


def call(number: int, **more: Any) -> ThinkingCall:
    return ThinkingCall(
        thought="…", thought_number=number, total_thoughts=9, next_thought_needed=True, **more
    )


OPEN, ENDED = session("open", 3), session("ended", 3, ended=True)
CHOICES: list[tuple[ThinkingCall, Sequence[KnownSession], str | None, list[str]]] = [
    (call(4), [], None, []),
    (call(1), [], None, []),
    (call(4), [OPEN], "open", []),
    (call(9), [OPEN], "open", []),
    (call(3), [OPEN], "open", []),
    (call(1), [OPEN], None, ["session_begun"]),
    (call(1, is_revision=True), [OPEN], "open", []),
    (call(1, branch_id="b"), [OPEN], "open", []),
    (call(4), [ENDED], None, ["session_begun"]),
    (call(4, needs_more_thoughts=True), [ENDED], "ended", []),
    (call(4, revises_thought=2), [ENDED], "ended", []),
    (call(4, branch_id="new"), [ENDED], None, ["session_begun"]),
    (call(4), [ENDED, session("older", 3)], "older", []),
    (call(7), [ENDED, session("older", 3)], None, ["session_begun"]),
    (call(6), [OPEN, session("older", 5)], "older", []),
    (call(4), [OPEN, session("older", 3)], "open", ["ambiguous_session"]),
    (call(4, revises_thought=5), [OPEN, session("older", 3)], "open", []),
    (call(4, strategy="react"), [session("a", 3, stage="initial_thought_planning")], None, ["session_begun"]),
    (call(4, strategy="react"), [OPEN], "open", []),
    (call(4, strategy="react"), [session("a", 3, stage="x", strategy="react")], "a", []),
]


@pytest.mark.parametrize(("thought", "known", "chosen", "reasons"), CHOICES)
def test_the_session_is_chosen_by_number_strategy_and_end(
    thought: ThinkingCall, known: Sequence[KnownSession], chosen: str | None, reasons: list[str]
) -> None:
    session, notices = choose(thought, known, thought.strategy)
    found = None if session is None else session.row.session_id
    assert (found, [notice.reason for notice in notices]) == (chosen, reasons)


THOUGHTS = st.fixed_dictionaries(
    {"number": st.integers(1, 5)},
    optional={
        "nextThoughtNeeded": st.booleans(),
        "strategy": st.sampled_from(["react", "linear", "tree_of_thoughts"]),
        "stage": st.sampled_from(["action_planning", "branch_creation"]),
        "sessionId": st.one_of(st.integers(0, 4), st.sampled_from(["last", "my-task", "0199c0de"])),
        "revisesThought": st.integers(1, 3),
        "branchFromThought": st.integers(1, 3),
        "branchId": st.sampled_from(["a", "b"]),
        "mergeBranch": st.sampled_from(["a", "b"]),
        "needsMoreThoughts": st.booleans(),
        "clearSession": st.booleans(),
    },
)
STEPS = st.lists(
    st.tuples(st.integers(0, 1), st.one_of(THOUGHTS, st.sampled_from(["resume", "restart", "wait"]))),
    max_size=14,
)


async def _play(at: Desk, steps: list[tuple[int, Any]], *, clears: bool) -> None:
    connections = [Thinker(), Thinker()]
    acknowledged, ids = list[str](), list[str]()
    for place, (which, step) in enumerate(steps):
        if step == "restart":
            connections[which] = Thinker()
        elif step == "wait":
            at.clock.pass_minutes(40)
        elif step == "resume":
            with contextlib.suppress(NotFoundError):
                await connections[which].resume(lambda: at.sessions.resume({}))
        else:
            arguments = {
                "thought": f"thought at {place}",
                "totalThoughts": 5,
                "nextThoughtNeeded": True,
                **step,
            }
            arguments["thoughtNumber"] = arguments.pop("number")
            if isinstance(number := arguments.get("sessionId"), int):
                arguments["sessionId"] = ids[number] if number < len(ids) else "unknown-id"
            if not clears:
                arguments.pop("clearSession", None)
            try:
                reply = await at.sessions.think(arguments, thinker=connections[which])
            except UsageError:
                continue
            acknowledged.append(arguments["thought"])
            ids += [] if reply["sessionId"] in ids else [reply["sessionId"]]
    listed = (await at.sessions.list({"limit": 500}))["sessions"]
    assert sorted(ids) == sorted(entry["session_id"] for entry in listed)
    kept = [await at.sessions.get({"sessionId": entry["session_id"]}) for entry in listed]
    assert sorted(thought["thought"] for one in kept for thought in one["thoughts"]) == sorted(acknowledged)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_no_sequence_of_calls_makes_a_thought_unreachable_in_a_durable_store(
    steps: list[tuple[int, Any]],
) -> None:
    async def attempt() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with desk("sqlite", Path(folder)) as at:
                await _play(at, steps, clears=True)

    asyncio.run(attempt())


@settings(max_examples=80, deadline=None)
@given(STEPS)
def test_no_sequence_of_calls_that_clears_nothing_makes_a_thought_unreachable_in_memory(
    steps: list[tuple[int, Any]],
) -> None:
    async def attempt() -> None:
        async with desk("memory", Path()) as at:
            await _play(at, [step for step in steps if step[1] != "wait"], clears=False)

    asyncio.run(attempt())


# -- ids


async def test_ids_may_be_given_by_how_they_begin_or_as_last(tmp_path: Path) -> None:
    async with desk("sqlite", tmp_path) as at:
        one = (await at.think(1, "one"))["sessionId"]
        at.clock.pass_minutes(1)
        two = (await at.think(1, "two"))["sessionId"]
        at.clock.pass_minutes(1)
        count = next(place for place in range(36) if one[place] != two[place]) + 1
        for action in ("get", "export", "resume", "pin"):
            for text, meant in ((one[:count], one), (two[:count].upper(), two)):
                found = await at.sessions.manage({"action": action, "sessionId": text})
                assert found["session_id"] == meant
        assert (await at.think(2, sessionId=one[:count]))["sessionId"] == one
        at.clock.pass_minutes(1)
        assert (await at.think(2, sessionId=two))["sessionId"] == two
        assert (await at.sessions.get({"sessionId": "last"}))["session_id"] == two
        assert (await at.think(3, sessionId="last"))["sessionId"] == two
        with pytest.raises(UsageError) as caught:
            await at.sessions.get({"sessionId": one[: count - 1]})
        assert caught.value.details["choices"] == sorted([one, two])
        with pytest.raises(NotFoundError):
            await at.sessions.get({"sessionId": one[:3]})
        deleted = await at.sessions.delete({"sessionId": one[:count]})
        assert deleted["session_id"] == one


async def test_runs_are_named_by_how_their_ids_begin_or_as_last() -> None:
    async with App("memory", strategies=ALL) as app:
        with pytest.raises(NotFoundError):
            await app.run_id("last")
        ids = [await app.engine.accept(order(LOOP, LOOP.options(steps=1))) for _ in range(2)]
        assert await app.run_id("last") == ids[1]
        assert [await app.run_id(run_id) for run_id in ids] == ids
        assert [await app.run_id(run_id[:35]) for run_id in ids] == ids
        with pytest.raises(UsageError) as caught:
            await app.run_id(ids[0][:4])
        assert caught.value.details["choices"] == ids


# -- looking


async def test_a_branch_that_is_not_there_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    async with desk("memory", tmp_path) as at:
        sid = (await at.think(1, branchId="a"))["sessionId"]
        with pytest.raises(UsageError, match="its branches: a") as caught:
            await at.sessions.get({"sessionId": sid, "branchId": "Z"})
        assert caught.value.details["choices"] == ["a"]


async def test_a_durable_store_is_cleared_only_with_a_confirmation(tmp_path: Path) -> None:
    async with desk("sqlite", tmp_path) as at:
        await at.think(1)
        with pytest.raises(UsageError, match="confirm=True"):
            await at.sessions.clear()
        assert len(await at.store.sessions()) == 1
        assert await at.sessions.clear(confirm=True) == 1
