"""`countdown`: make a given number from some numbers, each used once."""

from fractions import Fraction
from random import Random

from ...puzzles.term import Term, joins
from ..grading import Item
from .game24 import write_puzzle


def make(random: Random, level: int) -> Item:
    """Make a puzzle with 4, 5 or 6 numbers, depending on the level. The target is from 10 to 999."""
    while True:
        large = random.sample((25, 50, 75, 100), random.randint(1, 2))
        numbers = [*large, *(random.randint(1, 10) for _ in range(level + 3 - len(large)))]
        terms = [Term(Fraction(number)) for number in numbers]
        while len(terms) > 1:
            first, other, *rest = random.sample(terms, len(terms))
            joined = [term for term in joins(first, other) if term.value > 0 and term.value.denominator == 1]
            terms = [*rest, random.choice(joined)]
        if 10 <= terms[0].value <= 999 and terms[0].value not in numbers:
            return write_puzzle(numbers, terms[0])
