"""ReAct: reasoning and acting take turns, and every result of an action is looked at before the next.

Yao et al. 2022, "ReAct: Synergizing Reasoning and Acting in Language Models", arXiv:2210.03629.
"""

from __future__ import annotations

from typing import Any

from ..core.strategy import Field, Stage, Strategy

REACT: Strategy[Any, Any] = Strategy(
    name="react",
    title="ReAct",
    source="arXiv:2210.03629",
    summary="Thinks, acts with a tool, looks at the result, thinks again: for problems that need facts.",
    stages=(
        Stage(
            "problem_reception",
            ("initial_reasoning",),
            description="Take in the problem.",
            guidance="Say what is asked and what a good answer must contain. Then reason about it.",
        ),
        Stage(
            "initial_reasoning",
            ("action_planning",),
            description="Find out what is known and what is missing.",
            guidance="Set apart what you know for sure from what you would have to look up or compute. "
            "Go on when you know which missing piece to get first.",
            fields=(
                Field(
                    "missing",
                    {
                        "type": "array",
                        "items": {"type": "string"},
                        "description": "What must still be found out.",
                    },
                    required=False,
                ),
            ),
        ),
        Stage(
            "action_planning",
            ("action_execution",),
            description="Choose the next action.",
            guidance="Name one concrete action and its input, and why it is the most useful one now. "
            "Do not repeat an action whose result you already have.",
            fields=(
                Field(
                    "action",
                    {"type": "string", "description": "The action: the tool's name, or what is to be done."},
                ),
                Field(
                    "input", {"description": "What the action is given: text or an object."}, required=False
                ),
            ),
        ),
        Stage(
            "action_execution",
            ("observation_reception",),
            description="Carry the action out.",
            guidance="Do exactly what was planned. Note here only that it was done; the result comes next.",
        ),
        Stage(
            "observation_reception",
            ("reasoning_update",),
            description="Take in what the action brought.",
            guidance="Write down the result as it came, errors too, without reading anything into it.",
            fields=(
                Field("observation", {"type": "string", "description": "What came back, or the error."}),
                Field(
                    "failed",
                    {"type": "boolean", "description": "Whether the action failed."},
                    required=False,
                ),
            ),
        ),
        Stage(
            "reasoning_update",
            ("evaluation_checkpoint",),
            description="Reason on with what was observed.",
            guidance="Say what the observation changes: what is settled, refuted, still open.",
        ),
        Stage(
            "evaluation_checkpoint",
            ("action_planning", "solution_formulation"),
            description="Decide whether enough is known.",
            guidance="With something important still open, plan another action. "
            "With all of it settled, or nothing left worth trying, formulate the solution.",
            fields=(
                Field(
                    "sufficient",
                    {"type": "boolean", "description": "Whether what is known is enough for an answer."},
                    required=False,
                ),
            ),
        ),
        Stage(
            "solution_formulation",
            ("final_response",),
            description="Derive the answer from the observations.",
            guidance="Build the answer on what was observed; say which observation carries which part.",
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
