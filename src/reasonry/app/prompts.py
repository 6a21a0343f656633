"""Read a user's own prompts, by stage (`STRATEGY.STAGE`). Each prompt replaces the whole question of its stage.

In a prompt, `{prompt}` stands for the strategy's question, `{system}` for the strategy's fixed instructions, and
`{problem}` for the problem. All other braces stay unchanged. The engine still adds its request for the form of the
reply. If a reply is unreadable, the engine asks again in the same conversation, after the prompt and the reply.
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
    """Check prompts, and return them by canonical stage name. `strategies` must include inner strategies.

    Raises:
        UsageError: A prompt's name is not a stage that asks a question (`choices` lists these stages), a prompt has no
            place for the problem, or a stage has two prompts.
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
