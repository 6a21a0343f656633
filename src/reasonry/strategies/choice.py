"""Choosing: which strategy a problem gets when its user names `auto`, and why.

Rule 1: a problem is looked at as whole words, numbers, lines and sentences; a word inside another one counts nothing.
Rule 2: the kinds of problem below are tried from the top; the first that it is, and that a strategy says it suits
        (`Strategy.suits`), decides. No strategy is named here.
Rule 3: the same problem gets the same strategy. What the rules cannot know (what is worth its money on a user's own
        problems) a comparison measures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from msgspec import Struct

from ..core.strategy import Strategy
from ..errors import InvalidStrategyError, UsageError
from ..puzzles import read_puzzle

AUTO = "auto"
"""What a user writes in place of a strategy's name."""

LONG_WORDS = 250
MANY_PARTS = 3
LONG_DIGITS = 4
"""Numbers of so many digits are not multiplied or added in one breath."""

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NUMBER = re.compile(r"(?<![\w.])[-+]?[$€£]?\d[\d,]*(?:\.\d+)?(?![\w.]*\d)")
_PART = re.compile(r"^\s*(?:[-*•]|\(?(?:\d{1,2}|[a-z])[.)])\s+\S", re.MULTILINE | re.IGNORECASE)
_CHOICE = re.compile(r"(?:^|\s)\(?([A-E])[.):]\s", re.MULTILINE)
_ASKED = re.compile(r"\?(?=\s|$|[\"'”’)])")
_CODE = re.compile(
    r"^```|^\s*(?:def \w+\(.*\)|(?:for|while|if) .+|class \w+.*):\s*$|^\s*print\(|^\s*\w+ = \w+\(.*\)\s*$",
    re.MULTILINE,
)
_LONG_SUM = re.compile(
    rf"\d{{{LONG_DIGITS},}}\s*[-+*/×÷−]\s*\d{{2,}}|\d{{2,}}\s*[-+*/×÷−]\s*\d{{{LONG_DIGITS},}}"
)
_RELATION = re.compile(
    r"\b(?:(?<=\s)(?:who|whom|whose|which|that|where|when)|(?:of|in|to|by|from|after|before|during) the"
    r"|[^\W\d_]+['’]s)\b",
    re.IGNORECASE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMPARING = _words("compare compared both each respectively versus vs than older younger earlier later first")
SEARCHING = _words(
    "crossword sudoku riddle maze anagram arrange arrangement seated seating schedule timetable assign "
    "assignment queens tiling permutation cryptarithm"
)
PLANNING = _words(
    "plan design draft develop prepare organise organize outline propose roadmap itinerary essay"
)
SCIENCE = _words(
    "acceleration acid atom atoms base cell charge chemical chromosome circuit compound current density diffusion "
    "electron electrons energy enzyme equilibrium force forces friction gas gene gravity heat ion ions kinetic law "
    "magnetic mass molar molecule molecules momentum oxidation pressure principle protein reaction resistance "
    "solution temperature theorem velocity voltage volume wave wavelength"
)
AMOUNTS = _words(
    "amount average calculate compute cost costs difference distance earn many mean miles minutes much number "
    "percent percentage probability product profit rate remainder sum total"
)


class Features(Struct, frozen=True):
    """What is looked at in a problem.

    Attributes:
        tools: Whether the run may call tools.
        puzzle: Whether it is a number puzzle and nothing else.
        words: How many there are.
        vocabulary: The words, in lower case.
        numbers: How many are written in digits.
        questions: Sentences that end in a question mark.
        parts: Lines that begin as items of a list do.
        choices: Different answers offered as A, B, C, ….
        code: Whether lines of a program stand in it.
        long_sum: Whether long numbers are to be reckoned with.
        relations: Words that hang one thing on another: `of the`, `whose`, `X's`, a relative pronoun.
    """

    tools: bool
    puzzle: bool
    words: int
    vocabulary: frozenset[str]
    numbers: int
    questions: int
    parts: int
    choices: int
    code: bool
    long_sum: bool
    relations: int


def features(problem: str, *, has_tools: bool = False) -> Features:
    """Return what is looked at in a problem."""
    words = _WORD.findall(problem)
    choices = set(_CHOICE.findall(problem))
    return Features(
        tools=has_tools,
        puzzle=read_puzzle(problem) is not None,
        words=len(words),
        vocabulary=frozenset(word.casefold() for word in words),
        numbers=len(_NUMBER.findall(problem)),
        questions=len(_ASKED.findall(problem)),
        parts=0 if len(choices) > 1 else len(_PART.findall(problem)),
        choices=len(choices) if len(choices) > 1 else 0,
        code=_CODE.search(problem) is not None,
        long_sum=_LONG_SUM.search(problem) is not None,
        relations=len(_RELATION.findall(problem)),
    )


class Kind(Struct, frozen=True):
    """A kind of problem.

    Args:
        name: What strategies call it in `suits`.
        description: What a problem of this kind does, for the documentation.
        why: The reason a problem is of this kind; empty if it is not.
    """

    name: str
    description: str
    why: Callable[[Features], str]


def _list_cues(found: Collection[str]) -> str:
    return ", ".join(sorted(found)[:3])


def _number_puzzle(seen: Features) -> str:
    return "a number puzzle: steps are tried, valued and undone" if seen.puzzle else ""


def _planned_lookups(seen: Features) -> str:
    if not seen.tools:
        return ""
    if seen.questions > 1:
        return f"tools, and {seen.questions} questions: what has to be looked up can be planned at once"
    cues = seen.vocabulary & COMPARING
    return (
        f"tools, and things to compare ({_list_cues(cues)}): they are looked up side by side" if cues else ""
    )


def _lookups(seen: Features) -> str:
    return "tools are there, and what to look up next depends on what was found" if seen.tools else ""


def _computation(seen: Features) -> str:
    if seen.code:
        return "a program to follow: its state is written down step by step"
    return f"numbers of {LONG_DIGITS} digits or more to reckon with, digit by digit" if seen.long_sum else ""


def _search(seen: Features) -> str:
    cues = seen.vocabulary & SEARCHING
    return f"a problem of trying and undoing ({_list_cues(cues)})" if cues else ""


def _composite(seen: Features) -> str:
    if seen.parts >= MANY_PARTS:
        return f"a task of {seen.parts} listed parts"
    if seen.questions >= MANY_PARTS:
        return f"{seen.questions} questions in one"
    if seen.words > LONG_WORDS:
        return f"a long task ({seen.words} words)"
    cues = seen.vocabulary & PLANNING
    return f"a thing to be made ({_list_cues(cues)}), not a question" if cues and not seen.questions else ""


def _science(seen: Features) -> str:
    cues = seen.vocabulary & SCIENCE
    return f"science ({_list_cues(cues)}): the principle first, then the case" if len(cues) > 1 else ""


def _short_answer(seen: Features) -> str:
    if seen.choices:
        return f"{seen.choices} answers to choose from: several solutions can vote"
    cues = seen.vocabulary & AMOUNTS
    if seen.numbers > 1 and cues:
        return f"a quantity from {seen.numbers} numbers ({_list_cues(cues)}): several solutions can vote"
    return ""


def _multi_hop(seen: Features) -> str:
    if seen.questions and seen.relations > 1:
        return f"a question that hangs on others ({seen.relations} relations): those are answered first"
    return ""


def _anything(_: Features) -> str:
    return "no special feature: reasoning in steps, with a check"


KINDS: tuple[Kind, ...] = (
    Kind("number_puzzle", "is a number puzzle and nothing else", _number_puzzle),
    Kind(
        "planned_lookups",
        "comes with tools, and asks several questions or compares things (`which … first`, `both`, `versus`)",
        _planned_lookups,
    ),
    Kind("lookups", "comes with tools", _lookups),
    Kind(
        "computation",
        "shows lines of a program, or reckons with numbers of four digits or more",
        _computation,
    ),
    Kind("search", "is one of trying and undoing: a crossword, a seating, a timetable", _search),
    Kind(
        "composite",
        "has three or more listed parts or questions, or over 250 words, or asks for a thing to be made "
        "(`design`, `plan`)",
        _composite,
    ),
    Kind("science", "speaks of science with two or more of its words", _science),
    Kind(
        "short_answer",
        "offers answers A, B, C, …, or asks for a quantity and gives two or more numbers",
        _short_answer,
    ),
    Kind(
        "multi_hop",
        "is a question that hangs on others (`the capital of the country whose …`)",
        _multi_hop,
    ),
    Kind("anything", "anything else", _anything),
)
"""Tried from the top."""


def choose_strategy(
    problem: str, strategies: Iterable[Strategy[Any, Any]], *, has_tools: bool
) -> tuple[str, str]:
    """Return the name of the strategy for a problem, and why.

    Args:
        strategies: Where to choose from; where several suit a kind of problem, the first of them is taken.
        has_tools: Whether the run may call tools.

    Raises:
        UsageError: There is nothing to choose from.
        InvalidStrategyError: A strategy says it suits a kind of problem that there is not.
    """
    suiting: dict[str, str] = {}
    first = ""
    for strategy in strategies:
        first = first or strategy.name
        for kind in strategy.suits:
            suiting.setdefault(_check_kind(kind, strategy), strategy.name)
    if not first:
        raise UsageError("there is no strategy to choose from", option="strategy")
    seen = features(problem, has_tools=has_tools)
    for kind in KINDS:
        why = kind.why(seen)
        if why and kind.name in suiting:
            return suiting[kind.name], why
    return first, "the only kind of strategy there is to choose from"


def _check_kind(kind: str, strategy: Strategy[Any, Any]) -> str:
    names = [known.name for known in KINDS]
    if kind not in names:
        raise InvalidStrategyError(
            f"strategy {strategy.name!r}: suits names no kind of problem: {kind!r}. The kinds: {', '.join(names)}."
        )
    return kind
