"""Steps as people and models write them: followed exactly, faults named."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.puzzles.steps import expressions, final_expression, follow
from reasonry.puzzles.term import Puzzle, Term, join, legal_moves

from ..servers.game24 import read_moves


def puzzle(*numbers: int, target: int = 24) -> Puzzle:
    return Puzzle(tuple(map(Fraction, numbers)), Fraction(target))


FOUR = puzzle(4, 9, 10, 13)


def fold(puzzle: Puzzle, steps: list[str]) -> str | None:
    return final_expression(puzzle, follow(puzzle, steps))


@pytest.mark.parametrize(
    "step",
    [
        "10 - 4 = 6 (left: 6 9 13)",
        "10-4=6",
        "Step 1: 10 - 4 = 6",
        "Step 1 - 10 - 4 = 6",
        "1. 10 - 4 = 6. Now 9 and 13 are left.",
        "- 10 - 4 = 6",
        "- **10 − 4 = 6** (left: 6, 9, and 13)",
        "First 6 = 10 - 4, which leaves 6, 9, 13",
        "(10 - 4) = 6",
        "(10 - 4 = 6)",
        r"$10 - 4 = 6$",
        r"\(10 - 4 = 6\)",
        "10 - 4 = 6 -> 6 9 13",
        "10 - 4 = 6.0",
        "10 - 4 = 6 (numbers left: 3)",
        "Again 10 - 4 = 6; as said, 10 - 4 = 6",
    ],
)
def test_a_step_is_read_in_many_writings(step: str) -> None:
    position = follow(FOUR, [step])
    assert (position.fault, position.numbers, position.moves) == ("", (6, 9, 13), 1)


@pytest.mark.parametrize(
    "steps",
    [
        ["10 - 4 = 6; 13 - 9 = 4", "6 * 4 = 24"],
        ["10 - 4 = 6", "(10 - 4) * (13 - 9) = 24"],
        ["10 - 4 = 6", "13 - 9 = 4", "(10 - 4) * (13 - 9) = 6 × 4 = 24"],
        ["So (10 - 4) * (13 - 9) = 24."],
        [r"$(10 - 4) \times (13 - 9) = 24$"],
        ["10 - 4 = 6", "Given 10 - 4 = 6, now 13 - 9 = 4", "6 x 4 = 24", "6 x 4 = 24"],
    ],
)
def test_steps_that_arrive_fold_into_one_expression(steps: list[str]) -> None:
    assert fold(FOUR, steps) == "(10 - 4) * (13 - 9) = 24"


@pytest.mark.parametrize(
    ("steps", "fault"),
    [
        (["10 - 4 = 7"], "is not true: 10 - 4 is 6"),
        (["10 - 5 = 5"], "5 is not there; left are 4, 9, 10, 13"),
        (["10 - 4 = 6", "10 + 9 = 19"], "10 is not there; left are 6, 9, 13"),
        (["10 - 4 = 6 (left: 6 9 14)"], "the numbers left are 6, 9, 13, not 6, 9, 14"),
        (["4 - 4 = 0"], "4 is not there"),
        (["13 - 9 = 4 * 6 = 24"], "is not true"),
        (["13 - 9 = 4", "10 / (4 - 4) = 0"], "divides by zero"),
        (["10 / 4 = 2"], "10 / 4 is 5/2"),
        (["9 * 4 = 36 (left: 10 13 36)", "(9 + 10) * 4 = 76"], "not there"),
    ],
)
def test_a_step_that_is_not_legal_is_a_fault(steps: list[str], fault: str) -> None:
    position = follow(FOUR, steps)
    assert fault in position.fault
    assert fold(FOUR, steps) is None


@pytest.mark.parametrize(
    "text", ["think about it", "10 - 4", "x = 6", "6 = 6", "10 - 4 = ", "", "2(3) = 6", "4 ** 2 = 16"]
)
def test_what_is_no_step_is_passed_over(text: str) -> None:
    position = follow(FOUR, [text])
    assert (position.fault, position.moves) == ("", 0)


def test_equal_numbers_are_kept_apart() -> None:
    fives = puzzle(5, 5, 5, 1)
    assert fold(fives, ["1 / 5 = 1/5", "5 - 1/5 = 24/5", "5 * 24/5 = 24"]) == "5 * (5 - 1 / 5) = 24"
    two_pairs = puzzle(5, 5, 5, 5, target=100)
    assert follow(two_pairs, ["5 + 5 = 10", "5 + 5 = 10"]).numbers == (10, 10)


def test_fractions_are_one_number_or_a_division_as_it_fits() -> None:
    threes = puzzle(3, 3, 8, 8)
    assert fold(threes, ["8 / 3 = 8/3", "3 - 8/3 = 1/3", "8 / 1/3 = 24"]) == "8 / (3 - 8 / 3) = 24"
    assert fold(threes, ["8/3 = 8/3", "3 - (8/3) = 1/3", "8 / (1/3) = 24"]) == "8 / (3 - 8 / 3) = 24"
    assert fold(threes, ["3 - 8/3 = 1/3 (left: 1/3 3 8)"]) is None
    assert fold(threes, ["3 - 8/3 = 1/3 (left: 1/3 8)", "8/(1/3) = 24"]) == "8 / (3 - 8 / 3) = 24"
    assert follow(puzzle(4, 9, 3), ["4 - 9 = -5", "3 * (-5) = -15"]).numbers == (-15,)


def test_moves_and_expressions_are_found_in_prose() -> None:
    assert read_moves("10 - 4 = 6; then 8 / 3 = 8/3 and (1 + 2) * 3 = 9") == [
        join(Term(Fraction(10)), "-", Term(Fraction(4))),
        join(Term(Fraction(8)), "/", Term(Fraction(3))),
    ]
    assert list(expressions("The answer is (10 - 4) * (13 - 9) = 24.")) == [["(10 - 4) * (13 - 9)", "24"]]


def test_moves_are_written_so_that_they_are_read_back() -> None:
    for numbers in ((3, 3, 8), (1, -2), ("8/3", "1/2", "-1/3")):
        for move in legal_moves(list(map(Fraction, numbers))):
            assert read_moves(move.equation) == [move]
    assert str(Term(Fraction(8, 3))) == "8/3"


@given(st.one_of(st.text(), st.text(alphabet="0123456789+-*/(). =left:xX\\[]\n", max_size=80)))
def test_following_never_raises(text: str) -> None:
    follow(FOUR, [text, text])
    read_moves(text)
    list(expressions(text))
