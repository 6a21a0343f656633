"""A stage's fields: checks what a thinker gave in `data` against their JSON schemas.

Knows the keywords that a stage's fields need: `type`, `enum`, `const`, `minimum`, `maximum`,
`exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`, `minItems`, `maxItems`, `items`,
`properties`, `required`. It follows no references and runs no patterns, so it takes no longer than the data
is long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import UsageError
from .strategy import Field, Stage

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}

_WORDS = {"string": "text", "boolean": "true or false", "array": "list", "integer": "whole number"}
"""The types of JSON schemas in plain words, where these differ."""

_BOUNDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "minimum": ("at least", lambda value, bound: value >= bound),
    "maximum": ("at most", lambda value, bound: value <= bound),
    "exclusiveMinimum": ("over", lambda value, bound: value > bound),
    "exclusiveMaximum": ("under", lambda value, bound: value < bound),
}

_SIZES: dict[str, tuple[type, str, str]] = {
    "minLength": (str, "at least", "characters"),
    "maxLength": (str, "at most", "characters"),
    "minItems": (list, "at least", "items"),
    "maxItems": (list, "at most", "items"),
}


def check_fields(stage: Stage[Any], data: Mapping[str, Any]) -> None:
    """Check the data of a thought of this stage; names the stage does not know are no fault.

    Raises:
        UsageError: Required fields are missing or values are not what their schemas say; `fields` names them all.
    """
    check_all_fields([(stage, data, "data")])


def check_all_fields(parts: Iterable[tuple[Stage[Any], Mapping[str, Any], str]]) -> None:
    """Check the data of several stages, each with the path that errors show for it; raises as `check_fields`."""
    found = [fault for part in parts for fault in _field_faults(*part)]
    if found:
        first = found[0]
        raise UsageError(
            "; ".join(fault.message for fault in found),
            field=first.path,
            stage=first.stage,
            schema=dict(first.schema),
            fields=[fault.path for fault in found],
        )


class _FieldFault(NamedTuple):
    path: str
    stage: str
    schema: Mapping[str, Any]
    message: str


def _field_faults(stage: Stage[Any], data: Mapping[str, Any], under: str) -> Iterator[_FieldFault]:
    for field in stage.fields:
        path, schema = f"{under}.{field.name}", field.schema
        if field.name in data:
            fault = next(_faults_of_field(field, data[field.name], path), None)
            message = None if fault is None else f"Stage {stage.name}: {fault}"
        elif field.required:
            description = schema.get("description", "")
            message = f"Stage {stage.name} needs {path} ({describe_schema(schema)})"
            message += f": {description.removesuffix('.')}" if description else ""
        else:
            message = None
        if message is not None:
            yield _FieldFault(path, stage.name, schema, message)


def _faults_of_field(field: Field, value: Any, path: str) -> Iterator[str]:
    """Yield what is wrong with the value of a field: its shape, then the rules that it breaks."""
    yield from faults(value, field.schema, path)
    if field.check is not None:
        yield from (f"{path}: {broken}" for broken in field.check(value))


def describe_schema(schema: Mapping[str, Any]) -> str:
    """Return in a few words which values a field takes: `number, 0 to 1`."""
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is not None:
        return " or ".join(str(choice) for choice in choices)
    kinds = _as_list(schema.get("type", ())) or ("any value",)
    words = " or ".join(_WORDS.get(kind, kind) for kind in kinds)
    if "items" in schema:
        items = describe_schema(schema["items"])
        words += "" if items == "any value" else f" of {items}"
    if schema.get("required"):
        words += f" with {', '.join(schema['required'])}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{words}, {low} to {high}"
    bounds = [f"{bound} {schema[keyword]}" for keyword, (bound, _) in _BOUNDS.items() if keyword in schema]
    return ", ".join([words, *bounds])


def faults(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield what is wrong with a value, each as a sentence that begins with its path."""
    kinds = schema.get("type")
    if kinds is not None and not any(_is(value, kind) for kind in _as_list(kinds)):
        yield f"{path} must be of type {' or '.join(_as_list(kinds))}"
        return
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is not None and not any(_same(value, choice) for choice in choices):
        yield f"{path} must be one of: {', '.join(map(repr, choices))}"
    yield from _bounds(value, schema, path)
    if isinstance(value, (list, tuple)) and "items" in schema:
        for place, item in enumerate(value):
            yield from faults(item, schema["items"], f"{path}[{place}]")
    if isinstance(value, dict):
        yield from _members(value, schema, path)


def _bounds(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if _is(value, "number"):
        for keyword, (words, holds) in _BOUNDS.items():
            if keyword in schema and not holds(value, schema[keyword]):
                yield f"{path} must be {words} {schema[keyword]}"
    for keyword, (kind, words, unit) in _SIZES.items():
        if keyword in schema and isinstance(value, kind):
            enough = len(value) >= schema[keyword] if words == "at least" else len(value) <= schema[keyword]
            if not enough:
                yield f"{path} must have {words} {schema[keyword]} {unit}"


def _members(value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name} is missing"
    for name, part in schema.get("properties", {}).items():
        if name in value:
            yield from faults(value[name], part, f"{path}.{name}")


def _is(value: Any, kind: str) -> bool:
    if kind in ("number", "integer"):
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        return plain and (kind == "number" or value == value // 1)
    return isinstance(value, _TYPES.get(kind, (object,)))


def _same(value: Any, choice: Any) -> bool:
    # Python takes True for 1; JSON does not.
    return value == choice and isinstance(value, bool) == isinstance(choice, bool)


def _as_list(kinds: str | Sequence[str]) -> Sequence[str]:
    return (kinds,) if isinstance(kinds, str) else kinds
