"""Find, convert and check the stages and fields that an agent names in its own spelling.

`"0.7"`, `"70%"` and `"7/10"` are the score 0.7; `"yes"` is true; a text that holds JSON is parsed; `"accepted"` is the
choice `ACCEPTED`. A value that cannot be converted stays unchanged, and the check refuses the value. Data is flat or
grouped by stage (`{"action_planning": {"action": …}}`). A flat value belongs to every stage that has a field for it.

Rule: a value that fits its schema is never changed.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from msgspec.structs import replace

from ..core.json_schema import faults
from ..core.strategy import Field, Stage, Strategy
from ..core.type_schema import describe_schema
from ..errors import UsageError
from ..reading.coerce import Misfit, fit_value
from ..reading.json_in_text import json_value
from ..text import find_name, find_named
from .thinking_tool import EVIDENCE, ThinkingCall
from .tool_arguments import plain_json, truth, unknown_arguments

MAX_PATH = 32
"""The most stages that one call may name."""
_OF_ANY_STAGE = (
    Field("evidence", {"type": "string", "enum": list(EVIDENCE)}, required=False),
    Field("confidence", {"type": "number", "minimum": 0, "maximum": 1}, required=False),
    Field("predict", {"type": "string"}, required=False),
    Field("confirms", {"type": "array", "items": {"type": "integer"}}, required=False),
)
"""Fields that a thought at any stage may have: evidence, confidence, a prediction, and confirmed thoughts."""


def stages_named(call: ThinkingCall) -> tuple[str, ...]:
    """Return the stages that a call names, in order. A text such as `a -> b` names several stages.

    Raises:
        UsageError: The call names too many stages.
    """
    named = () if call.stage is None else call.stage
    if isinstance(named, str):
        # An arrow at the beginning or at the end of the text has no meaning.
        parts = [part.strip() for part in named.replace("→", "->").split("->")]
        named = [*filter(None, parts)] or [named]
    if len(named) > MAX_PATH:
        message = f"stage names {len(named):,} stages; one call may name {MAX_PATH}"
        raise UsageError(message, field="stage", limit=MAX_PATH)
    return tuple(named)


# -- reading


def settle_fields(
    strategy: Strategy[Any, Any], call: ThinkingCall, others: Mapping[str, Any], max_chars: int
) -> tuple[ThinkingCall, list[str]]:
    """Normalize the stage names in a call. Move unknown arguments that are fields of a stage into `data`.

    Args:
        others: The unknown arguments. If the call names stages, only the fields of these stages move into `data`.
        max_chars: The most characters of `data` as JSON.

    Returns:
        The changed call, and a sentence about each argument that was dropped.

    Raises:
        UsageError: A field is not plain JSON data.
        TooLargeError: `data` is too long.
    """
    if call.stage is None and call.data is None and not others:
        return call, []
    names = [find_name(name, strategy.by_name) or name for name in stages_named(call)]
    stages = [strategy.by_name[name] for name in names if name in strategy.by_name]
    fields = _unambiguous_fields(stages if names else strategy.stages)
    data = _read_groups(call.data or {}, stages)
    dropped = _add_arguments(data, others, fields)
    data = read_data(data, [*fields, *_OF_ANY_STAGE])
    if others:
        data = plain_json("data", data, max_chars)
    stage = names[0] if isinstance(call.stage, str) and len(names) == 1 else names or None
    return replace(call, stage=stage, data=data if data or call.data is not None else None), dropped


def _unambiguous_fields(stages: Iterable[Stage[Any]]) -> list[Field]:
    """Return the fields of stages. Leave out each name that has different schemas in different stages."""
    by_name: dict[str, list[Field]] = {}
    for field in chain.from_iterable(stage.fields for stage in stages):
        by_name.setdefault(field.name, []).append(field)
    return [found[0] for found in by_name.values() if all(each.schema == found[0].schema for each in found)]


def _add_arguments(data: dict[str, Any], others: Mapping[str, Any], fields: Sequence[Field]) -> list[str]:
    """Add the arguments that name fields of a stage to `data`. Return a sentence about each other argument."""
    unknown = list[str]()
    for name, value in others.items():
        field = find_field(name, _OF_ANY_STAGE) or find_field(name, fields)
        if field is None:
            unknown.append(name)
        else:
            data.setdefault(field.name, value)
    known = [name.replace("_", " ") for name in ThinkingCall.__struct_fields__]
    sentences = unknown_arguments("sequentialthinking", unknown, known)
    return [f"{sentence} It was not kept; a stage's fields go into data." for sentence in sentences]


def _read_groups(data: Mapping[str, Any], stages: Sequence[Stage[Any]]) -> dict[str, Any]:
    by_name = {stage.name: stage for stage in stages}
    found: dict[str, Any] = {}
    for key, value in data.items():
        name = find_name(key, by_name)
        group = json_value(value) if isinstance(value, str) and name is not None else value
        if name is not None and name not in found and isinstance(group, dict):
            found[name] = read_data(group, by_name[name].fields)
        else:
            found[key] = value
    return found


def find_field(name: str, fields: Iterable[Field]) -> Field | None:
    """Find the field with this name, in any spelling."""
    return find_named(name, {field.name: field for field in fields})


def read_data(data: Mapping[str, Any], fields: Iterable[Field]) -> dict[str, Any]:
    """Convert the data of a thought: known fields get their canonical names and their types.

    Other keys stay unchanged. A null or blank value counts as omitted if the field's schema does not permit this value.
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
    """Convert a value so that it fits its schema. A value without a clear meaning stays unchanged."""
    if not any(faults(value, schema, "")):
        return value
    if isinstance(value, str) and "enum" in schema:
        return find_name(value, schema["enum"]) or value
    try:
        # A boolean is read only from an exact word or number, such as `yes` or 1.
        meant = truth(value) if schema.get("type") == "boolean" else fit_value(value, schema)
    except Misfit:
        return value
    return value if meant in ("", None) or any(faults(meant, schema, "")) else meant


# -- checking


def check_fields(stages: Sequence[Stage[Any]], data: Mapping[str, Any]) -> None:
    """Check the data of a thought against the fields of the thought's stages. Unknown names in the data are permitted.

    Raises:
        UsageError: Required fields are missing, or values do not fit their schemas; `fields` names all these fields.
    """
    names = {stage.name for stage in stages}
    grouped = {name: value for name, value in data.items() if name in names and isinstance(value, dict)}
    flat = {name: value for name, value in data.items() if name not in grouped}
    found = list[UsageError]()
    for stage in stages:
        parent = "data" if len(names) == 1 else f"data.{stage.name}"
        found += _field_faults(stage, {**flat, **grouped.get(stage.name, {})}, parent)
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
    """Return the required fields of a stage. Each name maps to a description of the type."""
    return {field.name: describe_schema(field.schema) for field in stage.fields if field.required}
