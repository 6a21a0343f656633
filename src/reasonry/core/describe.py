"""A strategy as a document: what a person or a script needs to walk its stages or to play its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .options import describe_options
from .strategy import Stage, Strategy


def describe(strategy: Strategy[Any, Any]) -> dict[str, Any]:
    """Return name, source, stages and options of a strategy, as JSON data."""
    return {
        "name": strategy.name,
        "title": strategy.title,
        "source": strategy.source,
        "summary": strategy.summary,
        "aliases": list(strategy.aliases),
        "driven": strategy.is_driven,
        "stages": [describe_stage(stage) for stage in strategy.stages],
        "options": describe_options(strategy),
    }


def describe_stage(stage: Stage[Any]) -> dict[str, Any]:
    """Return one row of the table; stages that ask have `reply_schema` and `reply_example` too."""
    document: dict[str, Any] = {
        "name": stage.name,
        "description": stage.description,
        "guidance": stage.guidance,
        "fields": fields_schema(stage),
        "next": list(stage.ways),
    }
    if stage.form is not None:
        document["reply_schema"] = stage.form
        document["reply_example"] = None if stage.example is None else dict(stage.example)
    return document


def fields_schema(stage: Stage[Any]) -> dict[str, Any]:
    """Return the JSON schema of what a guided thought of this stage carries in `data`."""
    properties: dict[str, Mapping[str, Any]] = {field.name: dict(field.schema) for field in stage.fields}
    required = [field.name for field in stage.fields if field.required]
    return {"type": "object", "properties": properties, "required": required}
