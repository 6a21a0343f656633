"""Judging: a data set of problems, and whether what was found for one is right.

Rule 1: answers are compared by what they say (`vote.normalise`), never by how they are written.
Rule 2: a judge is pure: the same answer gets the same verdict, and judging again costs nothing. Only the judge `model`
        is not here, since it has to be asked.
"""

from __future__ import annotations

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
from ..regular_files import read_problems
from ..tools.verifiers import judge

TOLERANCE = Fraction(1, 1_000_000)
"""How far apart, relatively, two numbers may be that count as the same."""


# -- the data set


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a data set.

    Attributes:
        id: What it is called in reports: the number of the line where the line names no other.
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
    """Read a data set, one JSON object a line; raises as `read_problems`."""

    def take(number: int, item: Item) -> Item:
        return msgspec.structs.replace(item, id=str(number if item.id is None else item.id))

    return [*read_problems(text.encode(), Item, take, name=name).values()]


# -- judging


Judge = Callable[[Item, str], bool]
"""Says whether an answer is right. Pure; a judge that asks a model is not one of these."""


def reads_the_same(read: Callable[[str], Any]) -> Judge:
    """Return the judge that reads the right answer and the other one alike, and wants the same of both."""
    return lambda item, answer: read(answer) == read(item.expected or "")


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
