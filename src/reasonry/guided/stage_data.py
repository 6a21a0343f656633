"""The data of a thought, shared out among the stages it names.

By stage (`{"action_planning": {"action": …}}`), or flat: a flat value goes to the stages that have a field of its name.
Where one stage alone has fields, all that is flat is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.strategy import Stage


class StageData(NamedTuple):
    """A stage, its data, and the path that errors show for them."""

    stage: Stage[Any]
    data: Mapping[str, Any]
    path: str


def data_by_stage(stages: Sequence[Stage[Any]], data: Mapping[str, Any]) -> list[StageData]:
    """Return each stage with its part of the data, in the order of the stages."""
    names = {stage.name for stage in stages}
    nested = {name: value for name, value in data.items() if name in names and isinstance(value, dict)}
    flat = {name: value for name, value in data.items() if name not in nested}
    with_fields = {stage.name for stage in stages if stage.fields}
    parts: list[StageData] = []
    for stage in stages:
        fields = {field.name for field in stage.fields}
        all_flat = len(names) == 1 or with_fields == {stage.name}
        own = {name: value for name, value in flat.items() if all_flat or name in fields}
        path = "data" if len(names) == 1 else f"data.{stage.name}"
        parts.append(StageData(stage, {**own, **nested.get(stage.name, {})}, path))
    return parts
