"""Choosing: which strategy a problem gets when its user names `auto`, and why.

Rule 1: a problem is looked at as whole words, numbers, lines and sentences; a word inside another one counts nothing.
Rule 2: the kinds of problem below are tried from the top; the first that it is, and that a strategy says it suits
        (`Strategy.suits`) and can finish within the budget (`Strategy.calls`), decides. No strategy is named here.
Rule 3: the same problem gets the same strategy. What the rules cannot know (what is worth its money on a user's own
        problems) a comparison measures.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Set
from typing import Any

from msgspec import Struct

from ..core.strategy import Strategy
from ..errors import InvalidStrategyError, UsageError
from ..patterns import lazy_pattern
from ..puzzles.reading import read_puzzle

AUTO = "auto"
"""What a user writes in place of a strategy's name."""

LONG_WORDS = 250
LONG_CHARS = 20_000
"""A problem of so many characters is an input with a question, not a question."""
MANY_PARTS = 3
MANY_NUMBERS = 3
"""A quantity from so many numbers takes several steps."""
MANY_TERMS = 5

_WORD = lazy_pattern(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_NUMBER = lazy_pattern(r"(?<![\w.])[-+]?[$€£]?\d[\d,]*(?:\.\d+)?(?![\w.]*\d)")
_YEAR = lazy_pattern(r"(?:1[0-9]|20)\d\d")
_PART = lazy_pattern(r"^\s*(?:[-*•]|\(?(?:\d{1,2}|[a-z])[.)])\s+\S", re.MULTILINE | re.IGNORECASE)
_CHOICE = lazy_pattern(r"(?:^|\s)\(?([A-E])[.):]\s", re.MULTILINE)
_ASKED = lazy_pattern(r"\?(?=\s|$|[\"'”’)])")
_CODE = lazy_pattern(
    r"^```|^\s*(?:def \w+\(.*\)|(?:for|while|if) .+|class \w+.*):\s*$|^\s*print\(|^\s*\w+ = \w+\(.*\)\s*$",
    re.MULTILINE,
)
_OPERAND = r"\(*-?\d[\d,]*(?:\.\d+)?\)*"
_SUM = lazy_pattern(rf"{_OPERAND}(?:(?:\s*[*×·÷+−^]\s*|\s+[-/x]\s+){_OPERAND})+")
_LONG = lazy_pattern(r"\d,?\d,?\d,?\d")
"""Numbers of so many digits are not multiplied or added in one breath."""
_WORDED_SUM = lazy_pattern(
    r"\b(?:multipl(?:y|ied)|divided?|add(?:ed)?|subtract(?:ed)?|times|product of|quotient of|sum of)\b[^.?!]{0,60}",
    re.IGNORECASE,
)
_HOP = lazy_pattern(
    r"\b(?:whose|of the \w+ (?:who|that|which|where|in which|of)|(?:the|a) [^\W\d_]+ (?:of|in|from) (?:the )?[^\W\d_]+ "
    r"(?:who|that|which|where)|[^\W\d_]+['’]s [^\W\d_]+['’]s|the [^\W\d_]+ (?:who|that|which) [^\W\d_]+)\b"
    r"|\b(?:the|his|her|its|their) [^\W\d_]+ (?:of|to) (?:the |a )?[^\W\d_]+ (?:of|to|who|that|in which)\b"
    r"|\b[^\W\d_]+['’]s [^\W\d_]+ (?:of|who|born|when|in)\b|\bwhen [^\W\d_]+ (?:was|were|became|died)\b",
    re.IGNORECASE,
)
_FACT = lazy_pattern(
    r"\b(?:who|whom|whose|what|which|where|when|how (?:old|tall|far|long|many|high|large))\b", re.IGNORECASE
)
_PUZZLE = lazy_pattern(
    r"\b(?:crosswords?|sudokus?|kakuro|nonograms?|cryptarithms?|(?:magic|latin|word) squares?"
    r"|(?:\w+ )?queens (?:puzzle|problem)|knight['’]s tour|river[- ]crossing|peg solitaire|rush hour puzzle)\b",
    re.IGNORECASE,
)
_SOLVING = lazy_pattern(r"\b(?:solve|fill|complete|finish|work out|find a way)\b", re.IGNORECASE)
_PLACING = lazy_pattern(
    r"\b(?:arrange|seat(?:ed|ing)?|place|assign|schedule|colou?r|fill|order|pack|partition|timetable|line up)\b",
    re.IGNORECASE,
)
_CONSTRAINED = lazy_pattern(
    r"\b(?:(?:so|such) that (?:no|each|every|all|none|any|adjacent|neighbou?ring)\b|no two\b"
    r"|not? (?:more than one|both)\b)",
    re.IGNORECASE,
)
_MAKING = lazy_pattern(
    r"(?:^|[.!?:]\s+|\bplease\s+|\bhelp me\s+(?:to\s+)?)"
    r"(?P<verb>plan|design|draft|develop|prepare|organi[sz]e|outline|propose)\s+(?:me\s+|us\s+)?(?P<what>[^.?!\n]*)",
    re.IGNORECASE,
)
_LANGUAGE = r"(?:python|javascript|typescript|java|c\+\+|c#|rust|golang|kotlin|ruby|sql|bash|shell|haskell)"
_CODING = lazy_pattern(
    r"\b(?:write|implement|create|code|fix|debug|refactor|complete|correct|optimi[sz]e)\b[^.?!\n]{0,80}?\b"
    rf"(?:functions?\b(?! of\b)|regex|regular expression|unit tests?\b|in {_LANGUAGE}(?!\w)"
    rf"|{_LANGUAGE} (?:script|program|class|code|module|query|method|one-liner))",
    re.IGNORECASE,
)
_MENDING = lazy_pattern(
    r"\b(?:write|rewrite|implement|fix|debug|refactor|complete|optimi[sz]e)\b", re.IGNORECASE
)
_WRITING = lazy_pattern(
    r"\b(?:write|draft|compose|rewrite)\b[^.?!\n]{0,40}?\b(?P<what>essay|article|report|(?:short )?story|speech|letter"
    r"|e-?mail|blog post|proposal|review|press release|abstract|chapter|readme|memo|announcement)\b",
    re.IGNORECASE,
)
_SMALL = lazy_pattern(
    r"\b(?:haikus?|limericks?|jokes?|slogans?|tweets?|titles?|headlines?|sentences?|riddles?|names?|greetings?|captions?)\b",
    re.IGNORECASE,
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


COMPARING = _words(
    "compare compared both each respectively versus vs than older younger earlier later first taller larger bigger "
    "smaller higher longer heavier richer"
)
SCIENCE = _words(
    "acceleration acid atom atoms chemical chromosome diffusion electron electrons enzyme equilibrium friction gene "
    "genes gravity ion ions kinetic magnetic molar molecule molecules momentum oxidation photon pressure protein "
    "resistor temperature thermodynamics velocity voltage wavelength"
)
"""Words that hardly anything but science uses."""
ALSO_SCIENCE = _words(
    "alkali atmospheric base cell charge circuit compound current degrees density energy field force forces gas heat "
    "law lens mass principle reaction resistance solution speed volume water wave weight work"
)
"""Words of science that others use too; they count beside one of its own."""
CASES = _words(
    "doubled halved tripled happens change changes increase increases decrease decreases rise rises fall falls faster "
    "slower calculate compute find predict why"
)
"""Words of a case to which a principle is applied."""
AMOUNTS = _words(
    "amount average calculate compute cost costs difference distance earn far hours long many mean miles minutes much "
    "number old percent percentage probability product profit rate remainder spend sum total"
)


def _list_cues(found: Collection[str]) -> str:
    return ", ".join(sorted(found)[:3])


def reasons_for(
    problem: str, *, has_tools: bool = False, has_verifier: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the kinds that a problem is of, each with the reason."""
    words = list(map(str.casefold, _WORD.findall(problem)))
    vocabulary, questions = frozenset(words), len(_ASKED.findall(problem))
    if read_puzzle(problem):
        yield "number_puzzle", "a number puzzle: steps are tried, scored and undone"
    if len(problem) >= LONG_CHARS:
        yield "long_input", f"an input of {len(problem):,} characters: programs read it piece by piece"
    if has_tools:
        yield from _reasons_for_lookups(problem, vocabulary, questions)
    if has_verifier:
        yield "checked", "a verifier: the answer is improved until it passes"
    if _CODING.search(problem) or (_CODE.search(problem) and _MENDING.search(problem)):
        yield "code", "a program to be written: several are run and compared"
    if _CODE.search(problem):
        yield "computation", "a program to follow: the state is written down step by step"
    elif _is_long_sum(problem):
        yield "computation", "long numbers, or many: computed digit by digit"
    named = _PUZZLE.search(problem) if _SOLVING.search(problem) else None
    placed, bound = _PLACING.search(problem), _CONSTRAINED.search(problem)
    if cue := named[0] if named else f"{placed[0]} … {bound[0]}" if placed and bound else "":
        yield "search", f"a problem of trial and error ({cue.casefold()})"
    yield from _reasons_by_size(problem, len(words), vocabulary, questions)
    yield "anything", "no special feature: reasoning in steps"


def _reasons_for_lookups(problem: str, vocabulary: Set[str], questions: int) -> Iterator[tuple[str, str]]:
    cues = vocabulary & COMPARING
    if questions == 1 and _FACT.search(problem) and _HOP.search(problem):
        yield "multi_hop", "tools, and a question that depends on others: they come first"
    if questions > 1:
        yield "planned_lookups", f"tools, and {questions} questions: all lookups can be planned at once"
    elif cues:
        yield "planned_lookups", f"tools, and a comparison ({_list_cues(cues)}): lookups run side by side"
    yield "lookups", "tools: each lookup depends on the one before"


def _reasons_by_size(
    problem: str, words: int, vocabulary: Set[str], questions: int
) -> Iterator[tuple[str, str]]:
    """Yield the kinds that rest on how many words, questions, parts, numbers and choices a problem has."""
    choices = len(set(_CHOICE.findall(problem)))
    parts = len(_PART.findall(problem)) if choices < 2 else 0
    written, made = _WRITING.search(problem), _MAKING.search(problem)
    if written and parts < MANY_PARTS and words <= LONG_WORDS:
        yield "text", f"a text ({written['what'].casefold()}): it is reviewed and improved"
    if parts >= MANY_PARTS:
        yield "composite", f"a task of {parts} listed parts"
    elif questions >= MANY_PARTS:
        yield "composite", f"{questions} questions in one"
    elif words > LONG_WORDS and questions != 1:
        yield "composite", f"a long task ({words} words)"
    elif made and not questions and not _SMALL.search(made["what"]):
        yield "composite", f"something to make ({made['verb'].casefold()}), not a question"
    numbers = sum(not _YEAR.fullmatch(text) for text in _NUMBER.findall(problem))
    cues = vocabulary & (SCIENCE | ALSO_SCIENCE)
    if vocabulary & SCIENCE and len(cues) > 1 and (numbers or vocabulary & CASES):
        yield "science", f"science ({_list_cues(cues)}): the principle first, then the case"
    amounts = vocabulary & AMOUNTS
    if choices > 1:
        yield "short_answer", f"{choices} answers to choose from: several solutions can vote"
    elif numbers >= MANY_NUMBERS and amounts and questions:
        why = f"a quantity from {numbers} numbers ({_list_cues(amounts)}): several solutions can vote"
        yield "short_answer", why


def _is_long_sum(problem: str) -> bool:
    """Whether numbers of many digits, or many numbers, are to be reckoned with; two years are no such numbers."""
    sums = (
        re.findall(r"\d[\d,]*(?:\.\d+)?", match[0])
        for pattern in (_SUM, _WORDED_SUM)
        for match in pattern.finditer(problem)
    )
    return any(
        len(numbers) >= MANY_TERMS
        or (len(numbers) > 1 and any(map(_LONG.search, numbers)) and not all(map(_YEAR.fullmatch, numbers)))
        for numbers in sums
    )


class Kind(Struct, frozen=True):
    """A kind of problem.

    Args:
        name: What strategies call it in `suits`.
        description: What a problem of this kind does, for the documentation.
        is_thought: Whether a model that reasons by itself does the same in its one reply.
    """

    name: str
    description: str
    is_thought: bool = False


KINDS: tuple[Kind, ...] = (
    Kind("number_puzzle", "is a number puzzle and nothing else", is_thought=True),
    Kind("long_input", f"has {LONG_CHARS:,} characters or more"),
    Kind(
        "multi_hop",
        "comes with tools and asks for a fact that depends on others (`the capital of the country whose …`)",
    ),
    Kind(
        "planned_lookups",
        "comes with tools and asks several questions or compares things (`which … first`, `both`, `versus`)",
    ),
    Kind("lookups", "comes with tools"),
    Kind("checked", "comes with a verifier"),
    Kind("code", "asks for a program, or has one mended (`Write a function …`, `Fix …`)"),
    Kind(
        "computation",
        "shows lines of a program, or computes with numbers of four digits or more, or with five or more numbers",
        is_thought=True,
    ),
    Kind(
        "search",
        "is one of trial and error: a crossword, a Sudoku, things to be placed so that no two …",
        is_thought=True,
    ),
    Kind("text", "asks for a text of some length (`Write an essay …`, `Draft an e-mail …`)"),
    Kind(
        "composite",
        "has three or more listed parts or questions, or over 250 words, or asks for something large "
        "(`Design …`, `Plan …`)",
    ),
    Kind("science", "applies science to a case, with two or more of its words", is_thought=True),
    Kind(
        "short_answer",
        "offers answers A, B, C, …, or asks for a quantity and gives three or more numbers",
        is_thought=True,
    ),
    Kind("anything", "anything else: one call"),
)
"""Tried from the top."""


class Considered(Struct, frozen=True):
    """A kind of problem that `auto` looked at.

    Attributes:
        strategy: The strategy that suits it; empty where none does.
        calls: That it usually takes.
        why: Why the problem is of this kind; empty where it is not.
        passed: Why it is not taken although the problem is of the kind.
    """

    kind: str
    strategy: str
    calls: int
    why: str
    passed: str = ""


def choose_strategy(
    problem: str, strategies: Iterable[Strategy[Any, Any]], **at_hand: Any
) -> tuple[str, str, list[Considered]]:
    """Return the name of the strategy for a problem, why, and what was considered; the arguments are `consider`'s."""
    known = list(strategies)
    if not known:
        raise UsageError("there is no strategy to choose from", option="strategy")
    considered = consider(problem, known, **at_hand)
    taken = next((each for each in considered if each.why and each.strategy and not each.passed), None)
    if taken is None:
        fewest = min(known, key=lambda strategy: strategy.calls)
        return fewest.name, "no other has as few calls, and no rule applies within the budget", considered
    passed = [each.passed for each in considered[: considered.index(taken)] if each.passed]
    return taken.strategy, "; ".join([taken.why, *passed]), considered


def consider(
    problem: str,
    strategies: Iterable[Strategy[Any, Any]],
    *,
    has_tools: bool,
    has_verifier: bool = False,
    reasons: bool = False,
    calls: int | None = None,
) -> list[Considered]:
    """Return the kinds of problem in the order in which they are tried; the first that is taken decides.

    Args:
        strategies: Where to choose from; where several suit a kind of problem, the first of them is taken.
        has_tools: Whether the run may call tools.
        has_verifier: Whether a verifier looks at its answers.
        reasons: Whether its model reasons by itself before it replies.
        calls: Of its budget; None: without a limit.

    Raises:
        InvalidStrategyError: A strategy says it suits a kind of problem that there is not.
    """
    suiting = {kind: strategy for strategy in reversed(list(strategies)) for kind in strategy.suits}
    kinds = [kind.name for kind in KINDS]
    if unknown := next((kind for kind in suiting if kind not in kinds), None):
        raise InvalidStrategyError(
            f"strategy {suiting[unknown].name!r}: suits names no kind of problem: {unknown!r}. "
            f"The kinds: {', '.join(kinds)}."
        )
    found = dict(reasons_for(problem, has_tools=has_tools, has_verifier=has_verifier))
    considered: list[Considered] = []
    for kind in KINDS:
        why, strategy, passed = found.get(kind.name, ""), suiting.get(kind.name), ""
        needed = strategy.calls if strategy else 0
        if strategy and why and calls is not None and needed > calls:
            passed = f"{strategy.name} would take {needed} calls, and the budget has {calls}"
        elif strategy and why and reasons and kind.is_thought:
            passed = f"the model reasons by itself, so it needs no {strategy.name}"
        considered.append(Considered(kind.name, strategy.name if strategy else "", needed, why, passed))
    return considered
