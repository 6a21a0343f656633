"""Calls that are not quite as they should be: what is made of them, and what the thinker is told."""

from pathlib import Path
from typing import Any

import pytest

from reasonry.errors import TooLargeError, UsageError

from .desk import Desk, desk

pytestmark = pytest.mark.anyio


@pytest.fixture
async def at(tmp_path: Path) -> Any:
    async with desk("memory", tmp_path, max_thought_chars=1_000) as opened:
        yield opened


async def to_evaluation(at: Desk) -> str:
    """Begin a tree of thoughts and go to where a branch may be evaluated."""
    sid = (await at.think(1, strategy="ToT"))["session_id"]
    for number, stage in enumerate(("Approach Exploration", "branch-creation", "Branch Development"), 2):
        await at.think(number, session_id=sid, stage=stage)
    return sid


async def record(at: Desk, sid: str, place: int = -1) -> dict[str, Any]:
    """Return what is kept of a thought."""
    return (await at.sessions.export({"session_id": sid}))["thoughts"][place]


def reasons(reply: dict[str, Any]) -> list[str]:
    return [notice["reason"] for notice in reply.get("notices", [])]


@pytest.mark.parametrize(
    "written",
    [
        {"data": {"score": 0.7}},
        {"data": {"score": "0.7"}},
        {"data": {"Score": "70%"}},
        {"data": '{"score": "7/10"}'},
        {"score": 0.7},
        {"score": "70 %", "data": {}},
        {"score": "0.7", "data": None},
        {"score": 0.9, "data": {"score": 0.7}},
    ],
    ids=str,
)
async def test_a_stages_field_is_taken_however_it_is_handed_in(at: Desk, written: dict[str, Any]) -> None:
    sid = await to_evaluation(at)
    reply = await at.think(5, session_id=sid, stage="BranchEvaluation", **written)
    assert (reply["stage"], reasons(reply)) == ("branch_evaluation", [])
    assert (await record(at, sid))["data"] == {"score": 0.7}


async def test_a_field_is_taken_without_a_stage_being_named_too(at: Desk) -> None:
    sid = await to_evaluation(at)
    await at.think(5, session_id=sid, score="0.5")
    assert (await record(at, sid))["data"] == {"score": 0.5}


async def test_a_field_beside_data_is_held_to_the_limits_of_data(at: Desk) -> None:
    with pytest.raises(TooLargeError, match="data has"):
        await at.think(1, hypothesis="x" * 2_000)
    with pytest.raises(UsageError, match="valid Unicode text"):
        await at.think(1, hypothesis="\ud800")
    assert await at.store.sessions() == []


async def test_an_argument_of_which_nothing_is_made_is_noticed_with_the_nearest_name(at: Desk) -> None:
    reply = await at.think(1, mood=0.9, branchIdd="b", comment=None)
    assert reasons(reply) == ["unknown_argument"] * 2
    first, second = (notice["message"] for notice in reply["notices"])
    assert "no argument 'mood'" in first
    assert "Did you mean branch id" not in first
    assert "Did you mean branch id?" in second


async def test_a_strategy_or_stage_that_is_none_is_refused_with_the_nearest(at: Desk) -> None:
    with pytest.raises(UsageError, match=r"no strategy 'tree_of_ideas'\. Did you mean tree_of_thoughts\?"):
        await at.think(1, strategy="tree_of_ideas")
    sid = await to_evaluation(at)
    with pytest.raises(UsageError):
        await at.think(5, session_id=sid, stage="evaluate_branches")


@pytest.mark.parametrize(
    "written",
    [
        {"stage": ["Action Planning", "action-execution"], "data": {"action": "dig"}},
        {"stage": '["action_planning", "action_execution"]', "action": "dig"},
        {"stage": ["action_planning", "action_execution"], "data": {"ActionPlanning": '{"Action": "dig"}'}},
    ],
    ids=str,
)
async def test_a_path_of_stages_and_its_fields_may_be_written_loosely(
    at: Desk, written: dict[str, Any]
) -> None:
    sid = (await at.think(1, strategy="react", stage="initial_reasoning"))["session_id"]
    reply = await at.think(2, session_id=sid, **written)
    assert (reply["stage"], reasons(reply)) == ("action_execution", [])
    kept = (await record(at, sid))["data"]
    assert kept in ({"action": "dig"}, {"action_planning": {"action": "dig"}})
