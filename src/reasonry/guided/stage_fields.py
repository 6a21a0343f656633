"""A call's stages and their fields, as the strategy's table has them, however loosely they were handed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..core.fields import find_field, json_value, read_data
from ..core.strategy import Field, Stage, Strategy
from ..errors import UsageError
from ..reading.arguments import plain_json, show_value
from ..reading.names import find_name
from .moves import stages_named
from .thinking_tool import ThinkingCall


def settle_fields(
    strategy: Strategy[Any, Any], call: ThinkingCall, others: Mapping[str, Any], max_chars: int
) -> tuple[ThinkingCall, list[str]]:
    """Return a call with its stages spelled as in the table and their fields in `data`.

    Args:
        others: Arguments that the tool does not have; those that are fields of a stage named count as `data`. Where no
            stage is named they may be fields of any.
        max_chars: How long `data` may be, as JSON.

    Returns:
        The call, and the names of the arguments that are no fields.

    Raises:
        UsageError: A field is no plain JSON data, or `data` is a bare value and not one field can be meant.
        TooLargeError: `data` is too long.
    """
    if call.stage is None and call.data is None and not others:
        return call, []
    names = [strategy.find_stage(name) for name in stages_named(call)]
    stages = [strategy.by_name[name] for name in names if name in strategy.by_name]
    fields = _fields_of(stages if names else strategy.stages)
    data = _by_stage(call.data or {}, stages)
    unknown: list[str] = []
    for name, value in others.items():
        field = _field_meant(name, value, fields, is_named=bool(names))
        if field is None:
            unknown.append(name)
        else:
            data.setdefault(field.name, value)
    data = read_data(data, fields)
    if others:
        data = plain_json("data", data, max_chars)
    stage = names if isinstance(call.stage, list) else names[0] if names else None
    return replace(call, stage=stage, data=data if data or call.data is not None else None), unknown


def _by_stage(data: Mapping[str, Any], stages: Sequence[Stage[Any]]) -> dict[str, Any]:
    """Return data in which the parts of single stages stand under the stages' names, with their fields read."""
    by_name = {stage.name: stage for stage in stages}
    found: dict[str, Any] = {}
    for key, value in data.items():
        name = find_name(key, by_name)
        part = json_value(value) if isinstance(value, str) and name is not None else value
        if name is not None and name not in found and isinstance(part, dict):
            found[name] = read_data(part, by_name[name].fields)
        else:
            found[key] = value
    return found


def _fields_of(stages: Iterable[Stage[Any]]) -> Sequence[Field]:
    """Return the fields of stages, but for the names that mean different things in them."""
    by_name: dict[str, list[Field]] = {}
    for stage in stages:
        for field in stage.fields:
            by_name.setdefault(field.name, []).append(field)
    return [found[0] for found in by_name.values() if all(field.schema == found[0].schema for field in found)]


def _field_meant(name: str, value: Any, fields: Sequence[Field], *, is_named: bool) -> Field | None:
    """Return the field that an argument is; a bare value in the place of `data` is the only one, or the only required.

    Args:
        is_named: Whether the call names the stages that the fields are of.
    """
    if name != "data":
        return find_field(name, fields)
    required = [field for field in fields if field.required]
    meant = fields if len(fields) == 1 else required
    if is_named and len(meant) == 1:
        return meant[0]
    names = [field.name for field in fields] if is_named else []
    listed = f": {', '.join(names)}" if names else ""
    raise UsageError(
        f"data must be an object with the stage's fields{listed}; not {show_value(value)}",
        field="data",
        choices=names,
    )
