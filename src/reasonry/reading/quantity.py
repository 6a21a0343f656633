r"""Quantities: the number an answer is, and its unit, in whatever words it is written.

`3.5 hours`, `3 hours 30 minutes`, `3 h 30 min` and `210 minutes` are one length of time; `$60`, `60 dollars (total)`
and `She takes in $60.` are one sum; `\(\frac{3}{4}\)`, `$\frac34$` and `0.75` are one number.

Rule 1: a sentence is a quantity if it states one, and no other number; with "at least" or "not" in it, it is none.
Rule 2: a unit is converted only into one of its own dimension, exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from typing import Final

from msgspec import Struct

from ..patterns import lazy_pattern

_NUMBER: Final = (
    r"(?:(?P<whole>\d+)\s+(?P<top>\d+)/(?P<bottom>\d+)"
    r"|(?P<upper>\d+)\s*/\s*(?P<lower>\d+)"
    r"|(?P<plain>(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:e[+-]?\d{1,3})?|\.\d+(?:e[+-]?\d{1,3})?))"
)
_WORD: Final = r"[^\W\d_][\w/°²³^]*"
_ALONE: Final = lazy_pattern(
    rf"(?P<sign>[+-]?)\s*(?P<before>(?:us)?[$€£¥]|(?:usd|eur|gbp)\b)?\s*(?P<minus>-?){_NUMBER}"
    rf"\s*(?P<unit>[%°$€£¥]|{_WORD}(?:\s{_WORD}){{0,2}})?"
)
_INSIDE: Final = lazy_pattern(
    rf"(?<![\w.])(?P<sign>[+-]?)(?P<before>(?:us)?[$€£¥]\s?)?(?P<minus>-?){_NUMBER}"
    rf"(?:\s*(?P<unit>[%°$€£¥]|(?!and\b|or\b){_WORD}))?"
)
_BETWEEN: Final = lazy_pattern(r"\s*(?:,|and|,\s*and|&)?\s*")
_HALF: Final = lazy_pattern(r"\b(\d+) and (?:a|one) half\b")
_POWER: Final = lazy_pattern(r"(\d(?:\.\d+)?)\s*[×x*·]\s*10\s*\^\s*\{?([+-]?\d{1,3})\}?")
_CLOCK: Final = lazy_pattern(r"\b(\d+)\s*h\s*(\d{1,2})(?:\s*m)?\b(?!\s*\w)")
_REMARK: Final = lazy_pattern(r"\s*(?:\([^()\d]*\)|\b(?:in total|total|altogether|overall|in all)\b)\s*\Z")
_STATES: Final = lazy_pattern(
    r"(?:[^\W\d_][\w'’-]*,?\s+){0,8}?"
    r"(?:is|are|was|were|be|equals|has|have|had|there(?:'s| is| are)|costs?|takes?|took|makes?|made|earns?"
    r"|earned|pays?"
    r"|paid|needs?|needed|gets?|got|receives?|received|spends?|spent|sells?|sold|saves?|saved|collects?"
    r"|collected|gives?|gave"
    r"|uses?|used|eats?|ate|buys?|bought|weighs?|lasts?|travels?|travelled|traveled|covers?|runs?|ran|walks?|walked"
    r"|drives?|totals?|comes|amounts?|adds|leaves?|left|remains?|reaches|contains?|holds?|produces?|raises?"
    r"|owes?|keeps?|works?"
    r"|lives?|lived|requires?|charges?|bakes?|baked|reads?|grows?|drinks?|sums)"
    r"(?:\s+(?:in|to|up|up to be|for|at|of|out|back|exactly|a total of|on|with|only|just|now))*"
    r"\s+"
)
_AFTER: Final = lazy_pattern(r"(?:\s+[^\W\d_][\w'’-]*){0,6}")
UNSURE: Final = lazy_pattern(
    r"\b(?:not|no|never|nor|\w+n['’]t|less|more|fewer|least|most|over|under|between|or|either|about|around|roughly"
    r"|approximately|nearly|almost|above|below|than|if|unless|up to|maybe|perhaps|could|might)\b"
)
_COMMAND: Final = lazy_pattern(r"\\(?:text|mathrm|mathbf|textbf|mbox|operatorname)\s*\{([^{}]*)\}")
_FRACTION: Final = lazy_pattern(
    r"\\[dt]?frac\s*(?:\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}|(\d)(\d)|\{\s*(-?\d+)\s*\}(\d)|(\d)\{\s*(\d+)\s*\})"
)
_MARKUP: Final = (
    (lazy_pattern(r"\\(?:left|right|displaystyle|[,;:!])"), ""),
    (lazy_pattern(r"\\([$%#&])"), r"\1"),
    (lazy_pattern(r"\\(?:times|cdot)\b"), "×"),
    (lazy_pattern(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})"), "°"),
    (lazy_pattern(r"(?<=\d)\{,\}(?=\d)"), ","),
    (lazy_pattern(r"\\ |~"), " "),
)
_LONGEST: Final = 80
_LONGEST_SENTENCE: Final = 160

UNITS: Final = {
    name: unit
    for unit, names in {
        "$": "dollar usd us$",
        "€": "euro eur",
        "£": "pound gbp",
        "¥": "yen jpy",
        "%": "percent pct",
        "°": "degree deg",
        "km": "kilometer kilometre kms",
        "m": "meter metre",
        "cm": "centimeter centimetre",
        "mm": "millimeter millimetre",
        "ft": "foot feet",
        "inch": "inches",
        "yd": "yard",
        "mile": "mi",
        "t": "tonne",
        "kg": "kilogram kilo kgs",
        "g": "gram",
        "mg": "milligram",
        "day": "d",
        "week": "wk",
        "h": "hour hr hrs",
        "min": "minute mins",
        "s": "second sec secs",
        "ms": "millisecond",
        "l": "liter litre",
        "ml": "milliliter millilitre",
    }.items()
    for name in names.split()
}
"""By the name a unit goes by, the one it is known by here."""

_SIZES: Final = {
    unit: (dimension, Fraction(size))
    for dimension, sizes in {
        "time": {"ms": "1/1000", "s": "1", "min": "60", "h": "3600", "day": "86400", "week": "604800"},
        "length": {
            "mm": "1/1000",
            "cm": "1/100",
            "m": "1",
            "km": "1000",
            "inch": "0.0254",
            "ft": "0.3048",
            "yd": "0.9144",
            "mile": "1609.344",
        },
        "mass": {"mg": "1/1000", "g": "1", "kg": "1000", "t": "1000000"},
        "volume": {"ml": "1/1000", "l": "1"},
    }.items()
    for unit, size in sizes.items()
}
"""By unit, its dimension and how much of that dimension's basic unit it is."""


