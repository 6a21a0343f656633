"""Frontiers: what each traversal expands next, what a beam keeps, when a search has converged."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reasonry.strategies.tree_of_thoughts.state import Node, Traversal
from reasonry.strategies.tree_of_thoughts.traversal import has_converged, push, trim


def opened(**scores: float) -> tuple[Node, ...]:
    return tuple(Node(name, name, score=score) for name, score in scores.items())


def names(frontier: tuple[Node, ...]) -> str:
    return "".join(one.id for one in frontier)


OLD, NEW = opened(a=0.5, b=0.2), opened(c=0.1, d=0.9, e=0.5)


@pytest.mark.parametrize(
    ("traversal", "order"), [("bfs", "abcde"), ("dfs", "cdeab"), ("best_first", "daebc")]
)
def test_each_traversal_has_its_order(traversal: Traversal, order: str) -> None:
    old = push((), OLD, traversal)
    assert names(push(old, NEW, traversal)) == order


def test_a_tie_goes_to_the_older_node() -> None:
    assert names(push(opened(a=0.5), opened(b=0.5), "best_first")) == "ab"


@pytest.mark.parametrize(("traversal", "kept"), [("bfs", "ade"), ("dfs", "dea"), ("best_first", "dae")])
def test_a_beam_keeps_the_best_scoring_in_the_order_of_the_traversal(traversal: Traversal, kept: str) -> None:
    frontier = push(push((), OLD, traversal), NEW, traversal)
    assert names(trim(frontier, 3, "abcde")) == kept


def test_on_a_tie_a_beam_keeps_the_older_node_wherever_it_stands() -> None:
    assert names(trim(opened(b=0.5, a=0.5), 1, "ab")) == "a"


def test_without_a_beam_all_is_kept() -> None:
    assert trim(OLD + NEW, None, "abcde") == OLD + NEW


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


@pytest.mark.parametrize(
    ("best", "window", "gain", "converged"),
    [
        ([0.6, 0.62], 2, 0.02, False),
        ([0.8, 0.82], 2, 0.02, False),
        ([0.8, 0.81], 2, 0.02, True),
        ([0.8], 2, 0.02, False),
        ([0.5, 0.8, 0.81], 3, 0.02, False),
        ([0.1, 0.8, 0.8, 0.8], 3, 0.02, True),
        ([0.8, 0.8, 0.8], 1, 0.02, False),
        ([0.8, 0.8], 2, 0.0, False),
        ([], 2, 0.02, False),
    ],
)
def test_convergence_is_too_little_gain_over_the_whole_window(
    best: list[float], window: int, gain: float, converged: bool
) -> None:
    assert has_converged(best, window, gain) is converged


@given(st.floats(0, 0.9), st.sampled_from([0.01, 0.02, 0.05, 0.1]))
def test_a_gain_of_exactly_what_is_wanted_is_enough_whatever_float_makes_of_it(
    start: float, gain: float
) -> None:
    assert not has_converged([start, start + gain], 2, gain)
