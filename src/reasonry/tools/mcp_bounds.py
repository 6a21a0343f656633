"""Bounds on what a tool server says, held before anything else reads it.

Rule 1: what is over a bound, or not of the form it must have, is refused with words that say which tool and why.
Rule 2: of a tool only its name, its description and its input schema are looked at; the rest is dropped unread. So are
    output schemas: what a server says of its own results proves nothing, and checking it can take for ever.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, cast

from ..core.text import UNSEEN, inert
from ..errors import ToolError
from .results import json_data

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
MAX_MARKS = 2_000_000
"""Commas and opening brackets in a message: what makes it take a multiple of its bytes in memory."""
MAX_PAGES = 100
MAX_TOOLS = 500
MAX_NAME_CHARS = 128
MAX_CURSOR_CHARS = 4_096
MAX_DESCRIPTION_CHARS = 16_384
MAX_SCHEMA_BYTES = 64 * 1024
MAX_SCHEMA_DEPTH = 32
MAX_LISTING_BYTES = 1024 * 1024
"""Names, descriptions and schemas of all tools of a server together."""
MAX_PARTS = 10_000
"""Parts of the content of one result."""

_RATE, _BURST, _UNIT_BYTES = 10_000.0, 20_000.0, 1_024
_BAD_NAME = re.compile(rf"^ | $|[^\S ]|[{UNSEEN}]")


class Pace:
    """Hears a server at most at 10,000 messages or 10 MB a second, after the first 20,000 or 20 MB.

    A flood then waits in the server's own pipe: it takes neither the processor nor memory until its time is up.
    """

    def __init__(self) -> None:
        self._left, self._at = _BURST, 0.0

    async def heard(self, size: int) -> None:
        """Return when the next message may be heard.

        Args:
            size: Of the message that was heard, in bytes.
        """
        now = asyncio.get_running_loop().time()
        self._left = min(_BURST, self._left + (now - self._at) * _RATE) - 1 - size / _UNIT_BYTES
        self._at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / _RATE)


def marks(data: bytes) -> int:
    """Return how many commas and opening brackets there are in bytes."""
    return data.count(b",") + data.count(b"{") + data.count(b"[")


def check_answer(result: dict[str, Any]) -> None:
    """Check what a server answers to `tools/list` or `tools/call`; of the tools of a list, only what is used is left.

    Raises:
        ToolError: It is over a bound, or not of its form.
    """
    if "tools" in result:
        cursor = result.get("nextCursor")
        if cursor is not None and not (isinstance(cursor, str) and len(cursor) <= MAX_CURSOR_CHARS):
            raise ToolError(f"its tools/list has no usable nextCursor: {_kind(cursor)}")
        result["tools"] = _tools(result["tools"])
    parts = result.get("content", [])
    if not isinstance(parts, list) or len(parts) > MAX_PARTS:
        raise ToolError(
            f"the content of a result must be a list of at most {MAX_PARTS:,} parts, got {_kind(parts)}"
        )


def _tools(listed: Any) -> list[dict[str, Any]]:
    if not isinstance(listed, list):
        raise ToolError(f"the tools of its tools/list must be a list, got {_kind(listed)}")
    if len(listed) > MAX_TOOLS:
        raise ToolError(f"it lists over {MAX_TOOLS} tools")
    return [_tool(at, entry) for at, entry in enumerate(cast(list[Any], listed), 1)]


def _tool(at: int, entry: Any) -> dict[str, Any]:
    if not isinstance(entry, dict):
        raise ToolError(f"tool {at} of its list must be an object, got {_kind(entry)}")
    name = _name(at, cast(dict[str, Any], entry).get("name"))
    description = entry.get("description")
    if description is not None and not isinstance(description, str):
        raise ToolError(f"the description of its tool {name} must be text, got {_kind(description)}")
    if len(description or "") > MAX_DESCRIPTION_CHARS:
        raise ToolError(
            f"the description of its tool {name} is {len(description or ''):,} characters long; "
            f"at most {MAX_DESCRIPTION_CHARS:,} are read"
        )
    schema = _schema(name, entry.get("inputSchema"))
    return {"name": name, "description": inert(description or ""), "inputSchema": schema}


def _name(at: int, name: Any) -> str:
    if not isinstance(name, str) or not name:
        got = "none" if name is None or name == "" else _kind(name)
        raise ToolError(f"tool {at} of its list must have a name, got {got}")
    if len(name) > MAX_NAME_CHARS:
        raise ToolError(
            f"the name of tool {at} of its list is {len(name):,} characters long; "
            f"at most {MAX_NAME_CHARS} are read: {_spell(name[:40])}…"
        )
    if _BAD_NAME.search(name):
        raise ToolError(
            f"the name of tool {at} of its list begins or ends with a blank or holds characters that are not seen: "
            f"{_spell(name)}"
        )
    return name


def _schema(name: str, schema: Any) -> dict[str, Any]:
    place = f"the inputSchema of its tool {name}"
    if not isinstance(schema, dict):
        raise ToolError(f"{place} must be an object, got {_kind(schema)}")
    # Not msgspec's encoder: it cannot write every number that JSON can hold.
    if (size := len(json.dumps(schema))) > MAX_SCHEMA_BYTES:
        raise ToolError(f"{place} is {size:,} bytes long; at most {MAX_SCHEMA_BYTES:,} are read")
    if _depth(cast(Any, schema)) > MAX_SCHEMA_DEPTH:
        raise ToolError(f"{place} is nested over {MAX_SCHEMA_DEPTH} deep")
    data = _legible(json_data(schema))
    properties, required = data.get("properties", {}), data.get("required", [])
    if not isinstance(properties, dict) or not all(
        isinstance(value, dict | bool) for value in cast(dict[str, Any], properties).values()
    ):
        raise ToolError(f"{place} must have an object of schemas as its properties")
    if bad := [key for key in cast(dict[str, Any], properties) if _BAD_NAME.search(key)]:
        raise ToolError(f"{place} has an argument whose name is not legible: {_spell(bad[0][:40])}")
    if not isinstance(required, list) or not all(isinstance(name, str) for name in cast(list[Any], required)):
        raise ToolError(f"{place} must have a list of names as required, got {_kind(required)}")
    return data


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(cast(dict[str, Any], value).values())
    return (
        1 + max((_depth(item) for item in cast(list[Any], value)), default=0)
        if isinstance(value, list)
        else 0
    )


def _legible(schema: Any) -> Any:
    """Return a schema whose words for the model hold no character that it alone would see."""
    if isinstance(schema, list):
        return [_legible(item) for item in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    return {
        key: inert(value) if key in ("description", "title") and isinstance(value, str) else _legible(value)
        for key, value in cast(dict[str, Any], schema).items()
    }


def _spell(name: str) -> str:
    return inert(name).replace("\n", r"\n").replace("\t", r"\t")


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    kinds = {
        str: "text",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    counted = f" of {len(value):,}" if isinstance(value, list | str) else ""
    return kinds.get(cast(type, type(value)), type(value).__name__) + counted
