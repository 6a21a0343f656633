"""A strategy's table as a Mermaid flowchart."""

from __future__ import annotations

import re
from typing import Any

from ..patterns import lazy_pattern
from .strategy import Stage, Strategy

_PLAIN = lazy_pattern(r"[A-Za-z_]\w*", re.ASCII)
_RESERVED = {
    *("end", "graph", "flowchart", "subgraph", "style"),
    *("class", "classdef", "click", "linkstyle", "default"),
}


def diagram(strategy: Strategy[Any, Any]) -> str:
    """Return Mermaid text: the first and the last stage are round, those with several ways out are rhombi."""
    ids = {stage.name: _id(stage.name, number) for number, stage in enumerate(strategy.stages)}
    boxes = [f"    {ids[stage.name]}{_box(strategy, stage)}" for stage in strategy.stages]
    arrows = [f"    {ids[stage]} --> {ids[to]}" for stage, to in strategy.edges]
    return "\n".join(["flowchart TD", *boxes, *arrows]) + "\n"


def _id(name: str, number: int) -> str:
    return name if _PLAIN.fullmatch(name) and name.lower() not in _RESERVED else f"stage_{number + 1}"


def _box(strategy: Strategy[Any, Any], stage: Stage[Any]) -> str:
    label = '"' + stage.name.replace("#", "#35;").replace('"', "#quot;").replace("\n", " ") + '"'
    if stage.name == strategy.first or not stage.to:
        return f"([{label}])"
    return f"{{{label}}}" if len(stage.to) > 1 else f"[{label}]"
