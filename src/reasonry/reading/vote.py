"""Voting: which answers say the same, which has the most votes, and when more votes are not worth drawing.

Rule 1: votes are counted in the order drawn, and a vote never changes its side. So counts only grow, and the
        exact bound holds: once `is_settled` says so, no further vote can change the winner.
Rule 2: a tie goes to the answer that had so many votes first; so another one takes the lead only with more votes.
Rule 3: answers agree where they are one text, but for case, spaces and markup, or one date, or one number. A number
        without a unit agrees with the same number with one, and a percentage with its fraction. Yes or no before a
        comma or a bracket is the answer. Nothing is read out of a sentence.
Rule 4: where a problem offers options by letter, an answer is the letter, the text of the option, or both.
"""

from __future__ import annotations

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
    # Spaces that are written inside a number only; a plain one may as well stand between two numbers.
    (lazy_pattern("(?<=\\d)[\u00a0\u2009\u202f](?=\\d{3}(?!\\d))"), ""),
    (lazy_pattern("\u2212|(?<![\\w.])[\u2010-\u2013](?=[\\d.])"), "-"),
)
_FEW: Final = 3
"""Words that are no sentence, for all that anyone can tell: the period after them is none of the answer."""
_MOST_LAYERS: Final = 20
"""Of markup around an answer."""


class Key(Struct, frozen=True):
    """An answer without its wording. Compare with `agree`."""

    text: str
    quantity: Quantity | None = None
    """For an answer that is one."""
    is_plain: bool = False
    """Whether it is a date, yes or no, or a letter: the rules say what agrees with it."""

    @property
    def number(self) -> str | None:
        """The value of an answer that is a quantity, as a fraction in lowest terms."""
        return None if self.quantity is None else str(self.quantity.number)


class Vote(Struct, frozen=True):
    """An answer and those who gave it.

    `is_open` says that no rule tells whether it agrees with other answers.
    """

    answer: str
    """As its first voter wrote it."""
    count: int
    voters: tuple[int, ...]
    """Positions among all answers, from 0."""
    is_open: bool = False


@lru_cache(maxsize=256)
def tidy(answer: str) -> str:
    """Return an answer without the markup around it, which comes off in pairs only, and its only period at the end."""
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
    """Strip an answer to what it says: tidied, whatever its case; dates, and numbers as fractions."""
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
    return Key(
        date or text,
        read_quantity(_OUT_OF.sub(r"\1/\2", text)),
        bool(date) or len(text) == 1 or text in TRUTHS,
    )


def agree(first: Key, other: Key) -> bool:
    """Whether two answers say the same."""
    if first.quantity is None or other.quantity is None:
        return first.text == other.text
    quantity, another = sorted((first.quantity, other.quantity), key=lambda each: each.unit == "%")
    if quantity.unit and another.unit:
        return quantity == another
    percent = another.unit == "%" and quantity.number == another.number / 100
    return percent or quantity.number == another.number


@lru_cache(maxsize=16)
def options_in(problem: str) -> dict[str, str]:
    """Return the options that a problem offers, by letter from A on, in lower case; none if it offers none."""
    found = {letter.lower(): normalise(text).text for letter, text in _OPTION.findall(problem)}
    return found if len(found) > 1 and "".join(found) == ascii_lowercase[: len(found)] else {}


def choose(key: Key, options: Mapping[str, str]) -> Key:
    """Return the letter of the option that an answer is, or the answer."""
    match = _CHOSEN.fullmatch(key.text)
    if match and match[1] in options and (not match[2] or normalise(match[2]).text == options[match[1]]):
        return Key(match[1], is_plain=True)
    letters = [letter for letter, text in options.items() if text == key.text]
    return Key(letters[0], is_plain=True) if len(letters) == 1 else key


def says_the_same(text: str, answer: str) -> bool:
    """Whether a text says an answer again."""
    return agree(normalise(text), normalise(answer))


def tally(answers: Sequence[str], options: Mapping[str, str] = {}) -> tuple[Vote, ...]:
    """Count the votes, given in the order drawn; most votes first, ties by who had as many first.

    A number without a unit joins the first answer of that number, which takes on the first unit it is given.

    Args:
        options: The options of the problem, by letter.
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
