"""Choosing: which strategy a problem gets when its user names `auto`, and why.

Rule 1: a problem is looked at as whole words, numbers, lines and sentences; a word inside another one counts nothing.
Rule 2: the rules below are tried from the top; the first that applies, and whose strategy is there, decides.
Rule 3: the same problem gets the same strategy. What the rules cannot know (what is worth its money on a user's own
        problems) a comparison measures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from msgspec import Struct

from ..errors import UsageError
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
    """What the rules look at.

    Attributes:
        puzzle: Whether it is a number puzzle and nothing else.
        words: How many.
        vocabulary: The words, in lower case.
        numbers: How many are written in digits.
        questions: Sentences that end in a question mark.
        parts: Lines that begin as items of a list do.
        choices: Different answers offered as A, B, C, ….
        code: Whether lines of a program stand in it.
        long_sum: Whether long numbers are to be reckoned with.
        relations: Words that hang one thing on another: `of the`, `whose`, `X's`, a relative pronoun.
    """

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


def features(problem: str) -> Features:
    """Return what the rules look at in a problem."""
    words = _WORD.findall(problem)
    choices = set(_CHOICE.findall(problem))
    return Features(
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


class Rule(Struct, frozen=True):
    """One rule: a strategy, and the reason it would be taken; an empty reason where it does not apply."""

    strategy: str
    why: Callable[[Features, bool], str]


def _listed(found: Collection[str]) -> str:
    return ", ".join(sorted(found)[:3])


def _puzzle(seen: Features, _: bool) -> str:
    return "a number puzzle: steps are tried, valued and undone" if seen.puzzle else ""


def _planned_calls(seen: Features, has_tools: bool) -> str:
    if not has_tools:
        return ""
    if seen.questions > 1:
        return f"tools, and {seen.questions} questions: what has to be looked up can be planned at once"
    cues = seen.vocabulary & COMPARING
    return f"tools, and things to compare ({_listed(cues)}): they are looked up side by side" if cues else ""


def _tools(_: Features, has_tools: bool) -> str:
    return "tools are there, and what to look up next depends on what was found" if has_tools else ""


def _computing(seen: Features, _: bool) -> str:
    if seen.code:
        return "a program to follow: its state is written down step by step"
    return f"numbers of {LONG_DIGITS} digits or more to reckon with, digit by digit" if seen.long_sum else ""


def _searching(seen: Features, _: bool) -> str:
    cues = seen.vocabulary & SEARCHING
    return f"a problem of trying and undoing ({_listed(cues)})" if cues else ""


def _composite(seen: Features, _: bool) -> str:
    if seen.parts >= MANY_PARTS:
        return f"a task of {seen.parts} listed parts"
    if seen.questions >= MANY_PARTS:
        return f"{seen.questions} questions in one"
    if seen.words > LONG_WORDS:
        return f"a long task ({seen.words} words)"
    cues = seen.vocabulary & PLANNING
    return f"a thing to be made ({_listed(cues)}), not a question" if cues and not seen.questions else ""


def _principle(seen: Features, _: bool) -> str:
    cues = seen.vocabulary & SCIENCE
    return f"science ({_listed(cues)}): the principle first, then the case" if len(cues) > 1 else ""


def _short_answer(seen: Features, _: bool) -> str:
    if seen.choices:
        return f"{seen.choices} answers to choose from: several solutions can vote"
    cues = seen.vocabulary & AMOUNTS
    if seen.numbers > 1 and cues:
        return f"a quantity from {seen.numbers} numbers ({_listed(cues)}): several solutions can vote"
    return ""


def _hops(seen: Features, _: bool) -> str:
    if seen.questions and seen.relations > 1:
        return f"a question that hangs on others ({seen.relations} relations): those are answered first"
    return ""


def _otherwise(_: Features, __: bool) -> str:
    return "no special feature: reasoning in steps, with a check"


RULES: tuple[Rule, ...] = (
    Rule("tree_of_thoughts", _puzzle),
    Rule("rewoo", _planned_calls),
    Rule("react", _tools),
    Rule("scratchpad", _computing),
    Rule("tree_of_thoughts", _searching),
    Rule("planned_thinking", _composite),
    Rule("step_back", _principle),
    Rule("self_consistency", _short_answer),
    Rule("self_ask", _hops),
    Rule("chain_of_thought", _otherwise),
)
"""Tried from the top."""


def choose_strategy(problem: str, *, has_tools: bool, strategies: Collection[str]) -> tuple[str, str]:
    """Return the name of the strategy for a problem, and why.

    Args:
        has_tools: Whether the run may call tools.
        strategies: The names to choose from; a rule whose strategy is not among them is passed over.

    Raises:
        UsageError: There is nothing to choose from.
    """
    if not strategies:
        raise UsageError("there is no strategy to choose from", option="strategy")
    seen = features(problem)
    for rule in RULES:
        why = rule.why(seen, has_tools)
        if why and rule.strategy in strategies:
            return rule.strategy, why
    return next(iter(strategies)), "the only kind of strategy there is to choose from"
