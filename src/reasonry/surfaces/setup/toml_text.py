"""TOML edited in place: a table is added at the end, and taken out line by line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from .json_text import line_end

_HEADER = re.compile(r"[ \t]*\[")


def read(text: str) -> dict[str, Any]:
    """Return the data of a text.

    Raises:
        ValueError: It is no TOML.
    """
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def put(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with a table: in place of the one there, else at the end."""
    newline = line_end(text)
    lines = [f"[{'.'.join(keys)}]", *(f"{key} = {_write_value(member)}" for key, member in value.items())]
    table = newline.join(lines) + newline
    place = _place(text, keys) if _has(read(text), keys) else None
    if place is not None:
        start, end = place
        rest = text[end:]
        gap = newline if rest.strip() and not rest.startswith(("\n", "\r")) else ""
        return text[:start] + table + gap + rest
    lead = "" if not text.strip("\ufeff") or text.endswith("\n") else newline
    return text + lead + (newline if text.strip("\ufeff \t\r\n") else "") + table


def drop(text: str, keys: Sequence[str], created: int) -> str:
    """Return the text without a table and those in it, and without the blank line before it."""
    del created  # What is around a table has no lines of its own.
    place = _place(text, keys)
    if place is None:
        return text
    start, end = place
    before = text[:start]
    if before.endswith(("\n\n", "\n\r\n")) and (
        not text[end:].strip() or text[end:].startswith(("\n", "\r"))
    ):
        before = before[: before.rindex("\n")]
        before = before.removesuffix("\r")
    return before + text[end:]


def _place(text: str, keys: Sequence[str]) -> tuple[int, int] | None:
    """Return where a table and those in it stand, without comments and blank lines that follow."""
    own = re.compile(
        r"[ \t]*\[[ \t]*" + r"[ \t]*\.[ \t]*".join(f'(?:{key}|"{key}")' for key in keys) + r"[ \t]*[.\]]"
    )
    start = end = None
    place = 0
    inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line) and not _is_list_line(line):
            inside = own.match(line) is not None
            if inside and start is None:
                start = place
        place += len(line)
        if inside and line.strip() and not line.lstrip().startswith("#"):
            end = place
    return None if start is None or end is None else (start, end)


def _has(data: Any, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(data, Mapping) or key not in data:
            return False
        data = data[key]
    return True


def _is_list_line(line: str) -> bool:
    """Whether a line is part of a list of lists and no header."""
    return re.match(r"""[ \t]*\[\[?[ \t]*[\w"'.\- \t]+\]\]?[ \t]*(?:#.*)?$""", line.rstrip("\r\n")) is None


def _write_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_write_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{ {', '.join(f'{_write_value(key)} = {_write_value(member)}' for key, member in value.items())} }}"
    # A JSON string is a TOML string, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
