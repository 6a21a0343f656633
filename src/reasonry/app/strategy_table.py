"""Read a user's strategy tables, and show any strategy as a document or a flowchart.

A user's table defines a strategy for guided use. It has stages and edges, with the same members in TOML and JSON (see
`docs/sessions.md`). A session begins in the first stage and ends in the stage that has no `to`. The additional members
that `reasonry strategies NAME --json` prints are ignored. A mapping in the form of `reasonry.stages` works too.
"""

import tomllib
from typing import Any

import msgspec
from msgspec import Struct

from ..core.strategy import Field, Stage, Strategy
from ..core.type_schema import inlined_schema
from ..errors import InvalidStrategyError
from ..guided.fields import required_fields
from ..stages import Name, from_mapping

MAX_CHARS = 200_000
_RESERVED = {
    *("end", "graph", "flowchart", "subgraph", "style"),
    *("class", "classdef", "click", "linkstyle", "default"),
}


class _Stage(Struct, forbid_unknown_fields=True):
    name: Name
    to: list[str] = []
    description: str = ""
    guidance: str = ""
    fields: dict[str, dict[str, Any]] = {}
    optional: list[str] = []
    repeats: bool = False
    compares: bool = False
    tested_by: str = ""
    requires: Any = None
    reply_schema: Any = None
    reply_example: Any = None


class _Table(Struct, forbid_unknown_fields=True):
    name: Name
    stages: list[_Stage]
    title: str = ""
    summary: str = ""
    source: str = "a user's own table"
    aliases: list[Name] = []
    driven: Any = None
    calls: Any = None
    options: Any = None
    diagram: Any = None


def read_tables(text: str, where: str = "the table") -> dict[str, Strategy[Any, Any]]:
    """Read strategies for guided sessions from the text of a file.

    Args:
        where: The name of the file, for errors. If the name ends with `.json`, the text is JSON. Otherwise, it is TOML.

    Raises:
        InvalidStrategyError: The text is unreadable, or not a table; the message names the stage and the fault.
    """
    try:
        if len(text) > MAX_CHARS:
            raise InvalidStrategyError(f"over {MAX_CHARS:,} characters")
        data = msgspec.json.decode(text) if where.endswith(".json") else tomllib.loads(text)
        if isinstance(data, dict) and "stageTransitions" in data:
            return from_mapping(data)
        table = msgspec.convert(data, _Table)
        title = table.title or table.name.replace("_", " ").capitalize()
        stages = tuple(map(_stage, table.stages))
        aliases = tuple(table.aliases)
        return {table.name: Strategy(table.name, title, table.source, table.summary, stages, aliases=aliases)}
    except (InvalidStrategyError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        raise InvalidStrategyError(f"{where}: {error}") from None


def _stage(written: _Stage) -> Stage[Any]:
    if lost := next((name for name in written.optional if name not in written.fields), None):
        raise InvalidStrategyError(
            f"stage {written.name!r} names {lost!r} as optional, but has no such field"
        )
    return Stage(
        written.name,
        tuple(written.to),
        written.description,
        written.guidance,
        tuple(Field(name, form, name not in written.optional) for name, form in written.fields.items()),
        written.compares,
        written.tested_by,
        repeats=written.repeats,
    )


def describe(strategy: Strategy[Any, Any]) -> dict[str, Any]:
    """Describe a strategy as JSON data with its name, source, stages and options.

    An option is `{name, default, description, …}`, where `…` are keywords of JSON schema (`type`, `minimum`, `enum`). A
    stage has the members of a stage in a table. Its `fields` map each member of `data` to a JSON schema.
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
        "stages": [_describe_stage(stage) for stage in strategy.stages],
        "options": [{"name": name, "default": None, "description": "", **options[name]} for name in options],
    }


def _describe_stage(stage: Stage[Any]) -> dict[str, Any]:
    example = None if stage.example is None else dict(stage.example)
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
        **({"reply_schema": stage.form, "reply_example": example} if stage.form else {}),
    }


def diagram(strategy: Strategy[Any, Any]) -> str:
    """Draw a strategy in Mermaid. The first and last stages are round. Stages with several next stages are rhombi."""
    ids = {stage.name: _id(stage.name, number) for number, stage in enumerate(strategy.stages)}
    boxes = [f"    {ids[stage.name]}{_box(strategy, stage)}" for stage in strategy.stages]
    arrows = [f"    {ids[stage]} --> {ids[to]}" for stage, to in strategy.edges]
    return "\n".join(["flowchart TD", *boxes, *arrows]) + "\n"


def _id(name: str, number: int) -> str:
    is_plain = name.isascii() and name.isidentifier() and name.lower() not in _RESERVED
    return name if is_plain else f"stage_{number + 1}"


def _box(strategy: Strategy[Any, Any], stage: Stage[Any]) -> str:
    label = '"' + stage.name.replace("#", "#35;").replace('"', "#quot;").replace("\n", " ") + '"'
    if stage.name == strategy.first or not stage.to:
        return f"([{label}])"
    return f"{{{label}}}" if len(stage.to) > 1 else f"[{label}]"
