"""What a tool hands back, as JSON data of bounded size that any store and any model can take."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast

import msgspec

from ..errors import ToolError
from ..text import without_surrogates

MAX_RESULT_BYTES = 64 * 1024
MAX_DEPTH = 60

_BIGGEST = 2**63


def fit_result(value: Any) -> Any:
    """Return a tool's result as JSON data; what is over the limit becomes text that is cut, with a mark.

    Raises:
        ToolError: It is nested too deeply.
    """
    data, size = cut_data(value, MAX_RESULT_BYTES)
    return data if size <= MAX_RESULT_BYTES else f"{data}… (cut: {size} bytes in all)"


def cut_data(value: Any, limit_bytes: int) -> tuple[Any, int]:
    """Return any value as JSON data, and its size in bytes; data over the limit becomes text that is cut.

    Raises:
        ToolError: It is nested too deeply.
    """
    data = json_data(value)
    raw = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
    if len(raw) <= limit_bytes:
        return data, len(raw)
    return raw[:limit_bytes].decode(errors="ignore"), len(raw)


def json_data(value: Any, depth: int = 0) -> Any:
    """Return any value as JSON data; what has no such form becomes its text.

    Args:
        depth: How deep it stands in another value.

    Raises:
        ToolError: It is nested too deeply, or holds itself.
    """
    if depth > MAX_DEPTH:
        raise ToolError("the result is nested too deeply to be read")
    match value:
        case None | bool():
            return value
        case str():
            return without_surrogates(value)
        case float():
            return value + 0.0 if math.isfinite(value) else str(value)
        case int():
            if abs(value) < _BIGGEST:
                return int(value)
            return str(value) if value.bit_length() < 10_000 else hex(value)
        case Mapping():
            items = cast(Mapping[Any, Any], value).items()
            return {without_surrogates(str(key)): json_data(item, depth + 1) for key, item in items}
        case list() | tuple() | set() | frozenset():
            return [json_data(item, depth + 1) for item in cast(list[Any], value)]
        case _:
            return json_data(_plain(value), depth + 1)


def _plain(value: Any) -> Any:
    """Return what knows its own data form (models, arrays, dataclasses, dates) in it, anything else as text."""
    method = next(
        (getattr(value, name, None) for name in ("model_dump", "tolist") if hasattr(value, name)), None
    )
    if callable(method) and not isinstance(value, type):
        return method()
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=str)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return str(value)
