"""Number puzzles, exactly: make a target from some numbers, each used once, with + - * / and parentheses.

Everything is a `Fraction`; nothing is rounded. Solving meets in the middle: all values of a few numbers are listed
once, and larger sets are split into two parts, the value of one deciding what the other must be. Six numbers
take well under a second.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations

from msgspec import Struct

MIN_NUMBERS, MAX_NUMBERS = 2, 6
LISTED, LISTED_OF_MANY = 3, 4
"""Sets of up to this many numbers have all their values listed; listing more pays only for the largest puzzles."""

MAX_EXPRESSION_CHARS = 500


class Puzzle(Struct, frozen=True):
    """Make `target` from `numbers`, each used exactly once."""

    numbers: tuple[Fraction, ...]
    target: Fraction


class Term(Struct, frozen=True):
    """A number, or two terms joined by one of + - * /."""

    value: Fraction
    op: str = ""
    left: Term | None = None
    right: Term | None = None

    def __str__(self) -> str:
        if self.left is None or self.right is None:
            return shown(self.value)
        left = _wrapped(self.left, self.op, right=False)
        right = _wrapped(self.right, self.op, right=True)
        return f"{left} {self.op} {right}"


class Move(Struct, frozen=True):
    """Two numbers joined into one."""

    a: Fraction
    op: str
    b: Fraction
    result: Fraction

    def __str__(self) -> str:
        return f"{shown(self.a)} {self.op} {_operand(self.b)} = {shown(self.result)}"


def shown(value: Fraction) -> str:
    """Return `3`, `-2` or `8/3`."""
    return str(value.numerator) if value.denominator == 1 else f"{value.numerator}/{value.denominator}"


def _operand(value: Fraction) -> str:
    return f"({shown(value)})" if value < 0 else shown(value)


_RANK = {"+": 1, "-": 1, "*": 2, "/": 2}


def _wrapped(term: Term, op: str, *, right: bool) -> str:
    if term.left is None:
        plain = term.value.denominator == 1 and term.value >= 0
        return str(term) if plain else f"({term})"
    loose = _RANK[term.op] < _RANK[op] or (right and op in "-/" and _RANK[term.op] == _RANK[op])
    return f"({term})" if loose else str(term)


# -- reading puzzles

_VOCABULARY = """
a all allowed an and any arithmetic at basic be by can combine compute do each equal equals evaluates
exact exactly expression find five for form four from game get given goal has have how i in integers into
is it make making may must numbers number obtain of once one only operation operations operators or order
parentheses please puzzle reach reaches result should six solve solution so such target that the them
these this three to total two use used uses using value via we what whose with write yields you your
addition subtraction multiplication division add subtract multiply divide brackets
"""
_WORDS = frozenset(_VOCABULARY.split())

_NUMBER = r"-?\d+(?:\.\d+|/\d+)?"
_TARGET = re.compile(
    rf"(?:(?:make|making|get|reach|reaches|obtain|form|equals?|equal to|evaluates to|target|goal|result|total|value|"
    rf"yields|24 game|=)\s*(?:value|number|is|of|to|the|a|an|:|=|\s)*)({_NUMBER})(?![\d/.]*\s*,)",
    re.IGNORECASE,
)
_GAME = re.compile(rf"(?:game of|puzzle of)\s+({_NUMBER})|({_NUMBER})[- ]game", re.IGNORECASE)
_COUNTED = re.compile(r"\b\d+\s+(?:given\s+)?(?:numbers|integers)\b", re.IGNORECASE)


def read_puzzle(text: str) -> Puzzle | None:
    """Read a puzzle out of a sentence; None if it is not clearly one and nothing else."""
    if len(text) > MAX_EXPRESSION_CHARS:
        return None
    text = _COUNTED.sub(" numbers ", text)
    words = re.findall(r"[A-Za-z]+", text)
    if any(word.lower() not in _WORDS for word in words):
        return None
    for pattern in (_GAME, _TARGET):
        for match in pattern.finditer(text):
            group = 1 if match[1] is not None else 2
            puzzle = _puzzle(text[: match.start(group)] + " " + text[match.end(group) :], match[group])
            if puzzle is not None:
                return puzzle
    return None


def _puzzle(rest: str, target: str) -> Puzzle | None:
    found = re.findall(_NUMBER, re.sub(r"\d+[- ]game|\(\s*\+.*?\)", " ", rest))
    try:
        numbers, wanted = tuple(Fraction(one) for one in found), Fraction(target)
    except ZeroDivisionError:
        return None
    return Puzzle(numbers, wanted) if MIN_NUMBERS <= len(numbers) <= MAX_NUMBERS else None


# -- solving


def joined(left: Term, right: Term) -> Iterator[Term]:
    """Return every way to join two terms with one operation."""
    a, b = left.value, right.value
    yield Term(a + b, "+", left, right)
    yield Term(a * b, "*", left, right)
    yield Term(a - b, "-", left, right)
    yield Term(b - a, "-", right, left)
    if b:
        yield Term(a / b, "/", left, right)
    if a:
        yield Term(b / a, "/", right, left)


@lru_cache(maxsize=20_000)
def values(numbers: tuple[Fraction, ...]) -> dict[Fraction, Term]:
    """Return what can be made from a sorted tuple of a few numbers, and how."""
    if len(numbers) == 1:
        return {numbers[0]: Term(numbers[0])}
    made: dict[Fraction, Term] = {}
    for one, other in _splits(numbers):
        for left in values(one).values():
            for right in values(other).values():
                for term in joined(left, right):
                    made.setdefault(term.value, term)
    return made


@lru_cache(maxsize=50_000)
def _solve(numbers: tuple[Fraction, ...], target: Fraction, listed: int) -> Term | None:
    if len(numbers) <= listed:
        return values(numbers).get(target)
    for large, small in _splits(numbers):
        for term in values(small).values():
            for wanted, op, swapped in _complements(target, term.value):
                rest = _solve(large, wanted, listed)
                if rest is not None:
                    left, right = (term, rest) if swapped else (rest, term)
                    return Term(target, op, left, right)
    return None


def solve_numbers(numbers: tuple[Fraction, ...], target: Fraction) -> Term | None:
    """Return a way to make the target from a sorted tuple of numbers, or None: there is none."""
    return _solve(numbers, target, LISTED_OF_MANY if len(numbers) == MAX_NUMBERS else LISTED)


def _splits(numbers: tuple[Fraction, ...]) -> Iterator[tuple[tuple[Fraction, ...], tuple[Fraction, ...]]]:
    seen: set[tuple[Fraction, ...]] = set()
    for size in range(1, len(numbers) // 2 + 1):
        for chosen in combinations(range(len(numbers)), size):
            small = tuple(numbers[n] for n in chosen)
            if small not in seen:
                seen.add(small)
                yield tuple(one for n, one in enumerate(numbers) if n not in chosen), small


def _complements(target: Fraction, value: Fraction) -> Iterator[tuple[Fraction, str, bool]]:
    """What x must be so that `x op value`, or swapped `value op x`, is the target."""
    yield target - value, "+", False
    yield target + value, "-", False
    yield value - target, "-", True
    if value:
        yield target / value, "*", False
        yield target * value, "/", False
    if target and value:
        yield value / target, "/", True


def solve(puzzle: Puzzle) -> Term | None:
    """Return an expression that solves the puzzle, or None: there is none."""
    return solve_numbers(tuple(sorted(puzzle.numbers)), puzzle.target)


def moves_of(term: Term) -> list[Move]:
    """Return the moves that build a term, innermost first."""
    if term.left is None or term.right is None:
        return []
    move = Move(term.left.value, term.op, term.right.value, term.value)
    return [*moves_of(term.left), *moves_of(term.right), move]


# -- checking


def evaluate(expression: str) -> tuple[Fraction, list[Fraction]] | None:
    """Return an expression's exact value and the numbers in it; None if it is no such expression. Never raises."""
    text = re.sub(r"[×·✕]", "*", expression).replace("÷", "/").replace("−", "-").strip()
    if not text or len(text) > MAX_EXPRESSION_CHARS or re.search(r"[^\d.+\-*/() ]|\*\*|//", text):
        return None
    numbers: list[Fraction] = []
    try:
        return _value(ast.parse(text, mode="eval").body, numbers, text), numbers
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr, numbers: list[Fraction], text: str) -> Fraction:
    match node:
        case ast.Constant():
            number = Fraction(ast.get_source_segment(text, node) or "")
            numbers.append(number)
            return number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            _value(node.operand, numbers, text)
            numbers[-1] = -numbers[-1]
            return numbers[-1]
        case ast.BinOp():
            left, right = _value(node.left, numbers, text), _value(node.right, numbers, text)
            return _applied(node.op, left, right)
        case _:
            raise ValueError("not an expression of + - * /")


