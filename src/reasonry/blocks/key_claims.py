"""The unchecked claims that carry a line of thoughts, found without a model.

Rule 1: settled and given statements are no claims: thoughts that were run or revised, questions, figures of the
        problem.
Rule 2: a figure is claimed at its first occurrence, and weighs more if a later thought uses it. So does the largest
        part of a total that is used.
Rule 3: at equal weight the claim nearer to the conclusion comes first; no thought takes all places, and no figure
        occurs twice.
"""

import re
from collections import Counter
from collections.abc import Sequence, Set
from itertools import accumulate
from typing import Final

from msgspec import Struct

from ..core.problem import MARK
from ..text import lazy_pattern

MAX_OF_A_THOUGHT: Final = 2
_LEAST_WORDS: Final = 3
_LONG_CHARS: Final = 160
"""The length from which a clause is also split at commas."""

_THOUGHT: Final = lazy_pattern(rf"^{re.escape(MARK)}Thought (\d+)(?: \(([^)]*)\))?: ", re.MULTILINE)
_REVISES: Final = lazy_pattern(r"revises thought (\d+)")
_BRANCH: Final = lazy_pattern(r"branch (.+?)(?: back in)?(?:, |$)")
_CLAUSE_END: Final = lazy_pattern(r"(?<=[.!?])(?<!\b\d\.)(?<!\b\d\d\.)\s+|;\s+|\n+")
_COMMA: Final = lazy_pattern(r"(?<=[,:])\s+")
_FIGURE: Final = lazy_pattern(
    r"(?<![\w.])\d[\d.,]*(?:\s?(?:-|–|to)\s?(?P<upper>\d[\d.,]*))?\s?"
    r"(?P<unit>%|[€$£]|(?:[munµ]?s|sec(?:ond)?s?|min(?:ute)?s?|h(?:ou)?rs?|h|days?|weeks?|months?|years?"
    r"|[kmgtp]i?b(?:it)?s?|[km]?bytes?|rows?|req(?:uest)?s?|queries|users?|k|times|fold|x|[km]?w|°?c|km|m)"
    r"(?:\s?/\s?\w+|\s(?:per|an?)\s\w+)?(?!\w))|[€$£]\s?\d[\d.,]*",
    re.IGNORECASE,
)
_STRONG: Final = lazy_pattern(
    r"\b(?:never|always|cannot|can't|no|nothing|none|only|every|all|enough|safe\w*|impossible|guarantee\w*|must|so"
    r"|thus|because|since|therefore|hence|cause[sd]?|means|without|at (?:most|least)"
    r"|under|split|same|lossless|idempotent)\b",
    re.IGNORECASE,
)


class QuotedThought(Struct, frozen=True):
    """A thought quoted below a problem."""

    number: int
    text: str
    evidence: str = ""
    """`ran`, `read`, `reasoned` or `assumed`, if its author says so."""
    branches: tuple[str, ...] = ()
    """The branch of the thought, and the branch it merges."""
    revises: int | None = None


def quoted_thoughts(problem: str) -> list[QuotedThought]:
    """Return the thoughts quoted below a problem."""
    parts = _THOUGHT.split(problem)
    found: list[QuotedThought] = []
    for number, about, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        about, text = about or "", text.replace(f"\n{MARK}", "\n").strip()
        last, revises = about.rpartition(", ")[2], _REVISES.search(about)
        evidence = last if last in ("ran", "read", "reasoned", "assumed") else ""
        branches, revised = tuple(_BRANCH.findall(about)), int(revises[1]) if revises else None
        found.append(QuotedThought(int(number), text, evidence, branches, revised))
    return found


def key_claims(thoughts: Sequence[QuotedThought], count: int) -> list[tuple[str, int]]:
    """Return the unchecked claims on which the conclusion of thoughts rests most, each with its thought's number.

    Args:
        count: The most claims. The heaviest claims come first.
    """
    weighed: list[tuple[int, int, str, int]] = []
    known, last = set[str](), len(thoughts) - 1
    revised = {thought.revises for thought in thoughts}
    # On a branch that the last thought neither belongs to nor merges.
    own = {*thoughts[last].branches} if thoughts else set[str]()
    beside = [bool(own and each.branches) and own.isdisjoint(each.branches) for each in thoughts]
    texts = ("" if is_beside else each.text for each, is_beside in zip(thoughts, beside, strict=True))
    named = [frozenset(_figures(text)) for text in texts]
    # The figures that the thoughts after each one name.
    later = [*accumulate(named[:0:-1], frozenset.union, initial=frozenset[str]())][::-1]
    for place, thought in enumerate(thoughts):
        if thought.number in revised:
            continue
        if thought.evidence != "ran" and not place == 0 < last:
            weight = 4 * (thought.evidence == "assumed") + (place == last) - 4 * beside[place]
            clauses = _weigh_clauses(thought.text, known, later[place])
            weighed += [(weight + own, place, clause, thought.number) for clause, own in clauses]
        known |= named[place]
    taken, counts, shown = list[tuple[str, int]](), Counter[int](), set[str]()
    for _, place, clause, number in sorted(weighed, key=lambda found: (-found[0], -found[1])):
        figures = _figures(clause).keys()
        if counts[place] < MAX_OF_A_THOUGHT and len(taken) < count and shown.isdisjoint(figures):
            counts[place] += 1
            shown |= figures
            taken.append((clause, number))
    return taken


def _weigh_clauses(text: str, known: Set[str], later: Set[str]) -> list[tuple[str, int]]:
    """Return the claiming clauses of a thought, each with its weight."""
    found = [clause.strip() for clause in _CLAUSE_END.split(text)]
    split = [_COMMA.split(clause) if len(clause) > _LONG_CHARS else [clause] for clause in found]
    pieces = [piece.strip().rstrip(",;") for parts in split for piece in parts]
    clauses = {piece: _figures(piece) for piece in pieces if not piece.endswith("?")}
    carried = later - known
    units = {own[figure][1] for own in clauses.values() for figure in own.keys() & carried}
    parts = {
        clause: max((value for value, unit in own.values() if unit in units), default=0.0)
        for clause, own in clauses.items()
        if not own.keys() & carried
    }
    weighed: list[tuple[str, int]] = []
    for clause, own in clauses.items():
        part = parts.get(clause, 0.0)
        weight = 2 * bool(own.keys() - known) + 2 * (clause not in parts) + bool(_STRONG.search(clause))
        weight += (1 + (part == max(parts.values()))) if part else 0
        if weight and len(clause.split()) >= _LEAST_WORDS:
            weighed.append((clause, weight))
    return weighed


def _figures(text: str) -> dict[str, tuple[float, str]]:
    """Return the figures with units in a text, each with its upper value and its unit."""
    found: dict[str, tuple[float, str]] = {}
    for match in _FIGURE.finditer(text):
        number = match["upper"] or re.split(r"\s?(?:-|–|to)\s?", match[0])[0]
        digits = re.sub(r"[^\d.]", "", number).strip(".")
        unit = (match["unit"] or match[0][0]).lower()
        name = re.sub(r"\s", "", match[0].lower())
        found[name] = (float(digits) if digits.count(".") < 2 and digits else 0.0, unit)
    return found
