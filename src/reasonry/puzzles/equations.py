"""Check equations of numbers in a text, such as `4736 * 8 = 37788`, by exact arithmetic.

Rule 1: a false alarm costs more than a missed error. Only certain, plain equations of numbers are checked: no
        variables, functions, other bases and moduli, percentages, units among the operands, dates, code, questions,
        suppositions, or statements that the text itself retracts.
Rule 2: an equation is false only if it is false under every reading of its numbers: `1,500` is 1500 or, in other
        countries, 1.5.
Rule 3: a number is right up to its written digits, and a decimal among the operands may be rounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from operator import add, mul, sub, truediv
from typing import Final

from msgspec import Struct

from ..text import lazy_pattern
from .expression import plain_signs, read_expression
from .term import Term, format_number

MAX_CHECKED: Final = 50_000
"""The number of characters at the end of a text to check."""

_MAX_POWER: Final = 12
_CONVERSIONS: Final = frozenset(
    {3, 7, 12, 16, 24, 30, 36, 52, 60, 365, 1440, 3600, 86400, *(10**digits for digits in range(1, 13))}
)
"""Ratios of units: an equation with a unit and an error of such a factor may be a conversion."""

_ANOTHER_ARITHMETIC: Final = lazy_pattern(
    r"\b(?:mod(?:ul(?:o|us|ar))?|congruen\w+|binary|ternary|octal|hex(?:adecimal)?|xor|boolean|clocks?|o'clock|"
    r"base[- ]?(?:\d+|two|three|four|five|six|seven|eight|nine|twelve|sixteen)|cryptarithm\w*|alphametic\w*|"
    r"matchsticks?|matches|toothpicks?|roman|define[sd]?|definition|operations?\s+[^\w\s]|operator|denotes?)\b"
    r"|[≡⊕⊗∘⋆⊙◦]|\b0[xb][0-9a-f]",
    re.IGNORECASE,
)
"""Words that show, in a text or its problem, that signs and digits may have another meaning."""

_DOUBTED: Final = lazy_pattern(
    r"\b(?:if|suppos\w*|assum\w*|would|could|might|should|wrong|false|incorrect\w*|not|never|no|none|\w+n['’]t|instead|"
    r"wrote|claim\w*|mistake\w*|error|tr(?:y|ies|ied|ying)|guess\w*|approximat\w*|approx|roughly|around|about|nearly|"
    r"almost|estimat\w*|remainder|round\w*|truncat\w*|floor|ceil\w*|inclusive\w*|average|mean|median|unlike|versus|vs|"
    r"[ap]\.?m|reverse\w*|digits?|concatenat\w*)\b|[≠≈~∼≃≅?!]",
    re.IGNORECASE,
)
"""Words and signs in a sentence that make an equation approximate, or not a statement."""

_TAKEN_BACK: Final = lazy_pattern(
    r"\b(?:wait|actually|oops|hmm|sorry|correct(?:ion|ed|ing)?|wrong|mistake|that's not|is not right|let me re)\b",
    re.IGNORECASE,
)
_NO_UNIT: Final = """
a an b c d e f i j k n p q r t u v w x y z sin cos tan cot log ln exp sqrt root roots max min gcd lcm gcf hcf
abs det half halves twice thrice double doubled doubling triple third thirds quarter quarters fourth fifth
fifths sixth eighth tenth tenths sum product difference quotient ratio square squared squares cube cubed
factorial negative minus plus times than percent percentage dozen dozens pair pairs couple score gross ten
tens hundred hundreds thousand thousands million millions billion trillion pi phi step thought row column page
pages day question problem equation game house room number no item position choose div divided multiplied
multiply power exponent less more fewer squaring between one two three four five six seven eight nine eleven
twelve twenty thirty forty fifty sixty seventy eighty ninety point remainder
"""
_FUNCTIONS: Final = frozenset(_NO_UNIT.split())
"""Words next to numbers that are not units, or that modify the numbers."""

_TYING: Final = "of by to from and with into over per or for at de du von di van"
_LINKS: Final = frozenset(_TYING.split())
"""Words that may connect a number before them with a number after them."""

_GOING_ON: Final = frozenset(
    ["so", "and", "which", "then", "thus", "hence", "therefore", "is", "in", "because"]
)
"""Words after a number that continue the sentence and are not its unit."""

_ENGLISH: Final = lazy_pattern(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+")
_CONTINENTAL: Final = lazy_pattern(r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")
_RUN: Final = lazy_pattern(r"[-+*/^²³()\d.,$€£¥₹= \t]+")
_PIECE_END: Final = lazy_pattern(r"[.,](?=\s|\Z)")
_NUMBER: Final = lazy_pattern(r"\d(?:[\d.,]*\d)?|(?<!\d)\.\d+")
_POWER: Final = lazy_pattern(
    r"(?P<base>\d+(?:\.\d+)?)\s?(?:\^\s?(?P<power>\d{1,2})(?![\d.])|(?P<raised>[²³]))"
)
_COINS: Final = "$€£¥₹"
_WORD_BEFORE: Final = lazy_pattern(r"(?P<word>[^\W_][\w'’]*)[ \t]+\Z")
_WORD_AFTER: Final = lazy_pattern(r"[ \t]+(?P<word>[^\W\d_]+)[²³]?(?P<number>(?:[ \t]+[^\W\d_]+)?[ \t]+\d)?")
_BEGINS_WELL: Final = lazy_pattern(r"(?:[.;:|—→⇒'”’>#][ \t]+|[\"“‘>]|(?<![-+*/=^,])\s*\n[ \t]*|\A\s*)\Z")
_ENDS_WELL: Final = lazy_pattern(r"\s*\Z|[ \t]*;|[.,:](?!\d)|[)—→⇒|\"”’']|[ \t]+[(|—→⇒]|[ \t]*\n(?!\s*[+/*])")
_TEX: Final = lazy_pattern(r"\\(?P<command>[A-Za-z]+|.)[ \t]*", re.DOTALL)
_TEX_SIGNS: Final = {"times": "*", "cdot": "*", "div": "/", "$": "$", "quad": " ", "qquad": " ", "n": "\n"}
_TEX_SPACES: Final = frozenset(
    {",", ";", "!", ":", " ", "(", ")", "[", "]", "left", "right", "text", "mathrm", "boxed"}
)
_FRACTION: Final = lazy_pattern(r"\\[dt]?frac\s*(?:\{([\d.,]+)\}\s*\{([\d.,]+)\}|(\d)(\d))")
_FENCE: Final = lazy_pattern(r"```(?!json|text|math)\w+\n.*?(?:```|\Z)", re.DOTALL)
_BULLET: Final = lazy_pattern(r"^[ \t]*(?:[*+•][ \t]+|\d{1,3}[.)][ \t]+)", re.MULTILINE)
_TIMES: Final = lazy_pattern(r"(?<=[\d)])(\s*)[xX](\s*)(?=[\d($(])")
_BARE: Final = lazy_pattern(r"[\d\s.,+\-*/^()=]{5,}")
_SENTENCE_END: Final = lazy_pattern(r"[.;](?=\s|\Z)|\n|;")


class _Equation(Struct, frozen=True):
    """Two expressions that a text states to be equal, and their position."""

    left: str
    right: str
    start: int
    end: int
    has_unit: bool


def false_equations(text: str, *, about: str = "") -> list[str]:
    """Return the fault of each false equation in a text: "4736 × 8 is 37888, not 37788".

    Args:
        text: Prose, markdown or LaTeX.
        about: The problem of the text. If it defines its own arithmetic, there are no faults.
    """
    if "=" not in text or _ANOTHER_ARITHMETIC.search(text) or _has_own_arithmetic(about):
        return []
    plain = plain_text(text[-MAX_CHECKED:])
    faults = (_fault(equation) for equation in _equations(plain) if not _is_doubted(plain, equation))
    return list(dict.fromkeys(fault for fault in faults if fault))


def is_true_equation(text: str, *, about: str = "") -> bool:
    """Whether a text is an equation of numbers and nothing else, and holds to the digit."""
    plain = plain_text(text[:200]).strip().rstrip(".")
    if not _BARE.fullmatch(plain) or _ANOTHER_ARITHMETIC.search(about):
        return False
    sides = [(_term(each.left), _term(each.right)) for each in _equations(plain) if _computes(each.left)]
    holds = all(left and right and left.value == right.value for left, right in sides)
    return holds and 0 < len(sides) == plain.count("=")


@lru_cache(maxsize=200)
def _has_own_arithmetic(problem: str) -> bool:
    if _ANOTHER_ARITHMETIC.search(problem):
        return True
    return "=" in problem and any(map(_fault, _equations(plain_text(problem[-MAX_CHECKED:]))))


def plain_text(text: str) -> str:
    """Remove markup from a text, and unify its signs."""
    text = _FENCE.sub("\n", text).replace("<<", " ; ").replace(">>", " ; ").replace("{,}", ",")
    text = re.sub(r"(?<=[A-Za-z])_\{[^{}\n]*\}", "_n", text)
    text = _FRACTION.sub(lambda match: "({}/{})".format(*[part for part in match.groups() if part]), text)
    text = _TEX.sub(_replace_command, text)
    text = re.sub(r"(?<=[\d)])(?:\*\*| \*\* )(?=\d)", "^", _BULLET.sub("", text)).replace("**", " ")
    text = re.sub(r"\^\{(\d{1,2})\}", r"^\1", text).replace("{", " ").replace("}", " ").replace("`", " ")
    return _TIMES.sub(r"\1*\2", plain_signs(text))


def _replace_command(match: re.Match[str]) -> str:
    command = match["command"]
    return _TEX_SIGNS.get(command) or (" " if command in _TEX_SPACES else " § ")


def _equations(text: str) -> Iterator[_Equation]:
    for run in _RUN.finditer(text):
        if "=" not in run[0] or "==" in run[0]:
            continue
        start, was_equation = run.start(), False
        for end in [*(match.start() for match in _PIECE_END.finditer(text, *run.span())), run.end()]:
            yield from _in_piece(text, start, end, follows_equation=was_equation)
            was_equation, start = "=" in text[start:end], end + 1


def _in_piece(text: str, start: int, end: int, *, follows_equation: bool) -> Iterator[_Equation]:
    """Yield the equations in a piece of text without a dividing comma or full stop."""
    sides = text[start:end].split("=")
    if len(sides) < 2:
        return
    begin, stop = start + len(sides[0]) - len(sides[0].lstrip()), end - len(sides[-1])
    if not (follows_equation or _is_left_bound(text, begin)):
        sides[0] = ""
    while sides[0].lstrip().startswith("(") and sides[0].count("(") > sides[0].count(")"):
        sides[0] = sides[0].lstrip()[1:]
    sides[-1] = _before_remark(sides[-1])
    stop += len(sides[-1])
    has_unit = not _ENDS_WELL.match(text, stop)
    if has_unit and not _is_unit_at(text, stop):
        sides[-1] = ""
    for left, right in pairwise(side.strip() for side in sides):
        if left and right and not (len(sides) > 2 and _goes_on(left, right)):
            coins = any(coin in left + right for coin in _COINS)
            yield _Equation(left, right.rstrip(_COINS + " "), begin, stop, has_unit or coins)


def _before_remark(side: str) -> str:
    """Cut an expression before a parenthesis that begins a remark, or ends a remark around it."""
    depth = 0
    for place, character in enumerate(side):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return side[:place].rstrip()
    return side.rstrip().removesuffix(" (").rstrip()


def _is_unit_at(text: str, place: int) -> bool:
    """Whether the next word may be a unit, or continues the sentence."""
    word = _WORD_AFTER.match(text, place)
    if word is None or word["word"].lower() in _FUNCTIONS:
        return False
    return word["word"].lower() in _GOING_ON or not word["number"]


def _is_left_bound(text: str, start: int) -> bool:
    """Whether the text before an expression is separate from its numbers."""
    before = text[max(0, start - 60) : start]
    if text[start : start + 1] in ("+", "*", "/", "^", ")"):
        return False
    if _BEGINS_WELL.search(before):
        return True
    if before.rstrip().endswith(","):
        before = f"{before.rstrip()[:-1]} "
        is_list = before[-2:-1].isdigit() or before[-2:-1] in (")", "%")
        return not is_list and before[-2:-1].isalpha()
    word = _WORD_BEFORE.search(before)
    if word is None or text[start] == "-":
        return False
    is_tied = word["word"].lower() in _FUNCTIONS | _LINKS
    return not is_tied and not any(character.isdigit() for character in word["word"])


def _computes(side: str) -> bool:
    return any(sign in side[1:] for sign in "+-*/^²³")


def _goes_on(left: str, right: str) -> bool:
    """Whether an equals sign means "and then", as in `3 + 4 = 7 × 2 = 14`."""
    value, number = _term(left), _NUMBER.match(right)
    begins = (
        number is not None and value is not None and number[0].replace(",", "") == format_number(value.value)
    )
    return begins and _computes(right)


def _fault(equation: _Equation) -> str:
    """Return the fault of an equation. Empty if it holds under some reading, or cannot be read."""
    left, right = equation.left, equation.right
    coins = {character for character in left + right if character in _COINS}
    if not (_computes(left) or _computes(right)) or len(coins) > 1 or _holds_somehow(left, right):
        return ""
    left = _without_dash(left)
    first, second = _term(left), _term(right)
    if first is None or second is None:
        return ""
    is_share = left.count("/") == 1 and 0 < first.value < 1 <= second.value  # "2/3 = 40 pupils"
    if is_share or (equation.has_unit and _is_conversion(first.value, second.value)):
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
        side: Numbers and signs.
        continental: Whether `1.500` is 1500, and `1,5` a decimal.
        compact: Whether `8/3`, without spaces, takes precedence.
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
    """Convert a number to the notation of code, or return None if it is invalid in this notation."""
    if not (_CONTINENTAL if continental else _ENGLISH).fullmatch(text) or re.match(r"0\d", text):
        return None
    return text.replace(".", "").replace(",", ".") if continental else text.replace(",", "")


def _agrees(left: Term, right: Term) -> bool:
    """Whether two values are equal, up to one unit in the last digit of a plain number."""
    numbers = [term for term in (left, right) if term.left is None]
    digit = max([Fraction(1, 10**term.decimals) for term in numbers], default=0)
    first, second = ((term.value, term.value) if term in numbers else _bounds(term) for term in (left, right))
    if first is None or second is None:
        return True
    apart = max(second[0] - first[1], first[0] - second[1])
    return apart <= 0 or apart < digit


def _bounds(term: Term) -> tuple[Fraction, Fraction] | None:
    """Return the bounds of a value if its decimals may be rounded. None for unknown bounds."""
    if term.left is None or term.right is None:
        half = 0 if (term.value * 4).denominator == 1 else Fraction(1, 2 * 10**term.decimals)
        return term.value - half, term.value + half
    left, right = _bounds(term.left), _bounds(term.right)
    if left is None or right is None or (term.op == "/" and right[0] <= 0 <= right[1]):
        return None
    operate = {"+": add, "-": sub, "*": mul, "/": truediv}[term.op]
    ends = [operate(a, b) for a in left for b in right]
    return min(ends), max(ends)


def _is_conversion(value: Fraction, stated: Fraction) -> bool:
    ratio = value / stated if stated else Fraction(0)
    ratio = 1 / ratio if 0 < ratio < 1 else ratio
    return ratio.denominator == 1 and ratio.numerator in _CONVERSIONS


def _spaced_text(side: str) -> str:
    text = re.sub(r"\s*([-+*/])\s*", r" \1 ", side).strip().replace("*", "×")
    return re.sub(r"\A- ", "-", text)


def _number(value: Fraction) -> str:
    """Write `37888`, `2.5`, or `8/3 (about 2.6667)`."""
    if value.denominator == 1 or (value * 10**6).denominator > 1:
        about = "" if value.denominator == 1 else f" (about {float(value):.6g})"
        return format_number(value) + about
    return f"{float(value):.6f}".rstrip("0")


def _is_doubted(text: str, equation: _Equation) -> bool:
    """Whether a text does not state an equation as true, or retracts it."""
    start, end = equation.start, equation.end
    begins = [match.end() for match in _SENTENCE_END.finditer(text, max(0, start - 400), start)]
    stop = _SENTENCE_END.search(text, end, end + 400)
    sentence = text[begins[-1] if begins else max(0, start - 400) : stop.start() if stop else end + 400]
    return bool(_DOUBTED.search(sentence) or _TAKEN_BACK.search(text, end, end + 120))
