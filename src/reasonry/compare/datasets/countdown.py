"""`countdown`: make a given number from some numbers, each used once; `game24` judges it."""

from __future__ import annotations

from fractions import Fraction
from random import Random

from ...puzzles import Term
from ...puzzles.term import joins
from ..judging import Item
from .game24 import write_puzzle

MAX_VALUE = 999
"""The largest number on the way."""


def make(random: Random, level: int) -> Item:
    """Join 4, 5 or 6 numbers to a target of 10 to 999, with positive whole numbers on the way."""
    while True:
        large = random.sample((25, 50, 75, 100), random.randint(1, 2))
        numbers = [*large, *(random.randint(1, 10) for _ in range(level + 3 - len(large)))]
        solution = _join_all(random, numbers)
        if solution is not None and solution.value >= 10 and solution.value not in numbers:
            return write_puzzle(numbers, solution)


def _join_all(random: Random, numbers: list[int]) -> Term | None:
    """Join numbers in a random order; None where no join stays within the bounds."""
    terms = [Term(Fraction(number)) for number in numbers]
    while len(terms) > 1:
        left, right = (terms.pop(random.randrange(len(terms))) for _ in range(2))
        joined = [
            term for term in joins(left, right) if 0 < term.value <= MAX_VALUE and term.value.denominator == 1
        ]
        if not joined:
            return None
        terms.append(random.choice(joined))
    return terms[0]
