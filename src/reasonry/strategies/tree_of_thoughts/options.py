"""The options of tree of thoughts: seed 004's, with its defaults, and a few more."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from ...core.search import Traversal

Prompt = Annotated[str, Meta(min_length=1, max_length=20_000)]


class Options(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How wide, how deep, how long, and in which order the tree is searched."""

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
    ] = 2
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
    ] = 1
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
