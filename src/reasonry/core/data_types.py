"""Types of data that users name: Pydantic models, dataclasses, Structs, TypedDicts, built-in types and JSON schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from .strategy import inlined_schema


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type; that of a schema is the schema itself.

    Raises:
        TypeError: It is no type of data.
    """
    return dict(kind) if isinstance(kind, Mapping) else inlined_schema(kind)


def read_as(kind: Any, value: Any) -> Any:
    """Return JSON data as a type.

    Raises:
        ValueError: The data do not fit it.
    """
    if isinstance(kind, Mapping):
        return value
    return msgspec.convert(value, kind, strict=False, dec_hook=read_other_type)


def read_other_type(kind: Any, value: Any) -> Any:
    """Return data as a type that msgspec does not know: a Pydantic model, which is not imported for it."""
    return kind.model_validate(value)
