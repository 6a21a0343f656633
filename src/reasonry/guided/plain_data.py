"""The data of a thought as a person reads it: items with semicolons, members with colons, no brackets or quotes."""

from __future__ import annotations

from typing import Any


def plain_value(value: Any) -> str:
    """Return JSON data as text: `a; b`, `x: 1, y: 2`, `yes`; what is inside of that again is in round brackets."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case dict():
            return ", ".join(f"{name}: {_inside(part)}" for name, part in value.items()) or "none"
        case list() | tuple():
            return "; ".join(map(_inside, value)) or "none"
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _inside(value: Any) -> str:
    text = plain_value(value)
    return f"({text})" if isinstance(value, dict | list | tuple) and value else text
