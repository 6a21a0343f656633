"""Read number puzzles in sentences: "Use 4, 9, 10 and 13 to make 24", "Game of 24: 4 9 10 13", and so on.

A sentence is a puzzle only if all of its words are typical of puzzles, it has one list of numbers and one other number
(the target), and it sets no other conditions, such as fewer operations, a subset of the numbers, or an order.
"""

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from ..text import lazy_pattern
from .expression import plain_signs
from .term import MAX_NUMBERS, MIN_NUMBERS, Puzzle

MAX_PUZZLE_CHARS: Final = 600
MAX_LIST_CHARS: Final = 10_000

_VOCABULARY: Final = """
a achieve add adding addition all allowed am an and answer are arithmetic arrive as at basic be become
becomes brackets bring build by calculate calculation can card cards challenge combination combine combining
come comes compute construct could create divide dividing division do does each either elementary equal
equaling equalling equals equation evaluate evaluates evaluating every exact exactly exists expression find
five following for form formed forming formula four from full game gave get gets getting give given gives
giving goal got had has have help here hit how i if in input integer integers into is it its let like make
makes making math mathematical mathematics maths me minus multiplication multiply multiplying must my need
number numbers numerical obtain obtained obtaining of on once one operation operations operator operators or
our out parentheses parenthesis play please plus possible problem produce produces producing provide
put puzzle reach reached reaches reaching result resulting results rule rules several show sign signs single
six so solution solve solving something standard step steps subtract subtracting subtraction such symbols
target that the their them then there these they this those three time times to together total totals try
turn two up use used uses using usual value via want way we what when where which whole whose will with work
would write yield yields you your
"""
_WORDS: Final = frozenset(_VOCABULARY.split())

_OPERATIONS: Final = {
    "+": {"add", "adding", "addition", "plus"},
    "-": {"subtract", "subtracting", "subtraction", "minus"},
    "*": {"multiply", "multiplying", "multiplication", "times"},
    "/": {"divide", "dividing", "division"},
}
_COUNTS: Final = {"two": 2, "three": 3, "five": 5, "six": 6}

_NUMBER: Final = r"(?<![\d.])-?\d+(?:\.\d+|/\d+)?(?![\d/])"
_COUNTED: Final = lazy_pattern(
    r"(?<![\d,.\-/])\s*\b(\d)\s+(?:given\s+)?(?:numbers|integers|cards)\b", re.ASCII
)
_UNCLEAR: Final = lazy_pattern(
    r"\d\s+or\s+-?\d|\d/\d+/\d|(?<![\d.])0\d|(?<![\d,])\d{1,3},\d{3}(?![\d,])", re.ASCII
)
"""Matches a choice of numbers, a fraction of fractions, leading zeros, or `10,500`, which is one number or two."""
_RUN: Final = lazy_pattern(rf"{_NUMBER}(?:[\s,;&]{{1,20}}(?:and\s{{1,5}})?{_NUMBER})+", re.ASCII)
_TARGET_FIRST: Final = lazy_pattern(r"\s*(?:make|get|reach|obtain)\s+-?\d", re.ASCII)
"""Matches a text that begins with its target: "make 24 4 9 10 13"."""


def read_puzzle(text: str) -> Puzzle | None:
    """Read a puzzle in a sentence. If the text is unclear, or also says something else, return None."""
    return _read(text) if len(text) <= MAX_PUZZLE_CHARS else None


@lru_cache(maxsize=16)
def _read(text: str) -> Puzzle | None:
    """Read a short text. The result is cached, because a run reads its problem in several places."""
    text = re.sub(r"(?<=\d)-(?=\d)", ", ", plain_signs(text).lower())
    without_order = text.replace("any order", " ").replace("order of operation", "operation")
    words = set(re.findall(r"[^\W\d_]+", without_order))
    if not words <= _WORDS or _UNCLEAR.search(text) or not _allows_all_operations(text, words):
        return None
    counts = {int(digit) for digit in _COUNTED.findall(text)}
    counts |= {_COUNTS[word] for word in words & _COUNTS.keys()}
    counts |= {4} if re.search(r"\bfour\s+(?:given\s+)?(?:numbers|integers|cards)\b", text) else set()
    text = _COUNTED.sub(" numbers ", text)
    lists = _RUN.findall(text)
    if len(lists) != 1:
        return None
    numbers, others = _numbers(lists[0]), _numbers(text.replace(lists[0], " ", 1))
    if numbers and others == () and _TARGET_FIRST.match(text):
        numbers, others = numbers[1:], numbers[:1]
    if numbers is None or others is None or len({*others}) != 1:
        return None
    if not MIN_NUMBERS <= len(numbers) <= MAX_NUMBERS or counts - {len(numbers)}:
        return None
    return Puzzle(numbers, others[0])


def read_numbers(text: str) -> tuple[Fraction, ...] | None:
    """Read the numbers of a puzzle whose target is known.

    If the text is not clearly a puzzle, return the only list of numbers in the text, or None if it has several or none.
    """
    puzzle = read_puzzle(text)
    if puzzle is not None:
        return puzzle.numbers
    runs = {_numbers(run[0]) for run in _RUN.finditer(plain_signs(text[:MAX_LIST_CHARS]).lower())}
    numbers = runs.pop() if len(runs) == 1 else None
    return numbers if numbers is not None and len(numbers) <= MAX_NUMBERS else None


def _allows_all_operations(text: str, words: set[str]) -> bool:
    named = {sign for sign, names in _OPERATIONS.items() if words & names}
    signs = re.sub(r"\d/\d|->|=>", " ", text)
    free = {sign for sign in "+*/" if sign in signs}
    if free and re.search(r"-(?!\d)", signs):
        free.add("-")
    return len(named) in (0, 4) and len(free) in (0, 4)


def _numbers(text: str) -> tuple[Fraction, ...] | None:
    try:
        return tuple(map(Fraction, re.findall(_NUMBER, text, re.ASCII)))
    except (ValueError, ZeroDivisionError):
        return None
