"""Names are found whatever their spelling, and never guessed; what is near is suggested."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.registry import find_strategy
from reasonry.strategies import STRATEGIES
from reasonry.text import closest_names, did_you_mean, find_name, find_named

STAGES = [stage.name for strategy in STRATEGIES.values() for stage in strategy.stages]
ARGUMENTS = ["thought", "thoughtNumber", "totalThoughts", "nextThoughtNeeded", "sessionId", "branchId"]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("tree_of_thoughts", "tree_of_thoughts"),
        ("tree-of-thoughts", "tree_of_thoughts"),
        ("tree-of-thought", "tree_of_thoughts"),
        ("Tree of Thoughts", "tree_of_thoughts"),
        ("TreeOfThought", "tree_of_thoughts"),
        ("ToT", "tree_of_thoughts"),
        ("CoT", "chain_of_thought"),
        ("chain-of-thoughts", "chain_of_thought"),
        ("Self-Consistency", "self_consistency"),
        ("step back", "step_back"),
        ("ReAct", "react"),
        (" base-sequential ", "linear"),
        ("Linear Thinking", "linear"),
        ("Analysis Pipeline", "analysis"),
    ],
)
def test_a_strategy_is_found_however_it_is_spelled(written: str, name: str) -> None:
    found = find_strategy(written, STRATEGIES)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("written", ["tree", "thoughts", "", " ", "s", "-", "tree_of_toughts", "x" * 10_000])
def test_what_is_no_spelling_of_a_name_is_not_guessed(written: str) -> None:
    assert find_strategy(written, STRATEGIES) is None


@given(st.sampled_from(sorted(set(STAGES))), st.sampled_from(["_", "-", " ", ""]), st.booleans())
def test_every_stage_is_found_in_every_spelling(stage: str, mark: str, upper: bool) -> None:
    written = stage.replace("_", mark)
    assert find_name(written.upper() if upper else written.title(), STAGES) == stage


@given(st.text(), st.lists(st.text()))
def test_what_is_found_or_suggested_is_one_of_the_names(written: str, names: list[str]) -> None:
    assert find_name(written, names) in [*names, None]
    assert set(closest_names(written, names)) <= set(names)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("verify", "hypothesis_verification"),
        ("evaluate", "thought_evaluation"),
        ("plan", "initial_thought_planning"),
    ],
)
def test_a_word_of_the_same_stem_is_near(written: str, name: str) -> None:
    table = STRATEGIES["linear"].by_name
    assert closest_names(written, table) == [name]
    assert closest_names(written[:3], table) == []


def test_a_spelling_of_two_names_is_none_of_them() -> None:
    assert find_name("a-b", ["a_b", "ab"]) is None
    assert find_name("ab", ["a_b", "ab"]) == "ab"
    assert find_named("a-b", {"a_b": 1, "ab": 1}) == 1


@pytest.mark.parametrize(
    ("written", "names", "suggested"),
    [
        ("tree_of_toughts", STRATEGIES, ["tree_of_thoughts"]),
        ("number", ARGUMENTS, ["thoughtNumber"]),
        ("thoughtNum", ARGUMENTS, ["thoughtNumber"]),
        ("next_thought", ARGUMENTS, ["nextThoughtNeeded"]),
        ("branch", ARGUMENTS, ["branchId"]),
        ("evaluate_branch", ["branch_evaluation", "branch_creation"], ["branch_evaluation"]),
        ("zzz", ARGUMENTS, []),
        ("thought" * 100, ARGUMENTS, []),
    ],
)
def test_the_nearest_names_are_suggested(written: str, names: list[str], suggested: list[str]) -> None:
    found = closest_names(written, names)
    assert found[: len(suggested)] == suggested if suggested else found == []


def test_a_suggestion_is_a_question_behind_an_error() -> None:
    assert did_you_mean("thoughtNumbr", ARGUMENTS) == " Did you mean thoughtNumber?"
    assert did_you_mean("zzz", ARGUMENTS) == ""
