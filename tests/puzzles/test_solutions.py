"""The solver, held against brute force."""

import time
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reasonry.puzzles.solutions import solve, values
from reasonry.puzzles.steps import follow
from reasonry.puzzles.term import Puzzle, moves_of

from ..servers.game24 import check


def puzzle(numbers: list[int], target: int | Fraction) -> Puzzle:
    return Puzzle(tuple(map(Fraction, numbers)), Fraction(target))


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
def test_solving_agrees_with_brute_force(numbers: list[int], target: int) -> None:
    asked = puzzle(numbers, target)
    term = solve(asked)
    assert (term is not None) == brute_force(asked.numbers, asked.target)
    if term is not None:
        assert check(f"{term} = {target}", asked) == (True, "")
        position = follow(asked, [move.equation for move in moves_of(term)])
        assert (position.fault, position.numbers) == ("", (asked.target,))


@pytest.mark.parametrize("numbers", [[0, 0, 3, 5, 7], [1, 1, 5, 7, 11], [2, 4, 6, 8, 10], [-2, 0, 1, 1, 3]])
def test_what_five_numbers_make_is_all_found(numbers: list[int]) -> None:
    everything = values(tuple(sorted(map(Fraction, numbers))))
    for target in range(-30, 130, 3):
        term = solve(puzzle(numbers, target))
        assert (term is not None) == (target in everything), target


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 25), min_size=5, max_size=6), st.integers(1, 300))
def test_solutions_of_five_and_six_numbers_are_exact(numbers: list[int], target: int) -> None:
    term = solve(puzzle(numbers, target))
    if term is not None:
        assert check(str(term), puzzle(numbers, target)) == (True, "")


def test_as_many_four_number_puzzles_of_24_are_solvable_as_is_known() -> None:
    hands = list(combinations_with_replacement(range(1, 14), 4))
    solved = [hand for hand in hands if solve(puzzle(list(hand), 24)) is not None]
    assert (len(hands), len(solved)) == (1820, 1362)


@pytest.mark.parametrize(
    ("numbers", "target"), [([13, 17, 19, 23, 29, 31], 99991), ([3, 3, 5, 7, 8, 8], 99999)]
)
def test_six_numbers_that_cannot_make_it_are_known_soon(numbers: list[int], target: int) -> None:
    start = time.process_time()
    assert solve(puzzle(numbers, target)) is None
    assert time.process_time() - start < 5
