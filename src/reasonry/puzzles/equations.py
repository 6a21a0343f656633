"""Written equations of numbers, `4736 * 8 = 37788`, checked by exact arithmetic wherever they stand in a text.

Rule 1: a false alarm costs more than a missed error: what is not surely a plain equation of numbers is passed over:
        variables, functions, other bases and moduli, conversions of units, percentages that are added, dates, code,
        questions, suppositions, and what the text itself takes back.
Rule 2: an equation is false only if it is false in every way in which its numbers may be meant: `1,500` is 1500 or, in
        other countries, 1.5; `25%` is 0.25, or 25 of a hundred.
Rule 3: a number counts as right up to the digits it is written with, and a decimal among the operands may be rounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import product
from operator import add, mul, sub, truediv
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ..patterns import lazy_pattern
from .expression import plain_signs, read_expression
from .term import Term, format_number

MAX_CHECKED: Final = 50_000
"""Characters at the end of a text that are checked."""

_MAX_POWER: Final = 12
_MAX_TOKENS: Final = 200
"""Numbers, signs and words on one side of an equals sign; a longer side is passed over."""

_CONVERSIONS: Final = frozenset(
    {3, 7, 12, 16, 24, 30, 36, 52, 60, 365, 1440, 3600, 86400, *(10**digits for digits in range(1, 13))}
)
"""Ratios of units: an equation that is off by one of them may convert one."""

_ANOTHER_ARITHMETIC: Final = lazy_pattern(
    r"\b(?:mod(?:ul(?:o|us|ar))?|congruen\w+|binary|ternary|octal|hex(?:adecimal)?|xor|boolean|clocks?|o'clock|"
    r"base[- ]?(?:\d+|two|three|four|five|six|seven|eight|nine|twelve|sixteen)|cryptarithm\w*|alphametic\w*|"
    r"matchsticks?|matches|toothpicks?|roman|define[sd]?|definition|operations?\s+[^\w\s]|operator|denotes?)\b"
    r"|[≡⊕⊗∘⋆⊙◦]|\b0[xb][0-9a-f]|\bmod\b",
    re.IGNORECASE,
)
"""Words of a text, or of its problem, in which signs and digits may mean something else."""

_DOUBTED: Final = lazy_pattern(
    r"\b(?:if|suppos\w*|assum\w*|would|could|might|should|wrong|false|incorrect\w*|not|never|no|none|\w+n['’]t|instead|"
    r"wrote|claim\w*|mistake\w*|error|tr(?:y|ies|ied|ying)|guess\w*|approximat\w*|approx|roughly|around|about|nearly|"
    r"almost|estimat\w*|remainder|round\w*|truncat\w*|floor|ceil\w*|inclusive\w*|average|mean|median|unlike|versus|vs|"
    r"[ap]\.?m|reverse\w*|digits?|concatenat\w*)\b|[≠≈~∼≃≅?!]",
    re.IGNORECASE,
)
"""What in a sentence makes an equation something else than a statement, or a rough one."""

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
"""Words beside numbers that are no units of them, or do something to them."""

_LINKS: Final = frozenset({"of", "by", "to", "from", "and", "with", "into", "over", "per", "or", "for", "at"})
"""Words that may tie the number before them to the one after them."""

_GOING_ON: Final = """
so and which then thus hence therefore is are in for because since but as or while we that the left each
"""
_CONTINUATIONS: Final = frozenset(_GOING_ON.split())
"""Words that go on after a number and are no unit of it."""

_ENGLISH: Final = lazy_pattern(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+")
_CONTINENTAL: Final = lazy_pattern(r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")
_TOKEN: Final = lazy_pattern(
    r"(?P<number>\d+(?:[.,]\d+)*|(?<![\w.])\.\d+)"
    r"|(?P<word>[^\W\d_²³]+(?:['’_]\w+|\d+)*[²³]?|°[CF]?)"
    r"|(?P<other>==+|[!<>:+\-*/]=|=[<>]|->|//|\^\s*\()"
    r"|(?P<equals>=)|(?P<sign>[-+*/])|(?P<power>\^|[²³])|(?P<open>\()|(?P<close>\))|(?P<money>[$€£¥₹])"
    r"|(?P<percent>%)|(?P<line>\n)|(?P<mark>[^\s])"
)
_TEX: Final = lazy_pattern(r"\\(?P<command>[A-Za-z]+|.)[ \t]*", re.DOTALL)
_TEX_SIGNS: Final = {
    "times": "*",
    "cdot": "*",
    "div": "/",
    "%": "%",
    "$": "$",
    "quad": " ",
    "qquad": " ",
    "n": "\n",
}
_TEX_SPACES: Final = frozenset(
    {",", ";", "!", ":", " ", "(", ")", "[", "]", "left", "right", "text", "mathrm", "boxed"}
)
_FRACTION: Final = lazy_pattern(r"\\[dt]?frac\s*(?:\{([\d.,]+)\}\s*\{([\d.,]+)\}|(\d)(\d))")
_FENCE: Final = lazy_pattern(r"```(?!json|text|math)\w+\n.*?(?:```|\Z)", re.DOTALL)
_BULLET: Final = lazy_pattern(r"^[ \t]*(?:[*+•][ \t]+|\d{1,3}[.)][ \t]+)", re.MULTILINE)
_TIMES: Final = lazy_pattern(r"(?<=[\d)])(\s*)[xX](\s*)(?=[\d($(])")
_SENTENCE_END: Final = lazy_pattern(r"[.;](?=\s|\Z)|\n|;")


class _Token(Struct, frozen=True):
    """A piece of a text, and whether white space stands before it."""

    kind: str
    text: str
    start: int
    end: int
    tight: bool


class _Side(Struct, frozen=True):
    """An expression on one side of an equals sign."""

    tokens: tuple[_Token, ...]
    units: frozenset[str]

    @property
    def computes(self) -> bool:
        """Whether it joins numbers."""
        return any(token.kind in ("sign", "power") for token in self.tokens[1:])

    @property
    def has_unit(self) -> bool:
        return bool(self.units) or any(token.kind in ("money", "percent") for token in self.tokens)

    def digit(self, continental: bool) -> Fraction:
        """Return one in the last digit of what is one number; 0 for an expression, whose value is not rounded."""
        numbers = [token.text for token in self.tokens if token.kind == "number"]
        if self.computes or len(numbers) != 1:
            return Fraction(0)
        digit = Fraction(1, 10 ** len(numbers[0].partition("," if continental else ".")[2]))
        return digit / 100 if any(token.kind == "percent" for token in self.tokens) else digit

    def __str__(self) -> str:
        text = " ".join(
            token.text for token in self.tokens if token.kind != "money" or token is not self.tokens[-1]
        )
        text = re.sub(r"(?<=[$€£¥₹(]) | (?=[)%²³])|(?<=\A-) | (?=\^)|(?<=\^) ", "", text)
        return text.replace("*", "×")

    @property
    def adds_percent(self) -> bool:
        """Whether a percentage is added to, or taken from, something that is none: 10% of what is not said."""
        numbers = [token for token in self.tokens if token.kind == "number"]
        percents = [token for token in self.tokens if token.kind == "percent"]
        adds = any(token.kind == "sign" and token.text in "+-" for token in self.tokens)
        return adds and 0 < len(percents) < len(numbers)


def false_equations(text: str, *, about: str = "") -> list[str]:
    """Return what is wrong with each equation of numbers in a text that is false: "4736 × 8 is 37888, not 37788".

    Args:
        text: Prose, markdown or LaTeX.
        about: The problem that the text is about. Where it has an arithmetic of its own, nothing is found false.
    """
    if "=" not in text or _ANOTHER_ARITHMETIC.search(text) or _has_own_arithmetic(about):
        return []
    return list(dict.fromkeys(_faults(_plain(text[-MAX_CHECKED:]))))


@lru_cache(maxsize=200)
def _has_own_arithmetic(problem: str) -> bool:
    if _ANOTHER_ARITHMETIC.search(problem):
        return True
    return "=" in problem and any(_faults(_plain(problem[-MAX_CHECKED:]), stated=False))


def _plain(text: str) -> str:
    """Return a text without markup, with its signs in one writing."""
    text = _FENCE.sub("\n", text).replace("<<", " ; ").replace(">>", " ; ").replace("{,}", ",")
    text = _FRACTION.sub(lambda match: "({}/{})".format(*[part for part in match.groups() if part]), text)
    text = _TEX.sub(_replace_command, text)
    text = re.sub(r"(?<=[\d)])\s*\*\*\s*(?=\d)", "^", _BULLET.sub("", text)).replace("**", " ")
    text = re.sub(r"\^\{(\d{1,2})\}", r"^\1", text).replace("{", " ").replace("}", " ").replace("`", " ")
    return _TIMES.sub(r"\1*\2", plain_signs(text))


def _replace_command(match: re.Match[str]) -> str:
    command = match["command"]
    return _TEX_SIGNS.get(command) or (" " if command in _TEX_SPACES else " § ")


def _faults(text: str, *, stated: bool = True) -> Iterator[str]:
    """Yield what is wrong with the equations of a text.

    Args:
        stated: Only with those that it states to be true.
    """
    tokens = list(_tokens(text))
    for start, end in _runs(tokens):
        for left, right in _pairs(tokens, start, end):
            fault = _fault(left, right)
            if fault and not (stated and _is_doubted(text, left, right)):
                yield fault


def _tokens(text: str) -> Iterator[_Token]:
    last = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or "mark"
        yield _Token(kind, match[0], match.start(), match.end(), match.start() == last)
        last = match.end()


def _runs(tokens: Sequence[_Token]) -> Iterator[tuple[int, int]]:
    """Yield where tokens stand, from and to, that are not parted by a mark, and hold an equals sign."""
    start = 0
    for place in range(len(tokens) + 1):
        if place == len(tokens) or tokens[place].kind in ("mark", "line", "other"):
            if any(token.kind == "equals" for token in tokens[start:place]):
                yield start, place
            start = place + 1


def _pairs(tokens: Sequence[_Token], start: int, end: int) -> Iterator[tuple[_Side, _Side]]:
    """Yield the expressions on both sides of each equals sign in a run."""
    cuts = [place for place in range(start, end) if tokens[place].kind == "equals"]
    edges = [start - 1, *cuts, end]
    sides = [tokens[edges[i] + 1 : edges[i + 1]] for i in range(len(edges) - 1)]
    begins_well = _is_left_bound(tokens, start)
    ends_well = _is_right_bound(tokens, end)
    for place in range(len(cuts)):
        left, right = sides[place], sides[place + 1]
        if max(len(left), len(right)) > _MAX_TOKENS:
            continue
        tail = _tail(left, is_first=place == 0, begins_well=begins_well)
        head = _head(right, ends_well=ends_well or place + 2 < len(sides))
        if tail is None or head is None or not (tail.computes or head.computes):
            continue
        if not (len(cuts) > 1 and head.computes and _goes_on(tail, head)):
            yield tail, head


def _goes_on(left: _Side, right: _Side) -> bool:
    """Whether an equals sign means "and then", as in `3 + 4 = 7 × 2 = 14`."""
    value = _term(left)
    return value is not None and right.tokens[0].text.replace(",", "") == format_number(value.value)


def _is_left_bound(tokens: Sequence[_Token], start: int) -> bool:
    """Whether what stands before a run does not belong to its numbers."""
    if start == 0:
        return True
    before, first = tokens[start - 1], tokens[start]
    previous = tokens[start - 2] if start > 1 else None
    if before.kind == "line":
        return previous is None or previous.kind not in ("sign", "equals", "power") or previous.text == "*"
    if before.text in ('"', "“", "‘"):
        return True
    if before.text == ",":
        line = [token for token in tokens[max(0, start - 40) : start - 1] if token.kind != "word"]
        tail = line[-3:]
        is_list = bool(tail) and tail[-1].kind in ("number", "close", "percent")
        return not first.tight and (not is_list or any(token.kind == "equals" for token in tail))
    return not first.tight and before.text in (
        ".",
        ";",
        ":",
        "|",
        "—",
        "→",
        "⇒",
        "=>",
        "->",
        "'",
        "”",
        "’",
        ">",
        "#",
    )


def _is_right_bound(tokens: Sequence[_Token], end: int) -> bool:
    """Whether what stands after a run does not belong to its numbers."""
    if end == len(tokens):
        return True
    after = tokens[end]
    following = tokens[end + 1] if end + 1 < len(tokens) else None
    if after.kind == "line":
        return following is None or following.kind != "sign" or following.text not in "+/"
    if after.text in ("—", "→", "⇒", "=>", "->", "|", '"', "”", "’", "'"):
        return True
    is_apart = following is None or not following.tight or following.kind not in ("number", "open")
    return after.text in (".", ",", ";", ":") and is_apart


def _tail(side: Sequence[_Token], *, is_first: bool, begins_well: bool) -> _Side | None:
    """Return the expression that a text before an equals sign ends with."""
    starts = [
        place + 1
        for place in range(len(side) - 1)
        if side[place].kind == "word" and side[place + 1].kind in ("number", "open", "money")
    ]
    start = starts[-1] if starts else 0
    before = side[:start]
    if not start and is_first and not begins_well:
        return None
    words = [token.text.lower() for token in before if token.kind == "word"]
    if any(word in _FUNCTIONS and word not in ("a", "an", "i") for word in words):
        return None
    if start and (side[start].tight or any(character.isdigit() for character in words[-1])):
        return None
    if start and words[-1] in _LINKS | {"a", "an", "i"}:
        numbers = [token for token in before if token.kind == "number"]
        if len(numbers) > (0 if is_first else 1) or words[-1] in ("a", "an", "i"):
            return None
    tokens = list(side[start:])
    while tokens and tokens[0].kind == "open" and _depth(tokens) > 0:
        tokens = tokens[1:]
    return _side(tokens)


def _head(side: Sequence[_Token], *, ends_well: bool) -> _Side | None:
    """Return the expression that a text after an equals sign begins with."""
    end, depth, has_operand = 0, 0, False
    while end < len(side):
        token = side[end]
        if token.kind == "word":
            words_end = next(
                (place for place in range(end, len(side)) if side[place].kind != "word"), len(side)
            )
            if words_end < len(side) and side[words_end].kind in ("sign", "percent") and has_operand:
                end = words_end
                continue
            is_apart = words_end == len(side) or side[words_end].kind in ("open", "close")
            if not has_operand or not (is_apart or token.text.lower() in _CONTINUATIONS):
                return None
            return _side(side[: end + 1])
        if token.kind == "close" and not depth:
            return _side(side[:end])
        if token.kind == "open" and has_operand:
            is_remark = end + 1 < len(side) and side[end + 1].kind == "word" and not token.tight
            return _side(side[:end]) if is_remark else None
        if token.kind == "number" and has_operand:
            return None
        depth += (token.kind == "open") - (token.kind == "close")
        has_operand = token.kind in ("number", "close", "percent", "power") or (
            has_operand and token.kind == "money"
        )
        if token.kind == "power" and token.text == "^":
            end += 1
        end += 1
    return _side(side) if ends_well else None


def _depth(tokens: Sequence[_Token]) -> int:
    return sum((token.kind == "open") - (token.kind == "close") for token in tokens)


def _side(tokens: Sequence[_Token]) -> _Side | None:
    """Return an expression with its units; None if it has more in it than numbers, signs and units."""
    kept: list[_Token] = []
    units: set[str] = set()
    bare = 0
    for place, token in enumerate(tokens):
        if token.kind != "word":
            kept.append(token)
            following = tokens[place + 1].kind if place + 1 < len(tokens) else ""
            bare += token.kind == "number" and following not in ("word", "percent")
            continue
        word = token.text.lower().rstrip("²³")
        if place == 0 or tokens[place - 1].kind not in ("number", "close", "word", "money", "percent"):
            return None
        if word in _FUNCTIONS or any(character.isdigit() for character in word):
            return None
        if word not in _CONTINUATIONS:
            units.add(word if len(word) < 3 else word.removesuffix("s"))
    adds = any(token.text in ("+", "-") for token in kept[1:])
    if adds and bare and any(len(unit) == 1 for unit in units):
        return None
    return _Side(tuple(kept), frozenset(units)) if kept else None


def _fault(left: _Side, right: _Side) -> str:
    """Return what is wrong with an equation; nothing if it holds in one of its readings, or cannot be read."""
    coins = {token.text for side in (left, right) for token in side.tokens if token.kind == "money"}
    is_mixed = len(left.units | right.units) > 1 or len(coins) > 1 or bool(left.units and not right.units)
    if is_mixed or left.adds_percent or right.adds_percent:
        return ""
    if _holds_somehow(left, right):
        return ""
    left = _without_dash(left)
    first, second = _term(left), _term(right)
    if first is None or second is None:
        return ""
    signs = [token.text for token in left.tokens if token.kind == "sign"]
    is_share = signs == ["/"] and 0 < first.value < 1 <= second.value  # "2/3 = 40 pupils"
    has_units = left.has_unit or right.has_unit
    if is_share or (has_units and _is_conversion(first.value, second.value)):
        return ""
    if left.computes:
        end = f"but {right} is {_number(second.value)}" if right.computes else f"not {right}"
        return f"{left} is {_number(first.value)}, {end}"
    return f"{right} is {_number(second.value)}, not {left}"


def _without_dash(side: _Side) -> _Side:
    """Return a side without the mark of a list before it, which is no minus."""
    is_dash = len(side.tokens) > 1 and side.tokens[0].text == "-" and not side.tokens[1].tight
    return replace(side, tokens=side.tokens[1:]) if is_dash else side


def _holds_somehow(left: _Side, right: _Side) -> bool:
    """Whether an equation holds however its numbers may be meant."""
    for continental, flat, compact in product((False, True), repeat=3):
        digit = max(left.digit(continental), right.digit(continental))
        first = [_term(left, continental, share, flat, compact) for share in (False, True)]
        second = [_term(right, continental, share, compact=compact) for share in (False, True)]
        if any(a and b and _agrees(a, b, digit) for a, b in product(first, second)):
            return True
    return False


def _term(
    side: _Side, continental: bool = False, share: bool = False, flat: bool = False, compact: bool = False
) -> Term | None:
    """Return what a side says.

    Args:
        continental: Read `1.500` as 1500, and `1,5` as a decimal.
        share: Read `25%` as 25/100.
        flat: Take a minus at the beginning for a dash.
        compact: Read `8/3`, written without spaces, before anything else.
    """
    parts: list[str] = []
    before = ""
    skipped = flat and side.tokens[0].text == "-"
    for place, token in enumerate(side.tokens[skipped:]):
        following = side.tokens[skipped:][place + 1].text if place + 1 < len(side.tokens) - skipped else ""
        if token.kind == "number" and before != "^":
            digits = _digits(token.text, continental)
            if digits is None or before in ("number", "close"):
                return None
            parts += [digits]
        elif token.kind in ("percent", "power") and before == "number":
            exponent = {"²": "2", "³": "3", "^": following}.get(token.text, "1")
            if not exponent.isdecimal() or not 1 <= int(exponent) <= _MAX_POWER:
                return None
            if token.kind == "percent":
                parts[-1] = f"({parts[-1]} / 100)" if share else parts[-1]
            else:
                parts[-1] = f"({' * '.join([parts[-1]] * int(exponent))})"
        elif token.kind in ("percent", "power"):
            return None
        elif token.kind in ("sign", "open", "close"):
            parts += [token.text if token.tight and compact else f" {token.text} "]
        before = "^" if token.text == "^" else token.kind
    return read_expression("".join(parts), compact=compact)


def _digits(text: str, continental: bool) -> str | None:
    """Return a number as it is written in code; None if it cannot be one in this writing."""
    if not (_CONTINENTAL if continental else _ENGLISH).fullmatch(text) or re.match(r"0\d", text):
        return None
    return text.replace(".", "").replace(",", ".") if continental else text.replace(",", "")


def _agrees(left: Term, right: Term, digit: Fraction) -> bool:
    """Whether two values are equal, to within one in the last digit that is written."""
    first, second = (
        _bounds(term) if term.left is not None else (term.value, term.value) for term in (left, right)
    )
    if first is None or second is None:
        return True
    apart = max(second[0] - first[1], first[0] - second[1])
    return apart <= 0 or apart < digit


def _bounds(term: Term) -> tuple[Fraction, Fraction] | None:
    """Return between what a value lies where decimals may be rounded; None: where there is no telling."""
    if term.left is None or term.right is None:
        half = Fraction(0) if (term.value * 4).denominator == 1 else _last_digit(term.value) / 2
        return term.value - half, term.value + half
    left, right = _bounds(term.left), _bounds(term.right)
    if left is None or right is None or (term.op == "/" and right[0] <= 0 <= right[1]):
        return None
    operate = {"+": add, "-": sub, "*": mul, "/": truediv}[term.op]
    ends = [operate(a, b) for a in left for b in right]
    return min(ends), max(ends)


def _last_digit(value: Fraction) -> Fraction:
    """Return what one more in the last digit of a decimal adds to it."""
    digit = Fraction(1)
    while (value / digit).denominator != 1 and digit.denominator < 10**18:
        digit /= 10
    return digit


def _is_conversion(value: Fraction, stated: Fraction) -> bool:
    ratio = value / stated if stated else Fraction(0)
    ratio = 1 / ratio if 0 < ratio < 1 else ratio
    return ratio.denominator == 1 and ratio.numerator in _CONVERSIONS


def _number(value: Fraction) -> str:
    """Return `37888`, `2.5`, or `8/3 (about 2.6667)`."""
    if value.denominator == 1 or _last_digit(value).denominator > 10**6:
        about = "" if value.denominator == 1 else f" (about {float(value):.6g})"
        return format_number(value) + about
    return f"{float(value):.6f}".rstrip("0")


def _is_doubted(text: str, left: _Side, right: _Side) -> bool:
    """Whether a text does not state an equation as true, or takes it back."""
    start, end = left.tokens[0].start, right.tokens[-1].end
    begins = [match.end() for match in _SENTENCE_END.finditer(text, max(0, start - 400), start)]
    stop = _SENTENCE_END.search(text, end, end + 400)
    sentence = text[begins[-1] if begins else max(0, start - 400) : stop.start() if stop else end + 400]
    return bool(_DOUBTED.search(sentence) or _TAKEN_BACK.search(text, end, end + 120))
