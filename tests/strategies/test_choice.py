"""Choosing a strategy: each rule fires where it should, nothing hangs on a part of a word."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.errors import InvalidStrategyError, UsageError
from reasonry.strategies import STRATEGIES
from reasonry.strategies.choice import KINDS, choose_strategy, reasons_for

REGISTRY = tuple(STRATEGIES.values())
HOPS = "Who was president of the U.S. when superconductivity was discovered in the country whose capital is Bern?"
WORD_PROBLEM = "Janet's ducks lay 16 eggs a day. She eats 3. How much does she earn at 2 dollars an egg?"
GAS = "What happens to the pressure of an ideal gas if the temperature is doubled?"

CASES = [
    ("Use 4, 9, 10 and 13 to make 24", False, "tree_of_thoughts"),
    ("Use 4, 9, 10 and 13 to make 24", True, "tree_of_thoughts"),
    ("Which film came out first, Heat or Ronin?", True, "rewoo"),
    ("What is the elevation of the Orton belt? Who drew its map?", True, "rewoo"),
    ("In which county is Steventon?", True, "react"),
    ("What does this print?\n\nfor i in range(3):\n    print(i)", False, "scratchpad"),
    ("What is 29317 + 4826?", False, "scratchpad"),
    ("Solve this crossword row: a bird of five letters.", False, "tree_of_thoughts"),
    ("How can five guests be seated so that no two rivals sit together?", False, "tree_of_thoughts"),
    ("Write the launch:\n1. a name\n2. a price\n3. a date", False, "planned_thinking"),
    ("Design a course on probability for nurses.", False, "planned_thinking"),
    ("Where? Why? By whom?", False, "planned_thinking"),
    ("word " * 251, False, "planned_thinking"),
    ("Write a Python function that sorts a list.", False, "best_of_n"),
    ("Write an essay about Rome.", False, "refine"),
    (GAS, False, "step_back"),
    (WORD_PROBLEM, False, "self_consistency"),
    ("Which is a noun?\nA) run\nB) house\nC) blue", False, "self_consistency"),
    (HOPS, True, "self_ask"),
    (HOPS, False, "chain_of_thought"),
    ("Is the sky blue?", False, "chain_of_thought"),
]


@pytest.mark.parametrize(("problem", "has_tools", "expected"), CASES, ids=lambda value: str(value)[:30])
def test_each_rule_takes_the_problems_it_is_for_and_says_why(
    problem: str, has_tools: bool, expected: str
) -> None:
    name, why, _ = choose_strategy(problem, REGISTRY, has_tools=has_tools)
    assert name == expected
    assert len(why) > 10


BOUND = {"checked": {"has_verifier": True}, "long_input": {}}
"""Kinds that the problems above are not of: what comes with them."""


def test_a_verifier_and_a_long_input_decide_where_they_are_there() -> None:
    checked = choose_strategy("Write a function.", REGISTRY, has_tools=False, has_verifier=True)
    assert checked[:2] == ("refine", "a verifier: the answer is improved until it passes")
    assert choose_strategy("Who signed? " + "x " * 10_000, REGISTRY, has_tools=False)[0] == "recursive"
    puzzle = choose_strategy("Use 4, 9, 10 and 13 to make 24", REGISTRY, has_tools=False, has_verifier=True)
    assert puzzle[0] == "tree_of_thoughts"


@pytest.mark.parametrize(("problem", "has_tools"), [case[:2] for case in CASES])
def test_it_never_plans_more_calls_than_the_budget_has(problem: str, has_tools: bool) -> None:
    unbound = choose_strategy(problem, REGISTRY, has_tools=has_tools)[0]
    for calls in (1, 2, 3, 4, 10, 30):
        name, why, _ = choose_strategy(problem, REGISTRY, has_tools=has_tools, calls=calls)
        assert STRATEGIES[name].calls <= calls
        assert name == unbound or f"{unbound} would take {STRATEGIES[unbound].calls} calls" in why


def test_every_kind_is_the_first_to_apply_to_some_problem() -> None:
    deciding = set(BOUND)
    for problem, has_tools, _ in CASES:
        found = dict(reasons_for(problem, has_tools=has_tools))
        deciding.add(next(kind.name for kind in KINDS if kind.name in found))
    assert deciding == {kind.name for kind in KINDS}


def test_each_kind_is_suited_by_one_strategy_that_the_engine_can_run() -> None:
    suits = [kind for one in REGISTRY if one.is_driven for kind in one.suits]
    assert sorted(suits) == sorted(kind.name for kind in KINDS)


@pytest.mark.parametrize(
    ("problem", "inside"),
    [
        ("Is Amazement a ship?", "maze"),
        ("Do aeroplanes explain rain?", "plan"),
        ("Did Lawrence meet the massive Basel delegation?", "law mass base"),
        ("Is a reassignment fair in 1999 or in 2001?", "assign"),
        ("Is a designer 40 or 50?", "design"),
    ],
)
def test_a_word_inside_another_word_counts_nothing(problem: str, inside: str) -> None:
    assert all(part in problem.casefold() for part in inside.split())
    assert choose_strategy(problem, REGISTRY, has_tools=False)[0] == "chain_of_thought"


def test_a_kind_that_no_strategy_there_suits_is_passed_over() -> None:
    chain, linear = STRATEGIES["chain_of_thought"], STRATEGIES["linear"]
    assert choose_strategy(GAS, [linear, chain], has_tools=False)[0] == "chain_of_thought"
    assert choose_strategy(GAS, [linear], has_tools=False)[0] == "linear"
    with pytest.raises(UsageError, match="no strategy"):
        choose_strategy(GAS, [], has_tools=False)


def test_a_strategy_that_a_program_brings_along_is_taken_for_what_it_suits() -> None:
    own = replace(STRATEGIES["linear"], name="laboratory", suits=("science",))
    assert choose_strategy(GAS, [own, *REGISTRY], has_tools=False)[0] == "laboratory"
    # Where several suit, the first is taken.
    assert choose_strategy(GAS, [*REGISTRY, own], has_tools=False)[0] == "step_back"
    with pytest.raises(InvalidStrategyError, match=r"no kind of problem: 'alchemy'.*science"):
        choose_strategy(GAS, [replace(own, suits=("alchemy",))], has_tools=False)


@given(st.text(max_size=300), st.booleans())
def test_any_text_gets_a_strategy_always_the_same_one_whatever_its_case(
    problem: str, has_tools: bool
) -> None:
    first = choose_strategy(problem, REGISTRY, has_tools=has_tools)
    assert first == choose_strategy(problem, REGISTRY, has_tools=has_tools)
    assert first[0] in STRATEGIES
    assert "tools" in first[1] or first[0] not in ("react", "rewoo")
