"""Drawings in a terminal: blocks of a report, the tree of a run (live or from its document), and a session."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from ...guided.export import plain_value, stages_of
from ...text import clip, inert
from .. import present
from ..run_report import Block, Bullets, Heading, Prose
from ..web.page import PageNode
from ..web.run_nodes import first_nodes
from .output import draw_lines, open_console, print_inert_lines, print_line

MAX_DRAWN = 200
"""The most nodes of an ended run. A larger tree shows its latest nodes and the path to the answer."""
_DATA_CHARS = 500
"""The limit for a field. `--json` has the whole field."""
_LABEL_CHARS = 400
"""The limit for a node's text, before the width of the terminal applies."""

Document = Mapping[str, Any]


# -- a report


def print_blocks(blocks: Iterable[Block], stream: TextIO | None = None) -> None:
    """Print blocks of a report in uncut lines."""
    for block in blocks:
        match block:
            case Heading(text):
                print_line("", text, stream=stream)
            case Prose(text):
                print_line(*(f"  {line}".rstrip() for line in text.split("\n")), stream=stream)
            case Bullets(items):
                print_line(*(f"  - {' '.join(item.split())}" for item in items), stream=stream)


# -- a tree of thoughts


def tree_of(nodes: Sequence[PageNode], problem: str, limit: int) -> Tree | Text:
    """Build the tree to draw.

    Args:
        nodes: The nodes, parents first.
        limit: The most nodes to draw. The path to the best node is always drawn.
    """
    shown = {node.id for node in nodes[-limit:]} | {node.id for node in nodes if _is_on_path(node)}
    places: dict[str | None, Tree] = {}
    for node in nodes:
        if node.parent is None:
            places[node.id] = Tree(_one_line(clip(problem, _LABEL_CHARS), "bold"))
        elif node.id in shown and node.parent in places:
            places[node.id] = places[node.parent].add(_label(node))
    return next(iter(places.values()), Text(""))


def _is_on_path(node: PageNode) -> bool:
    return node.state in ("on_path", "answer")


def print_tree(trace: Document) -> None:
    """Print the tree of a run, if its document or a sample in it has a tree."""
    nodes = [*first_nodes(trace, trace["problem"], ()).values()]
    if not any(node.kind == "thought" for node in nodes):
        return
    print_line("")
    print_inert_lines(draw_lines(open_console(), tree_of(nodes, trace["problem"], MAX_DRAWN)))
    if len(nodes) > MAX_DRAWN:
        print_line(f"… of {len(nodes)} nodes; --json has them all")


def _label(node: PageNode) -> Text:
    """Return the score and the beginning of a node's text."""
    score = node.score
    text = clip(node.text or node.score_text, _LABEL_CHARS)
    style = "dim" if score is None else "green" if score >= 0.7 else "yellow" if score >= 0.3 else "red"
    label = _one_line("  … " if score is None else f"{score:.2f} ", style)
    return label.append(text, "bold green" if _is_on_path(node) else "")


def _one_line(text: str, style: str) -> Text:
    return Text(text, style, no_wrap=True, overflow="ellipsis")


# -- a session


def draw_session(session: Document, thoughts: Iterable[Document]) -> None:
    """Draw the main line, with each branch under the thought where it begins."""
    console, recorded = open_console(), list(thoughts)
    strategy = f"  {session['strategy']}" if "strategy" in session else ""
    head = f"{session['session_id']}{strategy}  {present.count_of(len(recorded), 'thought')}"
    console.print(Text(inert(head), style="bold"))
    if session.get("purpose"):
        console.print(Text(clip(session["purpose"], console.width), style="dim"))
    print_inert_lines(line for row in _rows(recorded) for line in _draw_row(console, *row))


def _draw_row(console: Console, indent: int, margin: str, text: Text) -> list[str]:
    left = " " * min(indent, console.width // 2) + margin
    lines = text.wrap(console, max(console.width - len(left), 8), overflow="fold")
    starts = (left if place == 0 else " " * len(left) for place in range(len(lines)))
    parts = (Text.assemble((start, "bold"), line) for start, line in zip(starts, lines, strict=True))
    return draw_lines(console, Text("\n").join(parts))


def _rows(thoughts: Iterable[Document]) -> Iterator[tuple[int, str, Text]]:
    """Yield the main line with each branch under its parent thought, then the branches without such a parent.

    Returns:
        Rows: the indentation, the margin and the text.
    """
    # Rows are sorted by the `seq` of the thought a branch left, that of its first thought, that of the row's.
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
            yield indent, "", Text(f"⎇ {clip(row, 40)}", "magenta")
        else:
            yield from _thought(row, indent)


def _thought(thought: Document, indent: int) -> Iterator[tuple[int, str, Text]]:
    """Yield a row for a thought, a row for each field of its stage, and a row for its score."""
    text = Text()
    if thought.get("stage"):
        text.append(f"[{inert(' → '.join(stages_of(thought)))}] ", "cyan")
    if thought.get("revises_thought"):
        text.append(f"↺ revises {thought['revises_thought']} ", "yellow")
    if thought.get("merge_branch"):
        text.append(f"⇠ merges {clip(thought['merge_branch'], 30)} ", "magenta")
    yield indent, f"{thought['thought_number']:>3} ", text.append(inert(thought["thought"]))
    scored = {name: thought[name] for name in ("score",) if name in thought}
    for name, value in {**scored, **thought.get("data", {})}.items():
        yield indent + 4, "", Text(clip(f"{name}: {plain_value(value)}", _DATA_CHARS), "dim")
