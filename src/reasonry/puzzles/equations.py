"""Check equations of numbers in a text, such as `4736 * 8 = 37788`, by exact arithmetic.

Rule 1: a false alarm costs more than a missed error. So an equation is checked only if it is a separate clause:
        nothing but numbers and signs between commas, periods, line ends or similar marks.
Rule 2: an equation is false only if it is false under every reading of its numbers: `1,500` is 1500 or, in other
        countries, 1.5.
Rule 3: a result must be right only to its last written digit, and an operand with decimals may be rounded.
"""

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from typing import Final

from ..text import lazy_pattern
from .expression import plain_signs, read_expression
from .term import OPERATIONS, Term

MAX_CHECKED: Final = 50_000
"""How many characters at the end of a text are checked."""

_MAX_POWER: Final = 12

_ANOTHER_ARITHMETIC: Final = lazy_pattern(
    r"\b(?:mod(?:ul(?:o|us|ar))?|congruen\w+|binary|ternary|octal|hex(?:adecimal)?|xor|boolean|clocks?|o'clock|"
    r"base[- ]?(?:\d+|two|three|four|five|six|seven|eight|nine|twelve|sixteen)|cryptarithm\w*|alphametic\w*|"
    r"matchsticks?|matches|toothpicks?|roman|define[sd]?|definition|operations?\s+[^\w\s]|operator|denotes?)\b"
    r"|[≡⊕⊗∘⋆⊙◦]|\b0[xb][0-9a-f]",
    re.IGNORECASE,
)
"""Matches words and signs which show that the numbers of a text or a problem may have another meaning."""
_TAKEN_BACK: Final = lazy_pattern(r"\b(?:wait|oops|correction)\b", re.IGNORECASE)

