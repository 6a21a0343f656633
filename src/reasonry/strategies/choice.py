"""Choose a strategy for a user who names `auto`, and give the reason for the choice.

Rule 1: the caller's inputs decide. The words of the problem do not count, unless they state an exact number puzzle.
Rule 2: the table `KINDS` decides: take the first row whose condition holds and that has a suitable strategy.
Rule 3: if there is a verifier, and also tools or documents, the strategy for the tools or documents writes the drafts.
"""

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct

from ..core.strategy import Strategy
from ..errors import UsageError
from ..puzzles.reading import read_puzzle

AUTO = "auto"
"""The name that a user gives to let this module choose the strategy."""

MANY_CALLS = 8
"""The smallest budget, in model calls, that is enough for several drafts."""


class Inputs(Struct, frozen=True, kw_only=True):
    """The facts about a request that decide which strategy suits it.

    Attributes:
        has_verifier: Whether a verifier or tests check the answers.
        has_sandbox: Whether there is a sandbox that runs programs.
        is_focused: Whether the caller asks for a focused answer (option `focused_answer_type`).
        is_number: Whether the answer must be a number.
        calls: How many model calls the caller's budget allows, or 0 if the caller sets no such limit.
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
    """A kind of problem: one row of the table `KINDS`.

    Attributes:
        name: The name of the kind in `Strategy.suits`.
        holds: A function that returns a true value if a problem is of this kind.
        why: The reason for the choice, to show after the name of the strategy.
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
"""The table, most important row first. No row names a strategy; a strategy names its kinds in `Strategy.suits`."""


def choose_strategy(inputs: Inputs, strategies: Iterable[Strategy[Any, Any]]) -> tuple[str, str]:
    """Choose a strategy. Return its name, as `name` or `name(inner)`, and the reason for the choice.

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
