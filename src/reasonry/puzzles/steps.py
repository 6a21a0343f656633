"""Follow the written steps of a number puzzle: `10 - 4 = 6 (left: 6 9 13)`.

A step may have several readings: `8 / 8/3` is 1/3 or 3. A step is legal if one of its readings is legal. It has a fault
if, under every reading, it is false or uses missing numbers. A decimal may be rounded or truncated: `8 / 3 = 2.67`
counts as true, and 2.67 then means 8/3. So all later steps are exact, and rounding never decides if a puzzle is solved.
"""

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..text import lazy_pattern
from .equations import plain_text
from .expression import MAX_EXPRESSION_CHARS, Taking, parse, read_expression
from .term import Puzzle, Term, join, moves_of

MAX_TEXT_CHARS: Final = 50_000
"""The length limit of a text. Only the end of a longer text is read."""

_LABEL: Final = lazy_pattern(r"\b(?:step|thought)[ \t]{0,3}#?\d{1,3}[ \t]{0,3}[-.:)]?", re.IGNORECASE)
_FULL_STOP: Final = lazy_pattern(r"\.(?=\s|\Z)")
_PIECE: Final = lazy_pattern(r"[\d.+\-*/()= \t]{3,}", re.ASCII)
_LEFT_NUMBER: Final = lazy_pattern(r"-?\d+(?:/\d+|\.\d+)?", re.ASCII)
_LEFT: Final = lazy_pattern(
    r"\bleft\s?:\s?([-\d/.,;&() ]{1,200}(?:and [-\d/.() ]{1,50})?)", re.ASCII | re.IGNORECASE
)


class Position(Struct, frozen=True):
    """The state of a puzzle after some steps.

    Attributes:
        left: The terms still to be joined.
        fault: Why the last step is illegal, or empty. Steps after an illegal step are ignored.
        made: The terms made by the steps, oldest first.
    """

    left: tuple[Term, ...]
    fault: str = ""
    made: tuple[Term, ...] = ()

    @property
    def numbers(self) -> tuple[Fraction, ...]:
        """The remaining numbers, sorted."""
        return tuple(sorted(term.value for term in self.left))

    @property
    def moves(self) -> int:
        """How many pairs of numbers the steps have joined."""
        return sum(len(term.numbers) for term in self.left) - len(self.left)


def follow(puzzle: Puzzle, steps: Iterable[str]) -> Position:
    """Apply written steps to a puzzle. A step that repeats an earlier step changes nothing."""
    position = Position(tuple(Term(number) for number in puzzle.numbers))
    for step in steps:
        text, end = _plain(step), None
        for piece in _PIECE.finditer(text):
            sides = _sides(piece[0])
            if len(sides) > 1:
                position, end = _move(position, sides), piece.end()
                if position.fault:
                    return position
        if end is not None:
            position = _compare_left(position, text, end)
            if position.fault:
                return position
    return position


def final_expression(puzzle: Puzzle, position: Position) -> str | None:
    """Return the solution, such as `(10 - 4) * (13 - 9) = 24`. If the position is not solved, return None."""
    if position.fault or len(position.left) != 1 or position.left[0].value != puzzle.target:
        return None
    return position.left[0].equation


def expressions(text: str) -> Iterator[list[str]]:
    """Yield each expression or equation in a text, in order, as the list of its sides."""
    for piece in _PIECE.finditer(_plain(text)):
        sides = _sides(piece[0])
        if sides:
            yield sides


def _plain(text: str) -> str:
    """Unify the notation of a text, and remove list marks, labels and markup."""
    text = plain_text(text[-MAX_TEXT_CHARS:]).replace("$", " ").replace("≈", "=")
    return _FULL_STOP.sub("; ", _LABEL.sub("; ", text))


def _sides(piece: str) -> list[str]:
    """Return the sides of an equation. If a side is unreadable or no side has an operation, return an empty list."""
    sides = [_balance(side) for side in piece.split("=") if side.strip(" \t().")]
    if not any(sign in side[1:] for side in sides for sign in "+-*/"):
        return []
    try:
        return sides if all(parse(side) is not None for side in sides) else []
    except ZeroDivisionError:
        return sides


