"""Somebody else's text in Markdown: lists, headings, emphasis and fenced code stay; links, images and tags do not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..patterns import lazy_pattern
from .text import inert

_FENCE = lazy_pattern(r" {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)([^`]*)")
_PROSE_UNSAFE = lazy_pattern(r"[\\`<\[\]&~]|/(?=/)|(?<=/)/")
_INLINE_UNSAFE = lazy_pattern(rf"[*_>#|]|{_PROSE_UNSAFE.pattern}")


def prose_lines(text: str) -> Iterator[str]:
    """Return the lines of a text: fenced code as it is, in a fence that it cannot close, all else without links."""
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
    """Return a text on one line, without any markup."""
    return _INLINE_UNSAFE.sub(r"\\\g<0>", inert(" ".join(text.split())))
