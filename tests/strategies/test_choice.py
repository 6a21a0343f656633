"""Choosing a strategy: each row fires where it should, and the words of a problem decide nothing."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.errors import UsageError
from reasonry.puzzles.reading import read_puzzle
from reasonry.strategies import STRATEGIES
from reasonry.strategies.choice import KINDS, Inputs, choose_strategy

REGISTRY = tuple(STRATEGIES.values())
QUESTION = Inputs(problem="What happens to the pressure of an ideal gas if the temperature is doubled?")


def test_each_kind_is_suited_by_one_strategy_that_the_engine_can_run() -> None:
    suits = [kind for one in REGISTRY if one.is_driven for kind in one.suits]
    assert sorted(suits) == sorted(kind.name for kind in KINDS)


def test_the_reason_is_that_of_the_first_row_that_holds() -> None:
    everything = Inputs(
        problem="Use 4, 9, 10 and 13 to make 24",
        has_verifier=True,
        has_tools=True,
        has_documents=True,
        has_sandbox=True,
        is_focused=True,
        is_number=True,
        calls=30,
    )
    for kind in KINDS:
        assert kind.holds(everything)
    assert choose_strategy(everything, REGISTRY)[1] == f"{KINDS[0].why}; react writes each draft"
    assert choose_strategy(QUESTION, REGISTRY)[1] == KINDS[-1].why


def test_a_kind_that_no_strategy_there_suits_is_passed_over() -> None:
    chain, linear = STRATEGIES["chain_of_thought"], STRATEGIES["linear"]
    checked = Inputs(problem=QUESTION.problem, has_verifier=True)
    assert choose_strategy(checked, [linear, chain])[0] == "chain_of_thought"
    for none in ([linear], []):
        with pytest.raises(UsageError, match="no strategy here suits the problem"):
            choose_strategy(QUESTION, none)


def test_a_strategy_that_a_program_brings_along_is_taken_for_what_it_suits() -> None:
    own = replace(STRATEGIES["linear"], name="laboratory", suits=("anything",))
    assert choose_strategy(QUESTION, [own, *REGISTRY])[0] == "laboratory"
    # Where several suit, the first is taken.
    assert choose_strategy(QUESTION, [*REGISTRY, own])[0] == "chain_of_thought"


@given(st.text(max_size=300), st.booleans())
def test_any_text_gets_the_strategy_that_every_other_gets(problem: str, has_tools: bool) -> None:
    chosen = choose_strategy(Inputs(problem=problem, has_tools=has_tools), REGISTRY)
    if has_tools or not read_puzzle(problem):
        assert chosen == choose_strategy(Inputs(has_tools=has_tools), REGISTRY)
