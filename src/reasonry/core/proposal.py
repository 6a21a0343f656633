"""Proposals: the candidate thoughts a model lists, as JSON or as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from .parse import json_values, without_surrogates

_NUMBERED: Final = re.compile(
    r"\s{0,8}(?:#{1,6}\s+)?(?:[-*]\s+)?\*{0,2}"
    r"(?:(?:step|thought|option|approach|candidate|idea)\s+)?\d{1,4}(?:\)\s*|[.:]\*{0,2}\s+)(?P<text>\S.*)",
    re.IGNORECASE,
)
_BULLETED: Final = re.compile(r"\s{0,8}[-*•–‣]\s+(?P<text>\S.*)")
_FENCED_LIST: Final = re.compile(r"```\w*\s*(?P<list>\[.*\])\s*```", re.DOTALL)
_KEYS: Final = ("content", "thought", "text")


def parse_thoughts(text: str) -> tuple[list[str], str]:
    """Read the thoughts a reply lists.

    Understood: `{"thoughts": ["…"]}` (entries may be objects with `content`) or a JSON list, alone, in a fence or in
    prose; lines numbered `1.`, `2)`, `3:` or `Step 1:`; bulleted lines. A line that begins no item continues the one
    before.

    Returns:
        The thoughts, none of them empty, and the mode: `json`, `fenced`, `embedded`, `repaired`, `list`, or `none` if
        there are no thoughts to be found. Never raises.
    """
    try:
        for value, mode in (*json_values(text), *_fenced_list(text)):
            if thoughts := _listed(value):
                return thoughts, mode
    except RecursionError:
        return [], "none"
    lines = without_surrogates(text).splitlines()
    if text.lstrip().startswith(("{", "[")):
        return [], "none"
    thoughts = _items(lines, _NUMBERED) or _items(lines, _BULLETED)
    return thoughts, "list" if thoughts else "none"


def distinct(thoughts: Iterable[str]) -> list[str]:
    """Return the thoughts that differ in more than case and white space, the first of each kind."""
    seen: dict[str, str] = {}
    for thought in thoughts:
        seen.setdefault(normal(thought), thought)
    return list(seen.values())


def normal(text: str) -> str:
    """Return what equal thoughts have in common, however they are spaced and capitalised."""
    return " ".join(text.split()).casefold()


def _fenced_list(text: str) -> list[tuple[Any, str]]:
    match = _FENCED_LIST.fullmatch(text.strip())
    return [(value, "fenced") for value, _ in json_values(match["list"], whole=True)] if match else []


def _listed(value: Any) -> list[str]:
    entries = value.get("thoughts") if isinstance(value, dict) else value
    if not isinstance(entries, list):
        return []
    texts = [_entry(entry) for entry in entries]
    return [text for text in texts if text]


def _entry(entry: Any) -> str:
    if isinstance(entry, dict):
        entry = next((entry[key] for key in _KEYS if isinstance(entry.get(key), str)), "")
    return entry.strip() if isinstance(entry, str) else ""


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
    texts = [_unpaired("\n".join(part.strip() for part in item).strip()) for item in items]
    return [text for text in texts if text.strip("*_ ")]


def _unpaired(text: str) -> str:
    """Drop the bold mark whose twin stood before the number."""
    return text.replace("**", "", 1) if text.count("**") % 2 else text
