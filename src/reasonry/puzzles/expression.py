"""Parse, evaluate and check expressions of + - * / and parentheses, as people and models write them.

Rule 1: no code is executed, and the time is linear in the length of a text.
Rule 2: text that cannot be read is ignored. Its meaning is never guessed.
"""

import ast
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

from ..text import lazy_pattern
from .term import Puzzle, Term, join

MAX_EXPRESSION_CHARS: Final = 500
_CHARACTERS: Final = frozenset("+-*/(). 0123456789")
_ZEROS: Final = lazy_pattern(r"(?<![\d.])0+(?=\d)", re.ASCII)
_SHARE: Final = lazy_pattern(r"(?<![\d.])(\d+)/(\d+)(?![\d.])", re.ASCII)
_OPERATORS: Final[Mapping[type[ast.operator], str]] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "/",
}
"""The sign for each Python operator. The parser turns a fraction without spaces, such as `8/3`, into a power."""
_SIGNS: Final = str.maketrans(dict(zip("×✕·∙⋅÷∕−–[]", "*****//--()", strict=True)))


def plain_signs(text: str) -> str:
    """Replace signs such as `×`, `÷` and `−` with plain `*`, `/` and `-`, and brackets with parentheses."""
    return text.translate(_SIGNS)


def _term(node: ast.expr, text: str, sign: int = 1) -> Term | None:
    """Convert a syntax node to a term. Return None if it has anything but numbers and the four operations."""
    match node:
        case ast.Constant(value=int() | float()):
            written = text[node.col_offset : node.end_col_offset]
            return Term(sign * Fraction(written), decimals=len(written.partition(".")[2]))
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() | ast.BinOp(op=ast.Pow())):
            return _term(node.operand, text, -1)
        case ast.BinOp():
            left, right = _term(node.left, text, sign), _term(node.right, text)
            is_share = isinstance(node.op, ast.Pow)
            return left and right and join(left, _OPERATORS[type(node.op)], right, tight=is_share)
        case _:
            return None


@lru_cache(maxsize=2_000)
def parse(text: str, *, compact: bool = False) -> Term | None:
    """Parse an expression, or return None for other texts.

    Args:
        text: The expression, which may contain decimals, negative numbers, `×`, `÷`, `−` and brackets.
        compact: Whether a fraction without spaces takes precedence over other operators, so that `8 / 8/3` is 3.

    Raises:
        ZeroDivisionError: The expression divides by zero.
    """
    text = " ".join(plain_signs(text).split())
    if len(text) > MAX_EXPRESSION_CHARS or not _CHARACTERS.issuperset(text) or "**" in text or "//" in text:
        return None
    text = _ZEROS.sub("", text)
    text = _SHARE.sub(r"\1**\2", text) if compact else text
    try:
        return _term(ast.parse(text, mode="eval").body, text)
    except (SyntaxError, MemoryError, RecursionError):
        return None


def read_expression(text: str, *, compact: bool = False) -> Term | None:
    """Parse an expression. If the text is no expression or divides by zero, return None."""
    try:
        return parse(text, compact=compact)
    except ZeroDivisionError:
        return None


class Taking:
    """Builds terms from a pool of terms. Each term of the pool can be used once.

    Args:
        reuse: Whether a part such as `(10 - 4)` may use a 6 in the pool that was made from 10 and 4.
    """

    def __init__(self, pool: tuple[Term, ...], *, reuse: bool = False) -> None:
        self.pool, self.reuse = list(pool), reuse
        self.missing: Fraction | None = None
        """The first number missing from the pool."""

    def build(self, term: Term) -> Term | None:
        """Build a term from parts in the pool, and remove these parts. If a number is missing, return None."""
        for part in self.pool:
            if part.value == term.value and self._stands_for(term, part):
                self.pool.remove(part)
                return part
        if term.left is None or term.right is None:
            self.missing = term.value
            return None
        left = self.build(term.left)
        right = left and self.build(term.right)
        return left and right and join(left, term.op, right)

    def _stands_for(self, term: Term, part: Term) -> bool:
        """Whether `part` may replace `term`. Both must have the same value."""
        if term.left is None or term.right is None:
            return True
        is_number = term.tight and term.value.denominator == term.right.value != 1
        return is_number or (self.reuse and part.op != "" and part.numbers == term.numbers)


def judge_sides(sides: list[str], puzzle: Puzzle) -> tuple[Term | None, str]:
    """Judge whether the sides of an equation, or a single expression, solve a puzzle.

    Returns:
        The first side that uses exactly the puzzle's numbers (or None), and the fault of the sides (or an empty text).
    """
    terms = [term for side in sides if (term := read_expression(side)) is not None]
    if len(terms) < len(sides):
        return None, "it is not an expression of + - * / and parentheses, or it divides by zero"
    term = next((made for side in sides if (made := _use_all(side, puzzle)) is not None), None)
    if term is None:
        return None, f"it must use exactly {', '.join(map(str, puzzle.numbers))}, each once"
    if term.value != puzzle.target:
        return term, f"it is {term.value}, not {puzzle.target}"
    other = next((side for side in terms if not side.stands_for(term.value)), None)
    return term, "" if other is None else f"it is {term.value}, not {other}"


def _use_all(side: str, puzzle: Puzzle) -> Term | None:
    plain, compact = read_expression(side), read_expression(side, compact=True)
    for term in (plain, compact):
        if term is None or plain is None or term.value != plain.value:
            continue
        taking = Taking(tuple(Term(number) for number in puzzle.numbers))
        made = taking.build(term)
        if made is not None and not taking.pool:
            return made
    return None
