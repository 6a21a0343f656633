"""Guided sessions over real stores: what a call gets back, what it may not do, how long things live."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.errors import NotFoundError, TooLargeError, UsageError
from reasonry.guided.session_choice import Thinker
from reasonry.guided.session_settings import SessionSettings
from reasonry.guided.sessions import Sessions
from reasonry.guided.thinking_tool import ThinkingCall
from reasonry.stores.sqlite import MemoryStore
from reasonry.strategies import STRATEGIES

from .desk import Desk, desk

pytestmark = pytest.mark.anyio

UNKNOWN = "0199c0de-0000-7000-8000-000000000000"


def _reasons(reply: dict[str, Any]) -> list[str]:
    return [notice["reason"] for notice in reply.get("notices", [])]


# -- refusals


REFUSED = [
    ({"thought": True}, "thought must be text, not true"),
    ({"thought": None}, "thought is missing"),
    ({"thought": "half \ud83d"}, "lone surrogate"),
    ({"thought_number": "abc"}, "thought number must be a whole number, not 'abc'"),
    ({"thought_number": ""}, "thought number must be a whole number"),
    ({"thought_number": 0}, "thought number must be at least 1, not 0"),
    ({"thought_number": "1.5"}, "thought number must be a whole number"),
    (
        {"thought_number": None, "total_thoughts": ""},
        "thought number is missing; total thoughts must be a whole number",
    ),
    ({"thought_number": "3-5"}, "thought number must be a whole number"),
    ({"thought_number": True}, "thought number must be a whole number, not true"),
    ({"thought_number": 10**400}, "a number that is too large"),
    ({"thought_number": "9" * 5_000}, "thought number must be a whole number"),
    ({"total_thoughts": 2**53}, "total thoughts must be at most"),
    ({"next_thought_needed": "done"}, "next thought needed must be true or false, not 'done'"),
    ({"next_thought_needed": 2}, "next thought needed must be true or false, not 2"),
    ({"next_thought_needed": None}, "next thought needed is missing"),
    ({"is_revision": "maybe"}, "is revision"),
    ({"revises_thought": -1}, "revises thought must be at least 1"),
    ({"thoughtNumber": 2, "thought_number": 3}, "thought number is there twice"),
    ({"revises_thought": 9}, "There is no thought 9 in this session; it has: 1"),
    ({"branch_from_thought": 9}, "There is no thought 9"),
    ({"branch_id": ["a", "b"]}, "branch id must be text"),
    ({"branch_id": "x" * 201}, "branch id has 201 characters"),
    ({"merge_branch": "nope"}, "no branch 'nope'"),
    ({"stage": "final_response"}, "Invalid transition from problem_reception to final_response"),
    ({"strategy": "rewoo"}, "thinks by react"),
    ({"strategy": "no_such"}, "there is no strategy 'no_such'"),
    ({"data": "text"}, "data must be an object, not 'text'"),
    ({"data": {"x": float("nan")}}, "plain JSON"),
    ({"data": {"x": complex(1, 1)}}, "plain JSON"),
    ({"data": {"x": "\ud800"}}, "valid Unicode text"),
    ({"history": -1}, "history must be at least 0"),
    ({"clear_session": "x"}, "clear session"),
    ({"session_id": 5}, "session id must be text"),
    ({"session_id": "../x"}, "cannot be the id of a session"),
    ({"session_id": "a\0b"}, "cannot be the id of a session"),
    ({"session_id": "x" * 10_000}, "session id has 10,000 characters"),
]


@pytest.mark.parametrize(("change", "said"), REFUSED, ids=[str(one)[:40] for one, _ in REFUSED])
async def test_a_bad_call_is_refused_by_name_and_changes_nothing(
    fleeting: Desk, change: dict[str, Any], said: str
) -> None:
    sid = (await fleeting.think(1, strategy="react"))["session_id"]
    before = await fleeting.everything()
    with pytest.raises(UsageError) as caught:
        await fleeting.think(**{"number": 2, "session_id": sid, **change})
    assert said in caught.value.message
    assert len(caught.value.message) < 400
    assert caught.value.code in ("invalid_request", "payload_too_large")
    assert await fleeting.everything() == before
    (row,) = await fleeting.store.sessions()
    assert row.thoughts == 1


async def test_data_nested_without_end_is_refused(fleeting: Desk) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(UsageError, match="nested too deeply"):
        await fleeting.think(1, data=deep)
    while deep:
        deep = deep["a"]


async def test_limits_are_named_and_hold(tmp_path: Path) -> None:
    async with desk("memory", tmp_path, max_thoughts=3, max_branches=1, max_thought_chars=10) as at:
        sid = (await at.think(1, "x" * 10))["session_id"]
        with pytest.raises(TooLargeError, match="thought has 11 characters; the limit is 10"):
            await at.think(2, "x" * 11, session_id=sid)
        with pytest.raises(TooLargeError, match="data has 12 characters"):
            await at.think(2, "x", session_id=sid, data={"a": "xxxx"})
        await at.think(2, "ok", session_id=sid, data={"a": "йй"}, branch_id="a")
        with pytest.raises(TooLargeError, match="has 1 branches; the limit is 1"):
            await at.think(3, "x", session_id=sid, branch_id="b")
        await at.think(3, "x", session_id=sid, branch_id="a")
        with pytest.raises(TooLargeError, match="has 3 thoughts; the limit is 3"):
            await at.think(4, "x", session_id=sid)
        assert (await at.sessions.get({"session_id": sid}))["thought_history_length"] == 3


def test_the_default_limits_are_the_documented_ones() -> None:
    usual = SessionSettings()
    assert (usual.max_thought_chars, usual.max_thoughts, usual.max_branches) == (50_000, 1_000, 100)
    assert (usual.ttl_s, usual.retention_days) == (30 * 60, None)


def test_settings_come_from_the_environment() -> None:
    read = SessionSettings.from_environ(
        {
            "REASONRY_SESSION_TTL_S": "2.5",
            "REASONRY_SESSION_ON_EXPIRY": "Delete",
            "REASONRY_MAX_THOUGHTS": "7",
            "REASONRY_MAX_BRANCHES": "8",
            "REASONRY_MAX_THOUGHT_CHARS": "9",
            "REASONRY_RETENTION": "90",
            "REASONRY_MAX_HISTORY_CHARS": "1500",
        }
    )
    assert read == SessionSettings(2.5, "delete", 90, 7, 8, 9, 1_500)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REASONRY_SESSION_TTL_S", "soon"),
        ("REASONRY_SESSION_TTL_S", "0"),
        ("REASONRY_SESSION_TTL_S", "nan"),
        ("REASONRY_SESSION_TTL_S", "inf"),
        ("REASONRY_SESSION_ON_EXPIRY", "burn"),
        ("REASONRY_MAX_THOUGHTS", "0"),
        ("REASONRY_MAX_BRANCHES", "-1"),
        ("REASONRY_MAX_THOUGHT_CHARS", "1e9"),
    ],
)
def test_a_bad_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name) as caught:
        SessionSettings.from_environ({name: value})
    assert caught.value.details["option"] == name


@pytest.mark.parametrize("name", ["base_sequential", "sequential", None])
async def test_linear_is_the_strategy_of_who_names_none(fleeting: Desk, name: str | None) -> None:
    more = {} if name is None else {"strategy": name}
    sid = (await fleeting.think(1, **more))["session_id"]
    reply = await fleeting.think(2, session_id=sid, strategy="linear")
    assert reply["stage"] == "problem_reception"
    assert (await fleeting.sessions.get({"session_id": sid}))["strategy"] == "linear"


# -- ids


async def test_a_bound_call_continues_and_an_explicit_id_goes_before(at: Desk) -> None:
    one, two = (await at.think(1))["session_id"], (await at.think(1))["session_id"]
    assert (await at.think(2, thinker=Thinker([one], seen=None)))["session_id"] == one
    assert (await at.think(2, thinker=Thinker([one], seen=None), session_id=two))["session_id"] == two
    for unknown in ({"session_id": UNKNOWN}, {"thinker": Thinker([UNKNOWN], seen=None)}):
        lost = await at.think(1, **unknown)
        (notice,) = lost["notices"]
        assert (notice["requested_session_id"], notice["reason"]) == (UNKNOWN, "unknown")
        assert (lost["session_id"] == UNKNOWN, lost["thought_history_length"]) == ("thinker" in unknown, 1)


async def test_clearing_begins_a_session_with_a_new_id_and_in_memory_forgets_the_old_one(
    fleeting: Desk,
) -> None:
    old = (await fleeting.think(1, "secret", strategy="react"))["session_id"]
    new = await fleeting.think(1, "Fresh", session_id=old, clear_session=True, strategy="rewoo")
    assert new["session_id"] != old
    assert (new["thought_history_length"], new["strategy"], _reasons(new)) == (1, "rewoo", [])
    with pytest.raises(NotFoundError):
        await fleeting.sessions.get({"session_id": old})
    assert (await fleeting.sessions.search({"query": "secret"}))["matches"] == []


async def test_clearing_archives_the_session_in_a_durable_store_until_retention(durable: Desk) -> None:
    durable.sessions.stored.settings = SessionSettings(retention_days=30)
    old = (await durable.think(1, "kept", strategy="react"))["session_id"]
    new = await durable.think(1, "Fresh", session_id=old, clear_session=True)
    assert (new["thought_history_length"], _reasons(new)) == (1, ["archived"])
    assert f'"{old}"' in new["notices"][0]["message"]
    assert (await durable.sessions.get({"session_id": old}))["status"] == "archived"
    assert (await durable.sessions.resume({"session_id": old}))["status"] == "active"
    again = await durable.think(2, session_id=old)
    assert (again["session_id"], again["thought_history_length"]) == (old, 2)
    await durable.think(1, session_id=old, clear_session=True)
    durable.clock.pass_minutes(31 * 24 * 60)
    await durable.sessions.stored.sweep(now=True)
    with pytest.raises(NotFoundError):
        await durable.sessions.get({"session_id": old})


async def test_clearing_under_an_exact_id_keeps_the_old_thoughts_under_another_one(durable: Desk) -> None:
    await durable.think(1, "kept", exact_id="mine")
    cleared = await durable.think(1, "fresh", exact_id="mine", clear_session=True)
    (notice,) = cleared["notices"]
    (kept,) = (await durable.sessions.list({"status": "archived"}))["sessions"]
    assert (notice["reason"], kept["session_id"] in notice["message"]) == ("archived", True)
    got = await durable.sessions.get({"session_id": kept["session_id"]})
    assert [one["thought"] for one in got["thoughts"]] == ["kept"]
    assert (await durable.think(2, session_id="mine"))["thought_history_length"] == 2


async def test_clearing_without_an_id_clears_the_current_session(at: Desk) -> None:
    old = (await at.think(1))["session_id"]
    new = await at.think(1, thinker=Thinker([old], seen=None), clear_session=True)
    assert [row.session_id for row in await at.store.sessions(status="active")] == [new["session_id"]]
    assert _reasons(await at.think(1, clear_session=True)) == []


async def test_a_refused_clearing_call_forgets_nothing(at: Desk) -> None:
    old = (await at.think(1))["session_id"]
    before = await at.everything()
    with pytest.raises(UsageError, match="it has none yet"):
        await at.think(2, session_id=old, clear_session=True, revises_thought=1)
    assert await at.everything() == before


# -- time


async def test_an_expired_session_is_gone_before_it_is_swept(fleeting: Desk) -> None:
    sid = (await fleeting.think(1))["session_id"]
    fleeting.clock.pass_minutes(30.1)
    for action in ("get", "export", "resume", "pin"):
        with pytest.raises(NotFoundError):
            await fleeting.sessions.manage({"action": action, "session_id": sid})
    assert (await fleeting.sessions.list({}))["sessions"] == []


async def test_in_a_durable_store_an_expired_session_is_archived_readable_and_continued(
    durable: Desk,
) -> None:
    sid = (await durable.think(1))["session_id"]
    durable.clock.pass_minutes(31)
    assert (await durable.sessions.get({"session_id": sid}))["status"] == "archived"
    assert (await durable.sessions.list({"status": "active"}))["sessions"] == []
    archived = (await durable.sessions.list({"status": "archived"}))["sessions"]
    assert [one["session_id"] for one in archived] == [sid]
    (entry,) = (await durable.sessions.list({}))["sessions"]
    assert (entry["session_id"], entry["status"]) == (sid, "archived")
    assert entry["used_at"] == entry["created_at"]
    reply = await durable.think(2, session_id=sid)
    assert (reply["session_id"], reply["thought_history_length"]) == (sid, 2)
    assert "notices" not in reply
    assert (await durable.sessions.list({}))["sessions"][0]["status"] == "active"


async def test_a_durable_store_deletes_on_expiry_if_told(tmp_path: Path) -> None:
    async with desk("sqlite", tmp_path, on_expiry="delete", ttl_s=60) as at:
        sid = (await at.think(1))["session_id"]
        at.clock.pass_minutes(2)
        assert (await at.think(2, session_id=sid))["notices"][0]["reason"] == "expired"
        assert len(await at.store.sessions()) == 1
        exact = await at.think(1, exact_id="mine")
        at.clock.pass_minutes(2)
        again = await at.think(2, exact_id="mine")
        assert (again["session_id"], again["thought_history_length"]) == (exact["session_id"], 1)


async def test_a_memory_store_archives_if_told(tmp_path: Path) -> None:
    async with desk("memory", tmp_path, on_expiry="archive") as at:
        sid = (await at.think(1))["session_id"]
        at.clock.pass_minutes(31)
        assert (await at.think(2, session_id=sid))["thought_history_length"] == 2


async def test_reading_is_not_use_and_resuming_is(durable: Desk) -> None:
    sid = (await durable.think(1, strategy="linear"))["session_id"]
    used = (await durable.store.session(sid)).used_at_ms
    durable.clock.pass_minutes(20)
    for look in ("get", "export", "pin"):
        await durable.sessions.manage({"action": look, "session_id": sid})
    await durable.sessions.search({"query": "thought", "session_id": sid})
    await durable.sessions.list({})
    assert (await durable.store.session(sid)).used_at_ms == used
    resumed = await durable.sessions.resume({"session_id": sid})
    assert (await durable.store.session(sid)).used_at_ms == durable.clock.at_ms
    assert (resumed["status"], resumed["thought_history_length"]) == ("active", 1)
    assert resumed["next_stages"][0]["name"] == "initial_thought_planning"


async def test_archived_sessions_are_kept_until_retention_is_asked_for(durable: Desk) -> None:
    old = (await durable.think(1))["session_id"]
    for days in (1, 1_000):
        durable.clock.pass_minutes(days * 24 * 60)
        await durable.sessions.stored.sweep(now=True)
        assert (await durable.sessions.get({"session_id": old}))["status"] == "archived"


async def test_retention_deletes_archived_sessions_but_never_pinned_ones(durable: Desk) -> None:
    durable.sessions.stored.settings = SessionSettings(retention_days=30)
    kept, lost = (await durable.think(1))["session_id"], (await durable.think(1))["session_id"]
    assert (await durable.sessions.pin({"session_id": kept}))["pinned"] is True
    durable.clock.pass_minutes(60)
    await durable.sessions.stored.sweep(now=True)
    durable.clock.pass_minutes(31 * 24 * 60)
    await durable.sessions.stored.sweep(now=True)
    with pytest.raises(NotFoundError):
        await durable.sessions.get({"session_id": lost})
    assert (await durable.sessions.get({"session_id": kept}))["status"] == "active"
    assert (await durable.sessions.pin({"session_id": kept, "pinned": "false"}))["pinned"] is False


async def test_sweeping_happens_at_most_once_a_minute(fleeting: Desk) -> None:
    old = (await fleeting.think(1))["session_id"]
    fleeting.clock.pass_minutes(29.5)
    await fleeting.think(1)
    fleeting.clock.pass_minutes(0.6)
    await fleeting.think(1)
    assert old in [row.session_id for row in await fleeting.store.sessions()]
    fleeting.clock.pass_minutes(0.5)
    second = (await fleeting.think(1))["session_id"]
    assert old not in [row.session_id for row in await fleeting.store.sessions()]
    assert second in [row.session_id for row in await fleeting.store.sessions()]


# -- looking


async def test_a_session_is_shown_with_its_branches(at: Desk) -> None:
    sid = (await at.think(1))["session_id"]
    await at.think(2, session_id=sid)
    await at.think(3, "side", session_id=sid, branch_from_thought=2, branch_id="b")
    only = await at.sessions.get({"session_id": sid, "branch_id": "b"})
    assert [one["thought"] for one in only["thoughts"]] == ["side"]
    assert only["branches"][0] == {
        "branch_id": "b",
        "branch_from_thought": 2,
        "parent_branch_id": None,
        "thoughts": 1,
        "latest_thought_number": 3,
    }


async def test_a_purpose_and_the_title_made_of_it_end_with_a_word(at: Desk) -> None:
    reply = await at.think(1, "Think " * 40)
    purpose = "Think " * 15 + "Think…"
    listed = (await at.sessions.list({}))["sessions"][0]
    assert listed["purpose"] == purpose
    page = await at.sessions.export({"session_id": reply["session_id"], "format": "markdown"})
    assert page["text"].startswith(f"# {purpose}\n")


async def test_an_excerpt_is_short_however_long_the_thought(at: Desk) -> None:
    await at.think(1, "an apple " + "x" * 5_000)
    (match,) = (await at.sessions.search({"query": "Apple"}))["matches"]
    assert len(match["excerpt"]) < 300


# -- laws


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(
    st.sampled_from(ThinkingCall.__struct_fields__),
    st.one_of(
        st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.text(max_size=4),
        st.sampled_from(["1", "true", "react", "action_planning"]),
        st.dictionaries(st.text(max_size=2), st.integers(), max_size=2), st.lists(st.integers(), max_size=2),
    ),
))  # fmt: skip
async def test_whatever_comes_is_taken_or_refused_as_a_usage_error(change: dict[str, Any]) -> None:
    at = Desk(MemoryStore())
    sid = (await at.think(1))["session_id"]
    before = await at.everything()
    taken = True
    try:
        await at.think(**{"number": 2, "thought": "Another.", "session_id": sid, **change})
    except UsageError:
        taken = False
    assert (await at.everything() == before) is not taken


async def test_a_session_keeps_the_time_to_live_of_the_tool_that_began_it(fleeting: Desk) -> None:
    brief = Desk(fleeting.store)
    brief.sessions = Sessions(fleeting.store, STRATEGIES, SessionSettings(ttl_s=60), fleeting.clock)
    usual, short = (await fleeting.think(1))["session_id"], (await brief.think(1))["session_id"]
    fleeting.clock.pass_minutes(2)
    await brief.think(1)
    assert {row.session_id for row in await fleeting.store.sessions()} >= {usual}
    continued = await brief.think(2, session_id=usual)
    assert (continued["session_id"], continued.get("notices")) == (usual, None)
    gone = await fleeting.think(2, session_id=short)
    assert gone["notices"][0]["requested_session_id"] == short
    fleeting.clock.pass_minutes(29)
    assert (await brief.think(3, session_id=usual))["session_id"] == usual


@pytest.mark.parametrize(
    "refers", [{"revises_thought": 1}, {"branch_from_thought": 1}, {"merge_branch": "b"}]
)
async def test_a_refused_call_with_an_expired_id_says_first_that_it_has_expired(
    fleeting: Desk, refers: dict[str, Any]
) -> None:
    sid = (await fleeting.think(1))["session_id"]
    fleeting.clock.pass_minutes(31)
    with pytest.raises(
        UsageError, match=r"^This session has expired; this call would begin a new session\. There"
    ):
        await fleeting.think(2, session_id=sid, **refers)
    # It is refused before it is swept, and after.
    await fleeting.sessions.stored.sweep(now=True)
    with pytest.raises(UsageError, match=r"^Session not found; this call"):
        await fleeting.think(2, session_id=sid, **refers)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"total_thoughts": None}, "total thoughts is missing"),
        ({"thought_number": "none yet"}, "thought number must be a whole number"),
        ({"thought": "x" * 100_001}, "thought has 100,001 characters"),
        ({"strategy": "no such"}, "there is no strategy"),
        ({"totalThoughts": 9}, "total thoughts is there twice"),
    ],
)
async def test_an_expired_or_unknown_id_is_said_before_a_fault_of_the_arguments(
    fleeting: Desk, fault: dict[str, Any], message: str
) -> None:
    sid = (await fleeting.think(1))["session_id"]
    call = {"thought": "t", "next_thought_needed": True, "thought_number": 2, "total_thoughts": 3, **fault}
    thinker = Thinker()
    for session_id, named in ((sid, ""), ("", ""), ("gone", "Session not found")):
        with pytest.raises(UsageError, match=f"^{named}") as refused:
            await fleeting.sessions.think({**call, "sessionId": session_id}, thinker=thinker)
        assert refused.value.message.startswith(named or message)
        assert message in refused.value.message
    fleeting.clock.pass_minutes(31)
    for exact_id in (None, sid):
        with pytest.raises(
            UsageError, match=r"^This session has expired; this call would begin a new session\."
        ) as refused:
            await fleeting.sessions.think({**call, "sessionId": sid}, exact_id=exact_id)
        assert message in refused.value.message
    with pytest.raises(NotFoundError):
        await fleeting.sessions.think({**call, "sessionId": sid}, begins=False)
    assert [row.session_id for row in await fleeting.store.sessions()] == [sid]
