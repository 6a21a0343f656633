"""Focused answers: the answer of an analysis, reduced to one value on which a program can branch.

Rule: a value is an allowed word in its canonical spelling, or a number. No other value is returned.
"""

import math
import re
from typing import Any

from msgspec import Struct

from ...text import lazy_pattern

_KINDS = "yes/no true/false good/bad high/low accepted/rejected yes/maybe/no good/neutral/bad high/medium/low"
WORDS: dict[str, tuple[str, ...]] = {kind: tuple(kind.title().split("/")) for kind in _KINDS.split()}

TYPES = ("none", "number", *WORDS, "choice: A | B | …")
"""The legal values of `focused_answer_type`."""

_TRUTHS = {True: ("yes", "true"), False: ("no", "false")}

_NUMBER = lazy_pattern(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d*)?(?:e[+-]?\d{1,3})?", re.IGNORECASE)
_LONGEST_NUMBER = 100


class Focus(Struct, frozen=True):
    """The type of focused answer that the user requested.

    Attributes:
        kind: The type in its canonical spelling, as in `TYPES`.
        words: The allowed words; empty for a number.
    """

    kind: str
    words: tuple[str, ...] = ()

    @property
    def rule(self) -> str:
        """The rule that a value must satisfy, worded as the end of a sentence."""
        return f"exactly one of: {' | '.join(self.words)}" if self.words else "a number, without a unit"

    @property
    def form(self) -> dict[str, Any]:
        """The JSON schema of the reply."""
        value: dict[str, Any] = {"enum": list(self.words)} if self.words else {"type": "number"}
        reason = {"type": "string", "description": "Which value the answer comes to, and why."}
        properties = {"reason": reason, "value": value}
        return {"type": "object", "properties": properties, "required": list(properties)}

    def value(self, raw: object) -> str | int | float | None:
        """Return a value in its canonical spelling, or None if the value is not allowed."""
        if not self.words:
            return _number(raw)
        text = str(raw).strip().casefold()
        allowed = [word for word in self.words if word.casefold() in (text, text.strip(" .!*_`\"'"))]
        if isinstance(raw, bool):
            # True stands for the word `yes` or `true`, and False for `no` or `false`.
            allowed = [word for word in self.words if word.casefold() in _TRUTHS[raw]]
        return allowed[0] if len(allowed) == 1 else None


def focus_of(written: str) -> Focus | None:
    """Read the type of a focused answer. Return None if the type is `none`.

    Raises:
        ValueError: The type is unknown, or it has fewer than two different choices.
    """
    text = written.strip()
    kind = "".join(text.lower().split())
    if kind == "none":
        return None
    if kind == "number":
        return Focus(kind)
    if kind in WORDS:
        return Focus(kind, WORDS[kind])
    head, colon, choices = text.partition(":")
    if colon and head.strip().lower() == "choice":
        words = tuple(" ".join(word.split()) for word in choices.split("|"))
        named = f"focused_answer_type {text[:80]!r}"
        if not all(words) or len(words) < 2:
            raise ValueError(f"{named}: name at least two choices, as in `choice: Python | JavaScript`")
        if len({word.casefold() for word in words}) < len(words):
            raise ValueError(f"{named}: two choices are the same")
        return Focus(f"choice: {' | '.join(words)}", words)
    raise ValueError(f"focused_answer_type is one of: {'; '.join(TYPES)}; got {text[:80]!r}")


def _number(raw: object) -> int | float | None:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    text = str(raw).strip()
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    number = float(text.replace(",", ""))
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and abs(number) < 1e15 else number
