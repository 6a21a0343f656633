"""A tree of thoughts: what can be read off it."""

from __future__ import annotations

from reasonry.strategies.tree_of_thoughts.state import (
    Node,
    best_leaf,
    candidate_document,
    candidates,
    children,
    grow,
    lineage,
    path_to,
    rank,
)

ROOT = {"r": Node("r", "problem")}
TREE = grow(
    grow(
        ROOT,
        [Node("a", "A", "r", 1, 0.9), Node("b", "B", "r", 1, 0.4), Node("c", "C", "r", 1, 0.0, refuted=True)],
    ),
    [Node("d", "D", "a", 2, 0.4), Node("e", "E", "a", 2)],
)


def ids(nodes: list[Node]) -> str:
    return "".join(one.id for one in nodes)


def test_growing_leaves_the_old_tree_alone_and_keeps_the_nodes_in_order() -> None:
    assert list(ROOT) == ["r"]
    assert ROOT["r"].children == ()
    assert list(TREE) == ["r", "a", "b", "c", "d", "e"]
    assert TREE["r"].children == ("a", "b", "c")


def test_children_and_paths_are_found_by_id() -> None:
    assert ids(children(TREE, "r")) == "abc"
    assert ids(children(TREE, "d")) == ids(children(TREE, "x")) == ""
    assert ids(path_to(TREE, "d")) == "rad"
    assert path_to(TREE, "x") == []
    assert lineage(TREE, "e") == "1.2"
    assert lineage(TREE, "r") == ""


def test_candidates_are_valued_leaves_by_score_then_depth_then_age() -> None:
    assert ids(candidates(TREE)) == "db"
    twins = [
        Node("x", "", "r", 1, 0.5),
        Node("y", "", "r", 1, 0.5),
        Node("z", "", "r", 2, 0.5),
        Node("w", "", "r", 1),
    ]
    assert ids(rank(twins)) == "zxyw"


def test_the_root_is_never_the_best() -> None:
    assert best_leaf(ROOT) is None
    best = best_leaf(TREE)
    assert best is not None
    assert best.id == "d"


def test_a_score_of_0_is_a_score() -> None:
    lone = grow(ROOT, [Node("a", "A", "r", 1, 0.0)])
    assert ids(candidates(lone)) == "a"


def test_a_candidate_is_shown_with_its_path_from_the_root() -> None:
    assert candidate_document(TREE, TREE["d"]) == {
        "node_id": "d",
        "content": "D",
        "score": 0.4,
        "depth": 2,
        "path_ids": ["r", "a", "d"],
        "path_text": ["problem", "A", "D"],
    }
