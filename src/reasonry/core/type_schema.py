"""JSON schemas of types (the form of a reply, the options of a strategy), and their descriptions in plain words."""

import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

_WORDS: Final = {"string": "text", "boolean": "true or false", "array": "list", "integer": "whole number"}
"""Plain words for the types of JSON schemas."""

BOUNDS: Final[Mapping[str, tuple[str, str, Callable[[Any, Any], bool], str]]] = {
    "minimum": ("number", "at least", operator.ge, ""),
    "maximum": ("number", "at most", operator.le, ""),
    "exclusiveMinimum": ("number", "over", operator.gt, ""),
    "exclusiveMaximum": ("number", "under", operator.lt, ""),
    "minLength": ("string", "at least", operator.ge, " characters"),
    "maxLength": ("string", "at most", operator.le, " characters"),
    "minItems": ("array", "at least", operator.ge, " items"),
    "maxItems": ("array", "at most", operator.le, " items"),
}


UNASKED = msgspec.Meta(extra_json_schema={"unasked": True})
"""Marks a field of a form that no question requests. If a reply has the field, it is still read."""


def inlined_schema(reply: Any) -> dict[str, Any]:
    """Return the JSON schema of a type with all references inlined. The caller may change the result."""
    # Only classes are cached. Equal types may have different schemas, such as Literal[1, 2] and Literal[2, 1].
    return msgspec.json.decode(_class_schema(reply) if isinstance(reply, type) else _schema(reply))


def _schema(reply: Any) -> bytes:
    (schema,), parts = msgspec.json.schema_components(
        [reply], schema_hook=_other_schema, ref_template="#/$defs/{name}"
    )

    def inline(node: Any, inside: tuple[str, ...] = ()) -> Any:
        if isinstance(node, list):
            return [inline(item, inside) for item in node]
        if not isinstance(node, dict):
            return node
        parts.update(node.get("$defs", {}))
        name = str(node.get("$ref", "")).removeprefix("#/$defs/")
        if name in inside:
            return {"type": "object"}
        if name:
            return inline(parts[name], (*inside, name))
        return {
            key: inline(value, inside)
            for key, value in node.items()
            if key != "$defs" and not (isinstance(value, dict) and value.get("unasked"))
        }

    return msgspec.json.encode(inline(schema))


_class_schema = cache(_schema)


def _other_schema(kind: Any) -> dict[str, Any]:
    """Return the schema of a Pydantic model without importing Pydantic."""
    if not hasattr(kind, "model_json_schema"):
        raise TypeError(f"{kind!r} is no type of data")
    return kind.model_json_schema()


def all_required(node: Any) -> Any:
    """Return a schema in which all properties are required. A property that was optional may be null."""
    if isinstance(node, list):
        return [all_required(item) for item in node]
    if not isinstance(node, dict):
        return node
    whole = {key: all_required(value) for key, value in node.items()}
    properties = whole.get("properties")
    if isinstance(properties, dict):
        required = whole.get("required", ())
        whole["properties"] = {
            name: part if name in required else _nullable(part) for name, part in properties.items()
        }
        whole["required"] = list(properties)
    return whole


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that also allows null. Drop the default, because every property is required."""
    left = {name: part for name, part in schema.items() if name != "default"}
    forms = left.get("anyOf")
    if isinstance(forms, list):
        return left if {"type": "null"} in forms else {**left, "anyOf": [*forms, {"type": "null"}]}
    beside = {name: left.pop(name) for name in ("description", "title") if name in left}
    return {"anyOf": [left, {"type": "null"}], **beside}


def describe_schema(schema: Mapping[str, Any]) -> str:
    """Describe a field's values in a few words, such as `number, 0 to 1`."""
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices is not None:
        return " or ".join(str(choice) for choice in choices)
    kinds = as_list(schema.get("type", ())) or ("any value",)
    words = " or ".join(_WORDS.get(kind, kind) for kind in kinds)
    if "items" in schema:
        items = describe_schema(schema["items"])
        words += "" if items == "any value" else f" of {items}"
    if schema.get("required"):
        words += f" with {', '.join(schema['required'])}"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f"{words}, {low} to {high}"
    bounds = [
        f"{bound} {schema[keyword]}{unit}"
        for keyword, (kind, bound, _, unit) in BOUNDS.items()
        if keyword in schema and (kind == "number" or bound == "at most")
    ]
    return ", ".join([words, *bounds])


def as_list(kinds: str | Sequence[str]) -> Sequence[str]:
    """Return a schema's type or types as a sequence."""
    return (kinds,) if isinstance(kinds, str) else kinds