def _applied(op: ast.operator, left: Fraction, right: Fraction) -> Fraction:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div():
            return left / right
        case _:
            raise ValueError("not an operation of + - * /")


def check(expression: str, puzzle: Puzzle) -> tuple[bool, str]:
    """Say whether an expression solves a puzzle, and if not, why.

    Args:
        expression: May end in `= target`.
    """
    whole, _, claimed = expression.partition("=")
    found = evaluate(whole)
    if found is None:
        return False, "it is not an expression of + - * / and parentheses"
    value, numbers = found
    if sorted(numbers) != sorted(puzzle.numbers):
        wanted = ", ".join(map(shown, puzzle.numbers))
        return False, f"it must use exactly {wanted}, each once"
    if value != puzzle.target or (claimed.strip() and _number(claimed) != puzzle.target):
        return False, f"it is {shown(value)}, not {shown(puzzle.target)}"
    return True, ""


def _number(text: str) -> Fraction | None:
    try:
        return Fraction(text.strip().rstrip("."))
    except (ValueError, ZeroDivisionError):
        return None


# -- following steps

_VALUE = rf"\(?\s*({_NUMBER})\s*\)?"
_STEP = re.compile(rf"{_VALUE}\s*([-+*/×÷−])\s*{_VALUE}\s*=\s*{_VALUE}")


