"""`game24`: make 24 from four numbers, each used once."""

from fractions import Fraction
from random import Random

from ...puzzles.solutions import solve_numbers
from ...puzzles.term import Term
from ..grading import Item


def make(random: Random, level: int) -> Item:
    """Make a puzzle of four numbers that can make 24. The puzzle is harder at higher levels."""
    while True:
        numbers = sorted(random.randint(1, 9 if level == 1 else 13) for _ in range(4))
        term = solve_numbers(tuple(map(Fraction, numbers)), Fraction(24))
        if term is not None and (level < 3 or "/" in str(term)):
            return write_puzzle(numbers, term)


def write_puzzle(numbers: list[int], solution: Term) -> Item:
    """Write a puzzle with `numbers`. Its target is the value of `solution`."""
    listed = f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
    return Item(
        f"Use {listed}, each exactly once, with + - * / and parentheses to make {solution.value}.",
        str(solution),
    )
