"""Which session a thought without an id goes to; and that none is lost, whatever is called."""

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reasonry.errors import NotFoundError, UsageError
from reasonry.guided.lines import Head, RowsView, ThoughtLine, ThoughtRecord, encode
from reasonry.guided.session_choice import KnownSession, SessionRequest, Thinker
from reasonry.guided.thinking_tool import ThinkingCall
from reasonry.records import SessionRow, ThoughtRow

from .desk import Desk, desk

pytestmark = pytest.mark.anyio


def session(
    name: str, number: int, *, total: int = 9, strategy: str = "linear", stage: str = "", ended: bool = False
) -> KnownSession:
    """Return a session that has the thoughts 1 to `number`."""
    line = ThoughtLine(stage, number=number, total=total, thoughts=number)
    head = Head(line, thoughts=number, highest=number, ended=ended)
    row = SessionRow(name, strategy, 1, 1, thoughts=number, purpose=f"about {name}", head=encode(head))
    numbers = range(1, number + 1)
    rows = [ThoughtRow(n, n, f"{name} {n}", None, encode(ThoughtRecord(mark=n))) for n in numbers]
    return KnownSession(row, RowsView(row, rows))


def call(number: int, total: int = 9, **more: Any) -> ThinkingCall:
    plain = {"thought": "…", "thought_number": number, "total_thoughts": total, "next_thought_needed": True}
    return ThinkingCall(**{**plain, **more})


OPEN, ENDED, OLDER = session("open", 3), session("ended", 3, ended=True), session("older", 5)
SHORT = session("short", 3, total=4)
STAGED = session("a", 3, stage="initial_thought_planning")
REACT = session("r", 3, stage="x", strategy="react")
CHOICES: list[tuple[ThinkingCall, Sequence[KnownSession], str | None, list[str]]] = [
    (call(4), [], None, []),
    (call(1), [], None, []),
    (call(4), [OPEN], "open", []),
    (call(9), [OPEN], "open", []),
    (call(3), [OPEN], "open", []),
    (call(1), [OPEN], None, ["session_begun"]),
    (call(1, is_revision=True), [OPEN], "open", []),
    (call(1, branch_id="b"), [OPEN], "open", []),
    (call(4), [ENDED], "ended", []),
    (call(2), [ENDED], "ended", []),
    (call(5), [ENDED], None, ["session_begun"]),
    (call(5, needs_more_thoughts=True), [ENDED], "ended", []),
    (call(5, revises_thought=2), [ENDED], "ended", []),
    (call(5, branch_id="new"), [ENDED], None, ["session_begun"]),
    (call(4), [ENDED, session("older", 3)], "ended", ["ambiguous_session"]),
    (call(6), [ENDED, OLDER], "older", ["session_changed"]),
    (call(7), [ENDED, OLDER], None, ["session_begun"]),
    (call(6), [OPEN, OLDER], "older", ["session_changed"]),
    (call(4), [OPEN, session("older", 3)], "open", ["ambiguous_session"]),
    (call(2), [OPEN, session("older", 1)], "open", ["ambiguous_session"]),
    (call(4, 4), [OPEN, SHORT], "short", ["session_changed"]),
    (call(3, 4), [OLDER, SHORT], "short", ["session_changed"]),
    (call(3, 7), [OLDER, SHORT], "older", []),
    (call(4, revises_thought=5), [OPEN, session("older", 3)], "open", []),
    (call(4, strategy="react"), [STAGED], None, ["session_begun"]),
    (call(4, strategy="react"), [OPEN], "open", []),
    (call(4, strategy="react"), [REACT], "r", []),
    (call(4, strategy="react"), [STAGED, REACT], "r", ["session_changed"]),
    (call(4, strategy="react"), [OPEN, REACT], "r", ["session_changed"]),
    (call(2, thought="older 2"), [OPEN, OLDER], "older", []),
    (call(1, thought="open 1"), [OPEN, OLDER], "open", []),
]


