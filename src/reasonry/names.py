"""Names in people's and models' spelling: found despite small variations, or the nearest name suggested.

Rule 1: case, spaces, dashes, underscores and a plural's `s` make no difference; no further guess is made.
Rule 2: an ambiguous spelling matches no name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final, TypeVar

from .patterns import lazy_pattern

T = TypeVar("T")

MAX_WRITTEN_CHARS: Final = 100
"""A longer text is not a misspelled name."""
_WORD: Final = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@lru_cache(maxsize=1_000)
def plain_name(key: str) -> str:
    """Normalise a name, so that `Step-Back Question` and `step_back_question` are equal."""
    return re.sub(r"[\W_]+", "", key.casefold())


def find_named(written: str, named: Mapping[str, T]) -> T | None:
    """Find the object by the spelling of its name, or None if no name or several names fit."""
    if written in named:
        return named[written]
    if len(written) > MAX_WRITTEN_CHARS:
        return None
    for ending in ("", "s"):
        wanted = plain_name(written).removesuffix(ending)
        found = [value for name, value in named.items() if plain_name(name).removesuffix(ending) == wanted]
        if wanted and found:
            return found[0] if all(value is found[0] or value == found[0] for value in found) else None
    return None


def find_name(written: str, names: Iterable[str]) -> str | None:
    """Find the name for a spelling, or None if no name or several names fit."""
    return find_named(written, {name: name for name in names})


def closest_names(written: str, names: Iterable[str], maximum: int = 3) -> list[str]:
    """Return the nearest names, nearest first.

    If no name is near, names that share most word stems are returned (`verify` and `verification`).
    """
    if len(written) > MAX_WRITTEN_CHARS:
        return []
    by_plain = {plain_name(name): name for name in names}
    near = difflib.get_close_matches(plain_name(written), by_plain, n=maximum, cutoff=0.75)
    if near:
        return [by_plain[plain] for plain in near]
    stems = _stems(written)
    akin = {name: len(stems & _stems(name)) for name in by_plain.values()}
    return sorted(filter(akin.get, akin), key=lambda name: -akin[name])[:maximum]


def did_you_mean(written: str, names: Iterable[str]) -> str:
    """Return a suggestion to append to an error about a name, with a leading space; empty if no name is near."""
    found = closest_names(written, names)
    return f" Did you mean {' or '.join(found)}?" if found else ""


def _stems(name: str) -> set[str]:
    """Return the stems of the significant words in a name such as `thoughtNumber`."""
    return {word[:4].lower() for word in _WORD.findall(name)} - {"of", "is", "a", "the"}
