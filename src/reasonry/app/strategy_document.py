"""A strategy as a document, with what its thinker or a script that plays its model needs, and as a flowchart."""

from __future__ import annotations

import re
from typing import Any

from ..core.schema import inlined_schema
from ..core.strategy import Stage, Strategy
from ..guided.fields import required_fields
from ..patterns import lazy_pattern

_PLAIN = lazy_pattern(r"[A-Za-z_]\w*", re.ASCII)
_RESERVED = {
    *("end", "graph", "flowchart", "subgraph", "style"),
    *("class", "classdef", "click", "linkstyle", "default"),
}


def describe(strategy: Strategy[Any, Any]) -> dict[str, Any]:
    """Return name, source, stages and options of a strategy, as JSON data.

    An option is `{name, default, description, …}`; what else there is (`type`, `minimum`, `enum`) is JSON schema.
    """
    options = inlined_schema(strategy.options).get("properties", {})
    return {
        "name": strategy.name,
        "title": strategy.title,
        "source": strategy.source,
        "summary": strategy.summary,
        "aliases": list(strategy.aliases),
        "driven": strategy.is_driven,
        "calls": strategy.calls,
        "stages": [{**describe_stage(stage), **_describe_form(stage)} for stage in strategy.stages],
        "options": [{"name": name, "default": None, "description": "", **options[name]} for name in options],
    }


def describe_stage(stage: Stage[Any]) -> dict[str, Any]:
    """Return one row of the table, as a table is written; `fields` has the JSON schema of each member of `data`."""
    return {
        "name": stage.name,
        "description": stage.description,
        "guidance": stage.guidance,
        "to": list(stage.to),
        "repeats": stage.repeats,
        "compares": stage.compares,
        "tested_by": stage.tested_by,
        "requires": required_fields(stage),
        "fields": {field.name: dict(field.schema) for field in stage.fields},
        "optional": [field.name for field in stage.fields if not field.required],
    }


def _describe_form(stage: Stage[Any]) -> dict[str, Any]:
    example = None if stage.example is None else dict(stage.example)
    return {"reply_schema": stage.form, "reply_example": example} if stage.form else {}


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
