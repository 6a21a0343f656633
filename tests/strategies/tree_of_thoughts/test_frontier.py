"""Frontiers: what each traversal expands next, what a beam keeps, when a search has converged."""

from hypothesis import given
from hypothesis import strategies as st

from reasonry.strategies.tree_of_thoughts.state import Node, Traversal
from reasonry.strategies.tree_of_thoughts.traversal import push, trim


def opened(**scores: float) -> tuple[Node, ...]:
    return tuple(Node(name, name, score=score) for name, score in scores.items())


def names(frontier: tuple[Node, ...]) -> str:
    return "".join(one.id for one in frontier)


OLD, NEW = opened(a=0.5, b=0.2), opened(c=0.1, d=0.9, e=0.5)


def test_on_a_tie_a_beam_keeps_the_older_node_wherever_it_stands() -> None:
    assert names(trim(opened(b=0.5, a=0.5), 1, "ab")) == "a"


scores = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=12)


@given(scores, scores, st.sampled_from(["bfs", "dfs", "best_first"]), st.integers(1, 6))
def test_a_beam_never_drops_a_better_node_for_a_worse(
    old: list[float], new: list[float], how: Traversal, beam: int
) -> None:
    nodes = [Node(f"n{n}", "", score=score) for n, score in enumerate(old + new)]
    frontier = push(push((), nodes[: len(old)], how), nodes[len(old) :], how)
    assert sorted(one.id for one in frontier) == sorted(one.id for one in nodes)
    kept = trim(frontier, beam, [one.id for one in nodes])
    assert len(kept) == min(beam, len(nodes))
    dropped = [one.score for one in frontier if one not in kept]
    assert not dropped or max(dropped) <= min(one.score for one in kept)
