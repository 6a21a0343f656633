"""Read compositions. A composition is a strategy with an inner strategy: `best_of_n(react(max_steps=4), n=5)`.

    composition := NAME | NAME "(" part ("," part)* ")"
    part        := composition | OPTION "=" VALUE

A composition has at most one part without `=`, the inner strategy. Commas and brackets in quotes, lists and objects
belong to the value. The outer strategy stores the inner strategy in its own options `over` and `over_options`.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from ..errors import UsageError
from ..text import lazy_pattern

MAX_CHARS: Final = 4_000
MAX_LEVELS: Final = 5
"""The most levels of inner strategies in a composition."""

_OPTION: Final = lazy_pattern(r"\s*([A-Za-z][\w-]*)\s*=(.*)", re.DOTALL)
_PIECE: Final = lazy_pattern(r'"(?:[^"\\]|\\.)*"|[^\w\s]|[\w\s]+', re.DOTALL)
"""Matches a quoted text, a punctuation mark, or the text between marks. An unpaired quotation mark counts as a mark."""
_CLOSING: Final = {"(": ")", "[": "]", "{": "}"}


class Composition(Struct, frozen=True):
    """A strategy as a user wrote it: the name, the inner composition, and the options as text."""

    name: str
    inside: str | None = None
    options: Mapping[str, str] = {}

    def spell(self, name: str) -> str:
        """Write the composition in canonical form, with the strategy's canonical name."""
        inside = [] if self.inside is None else [self.inside]
        parts = [*inside, *(f"{option}={value}" for option, value in self.options.items())]
        return f"{name}({', '.join(parts)})" if parts else name


def read_composition(text: str) -> Composition:
    """Read a strategy's name or a composition, or raise UsageError."""
    name, bracket, rest = text.partition("(")
    if not bracket:
        return Composition(text.strip())
    if len(text) > MAX_CHARS or not rest.rstrip().endswith(")") or not name.strip():
        raise _misspelling(text)
    inside: str | None = None
    options: dict[str, str] = {}
    for part in split_outside(rest.rstrip()[:-1]):
        option = _OPTION.fullmatch(part)
        if option is not None and option[1] not in options:
            options[option[1]] = option[2].strip()
        elif option is None and part.strip() and inside is None:
            inside = part.strip()
        elif part.strip() or len(rest) > 2:
            raise _misspelling(text)
    return Composition(name.strip(), inside, options)


def split_outside(text: str) -> list[str]:
    """Split a text at commas outside quotes and brackets.

    Raises:
        UsageError: A bracket or a quote is not closed.
    """
    parts, open_brackets = [""], list[str]()
    for piece in _PIECE.findall(text):
        if piece == "," and not open_brackets:
            parts.append("")
            continue
        if piece in _CLOSING:
            open_brackets.append(piece)
        elif piece == '"' or (
            piece in _CLOSING.values() and _CLOSING.get((open_brackets or [""]).pop()) != piece
        ):
            raise _misspelling(text)
        parts[-1] += piece
    if open_brackets:
        raise _misspelling(text)
    return parts


def _misspelling(text: str) -> UsageError:
    return UsageError(
        f"{text[:100]!r} is not a strategy; write a composition as OUTER(INNER, OPTION=VALUE)",
        option="strategy",
    )
