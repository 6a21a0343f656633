"""Moves in words, such as "Divide 8 by 3 to get 8/3", written with signs: `8 / 3 = (8/3)`.

Rule 1: only what says its result is a move; a number that goes on, as in "to get 24 / 3", is no result.
Rule 2: what somebody needs, wants or could do is no move.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Final

from ..patterns import lazy_pattern

_PLAIN: Final = r"-?\d{1,12}(?:\.\d{1,12}|/\d{1,12})?"
_NUMBER: Final = rf"(?:\({_PLAIN}\)|{_PLAIN})"
_RESULT: Final = (
    rf"(?:\d{{1,12}}\s\d{{1,12}}/\d{{1,12}}|{_NUMBER})(?!\s?[\d/*+^%]|\.\d|\s?-\s?\d|\s(?:r|rem|remainder)\b)"
)
_WHICH: Final = (
    r"(?:the\s+)?(?:(?:number|numbers|result|value|sum|difference|product|quotient|remaining)\s+)?"
)
_IS: Final = (
    r"(?:is|are|gives?|giving|equals?|makes?|making|yields?|yielding|produces?|producing|gets?|getting|results?\s+in|"
    r"resulting\s+in|becomes?)"
)
_GIVES: Final = rf"(?:\s|,\s)\s?(?:(?:and|which|this|that|it|we|you)\s+){{0,2}}{_IS}\s+(?:(?:us|you|me)\s+)?"
_TO_GET: Final = (
    rf"(?:{_GIVES}|(?:\s|,\s)\s?(?:to|and)\s+(?:get|obtain|give|have|make|produce|yield|reach|form)\s+|"
    r"\s?(?:->|→|⇒|=>|:|=)\s?)"
)
_RESULT_WORD: Final = r"(?:(?:a|the)\s+)?(?:result\s+of\s+|value\s+of\s+)?"


def _pattern(before: str, between: str, gives: str) -> re.Pattern[str]:
    """Return the pattern of a move: words, a number, words, a number, words, the result."""
    first = rf"{before}{_WHICH}" if before else r"(?<![\d./*+(-])(?<![/*+(-]\s)"
    return lazy_pattern(
        rf"{first}(?P<a>{_NUMBER}){between}{_WHICH}(?P<b>{_NUMBER}){gives}{_RESULT_WORD}(?P<c>{_RESULT})",
        re.IGNORECASE | re.ASCII,
    )


_MOVES: Final = tuple(
    (_pattern(before, between, _TO_GET if before else _GIVES), sign)
    for before, between, sign in (
        (r"\bdivid(?:e|es|ing)\s+", r"\s+by\s+", "/"),
        (r"\bmultipl(?:y|ies|ying)\s+", r"\s+(?:by|with|and|times)\s+", "*"),
        (r"\badd(?:s|ing)?\s+", r"\s+(?:and|to|with|plus)\s+", "+"),
        (r"\bsubtract(?:s|ing)?\s+", r"\s+from\s+", "from"),
        (r"\bsum\s+of\s+", r"\s+and\s+", "+"),
        (r"\bproduct\s+of\s+", r"\s+and\s+", "*"),
        (r"\bquotient\s+of\s+", r"\s+and\s+", "/"),
        (r"\bdifference\s+(?:of|between)\s+", r"\s+and\s+", "between"),
        ("", r"\s+(?:divided\s+by|over)\s+", "/"),
        ("", r"\s+(?:multiplied\s+by|times)\s+", "*"),
        ("", r"\s+plus\s+", "+"),
        ("", r"\s+minus\s+", "-"),
        ("", r"\s?/\s?", "/"),
        ("", r"\s?\*\s?", "*"),
        ("", r"\s?\+\s?", "+"),
        ("", r"\s?-\s?", "-"),
    )
)
_PLANNED: Final = lazy_pattern(
    r"\b(?:need|needs|want|wants|could|would|might|should|if|aim|goal|hope|later|so that|in order|must)\b",
    re.IGNORECASE,
)
_WORDS: Final = lazy_pattern(r"[a-z]{2}", re.IGNORECASE)


def with_signs(text: str) -> str:
    """Return a text whose moves in words are written with signs; its sentences end in `;`."""
    if not _WORDS.search(text):
        return text
    return ";".join(_sentence(part) for part in text.split(";"))


def _sentence(text: str) -> str:
    if not _WORDS.search(text) or _PLANNED.search(text):
        return text
    for pattern, sign in _MOVES:
        text = pattern.sub(_equation(sign), text)
    return text


def _equation(sign: str) -> Callable[[re.Match[str]], str]:
    def write_equation(move: re.Match[str]) -> str:
        a, b, c = (_operand(move[name]) for name in "abc")
        if sign == "from" or (sign == "between" and _value(move["a"]) < _value(move["b"])):
            a, b = b, a
        return f" ; {a} {'-' if sign in ('from', 'between') else sign} {b} = {c} ; "

    return write_equation


def _operand(number: str) -> str:
    """Return a number as an operand: a fraction in parentheses, a mixed one as a fraction."""
    number = number.strip("()")
    whole, _, fraction = number.rpartition(" ")
    if whole and "/0" not in fraction:
        value = Fraction(whole) + Fraction(fraction)
        number = f"{value.numerator}/{value.denominator}"
    return f"({number})" if "/" in number or number.startswith("-") else number


def _value(number: str) -> Fraction:
    above, _, below = number.strip("()").partition("/")
    return Fraction(above) / (Fraction(below or 1) or 1)
