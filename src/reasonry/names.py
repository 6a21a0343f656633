"""Names as people and models write them: found whatever their spelling, or the nearest suggested.

Rule 1: case, spaces, dashes, underscores and a plural's `s` make no difference; a name is never guessed beyond that.
Rule 2: a spelling that could be two names is none.
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
"""A longer text is no misspelled name."""
_WORD: Final = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


@lru_cache(maxsize=1_000)
def plain_name(key: str) -> str:
    """Return what spellings of a name have in common: `Step-Back Question` and `step_back_question`."""
    return re.sub(r"[\W_]+", "", key.casefold())


def find_named(written: str, named: Mapping[str, T]) -> T | None:
    """Return what goes by the name that a text spells; None if nothing does, or several things do."""
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
    """Return the name that a text spells; None if it is none of them, or could be several."""
    return find_named(written, {name: name for name in names})


def closest_names(written: str, names: Iterable[str], maximum: int = 3) -> list[str]:
    """Return the names that may have been meant, the nearest first.

    If none is near, they are those with most words of the same stem (`verify` and `verification`).
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
    """Return the question to put behind an error about a name, with a space before it; empty if none is near."""
    found = closest_names(written, names)
    return f" Did you mean {' or '.join(found)}?" if found else ""


def _stems(name: str) -> set[str]:
    """Return how the words of a name such as `thoughtNumber` begin, but those of words that say little."""
    return {word[:4].lower() for word in _WORD.findall(name)} - {"of", "is", "a", "the"}
