"""Scratchpad: compute in small steps and write the state down after every one.

Nye et al. 2021, "Show Your Work: Scratchpads for Intermediate Computation with Language Models",
arXiv:2112.00114.
"""

from __future__ import annotations

from typing import Any

from ..core.strategy import Field, Stage, Strategy

_STATE = {"type": "object", "description": "Every variable with its value now."}
_FINISHED = {"type": "boolean", "description": "Whether the state holds the result."}

SCRATCHPAD: Strategy[Any, Any] = Strategy(
    name="scratchpad",
    title="Scratchpad",
    source="arXiv:2112.00114",
    summary="Computes in small steps with the state written down: for algorithms and long calculations.",
    stages=(
        Stage(
            "problem_reception",
            ("scratchpad_initialization",),
            description="Take in the problem.",
            guidance="Say what is to be computed and from what.",
        ),
        Stage(
            "scratchpad_initialization",
            ("iterative_calculation",),
            description="Set up the variables.",
            guidance="Name every variable the computation needs, its value at the start, and the rule by "
            "which they change.",
            fields=(Field("stateVariables", _STATE),),
        ),
        Stage(
            "iterative_calculation",
            ("state_tracking",),
            description="Do one small step of the computation.",
            guidance="One operation that can be checked at a glance, on the values as they stand.",
        ),
        Stage(
            "state_tracking",
            ("continuation_decision",),
            description="Write the state down.",
            guidance="List all variables after the step, changed or not; later steps read only this.",
            fields=(Field("stateVariables", _STATE),),
        ),
        Stage(
            "continuation_decision",
            ("iterative_calculation", "result_extraction"),
            description="Decide whether the computation is finished.",
            guidance="Go back for another step while something is left to compute; "
            "extract the result as soon as the state holds it.",
            fields=(Field("finished", _FINISHED, required=False),),
        ),
        Stage(
            "result_extraction",
            ("final_response",),
            description="Read the result off the state.",
            guidance="Take the result from the last state as it stands there; compute nothing new.",
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
