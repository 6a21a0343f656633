"""Judging: a data set of problems, and whether what was found for one is right.

Rule 1: answers are compared by what they say (`vote.normalise`), never by how they are written.
Rule 2: a judge is pure: the same answer gets the same verdict, and judging again costs nothing. Only the judge `model`
        is not here, since it has to be asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ..core.effects import Verify
from ..errors import UsageError
from ..puzzles.reading import read_puzzle
from ..puzzles.term import Puzzle
from ..reading.numbers import numbers_in, without_latex
from ..reading.vote import agree, normalise
from ..tools.verifiers import judge

TOLERANCE = Fraction(1, 1_000_000)
"""How far apart, relatively, two numbers may be that count as the same."""


# -- the data set


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a data set.

    Attributes:
        id: What it is called in reports; given by its place where the line has none.
        answer: What is right; not needed by every judge.
    """

    problem: Annotated[str, Meta(min_length=1)]
    answer: str | int | float | None = None
    id: str | int | None = None

    @property
    def expected(self) -> str | None:
        """The right answer as text."""
        return None if self.answer is None else str(self.answer)


def read_dataset(text: str, name: str) -> list[Item]:
    """Read a data set, one JSON object a line; empty lines are passed over.

    Args:
        name: What messages call it.

    Raises:
        UsageError: A line is broken or an id stands twice (`line` says where), or there is no line.
    """
    items: list[Item] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            item = msgspec.json.decode(line, type=Item)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise UsageError(f"line {number} of {name} is broken: {error}", line=number) from None
        item = msgspec.structs.replace(item, id=str(len(items) + 1 if item.id is None else item.id))
        if item.id in seen:
            message = f"line {number} of {name}: the id {item.id!r} stands in line {seen[item.id]} too"
            raise UsageError(message, line=number)
        seen[str(item.id)] = number
        items.append(item)
    if not items:
        message = f'{name} holds no problem; a line is {{"problem": …, "answer": …}}'
        raise UsageError(message, option="dataset")
    return items


# -- judging


Judge = Callable[[Item, str], bool]
"""Says whether an answer is right. Pure; a judge that asks a model is not one of these."""


def reads_the_same(read: Callable[[str], Any]) -> Judge:
    """Return the judge that reads the right answer and the other one alike, and wants the same of both."""
    return lambda item, answer: read(answer) == read(item.expected or "")


def finds_the_same(pattern: str) -> Judge:
    """Return the judge that finds the same matches of a pattern in both, in any order; it looks at lower-case text."""
    return reads_the_same(lambda text: sorted(re.findall(pattern, text.lower())))


def check_items(items: Sequence[Item], spec: str) -> None:
    """Check that a judge can be used on a data set.

    Raises:
        UsageError: A problem lacks what the judge needs.
    """
    for item in items:
        if spec.startswith("arithmetic:") and read_puzzle(item.problem) is None:
            raise UsageError(f"problem {item.id} is no number puzzle; use another --judge", option="judge")
        if spec in ("exact", "numeric") and item.expected is None:
            raise UsageError(f"problem {item.id} has no answer; --judge {spec} needs one", option="judge")
        if spec == "numeric" and number_in(item.expected or "") is None:
            message = f"the answer of problem {item.id} holds no number; use --judge exact"
            raise UsageError(message, option="judge")


def says_the_same(item: Item, answer: str) -> bool:
    """`exact`: it says what the right answer says, whatever the case, the units' names and the way to write numbers."""
    return agree(normalise(item.expected or ""), normalise(answer))


def is_the_number(item: Item, answer: str) -> bool:
    """`numeric`: the last number in it is the last number in the right answer; units are not looked at."""
    wanted, found = number_in(item.expected or ""), number_in(answer)
    if wanted is None or found is None:
        return False
    return abs(wanted - found) <= TOLERANCE * max(abs(wanted), abs(found))


def makes(target: Fraction, problem: str, answer: str) -> bool:
    """`arithmetic:TARGET`: it makes the target from the problem's numbers, each used once; moves that lead there do."""
    puzzle = read_puzzle(problem)
    claim = Verify(problem, (*answer.splitlines(), answer), final=True)
    return puzzle is not None and judge(Puzzle(puzzle.numbers, target), claim).verdict == "right"


def number_in(text: str) -> Fraction | None:
    """Return the value of the last number in a text, `1,000`, `$5.50` and `3/4` included."""
    key = normalise(text)
    if key.number is not None:
        return Fraction(key.number)
    numbers = numbers_in(without_latex(text.lower()))
    return numbers[-1] if numbers else None


def judged_answer(document: Mapping[str, Any]) -> str | None:
    """Return what is judged: the answer, or the best so far of a run that a limit stopped, for all had the same one."""
    is_stopped = (document.get("outcome"), document.get("status")) == ("stopped", "done")
    return document.get("best_answer" if is_stopped else "answer")


def all_found(document: Mapping[str, Any]) -> list[str]:
    """Return all that a result document says was found: the answer first, thoughts with and without their paths."""
    found = document.get("candidates") or ()
    return [
        *filter(None, [judged_answer(document)]),
        *(str(thought.get("content", "")) for thought in found),
        *("\n".join(map(str, thought.get("path_text") or ())) for thought in found),
        *(str(vote.get("answer", "")) for vote in document.get("votes") or ()),
    ]