@pytest.mark.parametrize(("thought", "known", "chosen", "reasons"), CHOICES)
def test_the_session_is_chosen_by_number_estimate_strategy_and_end(
    thought: ThinkingCall, known: Sequence[KnownSession], chosen: str | None, reasons: list[str]
) -> None:
    request = SessionRequest(
        call=thought,
        session_id=None,
        thinker=Thinker(),
        target="new",
        mark=thought.thought_number,
    )
    choice = request.choose_among(known)
    found = None if choice.session is None else choice.session.id
    assert (found, [notice.reason for notice in choice.notices]) == (chosen, reasons)
    assert request.choose_among(known).notices == choice.notices
    for notice in choice.notices:
        if notice.reason in ABOUT_SESSIONS:
            named = [each for each in known if f'"{each.id}" (about {each.id})' in notice.message]
            assert chosen in [each.id for each in named]
            assert len(named) >= 2


THOUGHTS = st.fixed_dictionaries(
    {"number": st.integers(1, 5)},
    optional={
        "next_thought_needed": st.booleans(),
        "strategy": st.sampled_from(["react", "linear", "tree_of_thoughts"]),
        "stage": st.sampled_from(["action_planning", "branch_creation"]),
        "session_id": st.one_of(st.integers(0, 4), st.sampled_from(["last", "my-task", "0199c0de"])),
        "revises_thought": st.integers(1, 3),
        "branch_from_thought": st.integers(1, 3),
        "branch_id": st.sampled_from(["a", "b"]),
        "merge_branch": st.sampled_from(["a", "b"]),
        "needs_more_thoughts": st.booleans(),
        "clear_session": st.booleans(),
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
                await at.sessions.manage({"action": "resume"}, connections[which])
        else:
            call = {"total_thoughts": 5, **step}
            if isinstance(number := call.get("session_id"), int):
                call["session_id"] = ids[number] if number < len(ids) else "unknown-id"
            if not clears:
                call.pop("clear_session", None)
            text = f"thought at {place}"
            with contextlib.suppress(UsageError):
                reply = await at.think(thought=text, thinker=connections[which], **call)
                acknowledged.append(text)
                ids += [] if reply["session_id"] in ids else [reply["session_id"]]
    listed = (await at.sessions.list({"limit": 500}))["sessions"]
    assert sorted(ids) == sorted(entry["session_id"] for entry in listed)
    kept = [await at.sessions.get({"session_id": entry["session_id"]}) for entry in listed]
    assert sorted(thought["thought"] for one in kept for thought in one["thoughts"]) == sorted(acknowledged)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
async def test_no_sequence_of_calls_makes_a_thought_unreachable_in_a_durable_store(
    steps: list[tuple[int, Any]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with desk("sqlite", Path(folder)) as at:
            await _play(at, steps, clears=True)


@settings(max_examples=80, deadline=None)
@given(STEPS)
async def test_no_sequence_of_calls_that_clears_nothing_makes_a_thought_unreachable_in_memory(
    steps: list[tuple[int, Any]],
) -> None:
    async with desk("memory", Path()) as at:
        await _play(at, [step for step in steps if step[1] != "wait"], clears=False)


# -- several agents on one connection


class Agent(NamedTuple):
    """An agent that thinks on a connection it shares."""

    name: str
    total: int


AGENTS = st.lists(st.integers(2, 6), min_size=1, max_size=4).map(
    lambda totals: [Agent("abcd"[place], total) for place, total in enumerate(totals)]
)


async def _interleave(at: Desk, agents: list[Agent], turns: list[int], repeats: list[bool]) -> None:
    """Have agents think in turns without ids, and count what they are told."""
    thinker, counts = Thinker(), dict.fromkeys(agents, 0)
    homes, kept = dict[Agent, str](), dict[str, str]()
    current = ""
    for turn, comes_again in zip(turns, repeats, strict=False):
        agent = agents[turn % len(agents)]
        if counts[agent] == agent.total:
            continue
        counts[agent] += 1
        number = counts[agent]
        call = {"next_thought_needed": number < agent.total, "total_thoughts": agent.total}
        call |= {"thought": f"{agent.name}{number}", "thinker": thinker}
        reply = await at.think(number, **call)
        session, reasons = reply["session_id"], [notice["reason"] for notice in reply.get("notices", [])]
        homes.setdefault(agent, session)
        kept[f"{agent.name}{number}"] = session
        about = [notice for notice in reply.get("notices", []) if notice["reason"] in ABOUT_SESSIONS]
        # A thought that fits none of the open sessions begins one, too, after one that has ended.
        if number == 1 or "session_begun" in reasons:
            assert reasons.count("session_begun") == bool(current)
            assert not current or current in reply["notices"][0]["message"]
            assert number == 1 or "the earlier one has ended" in reply["notices"][0]["message"]
        else:
            assert session in (current, homes[agent]) or not _is_alone(agent, agents)
            if session != current:
                assert any(session in one["message"] and current in one["message"] for one in about)
        current = session
        if comes_again:
            again = await at.think(number, **call)
            assert again["session_id"] == session
            assert [notice["reason"] for notice in again["notices"]] == ["already_kept"]
            assert again["thought_history_length"] == reply["thought_history_length"]
    for agent in agents:
        if agent in homes and _is_alone(agent, agents):
            assert {kept[f"{agent.name}{n}"] for n in range(1, counts[agent] + 1)} == {homes[agent]}
    for thought, session in kept.items():
        stored = (await at.sessions.get({"session_id": session}))["thoughts"]
        assert [one["thought"] for one in stored].count(thought) == 1


ABOUT_SESSIONS = ("ambiguous_session", "session_changed")


def _is_alone(agent: Agent, agents: list[Agent]) -> bool:
    """Whether no other agent has the same estimate."""
    return [other.total for other in agents].count(agent.total) == 1


@settings(max_examples=150, deadline=None)
@given(AGENTS, st.lists(st.integers(0, 3), max_size=24), st.lists(st.booleans(), min_size=24, max_size=24))
async def test_agents_that_share_a_connection_are_told_apart_and_each_change_is_said(
    agents: list[Agent], turns: list[int], repeats: list[bool]
) -> None:
    async with desk("memory", Path()) as at:
        await _interleave(at, agents, turns, repeats)


# -- ids


async def test_ids_may_be_given_by_how_they_begin_or_as_last(durable: Desk) -> None:
    at = durable
    one = (await at.think(1, "one"))["session_id"]
    at.clock.pass_minutes(1)
    two = (await at.think(1, "two"))["session_id"]
    at.clock.pass_minutes(1)
    count = next(place for place in range(36) if one[place] != two[place]) + 1
    for action in ("get", "export", "resume", "pin"):
        for text, meant in ((one[:count], one), (two[:count].upper(), two)):
            found = await at.sessions.manage({"action": action, "session_id": text})
            assert found["session_id"] == meant
    assert (await at.think(2, session_id=one[:count]))["session_id"] == one
    at.clock.pass_minutes(1)
    assert (await at.think(2, session_id=two))["session_id"] == two
    assert (await at.sessions.get({"session_id": "last"}))["session_id"] == two
    assert (await at.think(3, session_id="last"))["session_id"] == two
    with pytest.raises(UsageError) as caught:
        await at.sessions.get({"session_id": one[: count - 1]})
    assert caught.value.details["choices"] == sorted([one, two])
    with pytest.raises(NotFoundError):
        await at.sessions.get({"session_id": one[:3]})
    assert (await at.sessions.delete({"session_id": one[:count]}))["session_id"] == one


# -- looking


async def test_a_durable_store_is_cleared_only_with_a_confirmation(durable: Desk) -> None:
    await durable.think(1)
    with pytest.raises(UsageError, match="confirm=True"):
        await durable.sessions.clear()
    assert len(await durable.store.sessions()) == 1
    assert await durable.sessions.clear(confirm=True) == 1


async def test_a_circle_is_named_once_for_each_thought_that_repeats_and_once_past_the_estimate(
    fleeting: Desk,
) -> None:
    thinker, told = Thinker(), list[list[str]]()
    for number, thought in enumerate(["a", "b", "a", "c", "d", "e"], 1):
        reply = await fleeting.think(number, thought, total_thoughts=2, thinker=thinker)
        told.append([notice["message"] for notice in reply.get("notices", [])])
    assert told[2] == ["This is thought 1 again, word for word. What would be new?"]
    assert told[3] == ["4 thoughts, and the first estimate was 2: what would settle it?"]
    assert [told[at] for at in (0, 1, 4, 5)] == [[], [], [], []]
