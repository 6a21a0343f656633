"""Bounds on what a tool server says, held before anything else reads it.

Rule 1: an answer that is over a bound, or not of the form it must have, is refused with the place and the reason.
Rule 2: of a tool only its name, its description and its input schema are looked at; the rest is dropped unread. So are
    output schemas: what a server says of its own results proves nothing, and checking it can take for ever.
"""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from ..core.text import inert
from ..errors import ToolError
from .results import json_data

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
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


class _Tool(Struct):
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_CHARS)]
    inputSchema: dict[str, Any]
    description: Annotated[str, Meta(max_length=MAX_DESCRIPTION_CHARS)] | None = None


class _Listing(Struct):
    tools: Annotated[list[_Tool], Meta(max_length=MAX_TOOLS)]
    nextCursor: Annotated[str, Meta(max_length=MAX_CURSOR_CHARS)] | None = None


class _Result(Struct):
    content: Annotated[list[Any], Meta(max_length=MAX_PARTS)] = []


class _Arguments(Struct):
    properties: dict[str, dict[str, Any] | bool] = {}
    required: list[str] = []


def check_answer(result: dict[str, Any]) -> None:
    """Check what a server answers to `tools/list` or `tools/call`; of the tools of a list, only what is used is left.

    Raises:
        ToolError: It is over a bound, or not of its form.
    """
    try:
        msgspec.convert(result, _Result)
        if "tools" in result:
            result["tools"] = [_check_tool(tool) for tool in msgspec.convert(result, _Listing).tools]
    except msgspec.ValidationError as error:
        raise ToolError(f"its answer breaks a bound: {error}") from None


def _check_tool(tool: _Tool) -> dict[str, Any]:
    if not _is_legible(tool.name):
        raise ToolError(
            f"the name of a tool begins or ends with a blank or holds characters that are not seen: {tool.name!a}"
        )
    schema, place = tool.inputSchema, f"the inputSchema of its tool {tool.name}"
    # Not msgspec's encoder: it cannot write every number that JSON can hold.
    if (size := len(json.dumps(schema))) > MAX_SCHEMA_BYTES:
        raise ToolError(f"{place} is {size:,} bytes long; at most {MAX_SCHEMA_BYTES:,} are read")
    if _depth(schema) > MAX_SCHEMA_DEPTH:
        raise ToolError(f"{place} is nested over {MAX_SCHEMA_DEPTH} deep")
    try:
        properties = msgspec.convert(schema, _Arguments).properties
    except msgspec.ValidationError as error:
        raise ToolError(f"{place} is no schema of arguments: {error}") from None
    if bad := [name for name in properties if not _is_legible(name)]:
        raise ToolError(f"{place} has an argument whose name is not legible: {bad[0][:40]!a}")
    description = inert(tool.description or "")
    return {"name": tool.name, "description": description, "inputSchema": _legible(json_data(schema))}


def _is_legible(name: str) -> bool:
    return name.isprintable() and name == inert(name).strip(" ")


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        value = list(cast(dict[str, Any], value).values())
    if not isinstance(value, list):
        return 0
    return 1 + max((_depth(item) for item in cast(list[Any], value)), default=0)


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
