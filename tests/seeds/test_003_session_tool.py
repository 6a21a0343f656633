"""Seed 003, the session tool: each of its claims, quoted briefly, and tried on the Python tool.

Where the seed contradicts itself, the test holds what Reasonry decided.
"""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import reasonry
from reasonry.errors import TooLargeError, UsageError
from reasonry.guided.session_settings import SessionSettings
from reasonry.stores.sqlite import MemoryStore, SqliteStore
from reasonry.surfaces.python import tool as thinking

from ..guided.desk import Desk

pytestmark = pytest.mark.anyio

Store = Any


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = MemoryStore()
    yield opened
    await opened.close()


def step(number: int = 1, total: int = 3, more: bool = True, **rest: Any) -> dict[str, Any]:
    return {
        "thoughtNumber": number,
        "totalThoughts": total,
        "nextThoughtNeeded": more,
        "thought": "…",
        **rest,
    }


# -- "Key Features"


async def test_multi_turn_reasoning_iterates_through_20_and_more_thoughts_in_a_single_session(
    store: Store,
) -> None:
    tool = reasonry.thinking_tool(store=store)
    reply = await tool(**step(1, 25))
    for number in range(2, 26):
        reply = await tool(**step(number, 25, number < 25, sessionId=reply["sessionId"]))
    assert reply["thoughtHistoryLength"] == 25
    assert reply["summary"] is not None


async def test_revision_support_revisits_previous_thoughts(store: Store) -> None:
    """The seed's unit test "supports revision"."""
    tool = reasonry.thinking_tool(store=store)
    first = await tool(**step(1, thought="Initial assumption"))
    revision = await tool(
        **step(
            2,
            more=False,
            thought="Revised: Actually, the assumption was wrong",
            sessionId=first["sessionId"],
            isRevision=True,
            revisesThought=1,
        )
    )
    assert revision["thoughtHistory"][1]["isRevision"] is True


