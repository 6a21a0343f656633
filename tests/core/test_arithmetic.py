"""Exact arithmetic, held against brute force and against nonsense."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.core.arithmetic import (
    Puzzle,
    check,
    evaluate,
    follow,
    legal_moves,
    moves_of,
    read_moves,
    read_puzzle,
    shown,
    solve,
)


def numbers(*values: int) -> tuple[Fraction, ...]:
    return tuple(map(Fraction, values))


@pytest.mark.parametrize(
    ("text", "given", "target"),
    [
        ("Use 4, 9, 10 and 13 to make 24", (4, 9, 10, 13), "24"),
        ("make 24 from 4 9 10 13", (4, 9, 10, 13), "24"),
        ("Game of 24: 4 9 10 13", (4, 9, 10, 13), "24"),
        ("24 game: 1 5 5 5", (1, 5, 5, 5), "24"),
        ("Using the numbers 3, 3, 8, 8 exactly once, get 24", (3, 3, 8, 8), "24"),
        ("Use the 4 numbers 4, 4, 10 and 10 to make 24.", (4, 4, 10, 10), "24"),
        ("reach 100 with 2 3 5 7 11", (2, 3, 5, 7, 11), "100"),
        ("Make -3 from 1 and 4", (1, 4), "-3"),
        ("Use 1, 2 and 4 to make 1/2", (1, 2, 4), "1/2"),
    ],
)
def test_a_puzzle_is_read_in_many_words(text: str, given: tuple[int, ...], target: str) -> None:
    assert read_puzzle(text) == Puzzle(numbers(*given), Fraction(target))


@pytest.mark.parametrize(
    "text",
    [
        "What is the capital of France?",
        "Use 3 apples and 4 pears to make 12",
        "4 9 10 13",
        "make 24",
        "make 24 from 5",
        "make 24 from 1 2 3 4 5 6 7",
        "",
        "x" * 1000,
        "make 1/0 from 1 and 2",
    ],
)
def test_what_is_no_puzzle_is_not_taken_for_one(text: str) -> None:
    assert read_puzzle(text) is None


@given(st.text())
def test_reading_and_evaluating_never_raise(text: str) -> None:
    read_puzzle(text)
    evaluate(text)
    read_moves(text)
    check(text, Puzzle(numbers(1, 2), Fraction(3)))


def brute_force(given: tuple[Fraction, ...], target: Fraction) -> bool:
    if len(given) == 1:
        return given[0] == target
    for (one, other), op in product(permutations(range(len(given)), 2), "+-*/"):
        a, b = given[one], given[other]
        if op == "/" and not b:
            continue
        made = a + b if op == "+" else a - b if op == "-" else a * b if op == "*" else a / b
        rest = tuple(value for n, value in enumerate(given) if n not in (one, other))
        if brute_force((*rest, made), target):
            return True
    return False


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 13), min_size=2, max_size=4), st.integers(-5, 30))
def test_solving_agrees_with_brute_force(given: list[int], target: int) -> None:
    puzzle = Puzzle(numbers(*given), Fraction(target))
    term = solve(puzzle)
    assert (term is not None) == brute_force(puzzle.numbers, puzzle.target)
    if term is not None:
        assert check(f"{term} = {target}", puzzle) == (True, "")
        lines = [str(move) for move in moves_of(term)]
        standing = follow(puzzle, lines)
        assert (standing.fault, standing.numbers) == ("", (puzzle.target,))


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 25), min_size=5, max_size=6), st.integers(1, 300))
def test_five_and_six_numbers_are_solved_as_well(given: list[int], target: int) -> None:
    puzzle = Puzzle(numbers(*given), Fraction(target))
    term = solve(puzzle)
    if term is not None:
        assert check(str(term), puzzle) == (True, "")


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("(10 - 4) * 4", "exactly"),
        ("(10 - 4) * (13 - 9) + 0", "exactly"),
        ("4 + 9 + 10 + 13", "it is 36"),
        ("(10 - 4) * (13 - 9) = 25", "it is 24"),
        ("__import__('os')", "not an expression"),
        ("4 ** 9 ** 10 ** 13", "not an expression"),
        ("10 / (4 - 4)", "not an expression"),
    ],
)
def test_what_does_not_solve_a_puzzle_is_said_why(expression: str, why: str) -> None:
    puzzle = Puzzle(numbers(4, 9, 10, 13), Fraction(24))
    if expression.endswith("25"):
        puzzle = Puzzle(puzzle.numbers, Fraction(25))
    right, reason = check(expression, puzzle)
    assert not right
    assert why in reason


def test_steps_are_followed_and_faults_named() -> None:
    puzzle = Puzzle(numbers(4, 9, 10, 13), Fraction(24))
    assert follow(puzzle, ["10 - 4 = 6 (left: 6 9 13)"]).numbers == numbers(6, 9, 13)
    assert follow(puzzle, ["10 - 4 = 6; 13 - 9 = 4", "6 * 4 = 24"]).numbers == numbers(24)
    assert "is not true" in follow(puzzle, ["10 - 4 = 7"]).fault
    assert "5 is not there" in follow(puzzle, ["10 - 5 = 5"]).fault
    assert follow(puzzle, ["think about it"]).moves == 0


def test_negative_and_fractional_results_can_be_followed() -> None:
    puzzle = Puzzle(numbers(4, 9, 3), Fraction(-15))
    assert follow(puzzle, ["4 - 9 = -5", "3 * (-5) = -15"]).numbers == numbers(-15)
    assert follow(puzzle, ["9 / 4 = 9/4"]).numbers == (Fraction(9, 4), Fraction(3))


def test_legal_moves_are_true() -> None:
    for move in legal_moves(numbers(3, 3, 8)):
        (read,) = read_moves(str(move))
        assert (read.a, read.b, read.result) == (move.a, move.b, move.result)
    assert shown(Fraction(8, 3)) == "8/3"
