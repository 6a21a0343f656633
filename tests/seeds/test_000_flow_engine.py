"""Seed 000, "Sequential Thinking: Flow Engine Architecture": what it says, quoted, and that it is so."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from reasonry.core.registry import resolve
from reasonry.errors import IllegalTransitionError
from reasonry.guided.placement import shortest_path
from reasonry.stages import StageManager, from_mapping, to_mapping
from reasonry.strategies import STRATEGIES
from tests.guided.desk import desk
from tests.guided.walking import Session, filled

pytestmark = pytest.mark.anyio

# "Strategy-Specific Flow Patterns", figure by figure; the figures' abbreviations written out.
FLOWS = {
    "linear": """
        problem_reception > initial_thought_planning > thought_generation > thought_evaluation
        thought_evaluation > thought_revision > continuation_decision
        thought_evaluation > continuation_decision
        continuation_decision > thought_adjustment > thought_generation
        continuation_decision > branch_creation > thought_generation
        continuation_decision > hypothesis_generation > hypothesis_verification > solution_finalization
        hypothesis_verification > continuation_decision
        solution_finalization > final_response""",
    "chain_of_thought": """
        problem_reception > step_decomposition > sequential_reasoning > solution_formulation
        solution_formulation > answer_verification > final_response""",
    "react": """
        problem_reception > initial_reasoning > action_planning > action_execution > observation_reception
        observation_reception > reasoning_update > evaluation_checkpoint > action_planning
        evaluation_checkpoint > solution_formulation > final_response""",
    "rewoo": """
        problem_reception > planning_phase > tool_call_specification > working_phase > evidence_collection
        evidence_collection > solving_phase > final_response""",
    "scratchpad": """
        problem_reception > scratchpad_initialization > iterative_calculation > state_tracking
        state_tracking > continuation_decision > iterative_calculation
        continuation_decision > result_extraction > final_response""",
    "self_ask": """
        problem_reception > problem_decomposition > sub_question_formulation > sub_question_answering
        sub_question_answering > answer_integration > completion_check > sub_question_formulation
        completion_check > solution_formulation > final_response""",
    "self_consistency": """
        problem_reception > multiple_path_sampling > reasoning_path_execution > answer_collection
        answer_collection > consistency_analysis > majority_selection > final_response""",
    "step_back": """
        problem_reception > abstraction > principle_identification > approach_selection > specific_application
        specific_application > step_by_step_solution > solution_verification > final_response""",
    "tree_of_thoughts": """
        problem_reception > approach_exploration > branch_creation > branch_development > branch_evaluation
        branch_evaluation > branch_selection > continuation_decision > branch_development
        continuation_decision > branch_creation
        continuation_decision > solution_formulation > path_justification > final_response""",
}


def drawn(flow: str) -> set[tuple[str, str]]:
    chains = [line.strip().split(" > ") for line in flow.strip().splitlines()]
    return {(a, b) for chain in chains for a, b in pairwise(chain)}


@pytest.mark.parametrize("name", FLOWS)
def test_each_strategy_has_its_own_flow_pattern_to_the_letter(name: str) -> None:
    strategy = STRATEGIES[name]
    assert set(strategy.edges) == drawn(FLOWS[name])
    assert len(set(strategy.edges)) == len(strategy.edges)


@pytest.mark.parametrize("name", FLOWS)
def test_validates_if_a_transition_is_allowed_and_names_the_valid_next_stages(name: str) -> None:
    strategy = STRATEGIES[name]
    for stage in strategy.stages:
        for to in strategy.by_name:
            if to not in stage.to:
                with pytest.raises(
                    IllegalTransitionError, match=f"Invalid transition from {stage.name} to {to}"
                ):
                    strategy.check_move(stage.name, to)
            else:
                strategy.check_move(stage.name, to)


def test_base_sequential_is_the_name_of_linear_in_the_headings() -> None:
    assert resolve("Base-Sequential", STRATEGIES).name == "linear"


def test_automatic_adjustment_of_the_total_if_the_number_passes_it() -> None:
    session = Session(STRATEGIES["linear"])
    for number in range(1, 6):
        session.think(number, 3)
    assert session.head.main.total == 5


def test_needs_more_thoughts_signals_adjustment_explicitly() -> None:
    session = Session(STRATEGIES["linear"])
    session.think(3, 3, needs_more_thoughts=True)
    assert session.head.main.total == 4


# -- "Explicit Branch Tracking": the figure, in all ways of giving ids. A branch counts its own thoughts.

WAYS_OF_GIVING_IDS = ["on none", "on the creating thought", "on the branch's thoughts", "on all thoughts"]


@pytest.mark.parametrize("way", WAYS_OF_GIVING_IDS)
def test_the_branch_figure(way: str) -> None:
    main = {"branch_id": "main"} if way == "on all thoughts" else {}
    creating = {} if way == "on none" else {"branch_id": "Branch 1"}
    branch = creating if way in ("on the branch's thoughts", "on all thoughts") else {}
    session = Session(STRATEGIES["linear"])
    session.think(1, **main)
    session.think(2, **main)
    session.think(3, **main)
    b1 = session.think(1, branch_from_thought=2, **creating)
    b2 = session.think(2, **branch)
    assert b1.record.branch_from_seq == 2
    assert session.head.branches[b1.branch].parent is None
    assert b2.branch == b1.branch
    t4 = session.think(4, merge_branch=b1.branch, **main)
    final = session.think(5, next_thought_needed=False, **main)
    assert (t4.branch, final.branch, final.head.ended) == (None, None, True)
    assert session.head.branches[b1.branch].merged


@pytest.mark.parametrize("name", FLOWS)
def test_creating_branches_from_any_thought_at_any_stage(name: str) -> None:
    """ "Creating branches from any thought": the branch stands where that thought stood, numbered from 1 or on."""
    strategy = STRATEGIES[name]
    session, last = Session(strategy), strategy.stages[-1].name
    way = shortest_path(strategy, strategy.first, last)
    walked = [strategy.first, *(way or ())]
    for number, stage in enumerate(walked, 1):
        session.think(number, stage=stage, data=filled(strategy.by_name[stage]))
    for number, stage in enumerate(walked, 1):
        placed = session.think(1, branch_id=f"from {number}", branch_from_thought=number)
        assert (placed.record.stage, placed.record.branch_from_seq) == (stage, number)


# -- "Practical Examples", word for word: what the LLM sends; the flow engine answers with the stage of its first words.

EXAMPLE_1 = """
Initial reasoning
Action planning (search for X)
Action execution
Observation reception
Reasoning update
Evaluation checkpoint (need more info)
Action planning (search for Y)
Action execution
Observation reception
Reasoning update
Evaluation checkpoint (sufficient info)
Solution formulation
Final response
"""

EXAMPLE_2 = """
Problem reception
Approach exploration (3 approaches)
Branch creation (Approach A)
Branch development (Step 1 for A)
Branch evaluation (A looks promising)
Branch selection (select A)
Continuation decision (explore more branches)
Branch creation (Approach B)
Branch development (Step 1 for B)
Branch evaluation (B less promising)
Branch selection (stay with A)
Continuation decision (develop A further)
Branch development (Step 2 for A)
Branch evaluation (A still promising)
Branch selection (finalize A)
Continuation decision (sufficient exploration)
Solution formulation (based on A)
Path justification (why A was best)
Final response
"""


def exchanges(example: str) -> list[tuple[str, str]]:
    """Return what the LLM says, each with the stage that the answer names."""
    lines = example.strip().splitlines()
    return [(said, said.partition(" (")[0].lower().replace(" ", "_")) for said in lines]


def approach_of(said: str) -> str | None:
    """Return the approach that a thought of the second example is about."""
    return next((name for name in "AB" if re.search(rf"\b{name}\b", said)), None)


def ids_of_example_2(way: str) -> list[str | None]:
    """Return the branch id on each thought of the second example."""
    ids: list[str | None] = []
    for said, stage in exchanges(EXAMPLE_2):
        begun = any(ids)
        on_branch = stage in ("branch_creation", "branch_development", "branch_evaluation")
        named = {
            "on none": False,
            "on the creating thought": stage == "branch_creation",
            "on the branch's thoughts": on_branch,
            "on all thoughts": begun or on_branch,
        }[way]
        latest = next((name for name in reversed(ids) if name), None)
        ids.append((approach_of(said) or latest) if named else None)
    return ids


@pytest.mark.parametrize("branch", [None, "A"])
def test_example_1_react_cyclic_flow(branch: str | None) -> None:
    session = Session(STRATEGIES["react"])
    for number, (_, stage) in enumerate(exchanges(EXAMPLE_1), 1):
        placed = session.think(
            number, stage=stage, data=filled(STRATEGIES["react"].by_name[stage]), branch_id=branch
        )
        assert placed.head.stage == stage


@pytest.mark.parametrize("way", WAYS_OF_GIVING_IDS)
def test_example_2_tree_of_thoughts_branching(way: str) -> None:
    tree = STRATEGIES["tree_of_thoughts"]
    session, ids, latest = Session(tree), ids_of_example_2(way), None
    for number, ((_, stage), branch) in enumerate(zip(exchanges(EXAMPLE_2), ids, strict=True), 1):
        placed = session.think(number, stage=stage, data=filled(tree.by_name[stage]), branch_id=branch)
        stays = branch is None and stage in ("branch_development", "branch_evaluation")
        latest = latest if stays else branch
        assert (placed.branch, placed.head.stage) == (latest, stage)
    assert list(session.head.branches) == ([] if way == "on none" else ["A", "B"])
    assert len(ids) == 19


@pytest.mark.parametrize("way", WAYS_OF_GIVING_IDS)
async def test_example_2_over_a_store_reports_the_stage_of_the_latest_thought(
    way: str, tmp_path: Path
) -> None:
    tree = STRATEGIES["tree_of_thoughts"]
    async with desk("sqlite", tmp_path) as at:
        begun: dict[str, Any] = {"strategy": "tree_of_thoughts"}
        for number, ((said, stage), branch) in enumerate(
            zip(exchanges(EXAMPLE_2), ids_of_example_2(way), strict=True), 1
        ):
            line = {} if branch is None else {"branch_id": branch}
            reply = await at.think(
                number, said, stage=stage, data=filled(tree.by_name[stage]), **line, **begun
            )
            begun = {"session_id": reply["session_id"]}
            assert reply["stage"] == stage
            assert [one["name"] for one in reply["next_stages"]] == list(tree.by_name[stage].to)
        assert (await at.sessions.get(begun))["stage"] == "final_response"
        copy = await at.sessions.import_(await at.sessions.export(begun))
        assert copy["thought_history_length"] == 19


def test_branches_are_judged_together_and_the_best_is_the_solution() -> None:
    """ "Approaches --> B1, B2, B3 --> Eval -->|Select best| Best --> Solution": selected on the main line."""
    session, tree = Session(STRATEGIES["tree_of_thoughts"]), STRATEGIES["tree_of_thoughts"].by_name
    session.think(1, stage="problem_reception")
    session.think(2, stage="approach_exploration")
    for name in ("Branch 1", "Branch 2", "Branch 3"):
        for number, stage in enumerate(("branch_creation", "branch_development", "branch_evaluation"), 1):
            session.think(number, stage=stage, data=filled(tree[stage]), branch_id=name)
    assert {line.parent for line in session.head.branches.values()} == {None}
    for number, stage in enumerate(("branch_selection", "continuation_decision", "solution_formulation"), 3):
        assert session.think(number, stage=stage).branch is None
    assert session.head.stage == "solution_formulation"


def test_an_invalid_transition_is_an_error_and_the_stage_stays() -> None:
    session = Session(STRATEGIES["react"])
    with pytest.raises(IllegalTransitionError, match="Legal next stages: initial_reasoning"):
        session.think(1, stage="action_execution")
    assert session.head.main.stage == "problem_reception"


# -- the program of its page: "The StageManager class", "the stageTransitions object … in strategy-stages-mapping.json"


LINEAR = """{"stageTransitions": {
"linear": {
"problem_reception": ["initial_thought_planning"],
"initial_thought_planning": ["thought_generation"],
"thought_generation": ["thought_evaluation"],
"thought_evaluation": ["thought_revision", "continuation_decision"],
"thought_revision": ["continuation_decision"],
"continuation_decision": ["thought_adjustment", "branch_creation", "hypothesis_generation"],
"thought_adjustment": ["thought_generation"],
"branch_creation": ["thought_generation"],
"hypothesis_generation": ["hypothesis_verification"],
"hypothesis_verification": ["solution_finalization", "continuation_decision"],
"solution_finalization": ["final_response"],
"final_response": []
}
}}"""


def test_its_stage_transitions_are_ours_to_the_letter_and_are_read_as_a_strategy() -> None:
    written, ours = json.loads(LINEAR), to_mapping()
    assert ours["stageTransitions"]["linear"] == written["stageTransitions"]["linear"]
    assert from_mapping(written)["linear"].edges == STRATEGIES["linear"].edges
    for name, flow in FLOWS.items():
        edges = ours["stageTransitions"][name]
        assert {(stage, to) for stage, following in edges.items() for to in following} == drawn(flow)
        assert ours["strategyStages"][name] == [*edges]
        assert {stage for stage in edges if not ours["stageDescriptions"][stage]} == set()


@pytest.mark.parametrize(("name", "example"), [("react", EXAMPLE_1), ("tree_of_thoughts", EXAMPLE_2)])
def test_the_program_of_its_page_walks_its_examples(name: str, example: str) -> None:
    manager = StageManager(name)
    assert (manager.current_stage, manager.stage_history) == (manager.stages[0], [])
    walked = [stage for _, stage in exchanges(example) if stage != "problem_reception"]
    for stage in walked:
        assert stage in manager.get_next_stages()
        assert manager.can_transition_to(stage)
        assert manager.transition_to(stage) == manager.current_stage == stage
    assert manager.stage_history == ["problem_reception", *walked[:-1]]
    assert manager.get_next_stages() == []
    with pytest.raises(
        IllegalTransitionError, match="Invalid transition from final_response to problem_reception"
    ):
        manager.transition_to("problem_reception")
    assert manager.current_stage == "final_response"
