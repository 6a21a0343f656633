"""Names as people and models write them: found whatever their spelling, or the nearest suggested.

Rule 1: case, spaces, dashes, underscores and a plural's `s` make no difference; a name is never guessed beyond that.
Rule 2: a spelling that could be two names is none.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from typing import Final, TypeVar

from ..patterns import lazy_pattern
from .fit import plain_name

T = TypeVar("T")

MAX_WRITTEN_CHARS: Final = 100
"""A longer text is no misspelled name."""
_WORD: Final = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")


def find_named(written: str, named: Mapping[str, T]) -> T | None:
    """Return what goes by the name that a text spells; None if nothing does, or several things do."""
    if written in named:
        return named[written]
    if len(written) > MAX_WRITTEN_CHARS:
        return None
    for spelled in (plain_name, _singular):
        wanted = spelled(written)
        found = [value for name, value in named.items() if spelled(name) == wanted]
        if wanted and found:
            return found[0] if all(value is found[0] or value == found[0] for value in found) else None
    return None


def find_name(written: str, names: Iterable[str]) -> str | None:
    """Return the name that a text spells; None if it is none of them, or could be several."""
    return find_named(written, {name: name for name in names})


def closest_names(written: str, names: Iterable[str], maximum: int = 3) -> list[str]:
    """Return the names that may have been meant, the nearest first.

    If none is near, they are those that share most words, or else have a word of the same stem (`verify` and
    `verification`).
    """
    if len(written) > MAX_WRITTEN_CHARS:
        return []
    by_plain = {plain_name(name): name for name in names}
    near = difflib.get_close_matches(plain_name(written), by_plain, n=maximum, cutoff=0.8)
    if near:
        return [by_plain[plain] for plain in near]
    words = _words(written)
    shared = {name: len(words & _words(name)) for name in by_plain.values()}
    if not any(shared.values()):
        shared = {name: _akin(words, _words(name)) for name in shared}
    return sorted(filter(shared.get, shared), key=lambda name: -shared[name])[:maximum]


def did_you_mean(written: str, names: Iterable[str]) -> str:
    """Return the question to put behind an error about a name, with a space before it; empty if none is near."""
    found = closest_names(written, names)
    return f" Did you mean {' or '.join(found)}?" if found else ""


def _akin(words: Iterable[str], others: Collection[str]) -> int:
    """Return how many words begin like one of the others, but for the last letter of the shorter one."""
    return sum(any(_stem(word, other) == _stem(other, word) for other in others) for word in words)


def _stem(word: str, other: str) -> str:
    return word[: max(4, min(len(word), len(other)) - 1)]


def _singular(name: str) -> str:
    return plain_name(name).removesuffix("s")


def _words(name: str) -> set[str]:
    """Return the words of a name such as `thoughtNumber` or `branch_creation`, but those that say little."""
    return {word.lower() for word in _WORD.findall(name)} - {"of", "is", "a", "the"}
