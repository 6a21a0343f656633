"""A tree of thoughts drawn in the terminal: live as it grows, and from the document of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text
from rich.tree import Tree

from ...core.text import clip
from .output import print_inert_lines, print_line
from .terminal import open_console

MAX_DRAWN = 200
"""Nodes of a run that has been: a larger tree is cut to its latest and those that lead to the answer."""


def tree_of(nodes: Sequence[Mapping[str, Any]], problem: str, width: int, limit: int) -> Tree | Text:
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


def print_tree(trace: Mapping[str, Any]) -> None:
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
    with console.capture() as drawn:
        console.print(tree_of(nodes, trace["problem"], console.width, MAX_DRAWN))
    print_inert_lines(drawn.get().splitlines())
    if len(nodes) > MAX_DRAWN:
        print_line(f"… of {len(nodes)} nodes; --json has them all")


def _label(node: Mapping[str, Any], width: int) -> Text:
    score = node["score"]
    text = Text("  … " if score is None else f"{score:.2f} ", style=_colour(score))
    style = "bold green" if node["on_path"] else ""
    room = max(width - 4 * (node["depth"] + 1) - 6, 10)
    return text.append(clip(node["text"], room), style=style)


def _colour(score: float | None) -> str:
    if score is None:
        return "dim"
    return "green" if score >= 0.7 else "yellow" if score >= 0.3 else "red"
