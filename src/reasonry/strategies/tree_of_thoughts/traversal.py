"""The rules of a search: when it ends, which nodes come next, and how to continue after a path without an answer."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from .asks import VALUED_0
from .state import ROOT, Node, State, Traversal, children, path_to, rank, refute

Nodes = tuple[Node, ...]

NOISE: Final = 1e-9
"""A smaller difference between two scores comes from float arithmetic and does not count."""

DEAD_END: Final = "every step that was tried after it is refuted"
PROVED: Final = frozenset({"verifier", "arithmetic", "dead_end"})
"""The values of `Node.dropped` that prove a step wrong, so that the model is asked at once for other steps."""


def why_stop(state: State, alive: Sequence[Node]) -> tuple[str, str | None]:
    """Return the reason to end the search (or ""), and the id of the node that is the winner (or None).

    If all proposals of the round are refuted, only the limits `max_nodes` and `max_duration` can end the search here.

    Args:
        alive: The proposals of this round that are not refuted.
    """
    options = state.options
    if cap := _cap(state):
        return cap, None
    if winners := rank(child for child in alive if _is_success(state, child)):
        return "threshold", winners[0].id
    # With a window of 1 or a least improvement of 0, the search never converges.
    window, best = options.convergence_window, state.best_scores
    if alive and len(best) >= window > 1 and best[-1] - best[-window] < options.min_score_improvement - NOISE:
        return "converged", None
    complete = rank(child for child in alive if child.depth >= options.max_depth)
    if options.traversal_strategy != "best_first" or not complete:
        return "", None
    # Do not end at a path with score 0, nor, after an abandoned path, while an open node has a higher score.
    is_valued = (options.follows_seed and not state.rejected) or complete[0].score != 0
    is_best = not state.rejected or _is_better(complete[0], _with_fresh(state)[0])
    return "max_depth" if is_valued and is_best else "", None


def _cap(state: State) -> str:
    """Return the name of the limit that the search has reached, or an empty text."""
    limit_ms = state.options.max_duration_ms
    if len(state.nodes) >= state.options.max_nodes:
        return "max_nodes"
    return "max_duration" if limit_ms is not None and state.at_ms >= limit_ms else ""


def _is_success(state: State, node: Node) -> bool:
    options = state.options
    return (node.score or 0) >= options.early_success_threshold and node.depth >= options.min_depth


def _is_better(leaf: Node, frontier: Nodes) -> bool:
    """Whether a leaf is at least as promising as every expandable node."""
    return not frontier or (leaf.score or 0) >= max(node.score or 0 for node in frontier)


# -- the next nodes


def push(frontier: Nodes, fresh: Sequence[Node], traversal: Traversal) -> Nodes:
    """Add new nodes to the frontier, oldest first.

    `bfs` adds them at the end, and `dfs` at the front. `best_first` sorts by score; on a tie, older nodes come first.
    """
    if traversal == "dfs":
        return (*fresh, *frontier)
    joined = (*frontier, *fresh)
    return joined if traversal == "bfs" else tuple(sorted(joined, key=lambda node: -(node.score or 0)))


def trim(frontier: Nodes, beam_width: int | None, ages: Sequence[str]) -> Nodes:
    """Trim the frontier to its `beam_width` best nodes, without reordering. On a tie, the older node stays.

    Args:
        ages: The ids of the tree's nodes, oldest first.
    """
    if beam_width is None or len(frontier) <= beam_width:
        return frontier
    age = {name: number for number, name in enumerate(ages)}
    kept = sorted(frontier, key=lambda node: (-(node.score or 0), age[node.id]))[:beam_width]
    names = {node.id for node in kept}
    return tuple(node for node in frontier if node.id in names)


def choose_next(state: State) -> State:
    """Choose the nodes to expand next, or end the search with a reason."""
    frontier, state = _with_fresh(state)
    is_capped = state.options.traversal_strategy == "best_first" or not state.options.follows_seed
    beam = state.options.beam_width if is_capped else None
    kept = trim(frontier, beam, list(state.nodes))
    if beam is not None:
        marks = {each.id: "" if each in kept else "beam" for each in frontier}
        marked = {name: replace(state.nodes[name], dropped=mark) for name, mark in marks.items()}
        state = replace(state, nodes=state.nodes | marked)
    width = state.options.expand_width
    names = tuple(each.id for each in kept)
    following = names[:width]
    if not following and not _promising(state):
        following = _highest_open(state)
    if not following:
        deep = any(leaf.depth >= state.options.max_depth for leaf in state.candidates)
        return replace(state, frontier=(), expanding=(), reason="max_depth" if deep else "exhausted")
    here = state.expanding
    jumps = any(state.nodes[name].parent not in here and name not in here for name in following)
    return replace(state, expanding=following, frontier=names[width:], new_branch=jumps)


def _promising(state: State) -> list[Node]:
    """Return the possible answers with a score above 0, best first."""
    return [leaf for leaf in state.candidates if leaf.score != 0]


def _highest_open(state: State) -> tuple[str, ...]:
    """Return the nodes to expand when the frontier is empty: the best expandable nodes nearest to the root.

    Either all descendants of such a node failed, or the node was valued 0 and never expanded. Nodes below a closed or
    refuted node are excluded.
    """
    options = state.options
    opened = [
        here
        for here in (() if options.follows_seed else state.nodes.values())
        if here.asked <= (options.max_reasks if here.children else 0)
        and (here.children or here.depth < options.max_depth)
        and not any(step.refuted or step.closed for step in path_to(state.nodes, here.id))
    ]
    top = min((here.depth for here in opened), default=0)
    best = rank(here for here in opened if here.depth == top)
    return tuple(here.id for here in best[: options.expand_width])


def _with_fresh(state: State) -> tuple[Nodes, State]:
    """Add this round's children to the frontier and close dead ends. Return the frontier and the state."""
    born = [child for parent in state.expanding for child in children(state.nodes, parent)]
    fresh = [
        child
        for child in born
        if not child.refuted
        and not child.asked
        and child.depth < state.options.max_depth
        and child.id not in state.frontier
        and (child.score != 0 or state.options.follows_seed)
    ]
    still_open = tuple(node for name in state.frontier if not (node := state.nodes[name]).refuted)
    frontier = push(still_open, fresh, state.options.traversal_strategy)
    state, reopened = _close_dead_ends(state, {open_node.id for open_node in frontier})
    return push(frontier, reopened, state.options.traversal_strategy), state