def read_moves(text: str) -> list[Move]:
    """Return the moves written in a text, such as `10 - 4 = 6; 13 - 9 = 4 (left: 4 6)`."""
    moves: list[Move] = []
    for a, op, b, result in _STEP.findall(text):
        operands = [_number(one) for one in (a, b, result)]
        if None not in operands:
            x, y, z = operands
            moves.append(Move(x, op.translate(str.maketrans("×÷−", "*/-")), y, z))  # pyright: ignore[reportArgumentType]
    return moves


class Standing(Struct, frozen=True):
    """Where a puzzle stands after some steps.

    Attributes:
        left: The terms still to be joined.
        fault: Why the last step is not a legal one; then nothing after it counts.
        moves: How many legal moves were made.
    """

    left: tuple[Term, ...]
    fault: str = ""
    moves: int = 0

    @property
    def numbers(self) -> tuple[Fraction, ...]:
        """The numbers left, sorted."""
        return tuple(sorted(term.value for term in self.left))


def follow(puzzle: Puzzle, steps: Iterable[str]) -> Standing:
    """Make the moves written in some steps."""
    standing = Standing(tuple(Term(number) for number in puzzle.numbers))
    for step in steps:
        for move in read_moves(step):
            standing = _made(standing, move)
            if standing.fault:
                return standing
    return standing


def _made(standing: Standing, move: Move) -> Standing:
    pool: list[Term] = list(standing.left)
    taken: list[Term] = []
    for wanted in (move.a, move.b):
        term = next((one for one in pool if one.value == wanted), None)
        if term is None:
            left = ", ".join(map(shown, standing.numbers))
            return Standing(
                standing.left, f"{move}: {shown(wanted)} is not there; left are {left}", standing.moves
            )
        pool.remove(term)
        taken.append(term)
    term = next((one for one in joined(*taken) if one.op == move.op and one.left is taken[0]), None)
    if term is None or term.value != move.result:
        return Standing(standing.left, f"{move} is not true", standing.moves)
    return Standing((*pool, term), "", standing.moves + 1)


def legal_moves(numbers: Sequence[Fraction]) -> Iterator[Move]:
    """Return the distinct moves from some numbers, the larger operand first where order does not matter."""
    seen: set[tuple[Fraction, str, Fraction]] = set()
    for one, other in combinations(sorted(numbers, reverse=True), 2):
        for term in joined(Term(one), Term(other)):
            assert term.left is not None
            assert term.right is not None
            key = (term.left.value, term.op, term.right.value)
            if key not in seen:
                seen.add(key)
                yield Move(term.left.value, term.op, term.right.value, term.value)
