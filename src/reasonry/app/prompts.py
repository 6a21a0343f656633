"""Prompts of a user's own: what a stage asks in place of the strategy's words, by `STRATEGY.STAGE`.

A prompt is the whole question of its stage. In it `{prompt}` and `{system}` stand for the question and the fixed
instructions as the strategy writes them, `{problem}` for the problem; other braces stay as they are. The form of the
reply is asked for as ever. The machine puts a prompt in its place where the question is first asked, so that a later
try of it continues from there, and goes by the strategy's own question otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.registry import find_strategy
from ..core.strategy import Strategy
from ..errors import UsageError


def stages_asking(strategies: Iterable[Strategy[Any, Any]]) -> list[str]:
    """Return the stages that ask and read replies, as `STRATEGY.STAGE`."""
    return [
        f"{strategy.name}.{stage.name}"
        for strategy in strategies
        for stage in strategy.stages
        if stage.body is not None and (stage.reply is not None or stage.read is not None)
    ]


def read_prompts(written: Mapping[str, str], strategies: Iterable[Strategy[Any, Any]]) -> dict[str, str]:
    """Return prompts by the canonical names of their stages.

    Args:
        strategies: Of the run, those inside one another included.

    Raises:
        UsageError: There is no such stage, or it asks nothing (`choices` has those that ask); or the problem cannot get
            into the question.
    """
    known = {strategy.name: strategy for strategy in strategies}
    legal, read = stages_asking(known.values()), dict[str, str]()
    for name, text in written.items():
        before, _, stage = name.strip().partition(".")
        strategy = find_strategy(before, known)
        found = f"{strategy.name if strategy else before}.{stage.replace('-', '_')}"
        if found not in legal:
            raise UsageError(
                f"no stage {name!r} asks anything in this run; legal: {', '.join(legal)}.",
                option="prompt",
                choices=legal,
            )
        if "{prompt}" not in text and "{problem}" not in text:
            raise UsageError(
                f"the prompt of {found} has neither {{prompt}} nor {{problem}}: the problem would be missing",
                option="prompt",
            )
        if found in read:
            raise UsageError(f"{found} is given two prompts", option="prompt")
        read[found] = text
    return read
