"""The result of a search, finished or not, with the tree of thoughts."""

from collections.abc import Collection
from typing import Annotated, Any

from msgspec import Meta

from ...blocks.why import quote
from ...core.bodies import Conclusion
from ...core.strategy import Details
from .state import ROOT, Node, State, candidate_document


class TreeDetails(Details):
    """The details of a result."""

    best: Annotated[dict[str, Any] | None, Meta(description="The chosen thought, with the path to it.")]
    candidates: Annotated[list[dict[str, Any]], Meta(description="The best thoughts, the chosen one first.")]
    tree: Annotated[dict[str, Any], Meta(description="All `nodes` by id, the `frontier`, and the options.")]
    termination: Annotated[dict[str, Any], Meta(description="`depth_reached`, `node_count`, `status`.")]


def conclude(state: State) -> Conclusion:
    """Return the result so far. During the search, the answer is the text of the best thought."""
    answer, path, certainty = state.answer, state.chosen_path, "proved" if state.proved else "given"
    if not state.no_answer and answer is None and state.chosen is not None:
        answer = state.chosen.content
    rival = next((each for each in state.candidates if each.id not in path and each.score), None)
    second = f"; second: {quote(rival.content, 60, before='')} ({rival.score:.2f})" if rival else ""
    reason, detail = state.reason or "unfinished", _detail(state)
    # The path to the root has no steps, so its text is empty. An empty text is not an answer.
    end = Conclusion(answer or None, reason, detail, _document(state), certainty=certainty)
    return end.because(detail + second, *path)


def _detail(state: State) -> str:
    options = state.options
    why = {
        "verified": "the verifier confirmed the answer",
        "threshold": f"a thought reached the score of {options.early_success_threshold:g}",
        "converged": f"the best score gained less than {options.min_score_improvement:g} "
        f"in {options.convergence_window} rounds",
        "max_depth": f"the search reached the depth of {options.max_depth}",
        "max_nodes": f"the tree reached {len(state.nodes)} nodes, the limit is {options.max_nodes}",
        "max_duration": f"the search took {state.at_ms} ms, the limit is {options.max_duration_ms} ms",
        "exhausted": "no step was left to expand",
        "limit": "no call was left",
    }.get(state.reason, "the search had not ended")
    ending = {"unsolved": "no path solves the problem", "refuted": "the verifier refuted the last answer"}
    if state.no_answer:
        return f"{why}; {ending[state.no_answer]}"
    if state.chosen is not None or not state.reason:
        return why
    return "every step was ruled out" if state.reason == "exhausted" else f"{why}; every step was ruled out"


def _document(state: State) -> dict[str, Any]:
    options, chosen = state.options, state.chosen
    ranked = {node.id: node for node in (*filter(None, [chosen]), *state.candidates)}
    candidates = [candidate_document(state.nodes, node) for node in [*ranked.values()][: options.top_k]]
    return {
        "best": candidates[0] if chosen else None,
        "candidates": candidates,
        "tree": {
            "node_count": len(state.nodes),
            "frontier_size": len(state.frontier),
            "traversal_strategy": options.traversal_strategy,
            "max_depth": options.max_depth,
            "branching_factor": options.branching_factor,
            "root_id": ROOT,
            "frontier": list(state.frontier),
            "nodes": _node_documents(state),
        },
        "termination": {
            "depth_reached": max(node.depth for node in state.nodes.values()),
            "node_count": len(state.nodes),
        },
        "diagnostics": _diagnostics(state),
    } | ({"unchecked": state.unchecked} if state.unchecked else {})


def _node_documents(state: State) -> dict[str, dict[str, Any]]:
    """Return all nodes by id, including thoughts that are not valued yet."""
    waiting = set() if state.reason else {*state.expanding, *state.frontier}
    chosen, on_path, documents = state.chosen, {ROOT, *state.chosen_path}, dict[str, dict[str, Any]]()
    for node in (*state.nodes.values(), *state.fresh):
        documents[node.id] = {
            "id": node.id,
            "parent_id": node.parent,
            "content": node.content,
            "score": node.score,
            "children": list(node.children),
            "depth": node.depth,
            "status": _node_status(state, node, waiting),
        } | ({"why": node.why} if node.why else {})
        if node.id not in on_path and (dropped := _why_dropped(state, node, chosen)):
            documents[node.id]["dropped"] = dropped
    return documents


def _why_dropped(state: State, node: Node, chosen: Node | None) -> dict[str, str] | None:
    """Return why a node outside the chosen path was dropped, or None while the node is open."""
    if node.refuted:
        return {"code": node.dropped or "refuted", "text": node.why}
    if node.dropped == "beam":
        kept = f"it was not among the {state.options.beam_width} nodes kept for expansion"
        return {"code": "beam", "text": kept}
    if not state.reason:
        return None
    if node.children:
        return {"code": "score", "text": "no path through it came out best"}
    if node.depth >= state.options.max_depth and chosen is not None and node.score is not None:
        best = "" if chosen.score is None else f" with {chosen.score:.2f}"
        return {"code": "score", "text": f"it scored {node.score:.2f}, another path was chosen{best}"}
    code = "limit" if state.reason in ("max_nodes", "max_duration") else "not_selected"
    return {"code": code, "text": f"it was not expanded: {_detail(state)}"}


def _node_status(state: State, node: Node, waiting: Collection[str]) -> str:
    if node.refuted:
        return "pruned"
    if node.id not in state.nodes:
        return "proposed"
    if node.children:
        return "expanded"
    return "open" if node.id in waiting else "leaf"


def _diagnostics(state: State) -> dict[str, Any]:
    options, nodes = state.options, state.nodes.values()
    unvalued = [
        node
        for node in (*nodes, *state.fresh)
        if node.parent and node.score is None and not node.refuted and not node.single
    ]
    return {
        "parser_mode": state.mode,
        "parse_retries": {"generation": 0, "evaluation": 0, **state.retries},
        "parser_errors": list(state.errors),
        "convergence": {
            "window": options.convergence_window,
            "min_score_improvement": options.min_score_improvement,
            "recent_best_scores": list(state.best_scores[-options.convergence_window :]),
        },
        "unscored": [node.id for node in nodes if node.guessed] + [node.id for node in unvalued],
        "pruned": [node.id for node in (*nodes, *state.fresh) if node.refuted],
    }
