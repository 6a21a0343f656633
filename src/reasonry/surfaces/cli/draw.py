"""Drawings in the terminal: the tree of a run, live as it grows or of its document, and the lines of a session."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from ...core.text import clip, inert
from ...guided.export import plain_value, stages_of
from .. import present
from .answer_text import drawn_start
from .output import print_inert_lines, print_line
from .tables import draw_lines, open_console

MAX_DRAWN = 200
"""Nodes of a run that has been: a larger tree is cut to its latest and those that lead to the answer."""
_DATA_CHARS = 500
"""Of one field; `--json` has it whole."""

Document = Mapping[str, Any]
Row = tuple[int, tuple[tuple[str, str], ...]]
"""How far a row is indented, and its texts with their styles."""


# -- a tree of thoughts


def tree_of(nodes: Sequence[Document], problem: str, width: int, limit: int) -> Tree | Text:
    """Return the tree to be drawn.

    Args:
        nodes: `id`, `parent`, `text`, `score`, `depth` and `on_path`, oldest first.
        limit: How many nodes to draw; those that lead to the best one always are.
    """
    shown = {node["id"] for node in nodes[-limit:]} | {node["id"] for node in nodes if node["on_path"]}
    places: dict[str | None, Tree] = {}
    for node in nodes:
        if node["parent"] is None:
            places[node["id"]] = Tree(Text(clip(problem, width - 2), style="bold"))
        elif node["id"] in shown and node["parent"] in places:
            places[node["id"]] = places[node["parent"]].add(_label(node, width))
    return next(iter(places.values()), Text(""))


def print_tree(trace: Document) -> None:
    """Print the tree of a run, if its document has one."""
    tree, best = trace.get("tree"), trace.get("best") or {}
    if not isinstance(tree, dict) or "nodes" not in tree:
        return
    path = set(best.get("path_ids", ()))
    nodes = [
        {**node, "parent": node["parent_id"], "text": node["content"], "on_path": node["id"] in path}
        for node in tree["nodes"].values()
    ]
    console = open_console()
    print_inert_lines(draw_lines(console, tree_of(nodes, trace["problem"], console.width, MAX_DRAWN)))
    if len(nodes) > MAX_DRAWN:
        print_line(f"… of {len(nodes)} nodes; --json has them all")


def _label(node: Document, width: int) -> Text:
    score = node["score"]
    if score is None:
        text = Text("  … ", style="dim")
    else:
        text = Text(f"{score:.2f} ", style="green" if score >= 0.7 else "yellow" if score >= 0.3 else "red")
    room = max(width - 4 * (node["depth"] + 1) - 6, 10)
    return text.append_text(drawn_start(node["text"], room, "bold green" if node["on_path"] else ""))


# -- a session


def draw_session(session: Document, thoughts: Iterable[Document]) -> None:
    """Draw the main line, and under the thought it left each branch."""
    console, recorded = open_console(), list(thoughts)
    strategy = f"  {session['strategy']}" if "strategy" in session else ""
    head = f"{session['session_id']}{strategy}  {present.count_of(len(recorded), 'thought')}"
    console.print(Text(inert(head), style="bold"))
    if session.get("purpose"):
        console.print(Text(clip(session["purpose"], console.width), style="dim"))
    print_inert_lines(line for row in _rows(recorded) for line in _draw_row(console, row))


def _draw_row(console: Console, row: Row) -> list[str]:
    """Draw a row; the first of several texts is the margin that the others stand beside, line for line."""
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

    def begin(name: str | None, depth: int) -> Iterator[Any]:
        del waiting[name]
        if name is not None:
            yield 2 * depth - 2, ((f"⎇ {clip(name, 40)}", "magenta"),)
        for thought in lines[name]:
            yield 2 * depth, tuple(_thought(thought))
            yield from _data(thought, 2 * depth + 4)
            by_number = leaving.get(("thought", thought["thought_number"]), [])
            for branch in (*leaving.get(("seq", thought["seq"]), []), *by_number):
                if branch in waiting:
                    yield begin(branch, depth + 2)

    while waiting:
        name = next(iter(waiting))
        open_lines = [begin(name, 0 if name is None else 1)]
        while open_lines:
            found = next(open_lines[-1], None)
            if found is None:
                open_lines.pop()
            elif isinstance(found, tuple):
                yield found
            else:
                open_lines.append(found)


def _lines_of(
    thoughts: Iterable[Document],
) -> tuple[dict[str | None, list[Document]], dict[tuple[str, int], list[str]]]:
    """Return the thoughts by line, and the branches by the thought they leave: its `seq`, in old records its number."""
    lines: dict[str | None, list[Document]] = {None: []}
    leaving: dict[tuple[str, int], list[str]] = {}
    for thought in thoughts:
        name = thought.get("branch_id")
        if name is not None and name not in lines and "branch_from_thought" in thought:
            by = "seq" if "branch_from_seq" in thought else "thought"
            leaving.setdefault((by, thought[f"branch_from_{by}"]), []).append(name)
        lines.setdefault(name, []).append(thought)
    return lines, leaving


def _data(thought: Document, indent: int) -> Iterator[Row]:
    """Yield a row for each field of a thought's stage, and for the score a run gave it."""
    data = {**({"score": thought["score"]} if "score" in thought else {}), **thought.get("data", {})}
    for name, value in data.items():
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
