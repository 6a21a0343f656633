"""Stages without a session: the manager, and mappings as data."""

import json
from itertools import product
from typing import Any

import pytest

from reasonry import STRATEGIES, UsageError, thinking_tool
from reasonry.errors import IllegalTransitionError, InvalidStrategyError
from reasonry.stages import StageManager, from_mapping, to_mapping

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_manager_takes_the_edges_of_the_table_and_no_other(name: str) -> None:
    strategy = STRATEGIES[name]
    for stage, to in product(strategy.by_name, repeat=2):
        at = StageManager(name)
        at.current_stage = stage
        assert at.can_transition_to(to) is ((stage, to) in strategy.edges)
        if at.can_transition_to(to):
            assert at.transition_to(to) == at.current_stage == to
            assert at.stage_history == [stage]
            continue
        with pytest.raises(
            IllegalTransitionError, match=f"Invalid transition from {stage} to {to}"
        ) as refused:
            at.transition_to(to)
        assert refused.value.details["choices"] == at.get_next_stages() == [*strategy.by_name[stage].ways]
        assert (at.current_stage, at.stage_history) == (stage, [])


def test_the_manager_takes_an_alias_and_a_strategy_of_ones_own() -> None:
    assert StageManager("base_sequential").strategy is STRATEGIES["linear"]
    own = from_mapping({"stageTransitions": {"two": {"one": ["other"], "other": []}}})["two"]
    assert StageManager(own).stages == ["one", "other"]
    with pytest.raises(UsageError, match="no strategy"):
        StageManager("nobody")
    for nothing in (3, None, ["react"]):
        with pytest.raises(UsageError, match="the name of one, not"):
            StageManager(nothing)  # pyright: ignore[reportArgumentType]


def test_a_mapping_is_json_and_comes_back_with_every_edge() -> None:
    mapping = json.loads(json.dumps(to_mapping()))
    read = from_mapping(mapping)
    assert {name: each.edges for name, each in read.items()} == {
        name: each.edges for name, each in STRATEGIES.items()
    }
    assert {name: [*each.by_name] for name, each in read.items()} == mapping["strategyStages"]
    assert to_mapping(read) == mapping


def test_a_stage_that_is_only_in_one_half_of_a_mapping_is_not_lost() -> None:
    half = {"strategyStages": {"x": ["a", "b"]}, "stageTransitions": {"x": {"a": ["b"], "b": [], "c": ["b"]}}}
    with pytest.raises(InvalidStrategyError, match="'c' cannot be reached"):
        from_mapping(half)


OWN = {
    "strategyStages": {"code_review": ["reading", "faults", "verdict"]},
    "stageTransitions": {"code_review": {"reading": ["faults"], "faults": ["verdict"], "verdict": []}},
    "stageDescriptions": {"faults": "Look for faults."},
}


async def test_the_tool_thinks_by_strategies_of_ones_own_beside_the_others() -> None:
    tool = thinking_tool(store="memory", strategies=from_mapping(OWN))
    assert "code_review" in tool.input_schema["properties"]["strategy"]["description"]
    call: dict[str, Any] = {
        "thought": "Read it.",
        "thoughtNumber": 1,
        "totalThoughts": 3,
        "nextThoughtNeeded": True,
    }
    first = await tool(**call, strategy="code_review")
    assert (first["stage"], [each["name"] for each in first["nextStages"]]) == ("reading", ["faults"])
    call |= {"thoughtNumber": 2, "sessionId": first["sessionId"]}
    with pytest.raises(UsageError, match="Invalid transition from reading to verdict"):
        await tool(**call, stage="verdict")
    assert (await tool(**call, stage="faults"))["stage"] == "faults"
    other = {**call, "thoughtNumber": 1, "sessionId": None}
    assert (await tool(**other, strategy="react"))["stage"] == "problem_reception"
    with pytest.raises(UsageError, match="no strategy 'code_review'"):
        await thinking_tool(store="memory")(**other, strategy="code_review")


@pytest.mark.parametrize("strategies", [OWN, "react", [1], ["react"], 3, ""])
def test_anything_in_place_of_strategies_is_refused(strategies: Any) -> None:
    with pytest.raises(UsageError, match="from_mapping") as refused:
        thinking_tool(store="memory", strategies=strategies)
    assert refused.value.details["option"] == "strategies"
