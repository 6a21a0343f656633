r"""Draws answers, the trees of runs, and sessions in a terminal.

In an answer, these LaTeX commands become plain text, and these parts of Markdown are drawn:
    LaTeX     `\frac{a}{b}`, `\text{…}`, `\times`, `\cdot`, `\left` and `\right`, spacing (`\,`, `\;`, `\quad`, …), and
              the marks around a formula: `$…$`, `\(…\)`, `\[…\]`
    Markdown  headings, `**bold**`, `code`, fences and tables

All other text is left unchanged. Text in code, output to a pipe and output as JSON are never formatted.
"""

import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, TextIO

from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text
from rich.tree import Tree

from ...guided.export import plain_value, stages_of
from ...text import display_line, escape_unseen
from .. import present
from ..run_report import Block, Bullets, Heading, Prose
from ..web.page import PageNode
from ..web.run_nodes import first_nodes
from .output import draw_lines, open_console, print_inert_lines, print_line

_LATEX: Final = re.compile(r"\\(?:frac\s*\{|text\s*\{|times(?![a-z])|cdot(?![a-z]))", re.IGNORECASE)
_FORMULA: Final = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL)
_SIGNS: Final = {r"\times": "×", r"\cdot": "·", r"\left": "", r"\right": ""}
_SIGN: Final = re.compile(
    r"(?P<sign>\\(?:times|cdot|left|right)(?![A-Za-z]))|(?:\\[,;:! ]|\\q?quad(?![A-Za-z])|(?<=\d)~(?=\S))\s*"
)
"""Matches a LaTeX command for a sign (in the group `sign`), or LaTeX spacing (the group is then empty)."""
_BRACED: Final = r"\{((?:[^{}]|\{[^{}]*\})*)\}"
_GROUP: Final = re.compile(rf"\\(?:text\s*{_BRACED}|frac\s*{_BRACED}\s*{_BRACED})")
_ATOM: Final = re.compile(r"[\w.,]+|[\w.,]*\([^()]*\)")

_FENCE: Final = re.compile(r"\s{0,3}(?:```|~~~)")
_FENCED: Final = re.compile(r"(^\s{0,3}(?:```|~~~)[\s\S]*?(?:^\s{0,3}(?:```|~~~)[ \t]*$|\Z))", re.MULTILINE)
_HEADING: Final = re.compile(r"^#{1,6}\s+(?P<text>\S.*?)\s*#*$", re.MULTILINE)
_SPAN: Final = re.compile(r"(?<![\w*])\*\*(?=\S)(?P<bold>[^*\n]+)(?<=\S)\*\*(?![\w*])|`(?P<code>[^`\n]+)`")
_RULE: Final = re.compile(r"\s*\|?(?:\s*:?-{2,}:?\s*\|)+(?:\s*:?-{2,}:?\s*)?\|?\s*")
_CODE: Final = re.compile(
    r"^\s*(?:def|class|import|from \S+ import|return|#include|function|const|let|var|print)\b|[;{}]\s*$|^(?: {4}|\t)\S",
    re.MULTILINE,
)
"""Matches a typical part of program code. A text that contains a match is not read as Markdown."""

MAX_DRAWN = 200
"""For an ended run, how many of the latest nodes are drawn. The nodes on the path to the answer are always drawn."""
_DATA_CHARS = 500
"""The maximum number of characters of a field that are drawn. `--json` prints the whole field."""
_LABEL_CHARS = 400
"""The maximum number of characters of a node's text that are drawn. A narrow terminal may cut the text further."""
_ON_PATH: Final = ("on_path", "answer")

Document = Mapping[str, Any]


# -- an answer


