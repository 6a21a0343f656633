r"""Numbers in words: with a scale, as in `7/10`, or with a unit, as quantities.

`3.5 hours`, `3 hours 30 minutes`, `3 h 30 min` and `210 minutes` are one length of time; `$60`, `60 dollars (total)`
and `She takes in $60.` are one sum; `\(\frac{3}{4}\)`, `$\frac34$` and `0.75` are one number.

Rule 1: a sentence is a quantity if it states one, and no other number; with "at least" or "not" in it, it is none.
Rule 2: a unit is converted only into one of its own dimension, exactly.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from msgspec import Struct

from ..patterns import lazy_pattern

_TABLE: Final = """
:       $ dollar usd us$, € euro eur, £ pound gbp, ¥ yen jpy, % percent pct, ° degree deg
time:   ms millisecond = 1/1000, s sec second = 1, min minute = 60, h hr hour = 3600, day d = 86400, week wk = 604800
length: mm millimeter millimetre = 1/1000, cm centimeter centimetre = 1/100, m meter metre = 1
length: km kilometer kilometre = 1000, inch inches = 0.0254, ft foot feet = 0.3048, yd yard = 0.9144, mile mi = 1609.344
mass:   mg milligram = 1/1000, g gram = 1, kg kilogram kilo = 1000, t tonne = 1000000
volume: ml milliliter millilitre = 1/1000, l liter litre = 1
"""
"""Units by dimension: the names of each, the first of which it is known by, and how much of the basic unit it is."""
_ROWS: Final = [
    (row.partition(":")[0], *entry.partition("=")[::2])
    for row in _TABLE.strip().splitlines()
    for entry in row.partition(":")[2].split(",")
]
UNITS: Final = {name: names.split()[0] for _, names, _ in _ROWS for name in names.split()}
"""By the name a unit goes by, the one it is known by here."""
_SIZES: Final = {names.split()[0]: (kind, Fraction(size.strip())) for kind, names, size in _ROWS if size}

NUMBER_WORD: Final = lazy_pattern(
    r"\d+|[零〇一二三四五六七八九十百千万两半½¼¾∞]|\b(?:none|nobody|zero|both|half|hal[fb]e?|twice|dozens?|hundreds?|"
    r"thousands?|millions?|infinite(?:ly)?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen"
    r"|\w+ty|keine?r?|null|ein(?:e[nrms]?|s)?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|\w+zehn"
    r"|\w+(?:zig|hundert|tausend)|aucune?|zéro|une?|deux|trois|quatre|cinq|sept|huit|neuf|dix|onze|douze|\w{3,}ante?"
    r"|vingt|cent|mille|ningun[oa]?|cero|uno|una?|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|veinte"
    r"|nessun[oa]?|due|tre|quattro|cinque|sei|sette|otto|nove|dieci|undici|dodici|venti|nenhuma?|dois|duas|três"
    r"|quatro|sete|oito|dez|doze|vinte|cem|dwa|trzy|cztery|pięć|sześć|geen|twee|drie|vijf|zes|zeven|tien)\b",
    re.IGNORECASE,
)
"""A number in digits, or a word for one."""
WIDE: Final = lazy_pattern(r"[\u3040-\u30ff\u4e00-\u9fff]")
"""A character of Chinese or Japanese, which have no spaces between words."""
_DIGITS: Final = r"(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:e[+-]?\d{1,3})?"
_SCALED: Final = lazy_pattern(
    rf"[\W_]*?(?:(?:about|around|approximately|roughly|approx|ca)\b\.?)?\s*(?P<number>[-+−]?{_DIGITS})\.?[*_`]*"
    r"(?:\s*(?:/|(?:out\s+)?of\b)\s*(?P<scale>\d{1,20}(?:\.\d{1,20})?)|\s*(?P<percent>%|percent\b))?[*_`]*",
    re.IGNORECASE,
)
_WORD: Final = r"[^\W\d_][\w/°²³^]*"
_QUANTITY: Final = lazy_pattern(
    r"(?<![\w.])(?P<sign>[+-]?)\s*(?P<before>(?:(?:us)?[$€£¥]|(?:usd|eur|gbp)\b)\s?)?(?P<minus>-?)"
    rf"(?:(?:(?P<whole>\d+)\s+)?(?P<top>\d+)\s*/\s*(?P<bottom>\d+)|(?P<plain>{_DIGITS}))"
    rf"(?:\s*(?P<unit>[%°$€£¥]|(?!and\b|or\b){_WORD}))?"
)
_MORE_UNIT: Final = lazy_pattern(rf"(?:\s{_WORD}){{0,2}}")
_BETWEEN: Final = lazy_pattern(r"\s*(?:,|and|,\s*and|&)?\s*")
_SPELLED: Final = (
    (lazy_pattern(r"\b(\d+)\s*h\s*(\d{1,2})(?:\s*m)?\b(?!\s*\w)"), r"\1 h \2 min"),
    (lazy_pattern(r"(\d(?:\.\d+)?)\s*[×x*·]\s*10\s*\^\s*\{?([+-]?\d{1,3})\}?"), r"\1e\2"),
    (lazy_pattern(r"\b(\d+) and (?:a|one) half\b"), r"\1.5"),
    (
        lazy_pattern(
            r"(?<=[\w$€£¥%])\s*(?:\([^()\d]*\)|\b(?:in total|total|altogether|overall|in all))\s*\Z"
        ),
        "",
    ),
)
"""Times and numbers written out, and remarks behind a quantity."""
_STATES: Final = lazy_pattern(
    r"(?:[^\W\d_][\w'’-]*,?\s+){1,8}?"
    r"(?:[^\W\d_]{3,}(?:s|ed)|is|are|was|were|be|has|have|had|took|made|paid|got|spent|sold|gave|ate|bought|ran"
    r"|left)(?:\s+(?:in|to|up|be|for|at|of|out|back|exactly|a total of|on|with|only|just|now))*\s+"
)
"""A subject and a verb, before a number."""
_AFTER: Final = lazy_pattern(r"(?:\s+[^\W\d_][\w'’-]*){0,6}")
_UNSURE: Final = lazy_pattern(
    r"\b(?:not|no|never|nor|\w+n['’]t|less|more|fewer|least|most|over|under|between|or|either|about|around|roughly"
    r"|approximately|nearly|almost|above|below|than|if|unless|up to|maybe|perhaps|could|might)\b"
)
_LATEX: Final = (
    (lazy_pattern(r"\\(?:left|right|displaystyle|[,;:!])"), ""),
    (lazy_pattern(r"\\([$%#&])"), r"\1"),
    (lazy_pattern(r"\\(?:times|cdot)\b"), "×"),
    (lazy_pattern(r"\^\s*(?:\\circ|\{\s*\\circ\s*\})"), "°"),
    (lazy_pattern(r"(?<=\d)\{,\}(?=\d)"), ","),
    (lazy_pattern(r"\\ |~|\\q?quad\b"), " "),
    (lazy_pattern(r"\\[dt]?frac\s*\{\s*(-?\d+)\s*\}\s*\{\s*(\d+)\s*\}"), r" \1/\2 "),
    (lazy_pattern(r"\\[dt]?frac\s*(\d)\s*(\d)"), r" \1/\2 "),
    (lazy_pattern(r"\\(?:text|mathrm|mathbf|textbf|mbox|operatorname)\s*\{([^{}]*)\}"), r"\1"),
)
_LONGEST: Final = 160


class Scaled(Struct, frozen=True):
    """A number that a text begins with, its scale where it has one (100 for per cent), and the rest of the text."""

    number: float
    scale: float | None
    rest: str


class Quantity(Struct, frozen=True):
    """A number with its unit, or without one."""

    number: Fraction
    unit: str = ""

    @property
    def measure(self) -> tuple[str, Fraction] | None:
        """The dimension and the value in its basic unit; None where the unit is not converted."""
        found = _SIZES.get(self.unit)
        return None if found is None else (found[0], self.number * found[1])


def read_scaled(text: str) -> Scaled | None:
    """Read the number that a text begins with, and its scale: `7/10`, `7 out of 10`, `70%`, `about 7`."""
    found = _SCALED.match(text)
    if found is None or len(found["number"]) > _LONGEST:
        return None
    scale = 100.0 if found["percent"] else float(found["scale"]) if found["scale"] else None
    return Scaled(float(found["number"].replace(",", "").replace("−", "-")), scale, text[found.end() :])


def read_quantity(text: str) -> Quantity | None:
    """Read an answer that is one quantity, or a sentence that states one: `She takes in $60 a day`.

    Args:
        text: In lower case, with single blanks and without lead-in.

    Returns:
        None if it is none, or more than one.
    """
    if len(text) > _LONGEST:
        return None
    text = text.replace("**", "")
    for pattern, plain in _SPELLED:
        text = pattern.sub(plain, text)
    parts = list(quantities(text))
    found = _sum(parts, text)
    if found is None:
        return None
    before, after = text[: parts[0][0]], text[parts[-1][1] :]
    if not before and len(parts) == 1 and found.unit and _MORE_UNIT.fullmatch(after):
        return Quantity(found.number, _unit(found.unit + after))
    is_stated = _STATES.fullmatch(before) and _AFTER.fullmatch(after) and not _UNSURE.search(text)
    return found if is_stated or not (before or after) else None


def without_latex(text: str) -> str:
    r"""Return a text with numbers and units plain that LaTeX dresses up: `\frac34` is 3/4."""
    for pattern, plain in _LATEX:
        text = pattern.sub(plain, text)
    return " ".join(text.replace("- ", "-").split())


def quantities(text: str) -> Iterator[tuple[int, int, Quantity]]:
    """Yield every number in a text with the word after it, and where it stands."""
    for match in _QUANTITY.finditer(text):
        quantity = _quantity(match)
        if quantity is not None:
            yield match.start(), match.end(), quantity


def numbers_in(text: str) -> list[Fraction]:
    """Return the numbers in a text in their order, without their units."""
    return [quantity.number for _, _, quantity in quantities(WIDE.sub(" ", text))]


def _sum(parts: Sequence[tuple[int, int, Quantity]], text: str) -> Quantity | None:
    """Return what quantities side by side come to, the largest unit first; None: they are not parts of one."""
    if len(parts) < 2:
        return parts[0][2] if parts else None
    total, last = Fraction(0), None
    dimension, size = _SIZES.get(parts[0][2].unit, ("", Fraction(1)))
    for (_, before, previous), (start, _, part) in zip([(0, 0, parts[0][2]), *parts], parts, strict=False):
        # After hours, `30` and `30 m` are minutes.
        unit = "min" if start and previous.unit == "h" and part.unit in ("", "m") else part.unit
        kind, basic = _SIZES.get(unit, ("", Fraction(1)))
        is_next = last is None or (basic < last and _BETWEEN.fullmatch(text, before, start))
        if not kind or kind != dimension or not is_next:
            return None
        total, last = total + part.number * basic, basic
    return Quantity(total / size, parts[0][2].unit)


def _quantity(match: re.Match[str]) -> Quantity | None:
    try:
        value = (
            Fraction(match["plain"].replace(",", ""))
            if match["plain"]
            else Fraction(int(match["top"]), int(match["bottom"]))
        )
    except (ValueError, ZeroDivisionError):
        return None
    value += int(match["whole"] or 0)
    is_negative = "-" in (match["sign"], match["minus"])
    return Quantity(-value if is_negative else value, _unit(match["before"] or match["unit"] or ""))


def _unit(name: str) -> str:
    return " ".join(
        UNITS.get(word, UNITS.get(word.rstrip("s"), word.rstrip("s") or word)) for word in name.split()
    )