def _balance(side: str) -> str:
    """Remove signs without operands, and unpaired parentheses."""
    if len(side) > MAX_EXPRESSION_CHARS:
        return side
    side = re.sub(r"\A-\s+", "", side.strip().lstrip("+*/) ").rstrip("+-*/( "))
    while side.count("(") > side.count(")") and side.startswith("("):
        side = side[1:].strip()
    while side.count(")") > side.count("(") and side.endswith(")"):
        side = side[:-1].strip()
    return side


def _move(position: Position, sides: list[str]) -> Position:
    """Apply the first legal reading of an equation to a position. If all readings are illegal, record a fault."""
    faults: list[str] = []
    for compact in (True, False):
        try:
            terms = [parse(side, compact=compact) for side in sides]
            read = [term for term in terms if term is not None]
            exact = [_exact(term, position) for term in read]
        except ZeroDivisionError:
            faults.append(f"{' = '.join(sides)} divides by zero")
            continue
        if len(read) < len(terms):
            continue
        first = next((place for place, term in enumerate(read) if term.op), 0)
        values = {read[first].value, exact[first].value}
        # Each side must have one of these values, as written or in its exact form.
        if not all(
            side.value in values or any(term.stands_for(value) for value in values)
            for term, side in zip(read, exact, strict=True)
        ):
            faults.append(f"{' = '.join(sides)} is not true: {sides[first]} is {read[first].value}")
            continue
        after, fault = _join_terms(position, [term for term in exact if term.op])
        if after is not None:
            return after
        faults.append(f"{' = '.join(sides)}: {fault}")
    return replace(position, fault=faults[-1]) if faults else position


def _exact(term: Term, position: Position) -> Term:
    """Replace each rounded number in a term with its exact value."""
    if term.left is None or term.right is None:
        if not term.decimals or term.value in position.numbers:
            return term
        known = (part.value for part in (*position.left, *position.made) if term.stands_for(part.value))
        return Term(next(known, term.value))
    left, right = _exact(term.left, position), _exact(term.right, position)
    return term if (left, right) == (term.left, term.right) else join(left, term.op, right)


def _join_terms(position: Position, terms: list[Term]) -> tuple[Position | None, str]:
    """Build the first possible term from the remaining numbers. Return the new position, or None and a fault."""
    fault = ""
    for term in terms:
        for reuse in (False, True):
            taking = Taking(position.left, reuse=reuse)
            made = taking.build(term)
            if made is not None and len(taking.pool) <= len(position.left) - 2:
                return replace(position, left=(*taking.pool, made), made=(*position.made, made)), ""
            if taking.missing is not None:
                left = ", ".join(map(str, position.numbers))
                fault = fault or f"{taking.missing} is not there; left are {left}"
        if any(_repeats(term, before) for before in position.made):
            return position, ""
    return None, fault


def _repeats(term: Term, made: Term) -> bool:
    """Whether two terms have the same value and are built from the same numbers, or from the same two parts."""
    parts, before = moves_of(term)[-1].numbers, moves_of(made)[-1].numbers
    return term.value == made.value and (parts == before or term.numbers == made.numbers)


def _compare_left(position: Position, text: str, end: int) -> Position:
    match = _LEFT.search(text, end, end + 300)
    written = [read_expression(number) for number in _LEFT_NUMBER.findall(match[1])] if match else []
    stated = sorted([term for term in written if term is not None], key=lambda term: term.value)
    values = [term.value for term in stated]
    if len(stated) != len(position.left) or len(stated) < len(written) or values == [1]:
        return position
    if all(term.stands_for(value) for term, value in zip(stated, position.numbers, strict=True)):
        return position
    left, others = (", ".join(map(str, each)) for each in (position.numbers, values))
    return replace(position, fault=f"the numbers left are {left}, not {others}")
