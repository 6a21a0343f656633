"""When a stage's guidance is given: once in a session, as soon as the stage is offered, so before its first thought.

A stage that was entered without having been offered (the first of a session, one that a path leads to) has its guidance
in the reply to the thought that entered it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from msgspec.structs import replace

from ..core.strategy import Strategy
from .lines import Head


def guidance_due(strategy: Strategy[Any, Any], stage: str, already: Container[str] = ()) -> dict[str, str]:
    """Return the guidance, by stage, that a reply gives for a stage and for those that may follow it.

    Args:
        already: Stages whose guidance is not repeated.
    """
    names = (stage, *strategy.stage(stage).to)
    return {name: strategy.by_name[name].guidance for name in names if name not in already}


def with_guidance_given(strategy: Strategy[Any, Any], head: Head) -> Head:
    """Return where the session stands once the reply to its latest thought was given."""
    if head.stage not in strategy.by_name:
        return head
    return replace(head, guided=(*head.guided, *guidance_due(strategy, head.stage, head.guided)))
