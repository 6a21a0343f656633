"""A user's own strategy for guided use: stages and edges written in TOML or JSON, as `docs/sessions.md` shows.

The first stage is where thinking begins; the one without `to` is where it ends. JSON has the same members, and what
`reasonry strategies NAME --json` prints beside them is passed over; or it is a mapping, as `reasonry.stages` has it.
"""

from __future__ import annotations

import tomllib
from typing import Any

import msgspec
from msgspec import Struct

from ..core.strategy import Field, Stage, Strategy
from ..errors import InvalidStrategyError
from ..stages import Name, from_mapping

MAX_CHARS = 200_000


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
    """Read the strategies of a file, for guided use.

    Args:
        where: What to call the text in errors. It is JSON where this ends with `.json`, TOML elsewhere.

    Raises:
        InvalidStrategyError: It cannot be read, or is no table; the message says which stage and why.
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
