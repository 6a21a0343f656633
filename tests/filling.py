"""Made-up data that fits a JSON schema, as far as the schemas of replies go."""

import random
from collections.abc import Mapping
from typing import Any

DEEP = 4
"""From here on only what must be there is filled in, so that schemas that refer to themselves come to an end."""

TEXTS = (
    "42",
    "0.5",
    "1/2",
    "yes",
    "no",
    "A",
    "the second step",
    "search[x]",
    "#E1 = search[cats]",
    "Correct",
    "",
)
"""Texts that strategies may take for more than text."""

WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jade")


def fill(schema: Mapping[str, Any], rng: random.Random, *, whole: bool = False, depth: int = 0) -> Any:
    """Return a value that fits a schema.

    Args:
        whole: Leave nothing out that may be there, take the first of several forms, and write harmless words; else
            all of this is left to chance.
    """
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    forms = schema.get("anyOf") or schema.get("oneOf")
    if forms:
        form = (forms[0] if depth <= DEEP else forms[-1]) if whole else rng.choice(forms)
        return fill(form, rng, whole=whole, depth=depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = kind[0] if whole else rng.choice(kind)
    match kind:
        case "object":
            return _object(schema, rng, whole, depth)
        case "array":
            return _array(schema, rng, whole, depth)
        case "string":
            return _text(schema, rng, whole)
        case _:
            return _plain(kind, schema, rng)


def _object(schema: Mapping[str, Any], rng: random.Random, whole: bool, depth: int) -> dict[str, Any]:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    filled = {
        name: fill(part, rng, whole=whole, depth=depth + 1)
        for name, part in properties.items()
        if name in required or (depth <= DEEP if whole else rng.random() < 0.6)
    }
    more = schema.get("additionalProperties")
    if isinstance(more, Mapping) and not properties:
        filled = {str(at): fill(more, rng, whole=whole, depth=depth + 1) for at in (1, 2, 3)}
    return filled


def _array(schema: Mapping[str, Any], rng: random.Random, whole: bool, depth: int) -> list[Any]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", 4)
    count = max(least, min(2, most)) if whole else rng.randint(least, max(least, min(most, 4)))
    items = schema.get("items", {})
    return [fill(items, rng, whole=whole, depth=depth + 1) for _ in range(count if depth <= DEEP else 0)]


def _text(schema: Mapping[str, Any], rng: random.Random, whole: bool) -> str:
    least = schema.get("minLength", 0)
    if not whole:
        return rng.choice(TEXTS[:-1] if least else TEXTS)
    text = " ".join(rng.choice(WORDS) for _ in range(3))
    return text.ljust(least, "x")[: schema.get("maxLength")]


def _plain(kind: str, schema: Mapping[str, Any], rng: random.Random) -> Any:
    match kind:
        case "integer":
            low = int(schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1))
            return rng.randint(low, int(schema.get("maximum", low + 9)))
        case "number":
            low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
            return round(rng.uniform(low, schema.get("maximum", schema.get("exclusiveMaximum", low + 1))), 3)
        case "boolean":
            return rng.random() < 0.5
        case _:
            return None
