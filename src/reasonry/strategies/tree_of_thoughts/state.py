"""The state of a search: all there is to know between two answers."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ...core.events import Failed, Reply
from ...core.search import Frontier
from ...core.tree import Node, best_leaf, lineage, node, path_to
from .options import Options

ROOT = "node_1"


class State(Struct, frozen=True, omit_defaults=True):
    """A search as it stands between two answers."""

    options: Options
    nodes: dict[str, Node]
    """All that was valued or refuted, oldest first, under the root."""
    expanding: tuple[str, ...] = (ROOT,)
    """The nodes whose children this round proposes and values."""
    fresh: tuple[Node, ...] = ()
    """Those children, until they are valued."""
    checked: bool = False
    """Whether the verifier has seen them."""
    frontier: Frontier = ()
    new_branch: bool = False
    """Whether this round left the line of the round before."""
    best_scores: tuple[float, ...] = ()
    """The best score so far, after each round."""
    at_ms: int = 0
    reason: str = ""
    """Why the search has ended, if it has."""
    winner: str | None = None
    """The node that ended it, if one did."""
    answer: str | None = None
    settled: Literal["", "found", "closed", "unsolved", "refuted"] = ""
    """How it stands with the answer: open, found, written by the verifier, or there is none, and why."""
    mode: str | None = None
    """How the latest reply was read."""
    retries: dict[str, int] = {}
    errors: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """What is to be solved."""
        return self.nodes[ROOT].content

    @property
    def chosen(self) -> Node | None:
        """The node the answer comes from: the one that ended the search, or the best leaf so far."""
        return node(self.nodes, self.winner) if self.winner else best_leaf(self.nodes)

    def texts(self, node_id: str) -> tuple[str, ...]:
        """Return the thoughts that lead to a node, its own last; none for the root."""
        return tuple(step.content for step in path_to(self.nodes, node_id)[1:])

    def branch(self, node_id: str) -> str | None:
        """Return the branch a node is on; None for the root."""
        return lineage(self.nodes, node_id) or None


def noted(state: State, phase: str, answers: tuple[Any, ...]) -> State:
    """Book how the replies of a phase came to be read, and when they came."""
    retries, mode = 0, state.mode
    for answer in answers:
        if isinstance(answer, Reply):
            retries, mode = retries + answer.tries - 1, answer.mode
        elif isinstance(answer, Failed) and answer.code == "output_invalid":
            retries, mode = retries + max(0, len(answer.replies) - 1), "none"
    counted = {phase: state.retries.get(phase, 0) + retries} if retries else {}
    return replace(
        state,
        mode=mode,
        retries=state.retries | counted,
        errors=(*state.errors, *([f"{phase}_parse_retry"] * retries)),
        at_ms=max(state.at_ms, *(answer.at_ms for answer in answers)),
    )
