"""Puzzles in sentences: read where they are clearly puzzles, left alone where anything else is asked."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.puzzles.reading import read_numbers, read_puzzle
from reasonry.puzzles.term import Puzzle

FOUR = [
    "Use 4, 9, 10 and 13 to make 24",
    "make 24 from 4 9 10 13",
    "MAKE 24 FROM {4, 9, 10, 13}!",
    "Make 24: 4, 9, 10, 13",
    "Make 24 4 9 10 13",
    "Game of 24: 4 9 10 13",
    "24 game: 4 9 10 13",
    "Solve the 24 game for 4, 9, 10, 13",
    "24 using 4, 9, 10, 13",
    "Using the numbers 4, 9, 10, 13 exactly once, get 24",
    "Use the 4 numbers 4, 9, 10 and 13 to make 24.",
    "Make 24 with the four numbers 4 9 10 13, each used once, in any order, using +, -, *, / and parentheses",
    "Use numbers and basic arithmetic operations (+ - * /) to obtain 24. Input: 4 9 10 13",
    "Use addition, subtraction, multiplication and division to make 24 from 4, 9, 10, 13",
    "Make 24 out of 4, 9, 10, and 13 with + − × ÷",
    "Write an expression that equals 24 using each of the numbers 4, 9, 10 and 13 exactly once",
    "Numbers: 4 9 10 13. Target: 24.",
    "numbers = [4, 9, 10, 13], target = 24",
    "How can I get from 4, 9, 10, 13 to 24?",
    "Can you make 4, 9, 10 and 13 equal 24?",
    "Is it possible to make 24 from 4-9-10-13?",
    "Make 24. Use 4 9 10 13 to get 24.",
    "4 9 10 13 -> 24",
    "4 9 10 13 = 24",
]


@pytest.mark.parametrize("text", FOUR)
def test_a_puzzle_is_read_in_many_words(text: str) -> None:
    assert read_puzzle(text) == Puzzle(tuple(map(Fraction, (4, 9, 10, 13))), Fraction(24))


@pytest.mark.parametrize(
    ("text", "numbers", "target"),
    [
        ("reach 100 with 2 3 5 7 11", "2 3 5 7 11", "100"),
        ("make 952 from 25 50 75 100 3 6", "25 50 75 100 3 6", "952"),
        ("Make -3 from 1 and 4", "1 4", "-3"),
        ("Find a way to make −5 from 2, 7", "2 7", "-5"),
        ("Use 1, 2 and 4 to make 1/2", "1 2 4", "1/2"),
        ("Make 1 from 1/2 and 1/2", "1/2 1/2", "1"),
        ("Use 0.5, 3 and 4 to make 1.5", "0.5 3 4", "1.5"),
        ("make 0 from 3 and 3", "3 3", "0"),
        ("Use 24 and 1 to make 24", "24 1", "24"),
    ],
)
def test_numbers_and_targets_of_every_kind_are_read(text: str, numbers: str, target: str) -> None:
    assert read_puzzle(text) == Puzzle(tuple(map(Fraction, numbers.split())), Fraction(target))


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of France?",
        "Use 3 apples and 4 pears to make 12",
        "What is the total value of 3, 4 and 5?",
        "What is the value of 3 and 4 and 5",
        "What is 12 times 4?",
        "Solve 4 + 9 = 13",
        "Use only addition to make 24 from 4 20",
        "Use + and * to make 24 from 4 6",
        "Use two of the numbers 4 9 10 13 to make 24",
        "Use three numbers 4 9 10 13 to make 24",
        "Make 24 or 25 from 4 9 10 13",
        "Make 24 from 4 9 10 13 in this order",
        "Make 24 from 4/9/10/13",
        "10 - 4 = 6",
        "Step 1: 10 - 4 = 6",
        "20% of 50 = 10",
        "the numbers from 1 to 10,500",
        "4 9 10 13",
        "make 24",
        "make 24 from 5",
        "make 24 from 1 2 3 4 5 6 7",
        "make 1/0 from 1 and 2",
        "",
        "make 24 from 1 2 " * 100,
    ],
)
def test_what_asks_for_something_else_is_not_taken_for_a_puzzle(text: str) -> None:
    assert read_puzzle(text) is None


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("4 9 10 13", (4, 9, 10, 13)),
        ("Combine these with care, then explain your working: 4, 9, 10 and 13.", (4, 9, 10, 13)),
        ("Use 4, 9, 10 and 13 to make 24", (4, 9, 10, 13)),
    ],
)
def test_with_the_target_known_a_list_of_numbers_is_enough(text: str, numbers: tuple[int, ...]) -> None:
    assert read_numbers(text) == tuple(map(Fraction, numbers))


@pytest.mark.parametrize("text", ["Who?", "7", "either 1 2 3 or perhaps 4 5 6", "1 2 3 4 5 6 7"])
def test_no_list_or_several_are_not_guessed_at(text: str) -> None:
    assert read_numbers(text) is None


LIKE_A_PUZZLE = [*"0123456789+-*/=., ", "make ", "24", "1/0", " to ", "×", "٣", "²"]


@given(st.text() | st.lists(st.sampled_from(LIKE_A_PUZZLE)).map("".join))
def test_reading_never_raises(text: str) -> None:
    read_puzzle(text)
    read_numbers(text)