def _close_dead_ends(state: State, waiting: set[str]) -> tuple[State, list[Node]]:
    """Refute nodes that have only refuted steps and no retry left. Return the state and the nodes to reopen."""
    nodes, reopened = state.nodes, list[Node]()
    for name in sorted(nodes, key=lambda name: -nodes[name].depth):
        here, steps = nodes[name], children(nodes, name)
        if name in waiting or here.refuted or not steps or not all(step.refuted for step in steps):
            continue
        if here.asked > state.options.max_reasks or here.closed:
            nodes = nodes if name == ROOT else refute(nodes, name, DEAD_END, "dead_end")
        elif all(step.dropped in PROVED for step in steps):
            reopened.append(here if here.score is not None else replace(here, score=1.0))
    return replace(state, nodes=nodes), reopened


# -- a path without an answer


def prune_best(state: State, why: str) -> State:
    """Prune the best path, since it led to no answer. Then choose how the search continues.

    If the returned state has a `reason`, the search has ended again, and `winner` (if any) leads to the next answer.
    """
    chosen = state.chosen
    assert chosen is not None
    state = replace(
        state, nodes=refute(state.nodes, chosen.id, why, "no_answer"), reason="", winner=None, best_scores=()
    )
    if cap := _cap(state):
        return _end_with(state, cap)
    frontier, closed = _with_fresh(state)
    ranked = rank(closed.candidates)
    success = next((leaf for leaf in ranked if _is_success(closed, leaf)), None)
    deep = (leaf for leaf in ranked if leaf.depth >= closed.options.max_depth and leaf.score != 0)
    ends = success or next((leaf for leaf in deep if _is_better(leaf, frontier)), None)
    if ends is not None:
        reason, names = "threshold" if success else "max_depth", tuple(each.id for each in frontier)
        return replace(closed, frontier=names, expanding=(), reason=reason, winner=ends.id)
    if not frontier and _promising(closed):
        return _end_with(closed, "exhausted")
    after = choose_next(state)
    if not after.reason:
        return after
    # Only nodes with score 0 are left.
    nodes = after.nodes
    for leaf in after.candidates:
        nodes = refute(nodes, leaf.id, VALUED_0, "hopeless")
    return _end_with(replace(after, nodes=nodes), "exhausted")


def _end_with(state: State, reason: str) -> State:
    """End the search. The winner is the best leaf with a score above 0, if there is such a leaf."""
    promising = _promising(state)
    return replace(state, reason=reason, winner=promising[0].id if promising else None)
