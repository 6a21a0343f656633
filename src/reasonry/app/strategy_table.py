"""A user's own strategy for guided use: stages and edges written in TOML.

    name = "code_review"
    title = "Code review"
    summary = "Reads a change, looks for faults, weighs them."

    [[stages]]
    name = "reading"
    description = "Take the change in."
    guidance = "Say what the change is for; move on when you could explain it."
    to = ["faults", "verdict"]

    [[stages]]
    name = "faults"
    to = ["verdict"]
    fields = { severity = { type = "string", enum = ["low", "high"], description = "How bad" } }
    optional = ["severity"]

    [[stages]]
    name = "verdict"

The first stage is where thinking begins; the one without `to` is where it ends. A stage may also say:
`repeats = true`: it is a loop; `compares = true`: its thinker is shown the scores of the open branches;
`tested_by = "STAGE"`: a claim made here and not tested there is named at the end.
"""

from __future__ import annotations

import tomllib
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from ..core.strategy import Field, Stage, Strategy
from ..errors import InvalidStrategyError

MAX_CHARS = 200_000
Name = Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_]{0,59}\Z")]


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


class _Table(Struct, forbid_unknown_fields=True):
    name: Name
    stages: list[_Stage]
    title: str = ""
    summary: str = ""
    source: str = "a user's own table"
    aliases: list[Name] = []


def read_table(text: str, where: str = "the table") -> Strategy[Any, Any]:
    """Read a strategy for guided use.

    Args:
        where: What to call the text in errors.

    Raises:
        InvalidStrategyError: It is not TOML, or no table; the message says which stage and why.
    """
    if len(text) > MAX_CHARS:
        raise InvalidStrategyError(f"{where}: over {MAX_CHARS:,} characters")
    try:
        table = msgspec.convert(tomllib.loads(text), _Table)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, RecursionError) as error:
        raise InvalidStrategyError(f"{where}: {error}") from None
    try:
        title = table.title or table.name.replace("_", " ").capitalize()
        stages = tuple(_stage(stage, where) for stage in table.stages)
        return Strategy(table.name, title, table.source, table.summary, stages, aliases=tuple(table.aliases))
    except InvalidStrategyError as error:
        raise InvalidStrategyError(f"{where}: {error.message}") from None


def _stage(written: _Stage, where: str) -> Stage[Any]:
    for name in written.optional:
        if name not in written.fields:
            raise InvalidStrategyError(
                f"{where}: stage {written.name!r} names {name!r} as optional, but has no such field"
            )
    parts: dict[str, Any] = {name: value for name, value in asdict(written).items() if name != "optional"}
    fields = [Field(name, schema, name not in written.optional) for name, schema in written.fields.items()]
    parts |= {"to": tuple(written.to), "fields": tuple(fields)}
    return Stage(**parts)
