"""What a search is given and what it knows: its options, its tree of thoughts, and its state between two answers.

Nodes are kept by id, oldest first; the first is the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ...core.events import Failed, Reply

ROOT = "node_1"

Traversal = Literal["best_first", "bfs", "dfs"]
Prompt = Annotated[str, Meta(min_length=1, max_length=20_000)]


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How wide, how deep, how long, and in which order the tree is searched."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "seed": {
            "convergence_window": 2,
            "expand_width": 1,
            "max_reasks": 0,
            "compare_depths": True,
            "value_single": True,
            "score_with_proposals": False,
        }
    }
    coached: ClassVar[Mapping[str, Any]] = {"score_with_proposals": True}
    branching_factor: Annotated[int, Meta(ge=1, le=100, description="Thoughts proposed for each node.")] = 3
    max_depth: Annotated[int, Meta(ge=1, le=100, description="Most steps of a path.")] = 3
    traversal_strategy: Annotated[
        Traversal,
        Meta(
            description="Order of expansion; best_first ends at the first expansion that reaches max_depth."
        ),
    ] = "best_first"
    top_k: Annotated[int, Meta(ge=1, le=1000, description="Candidates shown in the result.")] = 3
    min_depth: Annotated[
        int, Meta(ge=0, le=100, description="Least depth at which early_success_threshold ends the search.")
    ] = 2
    max_nodes: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Nodes, with the root, that end the search; checked after each round.",
        ),
    ] = 100
    max_duration_ms: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Run time that ends the search; checked after each round."),
    ] = None
    beam_width: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="Best nodes kept for expansion; none keeps all."),
    ] = None
    early_success_threshold: Annotated[float, Meta(ge=0, le=1, description="Score that ends the search.")] = (
        1.0
    )
    convergence_window: Annotated[
        int,
        Meta(ge=1, le=1000, description="Rounds in which the best score must improve; 1 never converges."),
    ] = 1
    min_score_improvement: Annotated[
        float,
        Meta(ge=0, le=1, description="Improvement of the best score over the window; 0 never converges."),
    ] = 0.02
    max_parse_retries: Annotated[int, Meta(ge=0, le=10, description="Retries after an unreadable reply.")] = 1
    samples_per_evaluation: Annotated[int, Meta(ge=1, le=100, description="Scores for each thought.")] = 1
    expand_width: Annotated[int, Meta(ge=1, le=100, description="Nodes expanded at once in a round.")] = 2
    max_reasks: Annotated[int, Meta(ge=0, le=10, description="Requests for other steps at a dead end.")] = 3
    compare_depths: Annotated[
        bool, Meta(description="Compare leaves of all depths by score; otherwise deeper leaves come first.")
    ] = False
    value_single: Annotated[bool, Meta(description="Score a step even if no other is open.")] = False
    formulate_answer: Annotated[
        bool, Meta(description="Ask for the answer at the end; otherwise use the best thought's text.")
    ] = True
    verify: Annotated[
        bool,
        Meta(
            description="Let the run's verifier check each thought and the answer; on if the run has a verifier."
        ),
    ] = False
    generation_prompt: Annotated[Prompt | None, Meta(description="Replaces the prompt that proposes.")] = None
    evaluation_prompt: Annotated[Prompt | None, Meta(description="Replaces the prompt that scores.")] = None
    formulation_prompt: Annotated[Prompt | None, Meta(description="Replaces the prompt that answers.")] = None
    score_with_proposals: Annotated[
        bool,
        Meta(
            description="Propose thoughts with their scores in one question. On in coached runs with one sample "
            "per evaluation."
        ),
    ] = False
    preset: Annotated[
        Literal["seed"] | None,
        Meta(
            description="Other defaults: seed sets convergence_window 2, expand_width 1, max_reasks 0, "
            "compare_depths and value_single true, score_with_proposals false, takes an empty proposal as an error, "
            "expands nodes with score 0, and keeps to beam_width in best_first alone."
        ),
    ] = None

    @property
    def proposes_scores(self) -> bool:
        """Whether thoughts are proposed with their scores; several samples are always asked for apart."""
        return self.score_with_proposals and self.samples_per_evaluation == 1

    @property
    def follows_seed(self) -> bool:
        """Whether the search is that of seed 004, in which an empty proposal is an error and a score of 0 a score."""
        return self.preset == "seed"


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
    closed: bool = False
    """Whether the last reply to that said that no step is left."""


Tree = Mapping[str, Node]


class State(Struct, frozen=True, omit_defaults=True):
    """A search as it stands between two answers."""

    options: Options
    nodes: dict[str, Node]
    """All that was valued or refuted, oldest first, under the root."""
    expanding: tuple[str, ...] = (ROOT,)
    """The nodes whose children this round proposes and values."""
    fresh: tuple[Node, ...] = ()
    """Those children, until they are valued."""
    frontier: tuple[str, ...] = ()
    """The nodes that may be expanded, next one first."""
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
    proved: bool = False
    """Whether a verifier found the answer right."""
    unchecked: str = ""
    """Why nobody has written the answer, so that it is the text of the best path's last step."""
    rejected: Literal["", "unsolved", "refuted"] = ""
    """What became of the last answer that was given up, if one was: there was none, or it was refuted."""
    no_answer: Literal["", "unsolved", "refuted"] = ""
    """Why there is no answer, once that is known."""
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
        if self.winner:
            return self.nodes.get(self.winner)
        return best_leaf(self.nodes, compare_depths=self.options.compare_depths)

    @property
    def candidates(self) -> list[Node]:
        """The leaves that may be the answer, best first."""
        return candidates(self.nodes, compare_depths=self.options.compare_depths)

    def texts(self, node_id: str) -> tuple[str, ...]:
        """Return the thoughts that lead to a node, its own last; none for the root."""
        return tuple(step.content for step in path_to(self.nodes, node_id)[1:])

    def branch(self, node_id: str) -> str | None:
        """Return the branch a node is on; None for the root."""
        return lineage(self.nodes, node_id) or None


def note_replies(state: State, phase: str, answers: tuple[Any, ...]) -> State:
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
        at_ms=max([state.at_ms, *(answer.at_ms for answer in answers)]),
    )


# -- the tree


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


def rank(nodes: Iterable[Node]) -> list[Node]:
    """Return nodes by score, then the deeper first, then the older first; one without a score counts as 0."""
    return sorted(nodes, key=lambda candidate: (-(candidate.score or 0.0), -candidate.depth))


def candidates(tree: Tree, *, compare_depths: bool = True) -> list[Node]:
    """Return the leaves that may be the answer, best first: valued, not refuted, and not the root.

    Args:
        compare_depths: Rank all by their scores; otherwise the deeper ones come first, since scores of partial
            solutions fall with depth, and those of score 0 last.
    """
    leaves = (each for each in tree.values() if not each.children and each.parent is not None)
    found = (leaf for leaf in leaves if not leaf.refuted)
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
