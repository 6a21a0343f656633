"""Lists in plain text: numbered or bulleted lines, as whoever writes by hand makes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ..patterns import lazy_pattern

_NUMBERED: Final = lazy_pattern(
    r"\s{0,8}(?:#{1,6}\s+)?(?:[-*]\s+)?\*{0,2}"
    r"(?:(?:step|thought|option|approach|candidate|idea)\s+)?\d{1,4}(?:\)\s*|[.:]\*{0,2}\s+)(?P<text>\S.*)",
    re.IGNORECASE,
)
_HEADED: Final = lazy_pattern(
    r"\s{0,3}(?:#{1,6}\s+|\*\*)(?:step|thought|option|approach|candidate"
    r"|idea)\s+\d{1,4}[.:]?(?:\*\*)?[.:]?(?P<text>)\s*",
    re.IGNORECASE,
)
_BULLETED: Final = lazy_pattern(r"\s{0,8}[-*•–‣]\s+(?P<text>\S.*)")


def list_items(text: str) -> list[str]:
    """Return the items of the list a text has: its numbered lines, else its bulleted ones; none if it has no list."""
    lines = text.splitlines()
    return _items(lines, _NUMBERED) or _headed_items(lines) or _items(lines, _BULLETED)


def _headed_items(lines: Sequence[str]) -> list[str]:
    """Return what stands under each of the headings `### Option 1`, `### Option 2`, …."""
    places = [place for place, line in enumerate(lines) if _HEADED.fullmatch(line)]
    if len(places) < 2:
        return []
    ends = [*places[1:], len(lines)]
    texts = ["\n".join(lines[place + 1 : end]).strip() for place, end in zip(places, ends, strict=True)]
    return [text for text in texts if text]


def _items(lines: Sequence[str], start: re.Pattern[str]) -> list[str]:
    """Return the items of a list; remarks before the first and after the last are left out."""
    items: list[list[str]] = []
    after_gap: list[str] | None = None
    for line in lines:
        if line.lstrip().startswith("```"):
            continue
        if match := start.match(line):
            if after_gap:
                items[-1] += after_gap
            items.append([match["text"]])
            after_gap = None
        elif items and not line.strip():
            after_gap = after_gap or []
        elif items and after_gap is None:
            items[-1].append(line)
        elif items and after_gap is not None:
            # Text after a blank line belongs to the item if it is indented or if another item follows.
            after_gap.append(line)
            if line[:1].isspace() and len(after_gap) == 1:
                items[-1].append(line)
                after_gap = None
    texts = [_drop_unpaired("\n".join(part.strip() for part in item).strip()) for item in items]
    return [text for text in texts if text.strip("*_ ")]


def _drop_unpaired(text: str) -> str:
    """Drop the bold mark whose twin stood before the number."""
    return text.replace("**", "", 1) if text.count("**") % 2 else text
