"""Voting over sampled answers: find equal answers and the leading answer, and decide when to stop sampling.

Rule 1: a vote is a sampled answer. Votes are counted in the order of sampling, and none moves to another answer later.
        Counts only grow, so once `is_settled` is true, no later vote can change the winner.
Rule 2: a tie goes to the answer that reached its count first; another answer takes the lead only with more votes.
Rule 3: answers agree if they are the same text apart from case, spaces and markup, or the same date or number. A number
        agrees with the same number with a unit (`60` and `$60`), and a percentage with its fraction (`50%` and `0.5`).
        "Yes" or "no" before a comma or a bracket is the whole answer. No sentence is interpreted.
Rule 4: if a problem offers options by letter, an answer may be the letter, the text of the option, or both.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import ascii_lowercase
from typing import Final

from msgspec import Struct

from ..text import lazy_pattern
from .numbers import Quantity, read_date, read_quantity, without_latex
from .words import TRUTHS

_UNKNOWN: Final = lazy_pattern(r"[a-z]\s?=\s?(?=[^=])")
_WRAPPED: Final = lazy_pattern(r"\\(?:boxed|text|mathrm|textbf)\s?\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_OPTION: Final = lazy_pattern(
    r"(?:(?<=\s)|^)\(?([A-Z])[).:]\s{1,9}(\S[^\n]{0,300}?)(?=\s{1,9}\(?[A-Z][).:]\s|[ \t]{0,9}$)",
    re.MULTILINE,
)
_CHOSEN: Final = lazy_pattern(r"(?:option |choice )?\(?([a-z])(?:[).:] ?(.*)|)")
_YES_OR_NO: Final = lazy_pattern(r"(yes|no)(?:,| ?[(;—–]).*")
_OUT_OF: Final = lazy_pattern(r"(?<!\d)(\d{1,9}) out of (\d{1,9})(?!\d)")
_LETTER: Final = lazy_pattern(r"\(?([a-z])[).:]?|\(([+-][\d.,/]+)\)")
_AROUND: Final = (
    *((mark, mark) for mark in ("**", "__", "`", '"', "$$", "$")),
    ("<answer>", "</answer>"),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
)
_SPELLED: Final = (
    (lazy_pattern("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e])"), " "),
    # These spaces occur only inside a number; a plain space may also separate two numbers.
    (lazy_pattern("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))"), ""),
    (lazy_pattern("\u2212|(?<![\\w.])[\u2010-\u2013](?=[\\d.])"), "-"),
)
_FEW: Final = 3
"""The most words of a text that is not a sentence. A period at the end of such a text is not part of the answer."""
_MOST_LAYERS: Final = 20
"""How many layers of markup around an answer are removed at most."""


class Key(Struct, frozen=True):
    """The normalised content of an answer. `agree` compares two keys."""

    text: str
    quantity: Quantity | None = None
    is_plain: bool = False
    """Whether the answer is a date, yes or no, or a letter, so that rules decide which answers agree with it."""


class Vote(Struct, frozen=True):
    """An answer and its voters. If `is_open` is true, a differently worded answer may also agree."""

    answer: str
    """The answer in its first voter's words."""
    count: int
    voters: tuple[int, ...]
    """The voters' positions among all answers, from 0."""
    is_open: bool = False


@lru_cache(maxsize=256)
def tidy(answer: str) -> str:
    """Remove paired markup around an answer, and the period at the end of a short answer."""
    text = answer.strip()
    for _ in range(_MOST_LAYERS):
        before = text
        for opening, closing in _AROUND:
            inside = text[len(opening) : -len(closing)]
            is_around = text.startswith(opening) and text.endswith(closing) and inside.strip()
            if is_around and opening not in inside.replace("\\$", ""):
                text = inside.strip()
        if text.startswith("\\") and (wrapped := _WRAPPED.fullmatch(text)):
            text = wrapped[1].strip() or text
        is_short = text.endswith((".", "。")) and len(text.split(maxsplit=_FEW)) <= _FEW
        if is_short and (text[-2:-1].isdigit() or "." not in text[:-1]):
            text = text[:-1].rstrip() or text
        if text == before:
            break
    return text


