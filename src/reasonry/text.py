"""Text from models and users, made safe to show and to store, or shortened.

Markdown keeps lists, headings, emphasis and fenced code, and loses links, images and tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from .patterns import lazy_pattern

UNSEEN = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    r"\u2060-\u206f\ud800-\udfff\ufeff\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Control, format (bidi, zero-width, tags) and separator characters and half characters, for a character class of a
pattern; of the control characters, line feed and tab are left out."""

_UNSEEN = lazy_pattern(f"[{UNSEEN}]")
_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)([^`]*)")
_PROSE_UNSAFE = lazy_pattern(r"[\\`<\[\]&~]|/(?=/)|(?<=/)/")
_INLINE_UNSAFE = lazy_pattern(rf"[*_>#|]|{_PROSE_UNSAFE.pattern}")


def inert(text: str) -> str:
    r"""Escape the characters of `UNSEEN` as `\u202e` or `\U000e0041`."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub(_spell_out, text)


def escaped_json(text: str) -> str:
    r"""Escape the characters of `UNSEEN` in JSON text as `\u` escapes of its strings."""
    return _UNSEEN.sub(_escape, text)


def cut(text: str, limit: int) -> str:
    """Truncate a text to a limit and append its total length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters in all)"


def first_words(text: str, limit: int) -> str:
    """Truncate a text to a line. A truncated text ends with a whole word and "…".

    A text without spaces near the limit is cut between two characters.
    """
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    words = line[:limit].rpartition(" ")[0]
    return (words if 2 * len(words) >= limit else line[: limit - 1]) + "…"


def show_value(value: Any) -> str:
    """Format a value for an error: short, valid and at bounded cost."""
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case int() if value.bit_length() > 64:
            return "a number that is too large"
        case str():
            text = value if len(value) <= 40 else value[:40] + "…"
            return repr(text.encode("utf-8", "backslashreplace").decode())
        case int() | float():
            return repr(value)
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def prose_lines(text: str) -> Iterator[str]:
    """Convert a text to lines of Markdown: fenced code in a fence that it cannot close, the rest without links."""
    lines = iter(inert(text.replace("\r\n", "\n").replace("\r", "\n")).expandtabs(4).split("\n"))
    for line in lines:
        opened = _FENCE.fullmatch(line)
        if opened is None:
            # Code spans are shown with their backticks: a backslash would show inside one.
            yield _PROSE_UNSAFE.sub(r"\\\g<0>", line)
            continue
        closed = lazy_pattern(rf" {{0,3}}{opened[1][0]}{{{len(opened[1])},}} *")
        code: list[str] = []
        for inside in lines:
            if closed.fullmatch(inside):
                break
            code.append(inside)
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", "\n".join(code))), default=0))
        yield from ("", fence + opened[2], *code, fence)


def inline_text(text: str) -> str:
    """Convert a text to a line of Markdown without markup."""
    return _INLINE_UNSAFE.sub(r"\\\g<0>", inert(" ".join(text.split())))


def _spell_out(match: re.Match[str]) -> str:
    point = ord(match[0])
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def _escape(match: re.Match[str]) -> str:
    return re.sub("....", r"\\u\g<0>", match[0].encode("utf-16-be", "surrogatepass").hex())


def clip(text: str, width: int) -> str:
    """Return an inert line of at most `width` characters."""
    line = inert(" ".join(text.split()))
    return line if len(line) <= width else line[: max(width - 1, 0)] + "…"


def without_surrogates(text: str) -> str:
    """Make a text encodable: surrogate pairs are joined, lone surrogates replaced."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


REPEATED_CHARS: Final = 300
"""The characters at the end of a cut-off text that are checked for repetition: more room would bring more of it."""
_TIMES: Final = 4
"""The least number of repetitions."""


def repeats_itself(text: str, chars: int = REPEATED_CHARS) -> bool:
    """Whether the end of a text repeats the same piece."""
    end, longest = text[-chars:], chars // _TIMES
    if len(end) < chars:
        return False
    period = chars - longest - end.rfind(end[-longest:], 0, -1)
    return period <= longest and end[period:] == end[:-period]