_ENGLISH: Final = lazy_pattern(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+")
_CONTINENTAL: Final = lazy_pattern(r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")
_COINS: Final = "$€£¥₹"
_RUN: Final = lazy_pattern(rf"[-(.\d{_COINS}][-+*/^²³()\d.,{_COINS}= \t]*")
_CONTINUED: Final = lazy_pattern(r"(?<=[-+*/=^])[ \t]*\n|\n(?=[ \t]*[+/*])")
"""Matches a line end within an expression."""
_CLAUSE_END: Final = lazy_pattern(r"[.,](?=\s|\Z)|(?<=\S):(?=\s)|[\n;|\"“”>—→⇒]")
_REMARK: Final = lazy_pattern(r"\(\s*[^\W\d].*")
_NUMBER: Final = lazy_pattern(r"\d(?:[\d.,]*\d)?|(?<!\d)\.\d+")
_POWER: Final = lazy_pattern(
    r"(?P<base>\d+(?:\.\d+)?)\s?(?:\^\s?(?P<power>\d{1,2})(?![\d.])|(?P<raised>[²³]))"
)
_TEX: Final = lazy_pattern(r"\\(?P<command>[A-Za-z]+|.)[ \t]*", re.DOTALL)
_TEX_SIGNS: Final = {
    **{"times": "*", "cdot": "*", "div": "/", "$": "$", "n": "\n"},
    **dict.fromkeys([*",;!: ()[]", "quad", "qquad", "left", "right", "text", "mathrm", "boxed"], " "),
}
_FRACTION: Final = lazy_pattern(r"\\[dt]?frac\s*(?:\{([\d.,]+)\}\s*\{([\d.,]+)\}|(\d)(\d))")
_FENCE: Final = lazy_pattern(r"```(?!json|text|math)\w+\n.*?(?:```|\Z)", re.DOTALL)
_BULLET: Final = lazy_pattern(r"^[ \t]*(?:[*+•][ \t]+|\d{1,3}[.)][ \t]+)", re.MULTILINE)
_TIMES: Final = lazy_pattern(r"(?<=[\d)])(\s*)[xX](\s*)(?=[\d($(])")


def false_equations(text: str, *, about: str = "") -> list[str]:
    """Return a message for each false equation in a text, such as "4736 × 8 is 37888, not 37788".

    Args:
        text: Prose, markdown or LaTeX.
        about: The problem that the text is about. If the problem defines its own arithmetic, no fault is returned.
    """
    if "=" not in text or _TAKEN_BACK.search(text) or _ANOTHER_ARITHMETIC.search(text):
        return []
    if _has_own_arithmetic(about):
        return []
    faults = (_fault(left, right) for left, right in _equations(plain_text(text[-MAX_CHECKED:])))
    return list(dict.fromkeys(fault for fault in faults if fault))


def is_true_equation(text: str, *, about: str = "") -> bool:
    """Whether the entire text is a numeric equation that holds exactly."""
    plain = plain_text(text[:200]).strip().rstrip(".")
    if not _RUN.fullmatch(plain) or _ANOTHER_ARITHMETIC.search(about):
        return False
    sides = [(_term(left), _term(right)) for left, right in _equations(plain) if _computes(left)]
    holds = all(left and right and left.value == right.value for left, right in sides)
    return holds and 0 < len(sides) == plain.count("=")


@lru_cache(maxsize=200)
def _has_own_arithmetic(problem: str) -> bool:
    if _ANOTHER_ARITHMETIC.search(problem):
        return True
    runs = _RUN.findall(plain_text(problem[-MAX_CHECKED:])) if "=" in problem else []
    return any(_fault(left, right) for run in runs for left, right in _sides(run.strip(" \t.,")))


def plain_text(text: str) -> str:
    """Remove markup from a text, and replace variants of signs with plain signs."""
    text = _FENCE.sub("\n", text).replace("<<", " ; ").replace(">>", " ; ").replace("{,}", ",")
    text = re.sub(r"(?<=[A-Za-z])_\{[^{}\n]*\}", "_n", text)
    text = _FRACTION.sub(lambda match: "({}/{})".format(*[part for part in match.groups() if part]), text)
    text = _TEX.sub(lambda tex: _TEX_SIGNS.get(tex["command"], " § "), text)
    text = re.sub(r"(?<=[\d)])(?:\*\*| \*\* )(?=\d)", "^", _BULLET.sub("", text)).replace("**", " ")
    text = re.sub(r"\^\{(\d{1,2})\}", r"^\1", text).replace("{", " ").replace("}", " ").replace("`", " ")
    return _TIMES.sub(r"\1*\2", plain_signs(text))


def _equations(text: str) -> Iterator[tuple[str, str]]:
    """Yield the two sides of each equation that is a separate clause."""
    for part in _CLAUSE_END.split(_CONTINUED.sub(" ", text)):
        clause = _REMARK.sub("", part).strip()
        if _RUN.fullmatch(clause):
            yield from _sides(clause)


def _sides(clause: str) -> Iterator[tuple[str, str]]:
    sides = [side.strip() for side in clause.split("=")]
    if sides[0].count("(") > sides[0].count(")"):
        sides[0] = sides[0].removeprefix("(").lstrip()
    if sides[-1].count(")") > sides[-1].count("("):
        sides[-1] = sides[-1].removesuffix(")").rstrip()
    for left, right in pairwise(sides):
        if left and right and not (len(sides) > 2 and _goes_on(left, right)):
            yield left, right.rstrip(_COINS + " ")


def _computes(side: str) -> bool:
    return any(sign in side[1:] for sign in "+-*/^²³")


def _goes_on(left: str, right: str) -> bool:
    """Whether an equals sign means "and then", as in `3 + 4 = 7 × 2 = 14`."""
    value, number = _term(left), _NUMBER.match(right)
    if value is None or number is None or not _computes(right):
        return False
    return number[0].replace(",", "") == str(value.value)


def _fault(left: str, right: str) -> str:
    """Return the fault of a false equation. For an unreadable or possibly true equation, return an empty text."""
    coins = {character for character in left + right if character in _COINS}
    if not (_computes(left) or _computes(right)) or len(coins) > 1 or _holds_somehow(left, right):
        return ""
    left = _without_dash(left)
    first, second = _term(left), _term(right)
    if first is None or second is None:
        return ""
    if left.count("/") == 1 and 0 < first.value < 1 <= second.value:  # A share: "2/3 = 40".
        return ""
    if not _computes(left):
        return f"{_spaced_text(right)} is {_number(second.value)}, not {_spaced_text(left)}"
    stated = _spaced_text(right)
    end = f"but {stated} is {_number(second.value)}" if _computes(right) else f"not {stated}"
    return f"{_spaced_text(left)} is {_number(first.value)}, {end}"


def _without_dash(side: str) -> str:
    """Remove a leading minus that may be a dash."""
    return re.sub(r"\A-\s+", "", side)


def _holds_somehow(left: str, right: str) -> bool:
    """Whether an equation holds under some reading of its numbers."""
    for continental, compact in product((False, True), repeat=2):
        first = [_term(side, continental, compact) for side in (left, _without_dash(left))]
        second = _term(right, continental, compact)
        if second is not None and any(term and _agrees(term, second) for term in first):
            return True
    return False


def _term(side: str, continental: bool = False, compact: bool = False) -> Term | None:
    """Parse a side of an equation.

    Args:
        continental: Whether `1.500` is read as 1500, and `1,5` as one and a half.
        compact: Whether a fraction without spaces, such as `8/3`, takes precedence over other operators.
    """
    side = re.sub(f"[{_COINS}]", " ", side)
    written = _NUMBER.findall(side)
    digits = {number: _digits(number, continental) for number in written}
    if None in digits.values() or re.search(r"[\d)]\s+[\d(]|\)\d|\d\(", side):
        return None
    text = _NUMBER.sub(lambda match: digits[match[0]] or "", side)
    return read_expression(_POWER.sub(_write_out, text), compact=compact)


def _write_out(power: re.Match[str]) -> str:
    exponent = int(power["power"] or {"²": 2, "³": 3}[power["raised"]])
    return f"({' * '.join([power['base']] * exponent)})" if 1 <= exponent <= _MAX_POWER else power[0]


def _digits(text: str, continental: bool) -> str | None:
    """Convert an English or continental number to Python notation. For other texts, return None."""
    if not (_CONTINENTAL if continental else _ENGLISH).fullmatch(text) or re.match(r"0\d", text):
        return None
    return text.replace(".", "").replace(",", ".") if continental else text.replace(",", "")


def _agrees(left: Term, right: Term) -> bool:
    """Whether two sides are equal. A plain number may be off by less than one unit in its last digit."""
    numbers = [term for term in (left, right) if term.left is None]
    digit = max([Fraction(1, 10**term.decimals) for term in numbers], default=0)
    first, second = ((term.value, term.value) if term in numbers else _bounds(term) for term in (left, right))
    if first is None or second is None:
        return True
    apart = max(second[0] - first[1], first[0] - second[1])
    return apart <= 0 or apart < digit


def _bounds(term: Term) -> tuple[Fraction, Fraction] | None:
    """Return the lowest and the highest value of a term with rounded decimals. If a divisor may be 0, return None."""
    if term.left is None or term.right is None:
        half = 0 if (term.value * 4).denominator == 1 else Fraction(1, 2 * 10**term.decimals)
        return term.value - half, term.value + half
    left, right = _bounds(term.left), _bounds(term.right)
    if left is None or right is None or (term.op == "/" and right[0] <= 0 <= right[1]):
        return None
    ends = [OPERATIONS[term.op](a, b) for a in left for b in right]
    return min(ends), max(ends)


def _spaced_text(side: str) -> str:
    text = re.sub(r"\s*([-+*/])\s*", r" \1 ", side).strip().replace("*", "×")
    return re.sub(r"\A- ", "-", text)


def _number(value: Fraction) -> str:
    """Format a value as `37888`, `2.5`, or `8/3 (about 2.66667)`."""
    if value.denominator == 1 or (value * 10**6).denominator > 1:
        about = "" if value.denominator == 1 else f" (about {float(value):.6g})"
        return str(value) + about
    return f"{float(value):.6f}".rstrip("0")