def print_answer(answer: str, indent: str = "", stream: TextIO | None = None) -> None:
    """Print an answer or another text. In a terminal, format the text. Elsewhere, only escape control characters.

    Args:
        stream: Defaults to standard output.
    """
    out = stream or sys.stdout
    for part in parts_of(escape_unseen(answer)) if out.isatty() else answer.split("\n"):
        if isinstance(part, str):
            print_line(f"{indent}{part}".rstrip() if indent else part, stream=out)
        else:
            open_console(out).print(Padding.indent(part, len(indent)))


def print_blocks(blocks: Iterable[Block], stream: TextIO | None = None) -> None:
    """Print the blocks of a report: prose with `print_answer`, headings and bullets with `print_line`."""
    for block in blocks:
        match block:
            case Heading(text):
                print_line("", text, stream=stream)
            case Prose(text):
                print_answer(text, "  ", stream)
            case Bullets(items):
                print_line(*(f"  - {' '.join(item.split())}" for item in items), stream=stream)


def plain_latex(text: str) -> str:
    """Replace the LaTeX commands listed at the top of this module with plain text. Other text is left unchanged."""
    if not _LATEX.search(text):
        return text

    def open_formula(match: re.Match[str]) -> str:
        inside = next(filter(None, match.groups()))
        return inside.strip() if "\\" in inside else match[0]

    text = _FORMULA.sub(open_formula, text)
    while (plainer := _GROUP.sub(_plain_group, text)) != text:
        text = plainer
    return _SIGN.sub(lambda match: _SIGNS[match["sign"]] if match["sign"] else " ", text)


def _plain_group(match: re.Match[str]) -> str:
    r"""Return `\frac{a}{b}` as `a/b`, and `\text{…}` as its content."""
    text, above, below = match.groups()
    if text is None:
        return f"{_with_brackets(above)}/{_with_brackets(below)}"
    text = text.lstrip() if match.string[match.start() - 1 : match.start()].isspace() else text
    return text.rstrip() if match.string[match.end() : match.end() + 1].isspace() else text


def _with_brackets(term: str) -> str:
    return term.strip() if _ATOM.fullmatch(term.strip()) else f"({term.strip()})"


def parts_of(text: str) -> Iterator[Any]:
    """Yield the parts of an answer. Plain lines are strings. Headings, tables and styled lines are `rich` objects."""
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
            rows = [line, *takewhile(lambda row: "|" in row, lines[place + 2 :])]
            width = len(rows) + 1
            yield _table(rows)
        elif heading := _HEADING.fullmatch(line):
            yield drawn_line(heading["text"], "bold underline")
        else:
            yield drawn_line(line) if _SPAN.search(line) else line
        place += width


def drawn_line(line: str, style: str = "") -> Text:
    """Style the bold words and the code in a line of Markdown, and remove the Markdown marks around them."""
    text, end = Text(style=style), 0
    for span in _SPAN.finditer(line):
        text.append(line[end : span.start()])
        text.append(span["bold"] or span["code"], "bold" if span["bold"] else "cyan")
        end = span.end()
    return text.append(line[end:])


def _table(rows: Sequence[str]) -> Any:
    heads, *cells = [[drawn_line(cell.strip()) for cell in row.strip().strip("|").split("|")] for row in rows]
    table = Table(*map(Column, heads))
    for row in cells:
        table.add_row(*row)
    return table


# -- a tree of thoughts


def tree_of(nodes: Sequence[PageNode], problem: str, limit: int) -> Tree | Text:
    """Draw the latest nodes (at most `limit`) and the path to the answer. In `nodes`, parents precede children."""
    shown = {node.id for node in nodes[-limit:]} | {node.id for node in nodes if node.state in _ON_PATH}
    places: dict[str | None, Tree] = {}
    for node in nodes:
        if node.parent is None:
            places[node.id] = Tree(_one_line(display_line(problem, _LABEL_CHARS), "bold"))
        elif node.id in shown and node.parent in places:
            places[node.id] = places[node.parent].add(_label(node))
    return next(iter(places.values()), Text(""))


