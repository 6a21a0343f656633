"""The options of a search, its tree of thoughts, and its state between two answers.

Nodes are kept by id, oldest first; the first is the root.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ...core.events import UNREADABLE, Failed, Reply

ROOT = "node_1"

Traversal = Literal["best_first", "bfs", "dfs"]
Prompt = Annotated[str, Meta(min_length=1, max_length=20_000)]


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The width, depth, duration and order of the search."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "seed": {
            "convergence_window": 2,
            "expand_width": 1,
            "max_reasks": 0,
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
            "score_with_proposals false, compares leaves of all depths by score, scores a step even if no other is "
            "open, takes an empty proposal as an error, expands nodes with score 0, and keeps to beam_width in "
            "best_first alone."
        ),
    ] = None

    @property
    def proposes_scores(self) -> bool:
        """Whether proposals come with scores. Several samples of scores are always separate questions."""
        return self.score_with_proposals and self.samples_per_evaluation == 1

    @property
    def follows_seed(self) -> bool:
        """Whether the rules of seed 004 apply. There, a score of 0 is an ordinary score."""
        return self.preset == "seed"


class Node(Struct, frozen=True, omit_defaults=True):
    """A thought in its place. The root holds the problem and is never a candidate for the answer."""

    id: str
    content: str
    parent: str | None = None
    depth: int = 0
    score: float | None = None
    children: tuple[str, ...] = ()
    guessed: bool = False
    """Whether the score was unreadable and set to the middle."""
    refuted: bool = False
    """Whether it is a known dead end."""
    why: str = ""
    """The reason, for the question that asks its parent for other steps."""
    dropped: Literal["", "verifier", "arithmetic", "dead_end", "no_answer", "hopeless", "beam"] = ""
    """The cause of its removal: the kind of refutation, or the trimming of the frontier."""
    single: bool = False
    """Whether it was the only open node, so that it was not valued."""
    asked: int = 0
    """The number of questions for its next steps."""
    closed: bool = False
    """Whether the last reply said that no step is left."""


Tree = Mapping[str, Node]


class State(Struct, frozen=True, omit_defaults=True):
    """A search between two answers."""

    options: Options
    nodes: dict[str, Node]
    """The valued and refuted nodes under the root, oldest first."""
    expanding: tuple[str, ...] = (ROOT,)
    """The nodes whose children this round proposes and values."""
    fresh: tuple[Node, ...] = ()
    """The children of this round, until they are valued."""
    frontier: tuple[str, ...] = ()
    """The expandable nodes, next first."""
    new_branch: bool = False
    """Whether this round left the line of the previous round."""
    best_scores: tuple[float, ...] = ()
    """The best score so far, after each round."""
    at_ms: int = 0
    reason: str = ""
    """The reason for the end of the search, if it has ended."""
    winner: str | None = None
    """The node that ended the search, if any."""
    answer: str | None = None
    proved: bool = False
    unchecked: str = ""
    """The reason why the answer is only the text of the best path's last step."""
    rejected: Literal["", "unsolved", "refuted"] = ""
    """The fate of the last abandoned answer, if any: missing, or refuted."""
    no_answer: Literal["", "unsolved", "refuted"] = ""
    """The reason for the missing answer, once known."""
    mode: str | None = None
    """The reading mode of the latest reply."""
    retries: dict[str, int] = {}
    errors: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """The problem."""
        return self.nodes[ROOT].content

    @property
    def chosen(self) -> Node | None:
        """The node of the answer: the node that ended the search, or the best leaf so far."""
        if self.winner:
            return self.nodes.get(self.winner)
        return next(iter(self.candidates), None)

    @property
    def candidates(self) -> list[Node]:
        """The possible answers, best first: leaves that are valued and not refuted, without the root.

        Deeper leaves come first, since scores of partial solutions fall with depth, and leaves with score 0 come last.
        Under the preset `seed`, leaves of all depths are ranked by score.
        """
        leaves = (each for each in self.nodes.values() if not each.children and each.parent is not None)
        found = (leaf for leaf in leaves if not leaf.refuted)
        ranked = rank(leaf for leaf in found if leaf.single or leaf.score is not None)
        by_depth = sorted(ranked, key=lambda leaf: (leaf.score == 0, -leaf.depth))
        return ranked if self.options.follows_seed else by_depth

    @property
    def chosen_path(self) -> list[str]:
        """The ids of the nodes on the path to the chosen node, without the root."""
        chosen = self.chosen
        return [] if chosen is None else [step.id for step in path_to(self.nodes, chosen.id)[1:]]

    def texts(self, node_id: str) -> tuple[str, ...]:
        """Return the thoughts on the path to a node; empty for the root."""
        return tuple(step.content for step in path_to(self.nodes, node_id)[1:])

    def branch(self, node_id: str) -> str | None:
        """Return the branch of a node: `2.1` is the first child of the second step. None for the root."""
        path = path_to(self.nodes, node_id)
        return ".".join(str(above.children.index(child.id) + 1) for above, child in pairwise(path)) or None


def note_replies(state: State, phase: str, answers: tuple[Any, ...]) -> State:
    """Book the reading modes and the times of a phase's replies."""
    retries, mode = 0, state.mode
    for answer in answers:
        if isinstance(answer, Reply):
            retries, mode = retries + answer.tries - 1, answer.mode
        elif isinstance(answer, Failed) and answer.code == UNREADABLE:
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
    """Return a node's children, oldest first; empty for an unknown node."""
    parent = tree.get(node_id)
    return [] if parent is None else [tree[child] for child in parent.children]


def path_to(tree: Tree, node_id: str) -> list[Node]:
    """Return the path from the root to a node, both included; empty for an unknown node."""
    path: list[Node] = []
    here = tree.get(node_id)
    while here is not None:
        path.append(here)
        here = None if here.parent is None else tree.get(here.parent)
    return path[::-1]


def rank(nodes: Iterable[Node]) -> list[Node]:
    """Sort nodes by score, then depth, then age. A missing score counts as 0."""
    return sorted(nodes, key=lambda candidate: (-(candidate.score or 0.0), -candidate.depth))


def grow(tree: Tree, fresh: Sequence[Node]) -> dict[str, Node]:
    """Add new nodes under their parents."""
    nodes = dict(tree)
    for child in fresh:
        nodes[child.id] = child
        if child.parent is not None:
            parent = nodes[child.parent]
            nodes[child.parent] = replace(parent, children=(*parent.children, child.id))
    return nodes


def refute(
    tree: Tree, node_id: str, why: str, how: Literal["dead_end", "no_answer", "hopeless"]
) -> dict[str, Node]:
    """Mark a node as a dead end."""
    return {**tree, node_id: replace(tree[node_id], refuted=True, why=why, dropped=how)}


def candidate_document(tree: Tree, candidate: Node) -> dict[str, Any]:
    """Return a candidate for the result document."""
    path = path_to(tree, candidate.id)
    return {
        "node_id": candidate.id,
        "content": candidate.content,
        "score": candidate.score,
        "depth": candidate.depth,
        "path_ids": [step.id for step in path],
        "path_text": [step.content for step in path],
    }
