"""Solve number puzzles exactly.

The search meets in the middle: it lists all values of a few numbers once, and splits larger sets into two parts. The
value of the smaller part determines the value that the larger part must have. Six numbers take about a second at most.

A part with the value 0 leaves the other part x undetermined, as in `0 * x`, so such a split is skipped. No solution is
lost: x can be split itself, and another split finds the same product.
"""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from typing import Final

from .term import MAX_NUMBERS, Puzzle, Term, joins

LISTED: Final = 3
LISTED_OF_MANY: Final = 4
"""The size of the largest sets whose values are all listed. `LISTED_OF_MANY` saves time only in the largest puzzles."""

Numbers = tuple[Fraction, ...]


def solve(puzzle: Puzzle) -> Term | None:
    """Return an expression that solves the puzzle, or None if the puzzle has no solution."""
    return solve_numbers(tuple(sorted(puzzle.numbers)), puzzle.target)


def solve_numbers(numbers: Numbers, target: Fraction) -> Term | None:
    """Return an expression that makes the target from these sorted numbers, or None if no expression does."""
    return _solve(numbers, target, LISTED_OF_MANY if len(numbers) >= MAX_NUMBERS else LISTED)


@lru_cache(maxsize=2_000)
def values(numbers: Numbers) -> dict[Fraction, Term]:
    """Return all values that can be made from a few sorted numbers, each with an expression that makes it."""
    if len(numbers) == 1:
        return {numbers[0]: Term(numbers[0])}
    made: dict[Fraction, Term] = {}
    for large, small in _splits(numbers):
        for left in values(large).values():
            for right in values(small).values():
                for term in joins(left, right):
                    made.setdefault(term.value, term)
    return made


@lru_cache(maxsize=50_000)
def _solve(numbers: Numbers, target: Fraction, listed: int) -> Term | None:
    if len(numbers) <= listed:
        return values(numbers).get(target)
    for large, small in _splits(numbers):
        for term in values(small).values():
            for value, op, swapped in _complements(target, term.value):
                rest = _solve(large, value, listed)
                if rest is not None:
                    left, right = (term, rest) if swapped else (rest, term)
                    return Term(target, op, left, right)
    return None


def _splits(numbers: Numbers) -> Iterator[tuple[Numbers, Numbers]]:
    seen: set[Numbers] = set()
    for size in range(1, len(numbers) // 2 + 1):
        for chosen in combinations(range(len(numbers)), size):
            small = tuple(numbers[n] for n in chosen)
            if small not in seen:
                seen.add(small)
                yield tuple(number for n, number in enumerate(numbers) if n not in chosen), small


def _complements(target: Fraction, value: Fraction) -> Iterator[tuple[Fraction, str, bool]]:
    """Yield each way to make the target from `value`: the other number, the sign, and whether `value` comes first."""
    yield target - value, "+", False
    yield target + value, "-", False
    yield value - target, "-", True
    if value:
        yield target / value, "*", False
        yield target * value, "/", False
    if target and value:
        yield value / target, "/", True
