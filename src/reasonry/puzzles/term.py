"""Numbers, terms (expressions) and moves (a move joins two numbers). All values are exact fractions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from operator import add, mul, sub, truediv
from typing import Final

from msgspec import Struct

OPERATIONS: Final = {"+": add, "-": sub, "*": mul, "/": truediv}
MIN_NUMBERS: Final = 2
MAX_NUMBERS: Final = 6


class Puzzle(Struct, frozen=True):
    """A puzzle: make `target` from `numbers`, each used exactly once."""

    numbers: tuple[Fraction, ...]
    target: Fraction


class Term(Struct, frozen=True):
    """A number, or two terms joined by one of + - * /."""

    value: Fraction
    op: str = ""
    left: Term | None = None
    right: Term | None = None
    tight: bool = False
    """Whether the term was written without spaces, such as `8/3`, so that it may count as one number."""
    decimals: int = 0
    """How many digits the number has after the decimal point, as written."""

    @property
    def numbers(self) -> list[Fraction]:
        """The numbers in the term, sorted."""
        if self.left is None or self.right is None:
            return [self.value]
        return sorted(self.left.numbers + self.right.numbers)

    @property
    def equation(self) -> str:
        """The term with its value: `10 - 4 = 6`."""
        return f"{self} = {self.value}"

    def stands_for(self, value: Fraction) -> bool:
        """Whether the term equals a value. A decimal may differ by less than one unit in its last digit."""
        if self.op or not self.decimals:
            return self.value == value
        return abs(self.value - value) < Fraction(1, 10**self.decimals)

    def __str__(self) -> str:
        if self.left is None or self.right is None:
            return str(self.value)
        left = _parenthesize(self.left, self.op, right=False)
        right = _parenthesize(self.right, self.op, right=True)
        return f"{left} {self.op} {right}"


_RANK: Final = {"+": 1, "-": 1, "*": 2, "/": 2}


def _parenthesize(term: Term, op: str, *, right: bool) -> str:
    if term.left is None:
        plain = term.value.denominator == 1 and term.value >= 0
        return str(term) if plain else f"({term})"
    loose = _RANK[term.op] < _RANK[op] or (right and op in "-/" and _RANK[term.op] == _RANK[op])
    return f"({term})" if loose else str(term)


def join(left: Term, op: str, right: Term, *, tight: bool = False) -> Term:
    """Build the term `left op right`.

    Raises:
        ZeroDivisionError: The term divides by zero.
    """
    return Term(OPERATIONS[op](left.value, right.value), op, left, right, tight)


def joins(left: Term, right: Term) -> Iterator[Term]:
    """Yield all ways to join two terms with one operation."""
    a, b = left.value, right.value
    yield Term(a + b, "+", left, right)
    yield Term(a * b, "*", left, right)
    yield Term(a - b, "-", left, right)
    yield Term(b - a, "-", right, left)
    if b:
        yield Term(a / b, "/", left, right)
    if a:
        yield Term(b / a, "/", right, left)


def moves_of(term: Term) -> list[Term]:
    """Return the moves that build a term, innermost first. Each move joins two numbers."""
    if term.left is None or term.right is None:
        return []
    move = join(Term(term.left.value), term.op, Term(term.right.value))
    return [*moves_of(term.left), *moves_of(term.right), move]


def legal_moves(numbers: Sequence[Fraction]) -> list[Term]:
    """Return all distinct moves that join two of the numbers. In sums and products, the larger number is first."""
    pairs = combinations(map(Term, sorted(numbers, reverse=True)), 2)
    return list(dict.fromkeys(move for pair in pairs for move in joins(*pair)))
