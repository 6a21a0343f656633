"""Voting: which answers say the same, which has the most votes, and when more votes are not worth drawing.

Rule 1: votes are counted in the order drawn, and a vote never changes its side. So counts only grow, and the
        exact bound holds: once `is_settled` says so, no further vote can change the winner.
Rule 2: a tie goes to the answer that had so many votes first; so another one takes the lead only with more votes.
Rule 3: answers with several parts agree where their quantities do, in order, and one has all words of the other.
Rule 4: a number without a unit agrees with the same number with one; two units agree where one is converted exactly
        into the other, see `numbers`.

Stopping rules: the exact bound; and the Beta rule of arXiv:2305.11860, which stops when the leader is the
true majority with the wanted probability.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from math import comb
from typing import Final

from msgspec import Struct

from ..patterns import lazy_pattern
from .numbers import UNITS, Quantity, quantities, read_quantity, without_latex

_LEAD_IN: Final = lazy_pattern(
    r"^(?:(?:so|thus|hence|therefore|finally)[,:]?\s+)?(?:(?:the|my|our)\s+)?(?:final\s+)?"
    r"(?:answer|result|solution)\s*(?:is\b|=|:)\s*:?\s*",
    re.IGNORECASE,
)
_UNKNOWN: Final = lazy_pattern(r"^[a-z]\s*=\s*")
_WRAPPED: Final = lazy_pattern(r"\\(?:boxed|text|mathrm|textbf)\s*\{((?:[^{}]|\{[^{}]*\})*)\}")
_AROUND: Final = (
    *((mark, mark) for mark in ("**", "__", "`", '"', "$$", "$")),
    (r"\(", r"\)"),
    (r"\[", r"\]"),
)
_SPELLED: Final = (
    (lazy_pattern("(?<=\\d)(?=[\u00bc-\u00be\u2150-\u215e])"), " "),
    # Spaces that are written inside a number only; a plain one may as well stand between two numbers.
    (lazy_pattern("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))"), ""),
    (lazy_pattern("\u2212|(?<![\\w.])[\u2010-\u2013](?=[\\d.])"), "-"),
)
_SEPARATOR: Final = lazy_pattern(r"[,;/\n]|\b(?:and|und|et|y|e|or)\b")
_WORD: Final = lazy_pattern(r"[^\W\d_]+")
_FILLERS: Final = lazy_pattern(
    r"an?|the|is|are|its?|of|and|so|per|in|at|to|he|she|was|und|answer|order|left|over"
)
_NEGATIONS: Final = frozenset(
    {"no", "not", "none", "never", "nobody", "nothing", "cannot", "false", "without"}
)
_FEW: Final = 3
"""Words that are no sentence, for all that anyone can tell: the period after them is none of the answer."""


class Key(Struct, frozen=True):
    """An answer without its wording. Compare with `agree`."""

    text: str
    quantity: Quantity | None = None
    """For an answer that is one."""
    parts: tuple[Quantity, ...] = ()
    """Its quantities in order."""
    words: tuple[str, ...] = ()
    """Its words in order, but for those that say little."""
    has_parts: bool = False
    """Whether it has several parts, and a number among them."""

    @property
    def number(self) -> str | None:
        """The value of an answer that is a quantity, as a fraction in lowest terms."""
        return None if self.quantity is None else str(self.quantity.number)


class Vote(Struct, frozen=True):
    """An answer and those who gave it."""

    answer: str
    """As its first voter wrote it."""
    count: int
    voters: tuple[int, ...]
    """Positions among all answers, from 0."""


@lru_cache(maxsize=256)
def tidy(answer: str) -> str:
    """Return an answer without lead-in ("The answer is"), the markup around it and the period after a few words."""
    text, before = answer.strip(), None
    while text != before:
        before = text
        text = _LEAD_IN.sub("", text)
        for opening, closing in _AROUND:
            inside = text[len(opening) : -len(closing)]
            is_around = text.startswith(opening) and text.endswith(closing) and inside.strip()
            if is_around and opening not in inside.replace("\\$", ""):
                text = inside.strip()
        if wrapped := _WRAPPED.fullmatch(text):
            text = wrapped[1].strip()
        for mark in ("**", "__"):
            if text.count(mark) == 1:
                text = text.removesuffix(mark).removeprefix(mark).strip()
        if (
            text.endswith((".", "。"))
            and not text.endswith(("..", " a.m.", " p.m."))
            and len(text.split()) <= _FEW
        ):
            text = text[:-1].rstrip() or text
    return text


@lru_cache(maxsize=256)
def normalise(answer: str) -> Key:
    """Strip an answer to what it says: tidied, whatever its case; quantities as fractions."""
    text = answer.replace("\u2044", "/")
    for pattern, plain in _SPELLED:
        text = pattern.sub(plain, text)
    text = unicodedata.normalize("NFKC", text).replace("\u2044", "/")
    text = tidy(without_latex(tidy(text))) if "\\" in text or "$" in text else tidy(text)
    text = _UNKNOWN.sub("", " ".join(text.casefold().split()).strip("'")).rstrip(".,;:! ") or text.casefold()
    text = text.strip("()") if re.fullmatch(r"\(\w+\)|\w\)|\([+-][\d.,/]+\)", text) else text
    found = read_quantity(text)
    return Key(text, found) if found else _read_parts(text)


def agree(first: Key, other: Key) -> bool:
    """Whether two answers say the same."""
    if first.quantity is not None and other.quantity is not None:
        return _are_equal(first.quantity, other.quantity)
    if first.text == other.text:
        return True
    have_parts = first.has_parts and other.has_parts and len(first.parts) == len(other.parts)
    return (
        have_parts
        and _are_same_words(first.words, other.words)
        and all(map(_are_equal, first.parts, other.parts))
    )


def says_the_same(text: str, answer: str) -> bool:
    """Whether a text says an answer again, in other words maybe.

    It does if both mean the same value, if they have the same numbers in the same order, or if one has all the words of
    the other in their order, negations included.
    """
    mine, other = normalise(text), normalise(answer)
    if agree(mine, other) or (mine.quantity and other.quantity):
        return agree(mine, other)
    if mine.parts or other.parts:
        return [part.number for part in mine.parts] == [part.number for part in other.parts]
    return bool(mine.words and other.words) and _are_same_words(mine.words, other.words)


def _are_equal(first: Quantity, other: Quantity) -> bool:
    if first.measure and other.measure:
        return first.measure == other.measure
    return first.number == other.number and (not first.unit or not other.unit or first.unit == other.unit)


def _are_same_words(first: Sequence[str], other: Sequence[str]) -> bool:
    """Whether one has all words of the other in their order, and neither denies more than the other."""
    fewer, more = sorted((first, other), key=len)
    rest = iter(more)
    return all(word in rest for word in fewer) and not (set(fewer) ^ set(more)) & _NEGATIONS


def _read_parts(text: str) -> Key:
    """Return an answer that is not one quantity, with its parts and its words."""
    words, parts, place = list[str](), list[Quantity](), 0
    for start, end, found in quantities(text):
        # What stands after a number is a word, and no unit, unless it is one that is known.
        beside = "" if found.unit in UNITS.values() else found.unit
        words += _WORD.findall(f"{text[place:start]} {beside}")
        parts.append(Quantity(found.number) if beside else found)
        place = end
    words += _WORD.findall(text[place:])
    content = tuple([word.rstrip("s") or word for word in words if not _FILLERS.fullmatch(word)])
    return Key(text, None, tuple(parts), content, bool(parts) and _SEPARATOR.search(text) is not None)


def tally(answers: Sequence[str]) -> tuple[Vote, ...]:
    """Count the votes, given in the order drawn; most votes first, ties by who had as many first.

    A number without a unit joins the first answer of that number, which takes on the first unit it is given.
    """
    sides: list[tuple[Key, list[int]]] = []
    for position, answer in enumerate(answers):
        key = normalise(answer)
        for index, (side, voters) in enumerate(sides):
            if agree(side, key):
                voters.append(position)
                if key.quantity and key.quantity.unit and side.quantity and not side.quantity.unit:
                    sides[index] = (key, voters)
                break
        else:
            sides.append((key, [position]))
    votes = [Vote(answers[voters[0]], len(voters), tuple(voters)) for _, voters in sides]
    return tuple(sorted(votes, key=lambda vote: (-vote.count, vote.voters[-1])))


def merge_votes(votes: Sequence[Vote], groups: Sequence[Sequence[int]]) -> tuple[Vote, ...]:
    """Return the votes with those of a group as one, most votes first.

    Args:
        groups: Places in `votes`, each in one group; none: nothing is merged.
    """
    merged: list[Vote] = []
    for places in groups or [[place] for place in range(len(votes))]:
        voters = sorted(voter for place in places for voter in votes[place].voters)
        merged.append(Vote(votes[min(places)].answer, len(voters), tuple(voters)))
    return tuple(sorted(merged, key=lambda vote: (-vote.count, vote.voters[-1])))


def is_settled(votes: Sequence[Vote], remaining: int) -> bool:
    """Whether the leader stays the leader however the remaining votes fall: the exact bound.

    Args:
        votes: As `tally` returns them.
        remaining: How many votes may still come.
    """
    first, second = ([vote.count for vote in votes] + [0, 0])[:2]
    return remaining <= first - second


def lead_confidence(first: int, second: int) -> float:
    """Return how probable it is that the leader beats the runner-up in the long run: P(p > 1/2 | votes).

    With p ~ Beta(first + 1, second + 1) this is the regularised incomplete beta function
    I½(second + 1, first + 1), which for whole counts is the tail of a fair coin.
    """
    tosses = first + second + 1
    return sum(comb(tosses, heads) for heads in range(second + 1, tosses + 1)) / (1 << tosses)


def confidence(votes: Sequence[Vote]) -> float:
    """Return `lead_confidence` of the leader over the runner-up; 0 without votes."""
    if not votes:
        return 0.0
    return lead_confidence(votes[0].count, votes[1].count if len(votes) > 1 else 0)