async def test_branching_explores_alternative_reasoning_paths(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    sid = (await tool(**step(1)))["sessionId"]
    await tool(**step(2, sessionId=sid, branchFromThought=1, branchId="main"))
    reply = await tool(**step(2, sessionId=sid, branchFromThought=1, branchId="branch-a"))
    assert reply["branches"] == ["main", "branch-a"]


async def test_a_branch_id_alone_registers_a_branch(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    sid = (await tool(**step(1)))["sessionId"]
    assert (await tool(**step(2, sessionId=sid, branchId="alternative")))["branches"] == ["alternative"]


async def test_dynamic_adjustment_moves_the_total_up_and_down(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    sid = (await tool(**step(1, 5)))["sessionId"]
    assert (await tool(**step(2, 9, sessionId=sid)))["totalThoughts"] == 9
    assert (await tool(**step(3, 4, sessionId=sid)))["totalThoughts"] == 4
    assert (await tool(**step(6, 4, sessionId=sid)))["totalThoughts"] == 6


async def test_session_isolation_each_agent_gets_its_own_session(store: Store) -> None:
    """ "Sessions don't interfere - complete isolation" (example 4: three agents side by side)."""

    async def agent(name: str) -> dict[str, Any]:
        tool = reasonry.thinking_tool(store=store)
        reply = await tool(**step(1, thought=f"{name} 1"))
        for number in (2, 3, 4):
            reply = await tool(**step(number, thought=f"{name} {number}", sessionId=reply["sessionId"]))
        return reply

    replies = await asyncio.gather(*map(agent, ("architect", "planner", "validator")))
    assert len({reply["sessionId"] for reply in replies}) == 3
    for name, reply in zip(("architect", "planner", "validator"), replies, strict=True):
        assert [one["thought"] for one in reply["thoughtHistory"]] == [f"{name} {n}" for n in (1, 2, 3, 4)]


async def test_pluggable_a_tool_made_anew_for_each_call_keeps_its_session(store: Store) -> None:
    """Example 3 makes the tool again for every call, with the session id as its option."""
    sid = (await reasonry.thinking_tool(store=store)(**step(1)))["sessionId"]
    reply = await reasonry.thinking_tool(sid, store=store)(**step(2))
    assert (reply["sessionId"], reply["thoughtHistoryLength"]) == (sid, 2)


# -- "Cohesion Addendum"


async def test_ids_are_uuid_v7(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    ids = [(await tool(**step()))["sessionId"] for _ in range(50)]
    assert {uuid.UUID(one).version for one in ids} == {7}
    assert ids == sorted(set(ids))


async def test_tool_sessions_are_stored_in_a_database(tmp_path: Path) -> None:
    place = tmp_path / "sessions.db"
    first = SqliteStore(place)
    sid = (await reasonry.thinking_tool(store=first)(**step(1)))["sessionId"]
    await first.close()
    second = SqliteStore(place)
    assert (await reasonry.thinking_tool(store=second)(**step(2, sessionId=sid)))["thoughtHistoryLength"] == 2
    await second.close()


# -- the seed's unit tests


async def test_creates_new_session_on_first_call(store: Store) -> None:
    result = await reasonry.thinking_tool(store=store)(**step(1, 5, thought="First thought"))
    assert result["sessionId"]
    assert result["thoughtHistoryLength"] == 1


async def test_continues_session_with_existing_session_id(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    first = await tool(**step(1, thought="First"))
    second = await tool(**step(2, more=False, thought="Second", sessionId=first["sessionId"]))
    assert second["sessionId"] == first["sessionId"]
    assert second["thoughtHistoryLength"] == 2


async def test_clears_session_when_requested(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    first = await tool(**step(1, thought="First"))
    cleared = await tool(**step(1, 5, thought="Fresh start", sessionId=first["sessionId"], clearSession=True))
    assert cleared["thoughtHistoryLength"] == 1
    assert cleared["sessionId"] != first["sessionId"]
    assert await reasonry.get_session(first["sessionId"], store=store) is None


# -- "Output Schema"


async def test_the_output_has_what_the_seed_lists(store: Store) -> None:
    reply = await reasonry.thinking_tool(store=store)(**step(1, 5, more=False))
    listed = """sessionId thoughtNumber totalThoughts nextThoughtNeeded thoughtHistory branches
        thoughtHistoryLength summary"""
    assert {*listed.split()} <= set(reply)
    assert reply["thoughtHistory"] == [{"thoughtNumber": 1, "thought": "…"}]


async def test_a_completion_summary_comes_only_with_the_last_thought(store: Store) -> None:
    """ "Set nextThoughtNeeded=false - signals completion, generates summary"."""
    tool = reasonry.thinking_tool(store=store)
    first = await tool(**step(1))
    assert "summary" not in first
    await tool(**step(2, sessionId=first["sessionId"], branchId="b"))
    last = await tool(**step(3, more=False, sessionId=first["sessionId"]))
    assert last["summary"] == "Sequential thinking complete: 3 thoughts processed across 1 branches."


async def test_one_can_add_more_thoughts_even_after_reaching_what_seemed_like_the_end(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    sid = (await tool(**step(1, 1, more=False)))["sessionId"]
    assert (await tool(**step(2, 1, sessionId=sid)))["thoughtHistoryLength"] == 2


async def test_numbers_are_integers_from_1_and_an_empty_thought_is_a_thought(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    for wrong in (0, -1, 1.5, "one"):
        with pytest.raises(UsageError, match="thought number must be") as caught:
            await tool(**step(1) | {"thoughtNumber": wrong})
        assert caught.value.details["field"] == "thoughtNumber"
    assert (await tool(**step(1, thought="")))["thoughtHistory"][0]["thought"] == ""


# -- "Session lifecycle", "Auto-Cleanup TTL"


async def assert_expires(at: Desk, minutes: int) -> None:
    """Check that a session expires so many minutes after its last use."""
    sid = (await at.think(1))["session_id"]
    for number in (2, 3):
        at.clock.pass_minutes(minutes - 1)
        assert (await at.think(number, session_id=sid))["session_id"] == sid
    at.clock.pass_minutes(minutes + 1)
    assert (await at.think(4, session_id=sid))["session_id"] != sid


async def test_sessions_expire_after_30_minutes_counted_from_their_last_use() -> None:
    await assert_expires(Desk(MemoryStore()), 30)


@pytest.mark.parametrize("minutes", [60, 5])
async def test_the_ttl_can_be_customized_for_different_environments(
    minutes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REASONRY_SESSION_TTL_S", str(minutes * 60))
    settings = thinking.sessions_of(MemoryStore()).stored.settings
    await assert_expires(Desk(MemoryStore(), settings), minutes)


# -- "Manual Session Control"


async def test_clear_get_and_list_are_there_for_programs(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    sid = (await tool(**step(1)))["sessionId"]
    other = (await tool(**step(1, branchId="b")))["sessionId"]
    session = await reasonry.get_session(sid, store=store)
    assert session is not None
    assert (len(session["thoughts"]), session["branches"]) == (1, [])
    assert {one["session_id"] for one in await reasonry.list_sessions(store=store)} == {sid, other}
    assert await reasonry.clear_session(sid, store=store) is True
    assert await reasonry.clear_session(sid, store=store) is False
    assert await reasonry.get_session(sid, store=store) is None
    assert await reasonry.clear_all_sessions(store=store) == 1
    assert await reasonry.list_sessions(store=store) == []


async def test_after_clearing_all_an_old_id_begins_afresh(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    sid = (await tool(**step(1)))["sessionId"]
    await reasonry.clear_all_sessions(store=store)
    fresh = await tool(**step(2, sessionId=sid))
    assert (fresh["thoughtHistoryLength"], fresh["sessionId"] != sid) == (1, True)
    assert fresh["notices"][0]["requestedSessionId"] == sid


# -- "options.sessionId"


async def test_a_factory_with_a_fixed_id_thinks_in_exactly_that_session(store: Store) -> None:
    tool = reasonry.thinking_tool("custom-session-123", store=store)
    await tool(**step(1))
    reply = await tool(**step(2))
    assert (reply["sessionId"], reply["thoughtHistoryLength"]) == ("custom-session-123", 2)


async def test_the_fixed_id_goes_before_the_argument(store: Store) -> None:
    other = (await reasonry.thinking_tool(store=store)(**step(1)))["sessionId"]
    reply = await reasonry.thinking_tool("mine", store=store)(**step(1, sessionId=other))
    assert reply["sessionId"] == "mine"
    assert reply["notices"][0]["reason"] == "bound"


# -- "Phase-Specific Loop Settings"


@pytest.mark.parametrize(
    ("phase", "limit"), [("design", 20), ("research", 15), ("analyse", 1), ("analyze_code", 1)]
)
def test_loops_have_a_limit_by_phase(phase: str, limit: int) -> None:
    assert reasonry.loop_limit(phase) == limit


def test_a_phase_that_is_none_is_refused_with_the_phases() -> None:
    with pytest.raises(UsageError) as caught:
        reasonry.loop_limit("dreaming")
    assert caught.value.details["choices"] == ["design", "research", "analyse"]


# -- what the tool's own implementation settled on


async def test_a_thought_of_10_000_characters_is_kept_and_50_001_are_refused(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store)
    sid = (await tool(**step(1, thought="x" * 10_000)))["sessionId"]
    session = await reasonry.get_session(sid, store=store)
    assert session is not None
    assert session["thoughts"][0]["thought"] == "x" * 10_000
    with pytest.raises(TooLargeError, match="50,000"):
        await tool(**step(2, thought="x" * 50_001, sessionId=sid))


# -- the description of the tool, and its options


WHEN = """Breaking down complex problems into steps · planning and design with room for revision · might need course
correction · multi-step solution · need to maintain context over multiple steps · irrelevant information"""
FEATURES = """Adjust totalThoughts up or down as you progress · Question or revise previous thoughts · even after what
seemed like the end · Express uncertainty and explore alternative · not every thought needs to build linearly · branch ·
backtrack"""
YOU_SHOULD = """1. Start with an initial estimate of needed thoughts, but be ready to adjust
2. Feel free to question or revise previous thoughts
hesitate to add more thoughts if needed, even at the "end"
4. Express uncertainty when present
5. Mark thoughts that revise previous thinking or branch into new paths
6. Ignore information that is irrelevant to the current step
7. Only set nextThoughtNeeded to false when truly done"""


def test_the_description_gives_the_seeds_advice() -> None:
    described = " ".join(reasonry.thinking_tool(store=MemoryStore()).description.split())
    for advice in (WHEN + " · " + FEATURES).replace("\n", " ").split(" · ") + YOU_SHOULD.split("\n"):
        assert advice in described, advice
    for heading in ("When to use", "Key features:", "Parameters explained:", "You should:"):
        assert heading in described
    assert "Generate a hypothesis, verify it" in described, "the reference server's advice too"


def test_the_schema_says_truly_what_a_call_without_a_session_id_means() -> None:
    about = reasonry.thinking_tool(store=MemoryStore()).input_schema["properties"]["sessionId"]["description"]
    assert "none: this connection's, else a new one" in about


@pytest.mark.parametrize("minutes", [60, 5, 30])
async def test_a_ttl_can_be_named_where_the_tool_is_made(minutes: int) -> None:
    """ "PRODUCTION_TTL = 60 * 60 * 1000; TESTING_TTL = 5 * 60 * 1000; DEVELOPMENT_TTL = 30 * 60 * 1000"."""
    store = MemoryStore()
    tool = reasonry.thinking_tool(store=store, ttl_s=minutes * 60)
    written = await store.session((await tool(**step(1)))["sessionId"])
    assert written.ttl_ms is not None
    await assert_expires(Desk(MemoryStore(), SessionSettings(ttl_s=written.ttl_ms / 1_000)), minutes)


async def test_limits_and_the_history_bound_are_arguments_of_the_tool(store: Store) -> None:
    tool = reasonry.thinking_tool(store=store, max_thoughts=3, max_thought_chars=10, history=2)
    sid = (await tool(**step(1)))["sessionId"]
    await tool(**step(2, sessionId=sid))
    reply = await tool(**step(3, sessionId=sid))
    assert [thought["thoughtNumber"] for thought in reply["thoughtHistory"]] == [2, 3]
    with pytest.raises(TooLargeError, match="the limit is 3"):
        await tool(**step(4, sessionId=sid))
    with pytest.raises(TooLargeError, match="the limit is 10"):
        await tool(**step(1, thought="x" * 11))
    whole = await reasonry.thinking_tool(store=store)(**step(4, sessionId=sid))
    assert len(whole["thoughtHistory"]) == 4, "another tool over the same store has its own limits"


@pytest.mark.parametrize(
    "wrong",
    [
        {"ttl_s": 0},
        {"ttl_s": float("nan")},
        {"ttl_s": "soon"},
        {"max_thoughts": 0},
        {"max_thoughts": 1.5},
        {"max_thought_chars": True},
        {"history": -1},
        {"on_expiry": "forget"},
    ],
    ids=str,
)
def test_an_option_that_cannot_be_is_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        reasonry.thinking_tool(store=MemoryStore(), **wrong)
    assert [caught.value.details["option"]] == list(wrong)


# -- "Best Practices", "Use Cases", "Usage Examples"


def test_best_practices_use_cases_and_examples_are_documented() -> None:
    root = Path(__file__).parents[2]
    page = (root / "docs" / "agent-loops.md").read_text("utf-8")
    for practice in (
        "Track the `sessionId`",
        "Use `clearSession` to start over.",
        "Set `nextThoughtNeeded` to false at the end",
        "Each reply has the whole `thoughtHistory`",
        'In tests use `store="memory"`',
    ):
        assert practice in page
    for use in (
        "architecture, APIs, components",
        "several sources, synthesis, validation",
        "root causes: hypothesis, test, verification, revision",
        "tasks, dependencies, risks",
    ):
        assert use in page
    for example in ("phase_machine", "explore_sub_agent", "external_agent", "three_agents", "mcp_agent_loop"):
        assert (root / "examples" / f"{example}.py").is_file()
        assert f"../examples/{example}.py" in page
