r"""An answer on a terminal: a closed list of LaTeX is written plainly, and Markdown is drawn.

    LaTeX       `\frac{a}{b}`, `\text{…}`, `\times`, `\cdot`, `\left` and `\right`, spacing (`\,`, `\;`, `\quad`, …),
                and what encloses a formula: `$…$`, `\(…\)`, `\[…\]`
    Markdown    headings, `**bold**`, `code`, fences and tables

Everything else stays as it is written, and all of it does in code, in a pipe and in JSON.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

from ...core.text import clip, inert
from ..run_report import Block, Prose, text_lines
from .output import print_lines
from .tables import open_console

if TYPE_CHECKING:
    from rich.text import Text

_LATEX: Final = re.compile(r"\\(?:frac\s*\{|text\s*\{|times(?![a-z])|cdot(?![a-z]))", re.IGNORECASE)
_FORMULA: Final = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_SIGNS: Final = {r"\times": "×", r"\cdot": "·", r"\left": "", r"\right": ""}
_SIGN: Final = re.compile(r"\\(?:times|cdot|left|right)(?![A-Za-z])")
_SPACING: Final = re.compile(r"(?:\\[,;: ]|\\!|\\q?quad(?![A-Za-z])|(?<=\d)~(?=\S))\s*")
_BRACED: Final = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
_GROUP: Final = re.compile(rf"\\(?:text\s*{_BRACED}|frac\s*{_BRACED}\s*{_BRACED})")
_ATOM: Final = re.compile(r"[\w.,]+|[\w.,]*\([^()]*\)")

_FENCE: Final = re.compile(r"\s{0,3}(?:```|~~~)")
_FENCED: Final = re.compile(r"(^\s{0,3}(?:```|~~~)[\s\S]*?(?:^\s{0,3}(?:```|~~~)[ \t]*$|\Z))", re.MULTILINE)
_HEADING_MARK: Final = re.compile(r"^#{1,6}\s+", re.MULTILINE)
_HEADING: Final = re.compile(r"#{1,6}\s+(?P<text>\S.*?)\s*#*")
_SPAN: Final = re.compile(r"(?<![\w*])\*\*(?=\S)(?P<bold>[^*\n]+)(?<=\S)\*\*(?![\w*])|`(?P<code>[^`\n]+)`")
_RULE: Final = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?\|?\s*")
_CODE: Final = re.compile(
    r"^\s*(?:def|class|import|from \S+ import|return|#include|function|const|let|var|print)\b|[;{}]\s*$|^(?: {4}|\t)\S",
    re.MULTILINE,
)
"""What shows that a text is code, whose signs are no Markdown."""


def print_answer(answer: str, indent: str = "", stream: TextIO | None = None) -> None:
    """Print an answer, or another text: drawn on a terminal, otherwise as it is but inert.

    Args:
        stream: None: standard output.
    """
    out = stream or sys.stdout
    if not out.isatty():
        print_lines((f"{indent}{line}".rstrip() if indent else line for line in answer.split("\n")), out)
        return
    from rich.padding import Padding

    console = open_console(out)
    for part in parts_of(inert(answer)):
        if isinstance(part, str):
            print_lines([indent + part], out)
        else:
            console.print(Padding.indent(part, len(indent)))


def print_blocks(blocks: Iterable[Block], stream: TextIO | None = None) -> None:
    """Print blocks of a report: prose as `print_answer` does, all else in lines."""
    for block in blocks:
        if isinstance(block, Prose):
            print_answer(block.text, "  ", stream)
        else:
            print_lines(text_lines([block]), stream)


def plain_latex(text: str) -> str:
    """Return a text with the LaTeX of the list written plainly; text without a command of the list is left as it is."""
    if not _LATEX.search(text):
        return text

    def open_formula(match: re.Match[str]) -> str:
        inside = next(filter(None, match.groups()))
        return inside.strip() if "\\" in inside else match[0]

    text = _FORMULA.sub(open_formula, text)
    while (plainer := _GROUP.sub(_plain_group, text)) != text:
        text = plainer
    text = _SIGN.sub(lambda match: _SIGNS[match[0]], text)
    return _SPACING.sub(" ", text)


def _plain_group(match: re.Match[str]) -> str:
    r"""Return `\frac{a}{b}` as `a/b`, and `\text{…}` as what stands in it."""
    text, above, below = match.groups()
    if text is None:
        return f"{_with_brackets(above)}/{_with_brackets(below)}"
    text = text.lstrip() if match.string[match.start() - 1 : match.start()].isspace() else text
    return text.rstrip() if match.string[match.end() : match.end() + 1].isspace() else text


def _with_brackets(term: str) -> str:
    return term.strip() if _ATOM.fullmatch(term.strip()) else f"({term.strip()})"


def parts_of(text: str) -> Iterator[Any]:
    """Yield the parts of an answer: strings as they are to be printed, the rest as rich draws it."""
    lines = text.split("\n")
    if not any(map(_FENCE.match, lines)) and _CODE.search(text):
        yield from lines
        return
    plain = (part if _FENCE.match(part) else plain_latex(part) for part in _FENCED.split(text))
    lines, place = "".join(plain).split("\n"), 0
    while place < len(lines):
        line, width = lines[place], 1
        if _FENCE.match(line):
            width = next((n for n, later in enumerate(lines[place + 1 :], 2) if _FENCE.match(later)), 1)
            yield from lines[place + 1 : place + width - 1] if width > 1 else [line]
        elif "|" in line and place + 1 < len(lines) and _RULE.fullmatch(lines[place + 1]):
            rows = [line]
            while place + len(rows) + 1 < len(lines) and "|" in lines[place + len(rows) + 1]:
                rows.append(lines[place + len(rows) + 1])
            width = len(rows) + 1
            yield _table(rows)
        elif heading := _HEADING.fullmatch(line):
            yield drawn_line(heading["text"], "bold underline")
        else:
            yield drawn_line(line) if _SPAN.search(line) else line
        place += width


def drawn_line(line: str, style: str = "") -> Text:
    """Return a line with its bold words and its code in their styles, without their marks."""
    from rich.text import Text

    text, end = Text(style=style), 0
    for span in _SPAN.finditer(line):
        text.append(line[end : span.start()])
        text.append(span["bold"] or span["code"], "bold" if span["bold"] else "cyan")
        end = span.end()
    return text.append(line[end:])


def drawn_start(text: str, width: int, style: str = "") -> Text:
    """Return the beginning of a text on one line, at most so wide, drawn as an answer is."""
    indent = len(text) - len(text.lstrip(" "))
    plain = plain_latex(_HEADING_MARK.sub("", text))
    return drawn_line(" " * indent + clip(plain, width - indent), style)


def _table(rows: Sequence[str]) -> Any:
    from rich.table import Table

    cells = [[drawn_line(cell.strip()) for cell in row.strip().strip("|").split("|")] for row in rows]
    table = Table()
    for place in range(max(map(len, cells))):
        table.add_column(cells[0][place] if place < len(cells[0]) else "")
    for row in cells[1:]:
        table.add_row(*row)
    return table
