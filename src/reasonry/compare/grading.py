"""Grading: the problems of a data set, and the judges of answers.

Rule 1: answers are compared by meaning (`vote.normalise`), never by spelling.
Rule 2: a judge is pure: the same answer gets the same verdict at no cost. The judge `model` asks a model, so it is in
        `comparison`.
"""

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
from ..system.processes import ProblemId, read_problems
from ..tools.verifiers import judge

TOLERANCE = Fraction(1, 1_000_000)
"""The largest relative difference of two numbers that count as equal."""


# -- the data set


class Item(Struct, frozen=True, forbid_unknown_fields=True):
    """A problem: a line of a data set.

    Attributes:
        id: The problem's name in reports. Defaults to the position of the line.
        answer: The right answer, which not every judge needs.
    """

    problem: Annotated[str, Meta(min_length=1)]
    answer: str | int | float | None = None
    id: ProblemId | None = None

    @property
    def expected(self) -> str | None:
        """The right answer as text."""
        return None if self.answer is None else str(self.answer)


def read_dataset(text: str, name: str) -> list[Item]:
    """Read a data set with a JSON object per line. The errors are as in `read_problems`."""

    def take(number: int, item: Item) -> Item:
        return msgspec.structs.replace(item, id=str(number if item.id is None else item.id))

    return [*read_problems(text.encode(), Item, take, name=name).values()]


# -- judging


Judge = Callable[[Item, str], bool]
"""Decides whether an answer to a problem is right. A `Judge` is a pure function, so the judge `model` is no `Judge`."""


def reads_the_same(read: Callable[[str], Any]) -> Judge:
    """Return a judge that applies `read` to an answer and to the right answer, and compares the results."""
    return lambda item, answer: read(answer) == read(item.expected or "")


def check_items(items: Sequence[Item], spec: str) -> None:
    """Check that each problem has the properties that the judge `spec` needs, or raise UsageError."""
    for item in items:
        if spec.startswith("arithmetic:") and read_puzzle(item.problem) is None:
            raise UsageError(f"problem {item.id} is no number puzzle; use another --judge", option="judge")
        if spec in ("exact", "numeric") and item.expected is None:
            raise UsageError(f"problem {item.id} has no answer; --judge {spec} needs one", option="judge")
        if spec == "numeric" and number_in(item.expected or "") is None:
            message = f"the answer of problem {item.id} holds no number; use --judge exact"
            raise UsageError(message, option="judge")


def says_the_same(item: Item, answer: str) -> bool:
    """The judge `exact`: whether an answer equals the right answer, apart from case, unit names and number formats."""
    return agree(normalise(item.expected or ""), normalise(answer))


def is_the_number(item: Item, answer: str) -> bool:
    """The judge `numeric`: whether the last number in an answer is right. Units are ignored."""
    wanted, found = number_in(item.expected or ""), number_in(answer)
    if wanted is None or found is None:
        return False
    return abs(wanted - found) <= TOLERANCE * max(abs(wanted), abs(found))


def makes(item: Item, answer: str, target: Fraction | None = None) -> bool:
    """Whether an answer makes a target from the numbers of the problem, each used once.

    Args:
        target: The target in `arithmetic:TARGET`. If None, the target that the problem states is used.
    """
    puzzle = read_puzzle(item.problem)
    claim = Verify(item.problem, (*answer.splitlines(), answer), final=True)
    if puzzle is not None and target is not None:
        puzzle = Puzzle(puzzle.numbers, target)
    return puzzle is not None and judge(puzzle, claim).verdict == "right"


def number_in(text: str) -> Fraction | None:
    """Return the last number in a text, such as `1,000`, `$5.50` or `3/4`. None if there is none."""
    quantity = normalise(text).quantity
    if quantity is not None:
        return quantity.number
    numbers = numbers_in(without_latex(text.lower()))
    return numbers[-1] if numbers else None


def judged_answer(document: Mapping[str, Any]) -> str | None:
    """Return the answer to judge. If a limit stopped the run, return the best answer so far."""
    is_stopped = (document.get("outcome"), document.get("status")) == ("stopped", "done")
    return document.get("best_answer" if is_stopped else "answer")


def all_found(document: Mapping[str, Any]) -> list[str]:
    """Return all candidate answers in a result document. The answer to judge comes first, if there is one."""
    found = document.get("candidates") or ()
    return [
        *filter(None, [judged_answer(document)]),
        *(str(thought.get("content", "")) for thought in found),
        *("\n".join(map(str, thought.get("path_text") or ())) for thought in found),
        *(str(vote.get("answer", "")) for vote in document.get("votes") or ()),
    ]
