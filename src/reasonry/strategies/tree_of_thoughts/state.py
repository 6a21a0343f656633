"""What a search is given and what it knows: its options, and its state between two answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ...core.events import Failed, Reply
from .frontier import Frontier, Traversal
from .tree import Node, best_leaf, candidates, lineage, node, path_to

ROOT = "node_1"

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
        }
    }
    coached: ClassVar[Mapping[str, Any]] = {"score_with_proposals": True}
    branching_factor: Annotated[int, Meta(ge=1, le=100, description="Thoughts proposed for each node.")] = 3
    max_depth: Annotated[int, Meta(ge=1, le=100, description="Steps a path may have.")] = 3
    traversal_strategy: Annotated[
        Traversal,
        Meta(
            description="Which node is expanded next; best_first ends at the first expansion that reaches max_depth."
        ),
    ] = "best_first"
    top_k: Annotated[int, Meta(ge=1, le=1000, description="Candidates shown in the result.")] = 3
    min_depth: Annotated[
        int, Meta(ge=0, le=100, description="Depth from which early_success_threshold ends the search.")
    ] = 2
    max_nodes: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Nodes, the root included, that end the search; looked at after a round.",
        ),
    ] = 100
    max_duration_ms: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Run time that ends the search; looked at after a round."),
    ] = None
    beam_width: Annotated[
        Annotated[int, Meta(ge=1, le=100_000)] | None,
        Meta(description="Nodes kept for expansion, the best-scoring ones; none keeps all."),
    ] = None
    early_success_threshold: Annotated[
        float, Meta(ge=0, le=1, description="A score that ends the search.")
    ] = 1.0
    convergence_window: Annotated[
        int, Meta(ge=1, le=1000, description="Rounds over which the best score must gain; 1 never converges.")
    ] = 1
    min_score_improvement: Annotated[
        float,
        Meta(ge=0, le=1, description="What the best score must gain over the window; 0 never converges."),
    ] = 0.02
    max_parse_retries: Annotated[
        int,
        Meta(ge=0, le=10, description="How often one question is asked again if its reply cannot be read."),
    ] = 1
    samples_per_evaluation: Annotated[
        int, Meta(ge=1, le=100, description="How often a thought is valued; the scores are averaged.")
    ] = 1
    expand_width: Annotated[
        int, Meta(ge=1, le=100, description="Nodes expanded side by side in a round.")
    ] = 2
    max_reasks: Annotated[
        int,
        Meta(
            ge=0,
            le=10,
            description="How often a node all of whose steps are refuted is asked for others, told why they are.",
        ),
    ] = 3
    compare_depths: Annotated[
        bool,
        Meta(
            description="Whether leaves of all depths compete by their scores; otherwise deeper ones come first."
        ),
    ] = False
    value_single: Annotated[
        bool,
        Meta(
            description="Value a step that is the only one open too; otherwise it is followed without a call."
        ),
    ] = False
    formulate_answer: Annotated[
        bool, Meta(description="Ask for the answer at the end; otherwise it is the best thought's text.")
    ] = True
    verify: Annotated[
        bool,
        Meta(description="Put every thought, and the answer, to the run's verifier; on when one is given."),
    ] = False
    generation_prompt: Annotated[Prompt | None, Meta(description="Instead of the default for proposing.")] = (
        None
    )
    evaluation_prompt: Annotated[Prompt | None, Meta(description="Instead of the default for valuing.")] = (
        None
    )
    formulation_prompt: Annotated[
        Prompt | None, Meta(description="Instead of the default for answering.")
    ] = None
    score_with_proposals: Annotated[
        bool,
        Meta(
            description="Have thoughts proposed with their scores, in one question; otherwise they are valued in "
            "another. On in coached runs, with one sample per evaluation."
        ),
    ] = False
    preset: Annotated[
        Literal["seed"] | None,
        Meta(
            description="Other defaults for the options not given; seed: convergence_window 2, expand_width 1, "
            "max_reasks 0, compare_depths and value_single true."
        ),
    ] = None

    @property
    def proposes_scores(self) -> bool:
        """Whether thoughts are proposed with their scores; several samples are always asked for apart."""
        return self.score_with_proposals and self.samples_per_evaluation == 1


class State(Struct, frozen=True, omit_defaults=True):
    """A search as it stands between two answers."""

    options: Options
    nodes: dict[str, Node]
    """All that was valued or refuted, oldest first, under the root."""
    expanding: tuple[str, ...] = (ROOT,)
    """The nodes whose children this round proposes and values."""
    fresh: tuple[Node, ...] = ()
    """Those children, until they are valued."""
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
            return node(self.nodes, self.winner)
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
