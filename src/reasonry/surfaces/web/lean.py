"""What a browser has no use for is left out of scripts and styles: comments, indentation, spaces between signs."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PART = re.compile(
    r"""
      (?P<text> "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' )
    | (?P<space> (?: \s | //[^\n]* | /\*.*?\*/ )+ )
    | (?P<pattern> /(?!\s) (?: [^/\\\[\n] | \\. | \[ (?:[^\]\\\n]|\\.)* \] )+ /[a-z]* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile(r"[\w$]")
_DIVIDED = re.compile(r"(?<!\breturn)(?<=[\w$)\]])\s*\Z")
"""What stands before the sign of a division."""
_AT_AN_END = {
    sign: re.compile(r"(?>\s|//[^\n]*|/\*.*?\*/)*" + end, re.DOTALL)
    for sign, end in ((";", "}"), (",", r"[)\]}]"))
}
"""What these say nothing before, as no statement is empty, and no list has a gap."""
_GOES_ON_AFTER = "{}([,;=>:?&|<*"
"""After these, and before the following, the end of a line ends no statement."""
_GOES_ON_BEFORE = ")]},;.:?=&|<>*"
_CSS_PART = re.compile(
    r'(?P<text>"[^"\n]*")|/\*.*?\*/|;?\s*(})\s*|\s*([{;,>])\s*|(?<![\w.])0(\.)|(:)\s+|(\s)\s*', re.DOTALL
)


def lean_script(text: str) -> str:
    """Return a module that says the same in fewer characters.

    A division has spaces around its sign, or stands behind a name or a bracket; every other `/` begins a pattern.
    """
    return "".join(_parts(text, 0, end=len(text)))


def _parts(text: str, at: int, end: int) -> Iterator[str]:
    last, gap = "", ""
    while at < end:
        if text[at] == "`":
            part, at = _template(text, at)
        else:
            found = _PART.match(text, at, end)
            assert found is not None, "the last alternative takes any character"
            at, part = found.end(), found[0]
            if found["pattern"] and _DIVIDED.search(text, max(0, found.start() - 20), found.start()):
                at, part = found.start() + 1, "/"
            if found["space"]:
                gap = "\n" if "\n" in part else " "
                continue
            if part in _AT_AN_END and _AT_AN_END[part].match(text, at, end):
                continue
        yield _space_between(last, gap, part[0]) + part
        last, gap = part[-1], ""


def _space_between(before: str, gap: str, after: str) -> str:
    """Return what must stand between two parts."""
    if not gap or not before:
        return ""
    if gap == "\n":
        return "" if before in _GOES_ON_AFTER or after in _GOES_ON_BEFORE else "\n"
    is_sign_doubled = before == after and after in "+-"
    return " " if is_sign_doubled or (_NAME.match(before) and _NAME.match(after)) else ""


def _template(text: str, at: int) -> tuple[str, int]:
    """Return a template as it stands, what is put into it made lean, and where it ends."""
    parts, begun = ["`"], at + 1
    at = begun
    while text[at] != "`":
        if text[at] == "\\":
            at += 2
        elif text.startswith("${", at):
            close = _closing(text, at + 2)
            parts += [text[begun : at + 2], *_parts(text, at + 2, close), "}"]
            begun = at = close + 1
        else:
            at += 1
    return "".join([*parts, text[begun:at], "`"]), at + 1


def _closing(text: str, at: int) -> int:
    """Return where the brace is that closes one that was opened before."""
    depth = 1
    while True:
        if text[at] == "`":
            _, at = _template(text, at)
            continue
        found = _PART.match(text, at)
        assert found is not None, "a template that is open ends"
        depth += {"{": 1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return at
        at = found.end()


def lean_style(text: str) -> str:
    """Return a style that says the same in fewer characters."""
    return _CSS_PART.sub(
        lambda part: part["text"] or part[2] or part[3] or part[4] or part[5] or (part[6] and " ") or "", text
    ).strip()
