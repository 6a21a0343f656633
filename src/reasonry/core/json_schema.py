"""Check JSON schemas of answers and fields, and check values against a schema.

The checked keywords are `type`, `enum`, `const`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`,
`minLength`, `maxLength`, `minItems`, `maxItems`, `items`, `prefixItems`, `properties`, `required`,
`additionalProperties`, `$ref` within the schema, `anyOf`, `oneOf` (treated like `anyOf`) and `allOf`. `pattern` and
`format` are sent to models but not checked, because a pattern can take exponential time. Each check takes linear time.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from ..text import lazy_pattern
from .type_schema import BOUNDS, as_list

MAX_DEPTH: Final = 60
MAX_SCHEMA_CHARS: Final = 50_000

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}

_KINDS: Final = tuple(_TYPES)
_ANY_SCHEMA: Final = {"$ref": "#"}
_SCHEMAS: Final = {"type": "array", "items": _ANY_SCHEMA}
_NAMED_SCHEMAS: Final = {"type": "object", "additionalProperties": _ANY_SCHEMA}
_SCHEMA: Final[Mapping[str, Any]] = {
    "type": ["object", "boolean"],
    "properties": {
        "$ref": {"type": "string"},
        "type": {"anyOf": [{"enum": _KINDS}, {"type": "array", "items": {"enum": _KINDS}}]},
        "required": {"type": "array", "items": {"type": "string"}},
        "enum": {"type": "array"},
        **{name: {"type": "number"} for name in BOUNDS},
        "items": _ANY_SCHEMA,
        "additionalProperties": _ANY_SCHEMA,
        **dict.fromkeys(("anyOf", "oneOf", "allOf", "prefixItems"), _SCHEMAS),
        **dict.fromkeys(("properties", "$defs", "definitions"), _NAMED_SCHEMAS),
    },
}
"""The schema that every caller's schema must fit. It describes the checked keywords."""

_REFERENCE: Final = lazy_pattern(r'"\$ref":("(?:[^"\\]|\\.)*")')


def schema_fault(schema: Any) -> str | None:
    """Return the fault of a caller's schema, or None if the schema is usable."""
    if not isinstance(schema, dict):
        return "a schema is an object"
    try:
        written = msgspec.json.encode(schema).decode()
    except (TypeError, RecursionError):
        return "it is nested too deeply"
    if len(written) > MAX_SCHEMA_CHARS:
        return f"it has more than {MAX_SCHEMA_CHARS:,} characters"
    # A schema inside another schema is three levels deeper, so the limit is three times as high.
    if fault := next(faults(schema, _SCHEMA, "$", depth=-2 * MAX_DEPTH), None):
        return fault
    for reference in map(msgspec.json.decode, _REFERENCE.findall(written)):
        if not isinstance(_resolve(reference, cast(dict[str, Any], schema)), dict | bool):
            return f"$ref {reference!r} must lead to a schema in the same document (#/$defs/NAME)"
    return None


def faults(value: Any, schema: Any, path: str, depth: int = 0) -> Iterator[str]:
    """Yield the faults of a value under a schema. Each fault begins with the path of the part at fault."""
    return _faults(value, schema, path, depth, schema, {})


_Known = dict[tuple[int, int, str], str | None]
"""Maps (schema id, value id, path) to the value's first fault. No value is checked twice, so the time is linear."""


def _first_fault(
    value: Any, schema: Any, path: str, depth: int, root: Mapping[str, Any], known: _Known
) -> str | None:
    key = id(schema), id(value), path
    if key not in known:
        known[key] = next(_faults(value, schema, path, depth, root, known), None)
    return known[key]


def _faults(
    value: Any, schema: Any, path: str, depth: int, root: Mapping[str, Any], known: _Known
) -> Iterator[str]:
    if isinstance(schema, bool) or depth > MAX_DEPTH:
        if schema is not True:
            yield f"{path} is not allowed" if schema is False else f"{path} is nested too deeply"
        return
    kinds = schema.get("type")
    if kinds is not None and not any(_is(value, kind) for kind in as_list(kinds)):
        yield f"{path} must be of type {' or '.join(as_list(kinds))}"
        return
    yield from _own_faults(value, schema, path)
    for name in ("anyOf", "oneOf"):
        tried = [_first_fault(value, part, path, depth + 1, root, known) for part in schema.get(name, ())]
        if tried and None not in tried:
            yield f"{path} fits none of the forms it may have: {'; '.join(filter(None, tried))[:500]}"
    for place, item, part in _parts(value, schema, path, root):
        if fault := _first_fault(item, part, place, depth + 1, root, known):
            yield fault


def _own_faults(value: Any, schema: Mapping[str, Any], path: str) -> Iterator[str]:
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    # In Python, True equals 1; in JSON, it does not.
    alike = (choice for choice in choices or () if isinstance(value, bool) == isinstance(choice, bool))
    if choices is not None and value not in alike:
        yield f"{path} must be one of: {', '.join(map(repr, choices))}"
    for keyword, (kind, words, holds, unit) in BOUNDS.items():
        if keyword in schema and _is(value, kind):
            verb, size = ("be", value) if kind == "number" else ("have", len(value))
            if not holds(size, schema[keyword]):
                yield f"{path} must {verb} {words} {schema[keyword]}{unit}"
    if isinstance(value, dict):
        yield from (f"{path}.{name} is missing" for name in schema.get("required", ()) if name not in value)


def _parts(
    value: Any, schema: Mapping[str, Any], path: str, root: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, value, schema) for each nested schema that the value, or a part of it, must fit."""
    if "$ref" in schema:
        yield path, value, _resolve(schema["$ref"], root)
    yield from ((path, value, part) for part in schema.get("allOf", ()))
    if isinstance(value, list | tuple):
        heads = schema.get("prefixItems", ())
        for place, item in enumerate(cast(Sequence[Any], value)):
            yield f"{path}[{place}]", item, heads[place] if place < len(heads) else schema.get("items", True)
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        for name, member in cast(dict[str, Any], value).items():
            yield f"{path}.{name[:80]}", member, properties.get(name, others)


def _is(value: Any, kind: str) -> bool:
    fits = isinstance(value, _TYPES.get(kind, (object,)))
    if kind in ("number", "integer"):
        return fits and not isinstance(value, bool) and (kind == "number" or value == cast(float, value) // 1)
    return fits


def _resolve(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return the schema that a reference names. If the reference leads nowhere or in a circle, return None."""
    found: Any = None
    for _ in range(MAX_DEPTH):
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found = root
        for name in filter(None, reference[1:].split("/")):
            name = name.replace("~1", "/").replace("~0", "~")
            found = cast(dict[str, Any], found).get(name) if isinstance(found, dict) else None
        if not isinstance(found, dict) or found.keys() != {"$ref"}:
            return cast(Any, found)
        reference = cast(dict[str, Any], found)["$ref"]
    return None
