"""Choosing a strategy: each rule fires where it should, and the words of a problem decide nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.errors import InvalidStrategyError, UsageError
from reasonry.strategies import STRATEGIES
from reasonry.strategies.choice import KINDS, LONG_CHARS, choose_strategy, reasons_for

REGISTRY = tuple(STRATEGIES.values())
PUZZLE = "Use 4, 9, 10 and 13 to make 24"
QUESTION = "What happens to the pressure of an ideal gas if the temperature is doubled?"
LONG = "Who signed? " + "x " * 10_000

CASES = [
    (PUZZLE, False, False, "tree_of_thoughts"),
    (PUZZLE, True, True, "tree_of_thoughts"),
    (LONG, False, False, "recursive"),
    (LONG, True, True, "recursive"),
    (QUESTION, True, False, "react"),
    (QUESTION, True, True, "react"),
    (QUESTION, False, True, "refine"),
    (QUESTION, False, False, "chain_of_thought"),
]


@pytest.mark.parametrize(("problem", "has_tools", "has_verifier", "expected"), CASES)
def test_each_rule_takes_the_problems_it_is_for_and_says_why(
    problem: str, has_tools: bool, has_verifier: bool, expected: str
) -> None:
    name, why, _ = choose_strategy(problem, REGISTRY, has_tools=has_tools, has_verifier=has_verifier)
    kind = next(iter(reasons_for(problem, has_tools=has_tools, has_verifier=has_verifier)))
    assert (name, why) == (expected, kind[1])
    assert len(why) > 10


def test_an_input_is_long_from_its_first_character_too_many_on() -> None:
    for chars, expected in ((LONG_CHARS - 1, "chain_of_thought"), (LONG_CHARS, "recursive")):
        assert choose_strategy("x" * chars, REGISTRY, has_tools=False)[0] == expected


@pytest.mark.parametrize(("problem", "has_tools", "has_verifier"), [case[:3] for case in CASES])
def test_it_never_plans_more_calls_than_the_budget_has(
    problem: str, has_tools: bool, has_verifier: bool
) -> None:
    given = {"has_tools": has_tools, "has_verifier": has_verifier}
    unbound = choose_strategy(problem, REGISTRY, **given)[0]
    for calls in (1, 2, 3, 4, 10, 30):
        name, why, _ = choose_strategy(problem, REGISTRY, calls=calls, **given)
        assert STRATEGIES[name].calls <= calls
        assert name == unbound or f"{unbound} would take {STRATEGIES[unbound].calls} calls" in why


def test_every_kind_is_the_first_to_apply_to_some_problem() -> None:
    deciding = {
        next(iter(reasons_for(problem, has_tools=has_tools, has_verifier=has_verifier)))[0]
        for problem, has_tools, has_verifier, _ in CASES
    }
    assert deciding == {kind.name for kind in KINDS}


def test_each_kind_is_suited_by_one_strategy_that_the_engine_can_run() -> None:
    suits = [kind for one in REGISTRY if one.is_driven for kind in one.suits]
    assert sorted(suits) == sorted(kind.name for kind in KINDS)


def test_a_kind_that_no_strategy_there_suits_is_passed_over() -> None:
    chain, linear = STRATEGIES["chain_of_thought"], STRATEGIES["linear"]
    assert choose_strategy(QUESTION, [linear, chain], has_tools=False)[0] == "chain_of_thought"
    assert choose_strategy(QUESTION, [linear], has_tools=False)[0] == "linear"
    with pytest.raises(UsageError, match="no strategy"):
        choose_strategy(QUESTION, [], has_tools=False)


def test_a_strategy_that_a_program_brings_along_is_taken_for_what_it_suits() -> None:
    own = replace(STRATEGIES["linear"], name="laboratory", suits=("anything",))
    assert choose_strategy(QUESTION, [own, *REGISTRY], has_tools=False)[0] == "laboratory"
    # Where several suit, the first is taken.
    assert choose_strategy(QUESTION, [*REGISTRY, own], has_tools=False)[0] == "chain_of_thought"
    with pytest.raises(InvalidStrategyError, match=r"no kind of problem: 'alchemy'.*anything"):
        choose_strategy(QUESTION, [replace(own, suits=("alchemy",))], has_tools=False)


@given(st.text(max_size=300), st.booleans())
def test_any_text_gets_a_strategy_always_the_same_one(problem: str, has_tools: bool) -> None:
    first = choose_strategy(problem, REGISTRY, has_tools=has_tools)
    assert first == choose_strategy(problem, REGISTRY, has_tools=has_tools)
    assert first[0] in STRATEGIES
    assert ("tools" in first[1]) == (first[0] == "react")
