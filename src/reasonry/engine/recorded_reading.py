"""How an answer was read, as the journal has it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from ..core.machine import Reading


class RecordedReading(Struct, frozen=True, array_like=True, omit_defaults=True):
    """A reading as it is written down; the value is left out where the text of the answer says the same."""

    mode: str
    refusal: str | None = None
    value_is: Literal["recorded", "text", "json"] = "recorded"
    value: Any = None


def record_reading(reading: Reading, text: str) -> RecordedReading:
    """Return a reading as it is written down with an answer of that text."""
    if reading.refusal is not None:
        return RecordedReading(reading.mode, reading.refusal)
    if reading.value == text:
        return RecordedReading(reading.mode, value_is="text")
    if _is_json_of(text, reading.value):
        return RecordedReading(reading.mode, value_is="json")
    return RecordedReading(reading.mode, value=reading.value)


def _is_json_of(text: str, value: Any) -> bool:
    if not isinstance(value, Struct):
        return False
    try:
        return msgspec.json.decode(text, type=type(value)) == value
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
