"""Data types that users can specify: Pydantic models, dataclasses, Structs, TypedDicts, built-ins and JSON schemas."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..core.type_schema import inlined_schema


def schema_of(kind: Any) -> dict[str, Any]:
    """Return the JSON schema of a type. If `kind` is itself a schema, return a copy.

    Raises:
        TypeError: The object is not a type of data.
    """
    if _is_pydantic_dataclass(kind):
        from pydantic import TypeAdapter

        return TypeAdapter[Any](kind).json_schema()
    return dict(kind) if isinstance(kind, Mapping) else inlined_schema(kind)


def read_as(kind: Any, value: Any) -> Any:
    """Convert JSON data to an instance of the type `kind`. If `kind` is a schema, return the data unchanged.

    Raises:
        ValueError: The data does not fit the type.
    """
    if isinstance(kind, Mapping):
        return value
    try:
        if _is_pydantic_dataclass(kind):
            return kind.__pydantic_validator__.validate_python(value)
        return msgspec.convert(value, kind, strict=False, dec_hook=read_other_type)
    except Exception as error:
        # A type's own check may raise anything; Pydantic adds a link to each fault.
        why = re.sub(r"\s+For further information visit \S+", "", str(error))
        raise ValueError(why or type(error).__name__) from error


def _is_pydantic_dataclass(kind: Any) -> bool:
    """Whether a type is a Pydantic dataclass. msgspec would ignore its validators."""
    return hasattr(kind, "__pydantic_validator__") and not hasattr(kind, "model_validate")


def read_other_type(kind: Any, value: Any) -> Any:
    """Convert data to a Pydantic model, which msgspec does not know. This function does not import Pydantic."""
    return kind.model_validate(value)
