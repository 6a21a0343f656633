r"""Read numbers with a scale (`7/10`), quantities with a unit, and dates.

`$60`, `60 dollars`, `US$60` and `$60.00` are the same amount; `\(\frac{3}{4}\)`, `$\frac34$` and `0.75` are the same
number; `20 July 1969` and `1969-07-20` are the same day.

Rule: a text is a quantity if it is a number with or without a unit. A sentence is not a quantity.
"""

import re
from fractions import Fraction
from typing import Final

from msgspec import Struct

from ..text import lazy_pattern
from .words import MONTHS, UNITS

_DIGITS: Final = r"(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:e[+-]?\d{1,3})?"
_SCALED: Final = lazy_pattern(
    rf"(?P<number>[-+−]?{_DIGITS})\.?[*_`]{{0,3}}"
    r"(?:\s?(?:/|(?:out\s)?of\b)\s?(?P<scale>\d{1,20}(?:\.\d{1,20})?)|\s?(?P<percent>%|percent\b))?[*_`]{0,3}",
    re.IGNORECASE,
)
_SIGN: Final = r"(?:us)?[$€£¥]|(?:usd|eur|gbp|jpy)\b"
_NUMBER: Final = rf"(?:(?:(?P<whole>\d+)\s)?(?P<top>\d+)\s?/\s?(?P<bottom>\d+)|(?P<plain>{_DIGITS}))"
_NUMBER_IN_TEXT: Final = lazy_pattern(
    rf"(?<![\w.])(?P<sign>[+-]?)\s?(?:[$€£¥]\s?)?(?P<minus>-?){_NUMBER}", re.ASCII
)
_QUANTITY: Final = lazy_pattern(
    rf"(?P<sign>[+-]?)\s?(?P<before>(?:{_SIGN})\s?)?(?P<minus>-?){_NUMBER}"
    r"(?:\s?(?P<unit>[%$€£¥°]|[^\W\d_][\w/°²³^]*))?"
)
_MONEY_COMMA: Final = lazy_pattern(
    rf"(?:(?:{_SIGN})\s?)?-?\d{{1,9}},\d\d?(?:\s?(?:{_SIGN}|euros?|dollars?|%|percent))?"
)
_POWER: Final = lazy_pattern(r"(\d(?:\.\d+)?)\s?[×x*·]\s?10\s?\^\s?\{?([+-]?\d{1,3})\}?")
_LATEX: Final = (
    (lazy_pattern(r"\\(?:left|right|displaystyle|[,;:!])|(?<=\d)\{(?=,\}\d)|(?<=\d\{,)\}(?=\d)"), ""),
    (lazy_pattern(r"\\([$%#&])|\\(?:text|mathrm|textbf)\s?\{([^{}]*)\}"), r"\1\2"),
    (lazy_pattern(r"\\(?:times|cdot)\b"), "×"),
    (lazy_pattern(r"\^\s?(?:\\circ|\{\s?\\circ\s?\})"), "°"),
    (lazy_pattern(r"\\ |~|\\q?quad\b"), " "),
    (lazy_pattern(r"\\[dt]?frac\s?(?:\{\s?(-?\d+)\s?\}\s?\{\s?(\d+)\s?\}|(\d)\s?(\d))"), r" \1\3/\2\4 "),
)
_DAY, _MONTH, _YEAR = r"(?P<day>\d\d?)(?:st|nd|rd|th)?", r"(?P<month>[a-z]{3,9}|\d\d?)", r"(?P<year>\d{4})"
_DATES: Final = (
    lazy_pattern(rf"{_DAY}(?:\.|\.? (?:of )?){_MONTH}(?:\.|\.?,? ){_YEAR}"),
    lazy_pattern(rf"(?P<month>[a-z]{{3,9}})\.? {_DAY},? {_YEAR}"),
    lazy_pattern(rf"{_YEAR}-{_MONTH}-{_DAY}"),
)
_LONGEST: Final = 160


class Scaled(Struct, frozen=True):
    """The number at the start of a text, its scale if any, and the rest of the text."""

    number: float
    scale: float | None
    rest: str


class Quantity(Struct, frozen=True):
    """A number with or without a unit."""

    number: Fraction
    unit: str = ""


def read_scaled(text: str) -> Scaled | None:
    """Read the number at the start of a text, and its scale: `7/10`, `7 out of 10`, `70%`."""
    text = text.lstrip(" \t\n*_`\"'([#")
    found = _SCALED.match(text)
    if found is None or len(found["number"]) > _LONGEST:
        return None
    scale = 100.0 if found["percent"] else float(found["scale"]) if found["scale"] else None
    return Scaled(float(found["number"].replace(",", "").replace("−", "-")), scale, text[found.end() :])


def read_quantity(text: str) -> Quantity | None:
    """Read an answer that is one quantity, or return None.

    Args:
        text: The answer in lower case, with single spaces.
    """
    if len(text) > _LONGEST:
        return None
    text = _POWER.sub(r"\1e\2", text.replace("**", ""))
    if _MONEY_COMMA.fullmatch(text) and not text.replace(",", "").replace("-", "").isdigit():
        text = text.replace(",", ".")
    match = _QUANTITY.fullmatch(text)
    if match is None or (number := _number(match)) is None:
        return None
    unit = (match["before"] or match["unit"] or "").strip()
    # Money and per cent are named by their sign, other units by their name.
    word = unit.removeprefix("us") if unit.startswith("us$") else unit
    return Quantity(number, UNITS.get(word, UNITS.get(word.removesuffix("s"), word)))


def read_date(text: str) -> str:
    """Read a lower-case text that is a date, and return it in the form `1969-07-20`. Otherwise, return ""."""
    matches = (pattern.fullmatch(text) for pattern in _DATES if len(text) < 40)
    match = next(filter(None, matches), None)
    if match is None:
        return ""
    names = [number for number, name in enumerate(MONTHS, 1) if name.startswith(match["month"])]
    month, day = int(match["month"]) if match["month"].isdigit() else sum(names), int(match["day"])
    is_date = 1 <= month <= 12 and 1 <= day <= 31 and len(names) < 2
    return f"{match['year']}-{month:02}-{day:02}" if is_date else ""


def without_latex(text: str) -> str:
    r"""Replace the LaTeX markup of numbers and units with plain text: `\frac34` becomes 3/4."""
    for pattern, plain in _LATEX:
        text = pattern.sub(plain, text)
    return " ".join(text.replace("- ", "-").split())


def numbers_in(text: str) -> list[Fraction]:
    """Return the numbers in a text, in order and without units."""
    return [number for number in map(_number, _NUMBER_IN_TEXT.finditer(text)) if number is not None]


def _number(match: re.Match[str]) -> Fraction | None:
    written = match["plain"] or f"{match['top']}/{match['bottom']}"
    try:
        value = Fraction(written.replace(",", "")) + int(match["whole"] or 0)
    except (ValueError, ZeroDivisionError):
        return None
    return -value if "-" in (match["sign"], match["minus"]) else value
