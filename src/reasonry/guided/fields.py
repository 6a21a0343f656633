"""The stages and fields that an agent names in its own spelling: found, converted and checked.

`"0.7"`, `"70%"` and `"7/10"` are the score 0.7; `"yes"` is true; JSON in a text is parsed; `"accepted"` is the choice
`ACCEPTED`. A value without such a meaning stays unchanged and is refused. Data is grouped by stage
(`{"action_planning": {"action": …}}`), or flat for the stages that have a field of the name.

Rule: a value that fits its schema is never changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from ..core.json_schema import faults
from ..core.strategy import Field, Stage, Strategy
from ..core.type_schema import describe_schema
from ..errors import UsageError
from ..reading.coerce import Misfit, fit_value
from ..text import find_name
from .arguments import truth


def find_field(name: str, fields: Iterable[Field]) -> Field | None:
    """Find the field for a key in any spelling."""
    by_name = {field.name: field for field in fields}
    found = find_name(name, by_name)
    return None if found is None else by_name[found]


def read_data(data: Mapping[str, Any], fields: Iterable[Field]) -> dict[str, Any]:
    """Convert the data of a thought: known fields get their names and types.

    Other keys stay. A null or blank field counts as omitted if its schema permits neither.
    """
    known = list(fields)
    found: dict[str, Any] = {}
    for key, value in data.items():
        field = find_field(key, known)
        is_blank = value is None or (isinstance(value, str) and not value.strip())
        if field is None or (field.name != key and field.name in data):
            found[key] = value
        elif not (is_blank and any(faults(value, field.schema, key))):
            found[field.name] = read_value(value, field.schema)
    return found


def read_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """Convert a value to its schema. A value without a clear meaning stays unchanged."""
    if not any(faults(value, schema, "")):
        return value
    if isinstance(value, str) and "enum" in schema:
        return find_name(value, schema["enum"]) or value
    try:
        # The words of a verdict say more than yes or no.
        meant = truth(value) if schema.get("type") == "boolean" else fit_value(value, schema)
    except Misfit:
        return value
    return value if meant in ("", None) or any(faults(meant, schema, "")) else meant


# -- checking


def check_fields(stages: Sequence[Stage[Any]], data: Mapping[str, Any]) -> None:
    """Check the data of a thought against its stages. Unknown names are no fault.

    Raises:
        UsageError: Required fields are missing or values do not fit their schemas; `fields` names them all.
    """
    names = {stage.name for stage in stages}
    grouped = {name: value for name, value in data.items() if name in names and isinstance(value, dict)}
    flat = {name: value for name, value in data.items() if name not in grouped}
    found = [
        fault
        for stage in stages
        for fault in _field_faults(
            stage,
            {**flat, **grouped.get(stage.name, {})},
            "data" if len(names) == 1 else f"data.{stage.name}",
        )
    ]
    if found:
        details: dict[str, Any] = {**found[0].details, "fields": [fault.details["field"] for fault in found]}
        raise UsageError("; ".join(fault.message for fault in found), **details)


def _field_faults(stage: Stage[Any], data: Mapping[str, Any], parent: str) -> Iterator[UsageError]:
    for field in stage.fields:
        path, schema = f"{parent}.{field.name}", field.schema
        message = None
        if field.name in data:
            value = data[field.name]
            broken = field.check(value) if field.check else ()
            fault = next(chain(faults(value, schema, path), (f"{path}: {rule}" for rule in broken)), None)
            message = fault and f"Stage {stage.name}: {fault}"
        elif field.required:
            message = f"Stage {stage.name} needs {path} ({describe_schema(schema)})"
            if description := schema.get("description"):
                message += f": {description.removesuffix('.')}"
        if message is not None:
            yield UsageError(message, field=path, stage=stage.name, schema=dict(schema))


def required_fields(stage: Stage[Any]) -> dict[str, str]:
    """Return the fields without which a guided thought of this stage is refused, each with what it takes."""
    return {field.name: describe_schema(field.schema) for field in stage.fields if field.required}
