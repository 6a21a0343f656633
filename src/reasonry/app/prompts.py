"""Read a user's own prompts. Each prompt replaces the question of a stage, named `STRATEGY.STAGE`.

A prompt is the whole question of its stage. In it, `{prompt}` stands for the strategy's question, `{system}` for the
strategy's fixed instructions, and `{problem}` for the problem; other braces stay unchanged. The form of the reply is
requested as usual. The first try of a question uses the prompt, and later tries continue from the prompt.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..core.registry import find_strategy
from ..core.strategy import Strategy
from ..errors import UsageError


def stages_asking(strategies: Iterable[Strategy[Any, Any]]) -> list[str]:
    """Return the stages that ask a question and read its reply, each as `STRATEGY.STAGE`."""
    return [
        f"{strategy.name}.{stage.name}"
        for strategy in strategies
        for stage in strategy.stages
        if stage.body is not None and (stage.reply is not None or stage.read is not None)
    ]


def read_prompts(written: Mapping[str, str], strategies: Iterable[Strategy[Any, Any]]) -> dict[str, str]:
    """Check prompts, and return them by canonical stage name. `strategies` includes the inner strategies of a run.

    Raises:
        UsageError: A prompt names no stage that asks a question (`choices` lists the stages), has no place for the
            problem, or is the second prompt for a stage.
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
