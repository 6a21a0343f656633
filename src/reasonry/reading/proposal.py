"""Proposals: the candidate thoughts a model lists, as JSON or as plain text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from ..patterns import lazy_pattern
from .fit import plain_name, read_texts, unwrap
from .json_in_text import json_values, without_surrogates
from .lists import list_items
from .synonyms import SYNONYMS

_FENCED_LIST: Final = lazy_pattern(r"```\w*\s*(?P<list>\[.*\])\s*```", re.DOTALL)
_LISTS: Final = frozenset({"thoughts", *SYNONYMS["thoughts"]})


def parse_thoughts(text: object) -> tuple[list[str], str]:
    """Read the thoughts a reply lists.

    Understood: `{"thoughts": ["…"]}` (entries may be objects with `content`) or a JSON list, alone, in a fence or in
    prose; lines numbered `1.`, `2)`, `3:` or `Step 1:`; bulleted lines. A line that begins no item continues the one
    before.

    Returns:
        The thoughts, none of them empty, and the mode: `json`, `fenced`, `embedded`, `repaired`, `list`, or `none` if
        there are no thoughts to be found, or this is no text. Never raises.
    """
    if not isinstance(text, str):
        return [], "none"
    try:
        for value, mode in (*json_values(text), *_fenced_list(text)):
            if thoughts := texts_in(value):
                return thoughts, mode
    except RecursionError:
        return [], "none"
    if text.lstrip().startswith(("{", "[")):
        return [], "none"
    thoughts = list_items(without_surrogates(text))
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


def texts_in(value: Any) -> list[str]:
    """Return the texts of JSON data that lists thoughts; none if it lists none."""
    value = unwrap(value, _LISTS)
    if isinstance(value, dict):
        value = next((item for key, item in value.items() if plain_name(str(key)) in _LISTS), None)
    return [text.strip() for text in read_texts(value) if text.strip()]
