"""Searching a tree: which open node comes next, which are given up, and when it no longer pays to go on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

Traversal = Literal["best_first", "bfs", "dfs"]

NOISE: Final = 1e-9
"""Differences this small come from float arithmetic, not from scores."""


class Open(Struct, frozen=True):
    """A node that may be expanded."""

    id: str
    score: float


Frontier = tuple[Open, ...]
"""The nodes that may be expanded, next one first."""


def push(frontier: Frontier, fresh: Sequence[Open], traversal: Traversal) -> Frontier:
    """Put new nodes, given in the order they were generated, where the traversal wants them.

    `bfs` puts them last and `dfs` first, both in that order; `best_first` keeps all by score, older first on a tie.
    """
    if traversal == "dfs":
        return (*fresh, *frontier)
    joined = (*frontier, *fresh)
    return joined if traversal == "bfs" else tuple(sorted(joined, key=lambda node: -node.score))


def trim(frontier: Frontier, beam_width: int | None, ages: Sequence[str]) -> Frontier:
    """Keep the best-scoring nodes, older ones first on a tie, in the order they stood.

    Args:
        frontier: What may be expanded.
        beam_width: How many to keep; None keeps all.
        ages: The ids of the tree's nodes, oldest first.
    """
    if beam_width is None or len(frontier) <= beam_width:
        return frontier
    age = {name: number for number, name in enumerate(ages)}
    kept = sorted(frontier, key=lambda node: (-node.score, age[node.id]))[:beam_width]
    names = {node.id for node in kept}
    return tuple(node for node in frontier if node.id in names)


def take(frontier: Frontier, width: int) -> tuple[tuple[str, ...], Frontier]:
    """Return the ids of the next `width` nodes to expand, and the rest."""
    return tuple(node.id for node in frontier[:width]), frontier[width:]


def has_converged(best_scores: Sequence[float], window: int, least_gain: float) -> bool:
    """Whether the best score so far gained less than `least_gain` over the last `window` rounds.

    Args:
        best_scores: The best score so far after each round, oldest first.
        window: Rounds looked at; 1 never converges, since there is nothing to compare.
        least_gain: 0 never converges, since the best so far never falls.
    """
    if window < 2 or len(best_scores) < window:
        return False
    return best_scores[-1] - best_scores[-window] < least_gain - NOISE
