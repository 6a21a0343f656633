r"""Drawings in a terminal: answers, the tree of a run, live as it grows or of its document, and the lines of a session.

Of an answer, a closed list of LaTeX is written plainly, and Markdown is drawn:

    LaTeX       `\frac{a}{b}`, `\text{…}`, `\times`, `\cdot`, `\left` and `\right`, spacing (`\,`, `\;`, `\quad`, …),
                and what encloses a formula: `$…$`, `\(…\)`, `\[…\]`
    Markdown    headings, `**bold**`, `code`, fences and tables

Everything else stays as it is written, and all of it does in code, in a pipe and in JSON.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

from ...core.text import clip, inert
from ...guided.export import plain_value, stages_of
from .. import present
from ..run_report import Block, Bullets, Grid, Heading, Prose
from .output import draw_lines, open_console, print_inert_lines, print_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

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
"""Signs that a text is code, which is no Markdown."""

MAX_DRAWN = 200
"""Nodes of a run that has been: a larger tree is cut to its latest and those that lead to the answer."""
_DATA_CHARS = 500
"""Of one field; `--json` has it whole."""

Document = Mapping[str, Any]
Row = tuple[int, tuple[tuple[str, str], ...]]
"""How far a row is indented, and its texts with their styles."""


# -- an answer


def print_answer(answer: str, indent: str = "", stream: TextIO | None = None) -> None:
    """Print an answer, or another text: drawn on a terminal, otherwise as it is but inert.

    Args:
        stream: None: standard output.
    """
    out = stream or sys.stdout
    if not out.isatty():
        lines = answer.split("\n")
        print_line(*(f"{indent}{line}".rstrip() if indent else line for line in lines), stream=out)
        return
    from rich.padding import Padding

    console = open_console(out)
    for part in parts_of(inert(answer)):
        if isinstance(part, str):
            print_line(indent + part, stream=out)
        else:
            console.print(Padding.indent(part, len(indent)))


def print_blocks(blocks: Iterable[Block], stream: TextIO | None = None) -> None:
    """Print blocks of a report: prose as `print_answer` does, all else in lines of which nothing is cut."""
    for block in blocks:
        match block:
            case Heading(text):
                print_line("", text, stream=stream)
            case Prose(text):
                print_answer(text, "  ", stream)
            case Bullets(items):
                print_line(*(f"  - {' '.join(item.split())}" for item in items), stream=stream)
            case Grid():
                print_line(*_grid_lines(block), stream=stream)


def _grid_lines(grid: Grid) -> Iterator[str]:
    columns = list(zip(*grid.rows, strict=True))
    widths = [max(map(len, column)) for column in columns[:-1]]
    for row in grid.rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False) if width]
        yield f"  {'  '.join([*cells, ' '.join(row[-1].split())])}".rstrip()


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

    heads, *cells = [[drawn_line(cell.strip()) for cell in row.strip().strip("|").split("|")] for row in rows]
    table = Table()
    for head in (*heads, *[""] * (max(map(len, cells), default=0) - len(heads))):
        table.add_column(head)
    for row in cells:
        table.add_row(*row)
    return table


# -- a tree of thoughts


def tree_of(nodes: Sequence[Document], problem: str, width: int, limit: int) -> Tree | Text:
    """Return the tree to be drawn.

    Args:
        nodes: `id`, `parent`, `text`, `score`, `depth` and `on_path`, oldest first.
        limit: How many nodes to draw; those that lead to the best one always are.
    """
    from rich.text import Text
    from rich.tree import Tree

    shown = {node["id"] for node in nodes[-limit:]} | {node["id"] for node in nodes if node["on_path"]}
    places: dict[str | None, Tree] = {}
    for node in nodes:
        if node["parent"] is None:
            places[node["id"]] = Tree(Text(clip(problem, width - 2), style="bold"))
        elif node["id"] in shown and node["parent"] in places:
            places[node["id"]] = places[node["parent"]].add(_label(node, width))
    return next(iter(places.values()), Text(""))


def print_tree(trace: Document) -> None:
    """Print the tree of a run, if its document has one, or one inside a sample."""
    from ..web.run_nodes import first_nodes

    found, nodes = first_nodes(trace, trace["problem"], ()).values(), list[Document]()
    if not any(node.kind == "thought" for node in found):
        return
    depths: dict[str | None, int] = {None: -1}
    for node in found:
        depths[node.id] = depths[node.parent] + 1
        on_path, text = node.state in ("on_path", "answer"), node.text or node.score_text
        place = {"id": node.id, "parent": node.parent, "depth": depths[node.id]}
        nodes.append({**place, "text": text, "score": node.score, "on_path": on_path})
    console = open_console()
    print_inert_lines(draw_lines(console, tree_of(nodes, trace["problem"], console.width, MAX_DRAWN)))
    if len(nodes) > MAX_DRAWN:
        print_line(f"… of {len(nodes)} nodes; --json has them all")


def _label(node: Document, width: int) -> Text:
    from rich.text import Text

    score = node["score"]
    style = "dim" if score is None else "green" if score >= 0.7 else "yellow" if score >= 0.3 else "red"
    text = Text("  … " if score is None else f"{score:.2f} ", style=style)
    room = max(width - 4 * (node["depth"] + 1) - 6, 10)
    return text.append_text(drawn_start(node["text"], room, "bold green" if node["on_path"] else ""))


# -- a session


def draw_session(session: Document, thoughts: Iterable[Document]) -> None:
    """Draw the main line, and under the thought it left each branch."""
    from rich.text import Text

    console, recorded = open_console(), list(thoughts)
    strategy = f"  {session['strategy']}" if "strategy" in session else ""
    head = f"{session['session_id']}{strategy}  {present.count_of(len(recorded), 'thought')}"
    console.print(Text(inert(head), style="bold"))
    if session.get("purpose"):
        console.print(Text(clip(session["purpose"], console.width), style="dim"))
    print_inert_lines(line for row in _rows(recorded) for line in _draw_row(console, row))


def _draw_row(console: Console, row: Row) -> list[str]:
    """Draw a row; the first of several texts is the margin that the others stand beside, line for line."""
    from rich.table import Table
    from rich.text import Text

    indent, pieces = row
    plain = " " * indent + "".join(text for text, _ in pieces)
    if console.color_system is None and plain.isascii() and "\n" not in plain and len(plain) <= console.width:
        return [plain]
    margin = pieces[:-1][:1]
    grid = Table.grid()
    grid.add_column(width=indent + sum(len(text) for text, _ in margin), no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text.assemble(" " * indent, *margin), Text.assemble(*pieces[len(margin) :]))
    return draw_lines(console, grid)


def _rows(thoughts: Iterable[Document]) -> Iterator[Row]:
    """Yield the main line with each branch under the thought it left, then the branches that left none of it."""
    lines, leaving = _lines_of(thoughts)
    waiting = dict.fromkeys(lines)

    def line(name: str | None, depth: int) -> Iterator[Row | Iterator[Any]]:
        del waiting[name]
        if name is not None:
            yield 2 * depth - 2, ((f"⎇ {clip(name, 40)}", "magenta"),)
        for thought in lines[name]:
            yield 2 * depth, tuple(_thought(thought))
            yield from _data(thought, 2 * depth + 4)
            for branch in leaving.get(thought["seq"], []):
                if branch in waiting:
                    yield line(branch, depth + 2)

    # Branches may be nested deeper than calls.
    begun = list[Iterator[Row | Iterator[Any]]]()
    while waiting or begun:
        if not begun:
            name = next(iter(waiting))
            begun.append(line(name, 0 if name is None else 1))
        match next(begun[-1], None):
            case None:
                begun.pop()
            case tuple() as row:
                yield row
            case inner:
                begun.append(inner)


def _lines_of(
    thoughts: Iterable[Document],
) -> tuple[dict[str | None, list[Document]], dict[int, list[str]]]:
    """Return the thoughts by line, and the branches by the `seq` of the thought they leave."""
    lines: dict[str | None, list[Document]] = {None: []}
    leaving: dict[int, list[str]] = {}
    for thought in thoughts:
        name = thought.get("branch_id")
        if name is not None and name not in lines and "branch_from_seq" in thought:
            leaving.setdefault(thought["branch_from_seq"], []).append(name)
        lines.setdefault(name, []).append(thought)
    return lines, leaving


def _data(thought: Document, indent: int) -> Iterator[Row]:
    """Yield a row for each field of a thought's stage, and for the score a run gave it."""
    scored = {name: thought[name] for name in ("score",) if name in thought}
    for name, value in {**scored, **thought.get("data", {})}.items():
        yield indent, ((clip(f"{name}: {plain_value(value)}", _DATA_CHARS), "dim"),)


def _thought(thought: Document) -> Iterator[tuple[str, str]]:
    yield f"{thought['thought_number']:>3} ", "bold"
    if thought.get("stage"):
        yield f"[{inert(' → '.join(stages_of(thought)))}] ", "cyan"
    if thought.get("revises_thought"):
        yield f"↺ revises {thought['revises_thought']} ", "yellow"
    if thought.get("merge_branch"):
        yield f"⇠ takes in {clip(thought['merge_branch'], 30)} ", "magenta"
    yield inert(thought["thought"]), ""
