"""Choosing: which strategy a problem gets when its user names `auto`, and why.

Rule 1: the choice goes by what the caller gave: tools, a verifier, the length of the problem, a number puzzle. The
        text of the problem in a human language is not interpreted.
Rule 2: the kinds of problem below are tried from the top; the first that it is, and that a strategy says it suits
        (`Strategy.suits`) and can finish within the budget (`Strategy.calls`), decides. No strategy is named here.
Rule 3: the same problem gets the same strategy. No rule knows the worth of a strategy on a user's own problems;
        a comparison measures it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from ..core.strategy import Strategy
from ..errors import InvalidStrategyError, UsageError
from ..puzzles.reading import read_puzzle

AUTO = "auto"
"""The word in place of a strategy's name."""

LONG_CHARS = 20_000
"""From this length on a problem is an input with a question, not a question."""


class Kind(Struct, frozen=True):
    """A kind of problem.

    Args:
        name: Its name in the `suits` of strategies.
        description: Its description in the documentation.
        is_thought: Whether a model that reasons by itself does the same in its one reply.
    """

    name: str
    description: str
    is_thought: bool = False


KINDS: tuple[Kind, ...] = (
    Kind("number_puzzle", "is a number puzzle and nothing else", is_thought=True),
    Kind("long_input", f"has {LONG_CHARS:,} characters or more"),
    Kind("lookups", "comes with tools"),
    Kind("checked", "comes with a verifier"),
    Kind("anything", "anything else: one call"),
)
"""Tried from the top."""


def reasons_for(
    problem: str, *, has_tools: bool = False, has_verifier: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the kinds that a problem is of, each with the reason."""
    if read_puzzle(problem):
        yield "number_puzzle", "a number puzzle: steps are tried, scored and undone"
    if len(problem) >= LONG_CHARS:
        yield "long_input", f"an input of {len(problem):,} characters: programs read it piece by piece"
    if has_tools:
        yield "lookups", "tools: each lookup depends on the one before"
    if has_verifier:
        yield "checked", "a verifier: the answer is improved until it passes"
    yield "anything", "no special feature: reasoning in steps"


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
        calls: Of its budget. None means no limit.

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
