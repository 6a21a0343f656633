"""Choose a strategy for a user who names `auto`, and give the reason for the choice.

Rule 1: the choice depends on the caller's inputs. The problem's words do not count, except in an exact number puzzle.
Rule 2: the table `KINDS` decides: take the first row whose condition holds and that has a suitable strategy.
Rule 3: if a verifier checks drafts, the strategy for the given tools or documents writes the drafts.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from ..core.strategy import Strategy
from ..errors import UsageError
from ..puzzles.reading import read_puzzle

AUTO = "auto"
"""The name that a user gives to have the strategy chosen."""

MANY_CALLS = 8
"""The least budget of calls that pays for several drafts."""


class Inputs(Struct, frozen=True, kw_only=True):
    """The inputs that come with a problem.

    Attributes:
        has_verifier: Whether a verifier or tests check the answers.
        has_sandbox: Whether programs can be run.
        is_focused: Whether a focused answer is wanted.
        is_number: Whether the answer must be a number.
        calls: Calls of the caller's budget, or 0 without a budget.
    """

    problem: str = ""
    has_verifier: bool = False
    has_tools: bool = False
    has_documents: bool = False
    has_sandbox: bool = False
    is_focused: bool = False
    is_number: bool = False
    calls: int = 0


class Kind(Struct, frozen=True):
    """A row of the table: a kind of problem.

    Attributes:
        name: The name in `Strategy.suits`.
        holds: Returns whether a problem is of this kind.
        why: The reason to show after the strategy's name.
        writes: Whether the row's strategy also writes the drafts that a verifier checks.
    """

    name: str
    holds: Callable[[Inputs], Any]
    why: str
    writes: bool = False


KINDS: tuple[Kind, ...] = (
    Kind(
        "checked_drafts",
        lambda inputs: inputs.has_verifier and inputs.calls >= MANY_CALLS,
        f"a verifier, and {MANY_CALLS} calls or more: it picks among several drafts",
    ),
    Kind("checked", lambda inputs: inputs.has_verifier, "a verifier: its objection improves the draft"),
    Kind(
        "lookups", lambda inputs: inputs.has_tools, "tools: each call depends on the one before", writes=True
    ),
    Kind(
        "focused_reading",
        lambda inputs: inputs.has_documents and inputs.is_focused,
        "documents and a focused answer: tasks gather evidence for it",
    ),
    Kind("reading", lambda inputs: inputs.has_documents, "documents: they are searched", writes=True),
    Kind(
        "number",
        lambda inputs: inputs.is_number and inputs.has_sandbox,
        "a number is wanted, and there is a sandbox: a program computes it",
    ),
    Kind(
        "number_puzzle",
        lambda inputs: (
            (puzzle := read_puzzle(inputs.problem)) and not 0 < inputs.calls < len(puzzle.numbers) - 1
        ),
        "a number puzzle: steps are tried, checked exactly and undone",
    ),
    Kind("anything", lambda inputs: True, "nothing but a problem: one call"),
)
"""The rows of the table, from the top. No row names a strategy; a strategy names its kinds in `Strategy.suits`."""


def choose_strategy(inputs: Inputs, strategies: Iterable[Strategy[Any, Any]]) -> tuple[str, str]:
    """Return the strategy for a problem, as a user would write it, and the reason.

    Args:
        strategies: The strategies to choose from. For each kind of problem, the first suitable strategy counts.

    Raises:
        UsageError: No strategy suits the problem.
    """
    suiting = {kind: strategy.name for strategy in reversed([*strategies]) for kind in strategy.suits}
    kinds = [kind for kind in KINDS if kind.name in suiting and kind.holds(inputs)]
    if not kinds:
        raise UsageError("no strategy here suits the problem: name one", option="strategy")
    name, writer = suiting[kinds[0].name], next((suiting[kind.name] for kind in kinds if kind.writes), "")
    if not (inputs.has_verifier and writer) or writer == name:
        return name, kinds[0].why
    return f"{name}({writer})", f"{kinds[0].why}; {writer} writes each draft"
