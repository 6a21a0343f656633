"""Planned thinking: keep a nested plan, evaluate the last thought, execute the next step, refine, conclude.

Seed 001, "Chain of Thought Node Design".
"""

from __future__ import annotations

from typing import Any

from ..core.strategy import Field, Stage, Strategy

_PLANNING = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "description": {"type": "string"},
            "status": {"enum": ["Pending", "Done", "Verification Needed"]},
            "result": {"type": ["string", "null"]},
            "mark": {"type": ["string", "null"]},
            "sub_steps": {"type": ["array", "null"]},
        },
        "required": ["description", "status"],
    },
    "minItems": 1,
    "description": "The whole plan as it stands now; the last step is the conclusion.",
}

PLANNED_THINKING: Strategy[Any, Any] = Strategy(
    name="planned_thinking",
    title="Planned thinking",
    source="seed 001",
    summary="Keeps, checks and refines a nested plan until it is worked off: for long, composite problems.",
    aliases=("chain_of_thought_node",),
    stages=(
        Stage(
            "problem_reception",
            ("think",),
            description="Take in the problem.",
            guidance="Say what is asked and what a good answer must contain.",
        ),
        Stage(
            "think",
            ("conclude",),
            description="Evaluate the last thought, execute the next step, bring the plan up to date.",
            guidance="Begin by judging the thought before; put errors right first. Execute one pending step, "
            "record its result, break up what turns out complex. Stay until only the conclusion is left.",
            fields=(Field("planning", _PLANNING),),
        ),
        Stage(
            "conclude",
            ("final_response",),
            description="Execute the conclusion step.",
            guidance="Judge the last thought, then sum the results up into the solution.",
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