def print_tree(trace: Document) -> None:
    """Print the tree of a run. If there is no tree, print nothing."""
    nodes = [*first_nodes(trace, trace["problem"], ()).values()]
    if not any(node.kind == "thought" for node in nodes):
        return
    print_line("")
    print_inert_lines(draw_lines(open_console(), tree_of(nodes, trace["problem"], MAX_DRAWN)))
    if len(nodes) > MAX_DRAWN:
        print_line(f"… of {len(nodes)} nodes; --json has them all")


def _label(node: PageNode) -> Text:
    score = node.score
    text = display_line(plain_latex(_HEADING.sub(r"\g<text>", node.text or node.score_text)), _LABEL_CHARS)
    style = "dim" if score is None else "green" if score >= 0.7 else "yellow" if score >= 0.3 else "red"
    label = _one_line("  … " if score is None else f"{score:.2f} ", style)
    return label.append_text(drawn_line(text, "bold green" if node.state in _ON_PATH else ""))


def _one_line(text: str, style: str) -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


# -- a session


def draw_session(session: Document) -> None:
    """Draw a session: its main line, with each branch under the thought where the branch begins."""
    console, recorded = open_console(), session["thoughts"]
    strategy = f"  {session['strategy']}" if "strategy" in session else ""
    head = f"{session['session_id']}{strategy}  {present.count_of(len(recorded), 'thought')}"
    console.print(Text(escape_unseen(head), style="bold"))
    if session.get("purpose"):
        console.print(Text(display_line(session["purpose"], console.width), style="dim"))
    drawn = list[str]()
    for indent, margin, text in _rows(recorded):
        left = " " * min(indent, console.width // 2) + margin
        for line in text.wrap(console, max(console.width - len(left), 8), overflow="fold"):
            drawn += draw_lines(console, Text.assemble((left, "bold"), line))
            left = " " * len(left)
    print_inert_lines(drawn)


def _rows(thoughts: Iterable[Document]) -> Iterator[tuple[int, str, Text]]:
    """Yield the rows of a session, with each branch below its parent thought.

    Each row is a tuple: the indentation, the left margin (a thought's number, for example) and the text.
    """
    # The sort key of each line. A branch's key is its parent thought's key plus the `seq` of its first thought.
    lines: dict[str | None, tuple[float, ...]] = {None: ()}
    places, rows = dict[int, tuple[float, ...]](), dict[tuple[float, ...], Document | str]()
    for thought in thoughts:
        name, seq = thought.get("branch_id"), thought["seq"]
        if name is not None and name not in lines:
            lines[name] = (*places.get(thought.get("branch_from_seq", 0), (math.inf,)), seq)
            rows[lines[name]] = name
        places[seq] = (*lines[name], seq)
        rows[places[seq]] = thought
    for place in sorted(rows):
        row, indent = rows[place], 2 * len(place) - 2
        if isinstance(row, str):
            yield indent, "", Text(f"⎇ {display_line(row, 40)}", "magenta")
        else:
            yield from _thought(row, indent)


def _thought(thought: Document, indent: int) -> Iterator[tuple[int, str, Text]]:
    """Yield a row for a thought, a row for its score, and a row for each field of its stage."""
    text = Text()
    if thought.get("stage"):
        text.append(f"[{escape_unseen(' → '.join(stages_of(thought)))}] ", "cyan")
    if thought.get("revises_thought"):
        text.append(f"↺ revises {thought['revises_thought']} ", "yellow")
    if thought.get("merge_branch"):
        text.append(f"⇠ merges {display_line(thought['merge_branch'], 30)} ", "magenta")
    yield indent, f"{thought['thought_number']:>3} ", text.append(escape_unseen(thought["thought"]))
    scored = {name: thought[name] for name in ("score",) if name in thought}
    for name, value in {**scored, **thought.get("data", {})}.items():
        yield indent + 4, "", Text(display_line(f"{name}: {plain_value(value)}", _DATA_CHARS), "dim")
