"""The options, the tree of thoughts and the state of a search.

Nodes are stored by id, oldest first. The first node is the root.
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
        """Whether the model proposes and scores thoughts in one reply. Requires `samples_per_evaluation` to be 1."""
        return self.score_with_proposals and self.samples_per_evaluation == 1

    @property
    def follows_seed(self) -> bool:
        """Whether the rules of seed 004, an earlier design, apply. Under these rules, 0 is a normal score."""
        return self.preset == "seed"


class Node(Struct, frozen=True, omit_defaults=True):
    """A thought in the tree. The root contains the problem and is never a candidate for the answer."""

    id: str
    content: str
    parent: str | None = None
    depth: int = 0
    score: float | None = None
    children: tuple[str, ...] = ()
    guessed: bool = False
    """Whether the score could not be read and was set to 0.5."""
    refuted: bool = False
    """Whether the node is a known dead end."""
    why: str = ""
    """Why the node was refuted. The question that asks for other steps of its parent shows this reason."""
    dropped: Literal["", "verifier", "arithmetic", "dead_end", "no_answer", "hopeless", "beam"] = ""
    """Why the search dropped the node: the kind of refutation, or `beam` if it was trimmed from the frontier."""
    single: bool = False
    """Whether the node was not valued because it was the only open node."""
    asked: int = 0
    """How many times the model was asked for the node's next steps."""
    closed: bool = False
    """Whether the last reply for this node said that no step is left."""


Tree = Mapping[str, Node]


class State(Struct, frozen=True, omit_defaults=True):
    """The state of a search."""

    options: Options
    nodes: dict[str, Node]
    """The root, then the valued and the refuted nodes, by id, oldest first."""
    expanding: tuple[str, ...] = (ROOT,)
    """The nodes whose children this round proposes and values."""
    fresh: tuple[Node, ...] = ()
    """The children that this round proposed and that are not valued yet."""
    frontier: tuple[str, ...] = ()
    """The nodes that can be expanded later, in the order of expansion."""
    new_branch: bool = False
    """Whether this round moves to a node outside the branches of the previous round."""
    best_scores: tuple[float, ...] = ()
    """The best score so far, after each round."""
    at_ms: int = 0
    reason: str = ""
    """Why the search ended; empty while it continues."""
    winner: str | None = None
    """The node that ended the search, if any."""
    answer: str | None = None
    proved: bool = False
    unchecked: str = ""
    """Why the answer is only the text of the best path or of its last step."""
    rejected: Literal["", "unsolved", "refuted"] = ""
    """Why the last abandoned path was pruned: it had no answer (`unsolved`), or its answer was `refuted`."""
    no_answer: Literal["", "unsolved", "refuted"] = ""
    """Why the search ended without an answer. The values mean the same as in `rejected`."""
    mode: str | None = None
    """The name of the method that read the latest reply, such as `json` (the reading mode)."""
    retries: dict[str, int] = {}
    errors: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """The problem."""
        return self.nodes[ROOT].content

    @property
    def chosen(self) -> Node | None:
        """The node whose path gives the answer: the node that ended the search, or else the best leaf so far."""
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
        """Return the thoughts on the path to a node, without the root."""
        return tuple(step.content for step in path_to(self.nodes, node_id)[1:])

    def branch(self, node_id: str) -> str | None:
        """Return a node's branch name, or None for the root. `2.1` names the first child of the root's second child."""
        path = path_to(self.nodes, node_id)
        return ".".join(str(above.children.index(child.id) + 1) for above, child in pairwise(path)) or None


def note_replies(state: State, phase: str, answers: tuple[Any, ...]) -> State:
    """Record the reading mode, the retries, the errors and the time of a phase's replies."""
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
    """Return a node's children, oldest first."""
    return [tree[child] for child in tree[node_id].children]


def path_to(tree: Tree, node_id: str) -> list[Node]:
    """Return the path from the root to a node, including both. The path to an unknown node is empty."""
    path: list[Node] = []
    here = tree.get(node_id)
    while here is not None:
        path.append(here)
        here = None if here.parent is None else tree.get(here.parent)
    return path[::-1]


def rank(nodes: Iterable[Node]) -> list[Node]:
    """Sort nodes by score, then by depth, then by age: best, deepest and oldest first. A missing score counts as 0."""
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
    """Return a candidate, with its path, as data for the result document."""
    path = path_to(tree, candidate.id)
    return {
        "node_id": candidate.id,
        "content": candidate.content,
        "score": candidate.score,
        "depth": candidate.depth,
        "path_ids": [step.id for step in path],
        "path_text": [step.content for step in path],
    }
