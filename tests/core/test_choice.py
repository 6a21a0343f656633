"""Choosing a strategy: each rule fires where it should, nothing hangs on a part of a word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.core.choice import RULES, choose_strategy, features
from reasonry.errors import UsageError
from reasonry.strategies import STRATEGIES

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
    (GAS, False, "step_back"),
    (WORD_PROBLEM, False, "self_consistency"),
    ("Which is a noun?\nA) run\nB) house\nC) blue", False, "self_consistency"),
    (HOPS, False, "self_ask"),
    ("Is the sky blue?", False, "chain_of_thought"),
]


@pytest.mark.parametrize(("problem", "has_tools", "expected"), CASES, ids=lambda value: str(value)[:30])
def test_each_rule_takes_the_problems_it_is_for_and_says_why(
    problem: str, has_tools: bool, expected: str
) -> None:
    name, why = choose_strategy(problem, has_tools=has_tools, strategies=STRATEGIES)
    assert name == expected
    assert len(why) > 10


def test_every_rule_is_the_first_to_apply_to_some_problem() -> None:
    deciding = set[int]()
    for problem, has_tools, _ in CASES:
        seen = features(problem)
        deciding.add(next(n for n, rule in enumerate(RULES) if rule.why(seen, has_tools)))
    assert deciding == set(range(len(RULES)))


def test_every_rule_names_a_strategy_that_the_engine_can_run() -> None:
    assert all(STRATEGIES[rule.strategy].is_driven for rule in RULES)


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
    assert choose_strategy(problem, has_tools=False, strategies=STRATEGIES)[0] == "chain_of_thought"


def test_a_rule_whose_strategy_is_not_there_is_passed_over() -> None:
    assert choose_strategy(GAS, has_tools=False, strategies=["chain_of_thought"])[0] == "chain_of_thought"
    assert choose_strategy(GAS, has_tools=False, strategies=["linear"])[0] == "linear"
    with pytest.raises(UsageError, match="no strategy"):
        choose_strategy(GAS, has_tools=False, strategies=[])


@given(st.text(max_size=300), st.booleans())
def test_any_text_gets_a_strategy_always_the_same_one_whatever_its_case(
    problem: str, has_tools: bool
) -> None:
    first = choose_strategy(problem, has_tools=has_tools, strategies=STRATEGIES)
    assert first == choose_strategy(problem, has_tools=has_tools, strategies=STRATEGIES)
    assert first[0] in STRATEGIES
    assert "tools" in first[1] or first[0] not in ("react", "rewoo")


def test_the_table_in_the_documentation_is_that_of_the_rules() -> None:
    text = (Path(__file__).parents[2] / "docs" / "choosing.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \|.*\| `(\w+)` \|$", text, re.MULTILINE)
    assert rows == [(str(number), rule.strategy) for number, rule in enumerate(RULES, 1)]
