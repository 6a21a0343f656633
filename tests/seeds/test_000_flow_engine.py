"""Seed 000, "Sequential Thinking: Flow Engine Architecture": what it says, quoted, and that it is so."""

from __future__ import annotations

from itertools import pairwise

import pytest

from reasonry.core.machine import begin
from reasonry.errors import IllegalTransitionError
from reasonry.guided.thinking_tool import ThinkingCall
from reasonry.guided.thought import Head, open_session, submit
from reasonry.strategies import STRATEGIES, resolve

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

COUNTS = {
    "linear": (12, 15),
    "chain_of_thought": (6, 5),
    "react": (9, 9),
    "rewoo": (7, 6),
    "scratchpad": (7, 7),
    "self_ask": (8, 8),
    "self_consistency": (7, 6),
    "step_back": (8, 7),
    "tree_of_thoughts": (10, 11),
}


class Numbers:
    """The thoughts of a session, as far as `submit` wants to know."""

    def __init__(self) -> None:
        self.places: dict[int, tuple[str | None, str]] = {}

    def has(self, number: int) -> bool:
        return number in self.places

    def place(self, number: int) -> tuple[str | None, str]:
        return self.places[number]

    def numbers(self):
        return self.places


def drawn(flow: str) -> set[tuple[str, str]]:
    chains = [line.strip().split(" > ") for line in flow.strip().splitlines()]
    return {(a, b) for chain in chains for a, b in pairwise(chain)}


def think(strategy, head: Head, past: Numbers, number: int, **fields) -> Head:
    call = ThinkingCall(
        thought="…", thought_number=number, total_thoughts=3, next_thought_needed=True, **fields
    )
    placed = submit(strategy, head, call, past, demand_fields=False)
    past.places[number] = (placed.branch, placed.record.stage)
    return placed.head


@pytest.mark.parametrize("name", FLOWS)
def test_each_strategy_has_its_own_flow_pattern_to_the_letter(name: str) -> None:
    strategy = STRATEGIES[name]
    assert set(strategy.edges) == drawn(FLOWS[name])
    assert (len(strategy.stages), len(strategy.edges)) == COUNTS[name]
    assert len(set(strategy.edges)) == len(strategy.edges)


@pytest.mark.parametrize("name", FLOWS)
def test_the_transitions_guided_use_checks_are_those_the_engine_runs(name: str) -> None:
    strategy = STRATEGIES[name]
    assert strategy.is_driven
    assert begin(strategy, "What is 2 + 2?", strategies=STRATEGIES).snapshot.stage in strategy.by_name


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


@pytest.mark.parametrize("name", FLOWS)
def test_every_stage_can_be_reached_and_the_end_from_each(name: str) -> None:
    strategy = STRATEGIES[name]
    for stage in strategy.stages:
        reached, waiting = set(), [stage.name]
        while waiting:
            here = waiting.pop()
            if here not in reached:
                reached.add(here)
                waiting += strategy.by_name[here].to
        assert "final_response" in reached


def test_base_sequential_is_the_name_of_linear_in_the_headings() -> None:
    assert resolve("Base-Sequential").name == "linear"


@pytest.mark.parametrize(
    ("name", "point", "backs"),
    [
        ("linear", "continuation_decision", ["thought_adjustment"]),
        ("react", "evaluation_checkpoint", ["action_planning"]),
        ("scratchpad", "continuation_decision", ["iterative_calculation"]),
        ("self_ask", "completion_check", ["sub_question_formulation"]),
        ("tree_of_thoughts", "continuation_decision", ["branch_development", "branch_creation"]),
    ],
)
def test_strategy_specific_iteration_points(name: str, point: str, backs: list[str]) -> None:
    strategy = STRATEGIES[name]
    for back in backs:
        strategy.check_move(point, back)
        seen, waiting = set(), [back]
        while waiting:
            here = waiting.pop()
            if here not in seen:
                seen.add(here)
                waiting += strategy.by_name[here].to
        assert point in seen, "the way round leads back to the point where it began"


def test_automatic_adjustment_of_the_total_if_the_number_passes_it() -> None:
    linear, past = STRATEGIES["linear"], Numbers()
    head = open_session(linear)
    for number in range(1, 6):
        head = think(linear, head, past, number)
    assert head.main.total == 5


def test_needs_more_thoughts_signals_adjustment_explicitly() -> None:
    linear, past = STRATEGIES["linear"], Numbers()
    head = think(linear, open_session(linear), past, 3, needs_more_thoughts=True)
    assert head.main.total == 4


def test_creating_branches_from_any_thought_and_merging_them_back() -> None:
    linear, past = STRATEGIES["linear"], Numbers()
    head = open_session(linear)
    for number in range(1, 4):
        head = think(linear, head, past, number)
    head = think(linear, head, past, 4, branch_from_thought=2, branch_id="b")
    assert head.branches["b"].left == 2
    head = think(linear, head, past, 5, branch_id="", merge_branch="b")
    assert head.latest is None


def walk_guided(name: str, *stages: str) -> Head:
    strategy, past = STRATEGIES[name], Numbers()
    head = open_session(strategy)
    for number, stage in enumerate(stages, 1):
        head = think(strategy, head, past, number, stage=stage)
    return head


def test_example_1_react_cyclic_flow() -> None:
    cycle = ["action_planning", "action_execution", "observation_reception", "reasoning_update"]
    round_trip = [*cycle, "evaluation_checkpoint"]
    end = ["solution_formulation", "final_response"]
    head = walk_guided("react", "problem_reception", "initial_reasoning", *round_trip, *round_trip, *end)
    assert head.main.stage == "final_response"


def test_example_2_tree_of_thoughts_branching() -> None:
    develop = ["branch_development", "branch_evaluation", "branch_selection", "continuation_decision"]
    start = ["problem_reception", "approach_exploration", "branch_creation", *develop]
    end = ["solution_formulation", "path_justification", "final_response"]
    head = walk_guided("tree_of_thoughts", *start, "branch_creation", *develop, *develop, *end)
    assert head.main.stage == "final_response"


def test_an_invalid_transition_is_an_error_and_the_stage_stays() -> None:
    react, past = STRATEGIES["react"], Numbers()
    head = open_session(react)
    with pytest.raises(IllegalTransitionError, match="Legal next stages: initial_reasoning"):
        think(react, head, past, 1, stage="action_execution")
    assert head.main.stage == "problem_reception"
