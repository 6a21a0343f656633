"""Read a user's own prompts, which replace the questions of stages, by `STRATEGY.STAGE`.

A prompt is the whole question of its stage. Its `{prompt}` and `{system}` stand for the strategy's question and fixed
instructions, `{problem}` for the problem; other braces stay unchanged. The reply's form is requested as usual. The
machine inserts a prompt at the first try of a question, and later tries continue from there.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.registry import find_strategy
from ..core.strategy import Strategy
from ..errors import UsageError


def stages_asking(strategies: Iterable[Strategy[Any, Any]]) -> list[str]:
    """Return the stages with questions and readable replies, as `STRATEGY.STAGE`."""
    return [
        f"{strategy.name}.{stage.name}"
        for strategy in strategies
        for stage in strategy.stages
        if stage.body is not None and (stage.reply is not None or stage.read is not None)
    ]


def read_prompts(written: Mapping[str, str], strategies: Iterable[Strategy[Any, Any]]) -> dict[str, str]:
    """Return prompts by the canonical names of the stages of a run's strategies, inner strategies included.

    Raises:
        UsageError: No stage with questions has this name (`choices` lists the stages), or the prompt has no place for
            the problem.
    """
    known = {strategy.name: strategy for strategy in strategies}
    legal, read = stages_asking(known.values()), dict[str, str]()
    for name, text in written.items():
        before, _, stage = name.strip().partition(".")
        strategy = find_strategy(before, known)
        found = f"{strategy.name if strategy else before}.{stage.replace('-', '_')}"
        if found not in legal:
            raise UsageError(
                f"no stage {name!r} of this run asks a question. Stages with questions: {', '.join(legal)}.",
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
