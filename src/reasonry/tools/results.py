"""Results of tools as JSON data of bounded size, for every store and every model."""

import math
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, cast

import msgspec

from ..errors import ToolError
from ..text import without_surrogates

MAX_RESULT_BYTES = 64 * 1024
MAX_DEPTH = 60

_BIGGEST = 2**63


def fit_result(value: Any) -> Any:
    """Return a tool's result as JSON data; see `json_data`. A result over the limit becomes shortened text."""
    data, size = cut_data(value, MAX_RESULT_BYTES)
    return data if size <= MAX_RESULT_BYTES else f"{data}… (cut: {size} bytes in all)"


def cut_data(value: Any, limit_bytes: int) -> tuple[Any, int]:
    """Return JSON data (see `json_data`) and its size in bytes. Data over the limit becomes shortened text."""
    data = json_data(value)
    raw = data.encode() if isinstance(data, str) else msgspec.json.encode(data)
    if len(raw) <= limit_bytes:
        return data, len(raw)
    return raw[:limit_bytes].decode(errors="ignore"), len(raw)


def json_data(value: Any, depth: int = 0) -> Any:
    """Return any value as JSON data. Objects without a JSON form become text.

    Raises:
        ToolError: The value is nested too deeply or contains itself.
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
        case date() | timedelta() | bytes():
            return str(value)
        case _:
            return json_data(_plain(value), depth + 1)


def _plain(value: Any) -> Any:
    """Convert models, arrays and dataclasses to data, and anything else to text."""
    if type(value).__name__ == "MontyClassProxy":
        # An object of the sandbox `monty`, which is an optional part.
        return value.attributes
    method = next(
        (getattr(value, name, None) for name in ("model_dump", "tolist") if hasattr(value, name)), None
    )
    if callable(method) and not isinstance(value, type):
        return method()
    try:
        return msgspec.to_builtins(value, str_keys=True, enc_hook=str)
    except (TypeError, ValueError, msgspec.MsgspecError, RecursionError):
        return str(value)
