"""A tree of thoughts as data, and what can be read off it.

Nodes are kept by id, oldest first; the first is the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace


class Node(Struct, frozen=True, omit_defaults=True):
    """A thought in its place. The root holds the problem and is never a candidate for the answer."""

    id: str
    content: str
    parent: str | None = None
    depth: int = 0
    score: float | None = None
    """From 0 to 1; None until it was valued."""
    children: tuple[str, ...] = ()
    guessed: bool = False
    """Whether no score could be read, so that it got the middle one."""
    refuted: bool = False
    """Whether it is known that it leads nowhere."""
    why: str = ""
    """How that is known, as its parent is told when it is asked for other steps."""
    dropped: Literal["", "verifier", "arithmetic", "dead_end", "no_answer", "hopeless", "beam"] = ""
    """What kept it from being followed: how it was refuted, or that it was not among those kept for expansion."""
    single: bool = False
    """Whether it was the only one open, so that there was nothing to value."""
    asked: int = 0
    """How often its next steps were asked for."""


Tree = Mapping[str, Node]


def node(tree: Tree, node_id: str) -> Node | None:
    """Return a node, if there is one of that id."""
    return tree.get(node_id)


def children(tree: Tree, node_id: str) -> list[Node]:
    """Return a node's children, oldest first; none if there is no such node."""
    parent = tree.get(node_id)
    return [] if parent is None else [tree[child] for child in parent.children]


def path_to(tree: Tree, node_id: str) -> list[Node]:
    """Return the nodes from the root to this one, both included; none if there is no such node."""
    path: list[Node] = []
    here = tree.get(node_id)
    while here is not None:
        path.append(here)
        here = None if here.parent is None else tree.get(here.parent)
    return path[::-1]


def leaves(tree: Tree) -> list[Node]:
    """Return the nodes that were not expanded, oldest first."""
    return [leaf for leaf in tree.values() if not leaf.children]


def rank(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes by score, then the deeper first, then the older first; one without a score counts as 0."""
    return sorted(nodes, key=lambda candidate: (-(candidate.score or 0.0), -candidate.depth))


def candidates(tree: Tree, *, compare_depths: bool = True) -> list[Node]:
    """Return the leaves that may be the answer, best first: valued, not refuted, and not the root.

    Args:
        compare_depths: Rank all by their scores; otherwise the deeper ones come first, since scores of partial
            solutions fall with depth, and those of score 0 last.
    """
    found = [leaf for leaf in leaves(tree) if leaf.parent is not None and not leaf.refuted]
    ranked = rank(leaf for leaf in found if leaf.single or leaf.score is not None)
    return ranked if compare_depths else sorted(ranked, key=lambda leaf: (leaf.score == 0, -leaf.depth))


def best_leaf(tree: Tree, *, compare_depths: bool = True) -> Node | None:
    """Return the leaf that is most promising, see `candidates`; None before anything was valued."""
    return next(iter(candidates(tree, compare_depths=compare_depths)), None)


def grow(tree: Tree, fresh: Sequence[Node]) -> dict[str, Node]:
    """Return the tree with new nodes under their parents."""
    nodes = dict(tree)
    for child in fresh:
        nodes[child.id] = child
        if child.parent is not None:
            parent = nodes[child.parent]
            nodes[child.parent] = replace(parent, children=(*parent.children, child.id))
    return nodes


Refutation = Literal["dead_end", "no_answer", "hopeless"]


def refute(tree: Tree, node_id: str, why: str, how: Refutation) -> dict[str, Node]:
    """Return the tree with a node that is known to lead nowhere."""
    return {**tree, node_id: replace(tree[node_id], refuted=True, why=why, dropped=how)}


def mark_beam(tree: Tree, kept: Iterable[str], left_out: Iterable[str]) -> dict[str, Node]:
    """Return the tree with the nodes marked that a beam left out, and unmarked that it kept."""
    nodes = dict(tree)
    for name in left_out:
        nodes[name] = replace(nodes[name], dropped="beam")
    for name in kept:
        if nodes[name].dropped == "beam":
            nodes[name] = replace(nodes[name], dropped="")
    return nodes


def is_dead_end(tree: Tree, node_id: str) -> bool:
    """Whether a node has children, all of them refuted, and is not refuted itself."""
    here = tree[node_id]
    return not here.refuted and bool(here.children) and all(tree[child].refuted for child in here.children)


def lineage(tree: Tree, node_id: str) -> str:
    """Return a node's place among its siblings and that of its forebears: `2.1` is the first child of the second."""
    path = path_to(tree, node_id)
    return ".".join(str(above.children.index(child.id) + 1) for above, child in pairwise(path))


def candidate_document(tree: Tree, candidate: Node) -> dict[str, Any]:
    """Return a candidate as a result document has it."""
    path = path_to(tree, candidate.id)
    return {
        "node_id": candidate.id,
        "content": candidate.content,
        "score": candidate.score,
        "depth": candidate.depth,
        "path_ids": [step.id for step in path],
        "path_text": [step.content for step in path],
    }
