"""Read a strategy's options from user input.

The options Struct is the only source of defaults, ranges and descriptions. The Struct may have three class
variables: `presets` maps each value of the option `preset` to defaults of other options, `coached` has defaults for
coached runs, and `other_names` maps alternative names to options.
"""

import functools
import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo

from ..errors import UsageError
from ..text import did_you_mean, display_line
from .strategy import Strategy
from .type_schema import describe_schema, inlined_schema


def read_options(strategy: Strategy[Any, Any], raw: Mapping[str, Any]) -> Struct:
    """Read options into the strategy's options struct.

    Args:
        raw: Values as JSON data or as text (`"3"`, `"0.7"`, `"true"`, `"none"`, a JSON list).

    Raises:
        UsageError: An unknown option (`choices` lists the names), or an invalid value (`option` names the option).
    """
    fields = _fields(strategy.options)
    other_names: Mapping[str, str] = getattr(strategy.options, "other_names", {})
    values: dict[str, Any] = {}
    for written, value in raw.items():
        name = written.replace("-", "_")
        name = other_names.get(name, name)
        if name not in fields:
            shown, near = written[:60], did_you_mean(name, fields, "Its options")
            raise UsageError(
                f"{strategy.name} has no option {shown!r}.{near}", option=shown, choices=list(fields)
            )
        values[name] = _read_value(strategy.name, fields[name], value)
    try:
        return strategy.options(**with_preset(strategy, values))
    except (TypeError, ValueError) as error:
        raise UsageError(f"options of {strategy.name}: {error}", options=sorted(values)) from error


@functools.cache
def _fields(options: type[Struct]) -> dict[str, FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(options)}


def with_preset(strategy: Strategy[Any, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Fill missing options from the preset that the option `preset` names."""
    presets: Mapping[str, Mapping[str, Any]] = getattr(strategy.options, "presets", {})
    return {**presets.get(str(options.get("preset")), {}), **options}


def with_coached_defaults(strategy: Strategy[Any, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Fill missing options from the named preset, then from the defaults of coached runs."""
    defaults: Mapping[str, Any] = getattr(strategy.options, "coached", {})
    return {**defaults, **with_preset(strategy, options)}


def nested_options(options: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the options of a recorded run, then the options of each inner strategy."""
    yield options
    inside = options.get("over_options")
    if inside:
        yield from nested_options(inside)


def _read_value(strategy: str, field: FieldInfo, value: Any) -> Any:
    try:
        read = msgspec.convert(_from_text(value), field.type, strict=False)
    except msgspec.ValidationError:
        try:
            # The option's value may be text that looks like JSON.
            read = msgspec.convert(value, field.type, strict=False)
        except msgspec.ValidationError:
            schema = inlined_schema(field.type)
            takes = " or ".join(describe_schema(part) for part in schema.get("anyOf", [schema]))
            raise UsageError(
                f"option {field.name} of {strategy}: expected {takes}; got {display_line(repr(value), 60)}",
                option=field.name,
                **schema,
            ) from None
    if isinstance(read, float) and not math.isfinite(read):
        raise UsageError(f"option {field.name} of {strategy} must be a finite number", option=field.name)
    return read


def _from_text(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lower() in ("none", "null", ""):
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value
