"""Self-consistency: reason several times independently and take the answer most of the paths arrive at.

Wang et al. 2022, "Self-Consistency Improves Chain of Thought Reasoning in Language Models", arXiv:2203.11171.
"""

from __future__ import annotations

from typing import Any

from ..core.strategy import Field, Stage, Strategy

SELF_CONSISTENCY: Strategy[Any, Any] = Strategy(
    name="self_consistency",
    title="Self-consistency",
    source="arXiv:2203.11171",
    summary="Draws independent solutions and votes on the answer: for problems with one short answer.",
    stages=(
        Stage(
            "problem_reception",
            ("multiple_path_sampling",),
            description="Take in the problem.",
            guidance="Say what is asked, and in which form, so that answers can be compared.",
        ),
        Stage(
            "multiple_path_sampling",
            ("reasoning_path_execution",),
            description="Set out several independent ways to reason about it.",
            guidance="Name three or more ways to set out. No path may lean on another's result.",
            fields=(
                Field(
                    "paths",
                    {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "One line for each path: how it sets out.",
                    },
                    required=False,
                ),
            ),
        ),
        Stage(
            "reasoning_path_execution",
            ("answer_collection",),
            description="Follow each path to its answer.",
            guidance="Reason along one path at a time, from problem to answer, as if it were the only one. "
            "Stay for the next path; go on when all have an answer.",
            fields=(
                Field("path", {"type": "string", "description": "Which path this is."}, required=False),
                Field("answer", {"type": "string", "description": "Where the path ended."}, required=False),
            ),
        ),
        Stage(
            "answer_collection",
            ("consistency_analysis",),
            description="Collect the answers.",
            guidance="List the answer of every path in one form: same units, same notation.",
            fields=(
                Field(
                    "answers",
                    {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                        "description": "The answer of each path, in order.",
                    },
                ),
            ),
        ),
        Stage(
            "consistency_analysis",
            ("majority_selection",),
            description="Count which answers agree.",
            guidance="Count how often each answer came up; say how clear the lead is.",
            fields=(
                Field(
                    "votes",
                    {
                        "type": "object",
                        "additionalProperties": {"type": "integer"},
                        "description": "How many paths gave each answer.",
                    },
                    required=False,
                ),
            ),
        ),
        Stage(
            "majority_selection",
            ("final_response",),
            description="Take the answer with the most votes.",
            guidance="Take the most frequent answer; on a tie, the first one. Do not overrule the count.",
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, in the form that was asked for.",
        ),
    ),
)