@lru_cache(maxsize=256)
def normalise(answer: str) -> Key:
    """Reduce an answer to its content: tidied and case-folded, with dates and numbers normalised."""
    text = answer.replace("\u2044", "/")
    for pattern, plain in _SPELLED:
        text = pattern.sub(plain, text)
    text = unicodedata.normalize("NFKC", text).replace("\u2044", "/")
    text = tidy(without_latex(tidy(text))) if "\\" in text or "$" in text else tidy(text)
    text = " ".join(text.casefold().split()).rstrip(".,;:! ") or text.casefold()
    if match := _UNKNOWN.match(text):
        text = text[match.end() :]
    if match := _LETTER.fullmatch(text):
        text = match[1] or match[2]
    if match := _YES_OR_NO.fullmatch(text):
        text = match[1]
    date = read_date(text)
    is_plain = bool(date) or len(text) == 1 or text in TRUTHS
    return Key(date or text, read_quantity(_OUT_OF.sub(r"\1/\2", text)), is_plain)


def agree(first: Key, other: Key) -> bool:
    """Whether two answers are equal."""
    if first.quantity is None or other.quantity is None:
        return first.text == other.text
    quantity, another = sorted((first.quantity, other.quantity), key=lambda each: each.unit == "%")
    if quantity.unit and another.unit:
        return quantity == another
    percent = another.unit == "%" and quantity.number == another.number / 100
    return percent or quantity.number == another.number


@lru_cache(maxsize=16)
def options_in(problem: str) -> dict[str, str]:
    """Return the answer options in a problem, by letter (`a`, `b`, …). Letters and options are in lower case."""
    found = {letter.lower(): normalise(text).text for letter, text in _OPTION.findall(problem)}
    return found if len(found) > 1 and "".join(found) == ascii_lowercase[: len(found)] else {}


def choose(key: Key, options: Mapping[str, str]) -> Key:
    """If the answer `key` names an option, return the option's letter as a key. Otherwise, return `key`."""
    match = _CHOSEN.fullmatch(key.text)
    if match and match[1] in options and (not match[2] or normalise(match[2]).text == options[match[1]]):
        return Key(match[1], is_plain=True)
    letters = [letter for letter, text in options.items() if text == key.text]
    return Key(letters[0], is_plain=True) if len(letters) == 1 else key


def says_the_same(text: str, answer: str) -> bool:
    """Whether a text is equal to an answer by the rules of voting."""
    return agree(normalise(text), normalise(answer))


def tally(answers: Sequence[str], options: Mapping[str, str] = {}) -> tuple[Vote, ...]:
    """Count the votes for each answer, most votes first. A tie goes to the answer that reached its count first.

    `answers` are in the order of sampling. `options` maps letters to the problem's options. A number without a unit
    counts for the first answer with the same number. An answer without a unit takes the first unit that a vote states.
    """
    sides: list[tuple[Key, list[int]]] = []
    for position, answer in enumerate(answers):
        key = choose(normalise(answer), options)
        for index, (side, voters) in enumerate(sides):
            if agree(side, key):
                voters.append(position)
                if key.quantity and key.quantity.unit and side.quantity and not side.quantity.unit:
                    sides[index] = (key, voters)
                break
        else:
            sides.append((key, [position]))
    votes = [
        Vote(answers[voters[0]], len(voters), tuple(voters), not (key.quantity or key.is_plain))
        for key, voters in sides
    ]
    return tuple(sorted(votes, key=lambda vote: (-vote.count, vote.voters[-1])))


def is_settled(votes: Sequence[Vote], remaining: int) -> bool:
    """Whether the leading answer stays in the lead, whatever the `remaining` votes are."""
    first, second = ([vote.count for vote in votes] + [0, 0])[:2]
    return remaining <= first - second
