"""Walk through the stages of a strategy without a session, and convert tables of stages to and from plain data.

    at = StageManager("react")
    at.transition_to("initial_reasoning")

A mapping has the stages, edges and descriptions of strategies under `strategyStages`, `stageTransitions` and
`stageDescriptions`. It has no guidance and no fields, which the table of a strategy also has.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from .core.registry import Registry, resolve
from .core.strategy import Stage, Strategy
from .errors import InvalidStrategyError, UsageError
from .strategies import STRATEGIES
from .text import show_value

Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,59}\Z")]
"""A legal name of a strategy or a stage."""


class StageManager:
    """A position in the table of a strategy. `stage_history` has the earlier stages.

    Args:
        strategy: A strategy, or its name or alias.

    Raises:
        UsageError: The strategy is unknown.
    """

    def __init__(self, strategy: str | Strategy[Any, Any]) -> None:
        if not isinstance(strategy, str | Strategy):  # pyright: ignore[reportUnnecessaryIsInstance]
            why = f"a strategy is a Strategy or the name of one, not {show_value(strategy)}"
            raise UsageError(why, option="strategy", choices=[*STRATEGIES])
        self.strategy = resolve(strategy, STRATEGIES) if isinstance(strategy, str) else strategy
        self.stages = [*self.strategy.by_name]
        self.current_stage, self.stage_history = self.strategy.first, list[str]()

    def get_next_stages(self) -> list[str]:
        """Return the legal next stages. The list is empty at the last stage."""
        return [*self.strategy.by_name[self.current_stage].ways]

    def can_transition_to(self, stage: str) -> bool:
        """Whether the table has an edge from the current stage to `stage`."""
        return stage in self.get_next_stages()

    def transition_to(self, stage: str) -> str:
        """Make `stage` the current stage, and return its name.

        Raises:
            IllegalTransitionError: No edge leads to `stage`. `choices` has the legal stages. Nothing has changed.
        """
        self.strategy.check_move(self.current_stage, stage)
        self.stage_history.append(self.current_stage)
        self.current_stage = stage
        return stage


class _Mapping(Struct):
    stageTransitions: dict[Name, dict[str, list[str]]]
    strategyStages: dict[Name, list[str]] = {}
    stageDescriptions: dict[str, str] = {}


def to_mapping(strategies: Registry = STRATEGIES) -> dict[str, Any]:
    """Return the stages, the edges and the descriptions of strategies as JSON data."""
    tables = {name: strategy.stages for name, strategy in strategies.items()}
    return {
        "strategyStages": {name: [stage.name for stage in table] for name, table in tables.items()},
        "stageTransitions": {
            name: {row.name: [*row.ways] for row in table} for name, table in tables.items()
        },
        "stageDescriptions": {stage.name: stage.description for table in tables.values() for stage in table},
    }


def from_mapping(mapping: Mapping[str, Any]) -> dict[str, Strategy[Any, Any]]:
    """Build strategies from a mapping, for guided use. Return the strategies by name.

    Args:
        mapping: Data as `to_mapping` returns it. If `strategyStages` is missing, `stageTransitions` orders the stages.

    Raises:
        InvalidStrategyError: The mapping is malformed, or a table is inconsistent; the message says why.
    """
    try:
        read = msgspec.convert(mapping, _Mapping)
    except msgspec.ValidationError as error:
        raise InvalidStrategyError(f"this is no mapping of strategies: {error}") from None
    found: dict[str, Strategy[Any, Any]] = {}
    for name in {**read.stageTransitions, **read.strategyStages}:
        edges = read.stageTransitions.get(name, {})
        stages = (
            Stage(
                stage,
                tuple(to for to in edges.get(stage, ()) if to != stage),
                read.stageDescriptions.get(stage, ""),
                repeats=stage in edges.get(stage, ()),
            )
            for stage in dict.fromkeys((*read.strategyStages.get(name, ()), *edges))
        )
        title = name.replace("_", " ").capitalize()
        found[name] = Strategy(name, title, "a user's own mapping", "", tuple(stages))
    return found
