"""ReWOO: the whole plan first, then all evidence, then one solve; no reasoning in between.

Xu et al. 2023, "ReWOO: Decoupling Reasoning from Observations for Efficient Augmented Language Models",
arXiv:2305.18323.
"""

from __future__ import annotations

from typing import Any

from ..core.strategy import Field, Stage, Strategy

REWOO: Strategy[Any, Any] = Strategy(
    name="rewoo",
    title="ReWOO",
    source="arXiv:2305.18323",
    summary="Plans all tool calls at once, runs them side by side, solves once: few, short model calls.",
    stages=(
        Stage(
            "problem_reception",
            ("planning_phase",),
            description="Take in the problem.",
            guidance="Say what is asked and what a good answer must contain. Then plan.",
        ),
        Stage(
            "planning_phase",
            ("tool_call_specification",),
            description="Plan all the way to the answer, without looking anything up.",
            guidance="List the pieces of evidence the answer needs and how each is to be got, "
            "taking results you do not have yet as given. Go on when the pieces suffice for the answer.",
        ),
        Stage(
            "tool_call_specification",
            ("working_phase",),
            description="Write each planned piece of evidence as a tool call.",
            guidance="Give every call an id (#E1, #E2, …) and refer to earlier evidence by its id. "
            "Calls that refer to no other can run side by side.",
            fields=(
                Field(
                    "calls",
                    {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "The calls, each as `#E1 = tool[input]`.",
                    },
                ),
            ),
        ),
        Stage(
            "working_phase",
            ("evidence_collection",),
            description="Run the calls.",
            guidance="Run every call whose references are there, independent ones at once, with the evidence "
            "in place of its id. Stay until all have run; do not change the plan.",
        ),
        Stage(
            "evidence_collection",
            ("solving_phase",),
            description="Bring the evidence together.",
            guidance="Set each piece beside the step of the plan it was for. Mark what failed as failed.",
            fields=(
                Field(
                    "evidence",
                    {
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                        "description": 'What each call brought, by id: `{"#E1": …}`.',
                    },
                ),
            ),
        ),
        Stage(
            "solving_phase",
            ("final_response",),
            description="Solve the problem from plan and evidence.",
            guidance="Answer in one go. Trust evidence over memory, and say so where a piece is missing.",
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