class Quantity(Struct, frozen=True):
    """A number with its unit, or without one."""

    number: Fraction
    unit: str = ""

    @property
    def measure(self) -> tuple[str, Fraction] | None:
        """The dimension and the value in its basic unit; None where the unit is not converted."""
        found = _SIZES.get(self.unit)
        return None if found is None else (found[0], self.number * found[1])


def read_quantity(text: str) -> Quantity | None:
    """Read an answer that is one quantity.

    Args:
        text: In lower case, with single blanks and without lead-in.

    Returns:
        None if it is none, or more than one.
    """
    if len(text) > _LONGEST_SENTENCE:
        return None
    text = _HALF.sub(r"\1.5", _POWER.sub(r"\1e\2", _CLOCK.sub(r"\1 h \2 min", text.replace("**", ""))))
    bare = _REMARK.sub("", text)
    match = _ALONE.fullmatch(bare or text) if len(text) <= _LONGEST else None
    if match is not None:
        return _quantity(match, match["unit"] or "")
    return _compound(bare or text) or _one_number(bare or text)


def without_latex(text: str) -> str:
    r"""Return a text with numbers and units plain that LaTeX dresses up: `\frac34` is 3/4."""
    for pattern, plain in _MARKUP:
        text = pattern.sub(plain, text)
    text = _FRACTION.sub(lambda match: " {}/{} ".format(*filter(None, match.groups())), text)
    text = _COMMAND.sub(r"\1", text)
    return " ".join(text.replace("- ", "-").split())


def _compound(text: str) -> Quantity | None:
    """Read a quantity in several units of one dimension, the largest first: `3 hours and 30 minutes`."""
    parts = list(quantities(text))
    if not parts or parts[0][0] != 0 or parts[-1][1] != len(text):
        return None
    return _sum([part for _, _, part in parts], text, [(start, end) for start, end, _ in parts])


def _one_number(text: str) -> Quantity | None:
    """Read a sentence that states one quantity: `She takes in $60 a day`."""
    parts = list(quantities(text))
    if not parts or UNSURE.search(text):
        return None
    places = [(start, end) for start, end, _ in parts]
    found = _sum([part for _, _, part in parts], text, places)
    before, after = text[: places[0][0]], text[places[-1][1] :]
    return found if found and _STATES.fullmatch(before) and _AFTER.fullmatch(after) else None


def quantities(text: str) -> Iterator[tuple[int, int, Quantity]]:
    """Yield every number in a text with the word after it, and where it stands."""
    for match in _INSIDE.finditer(text):
        quantity = _quantity(match, match["unit"] or "")
        if quantity is not None:
            yield match.start(), match.end(), quantity


def _sum(parts: list[Quantity], text: str, places: list[tuple[int, int]]) -> Quantity | None:
    """Return what quantities side by side come to; None: they are not parts of one."""
    if len(parts) == 1:
        return parts[0]
    first, total, last = parts[0], Fraction(0), None
    for number, part in enumerate(parts):
        # After hours, `30` and `30 m` are minutes.
        if number and parts[number - 1].unit == "h" and part.unit in ("", "m"):
            part = Quantity(part.number, "min")
        measure, size = part.measure, _SIZES.get(part.unit)
        adjacent = number == 0 or _BETWEEN.fullmatch(text[places[number - 1][1] : places[number][0]])
        if measure is None or size is None or not adjacent or (last is not None and size[1] >= last):
            return None
        if first.measure is None or measure[0] != first.measure[0]:
            return None
        total, last = total + measure[1], size[1]
    return Quantity(total / _SIZES[first.unit][1], first.unit)


def _quantity(match: re.Match[str], unit: str) -> Quantity | None:
    try:
        if match["whole"]:
            value = int(match["whole"]) + Fraction(int(match["top"]), int(match["bottom"]))
        elif match["upper"]:
            value = Fraction(int(match["upper"]), int(match["lower"]))
        else:
            value = Fraction(match["plain"].replace(",", ""))
    except (ValueError, ZeroDivisionError):
        return None
    is_negative = match["sign"] == "-" or match["minus"] == "-"
    return Quantity(-value if is_negative else value, _unit(match["before"] or unit))


def _unit(name: str) -> str:
    return " ".join(
        UNITS.get(word, UNITS.get(word.rstrip("s"), word.rstrip("s") or word)) for word in name.split()
    )
