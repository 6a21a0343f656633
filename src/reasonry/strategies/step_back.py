"""Step-back: ask for the principle behind a problem first, then solve the problem from the principle.

Zheng et al. 2023, "Take a Step Back: Evoking Reasoning via Abstraction in Large Language Models",
arXiv:2310.06117.
"""

from __future__ import annotations

from typing import Any

from ..core.strategy import Field, Stage, Strategy

_QUESTION = {"type": "string", "description": "The more general question behind the problem."}
_PRINCIPLE = {
    "type": "string",
    "minLength": 1,
    "description": "The principle, law or fact, with its conditions.",
}
_CORRECT = {"type": "boolean", "description": "Whether the solution passed the check."}

STEP_BACK: Strategy[Any, Any] = Strategy(
    name="step_back",
    title="Step-Back",
    source="arXiv:2310.06117",
    summary="Finds the principle first and reasons from it: for science, and questions dense with detail.",
    stages=(
        Stage(
            "problem_reception",
            ("abstraction",),
            description="Take in the problem.",
            guidance="Say what is asked and what is given.",
        ),
        Stage(
            "abstraction",
            ("principle_identification",),
            description="Step back to the general question.",
            guidance="Say what kind of problem this is, and ask the more general question behind it.",
            fields=(Field("stepBackQuestion", _QUESTION, required=False),),
        ),
        Stage(
            "principle_identification",
            ("approach_selection",),
            description="Name the principles that answer the general question.",
            guidance="State each law, definition or fact with the conditions under which it holds. "
            "Do not touch the numbers of the problem yet.",
            fields=(Field("generalPrinciple", _PRINCIPLE),),
        ),
        Stage(
            "approach_selection",
            ("specific_application",),
            description="Choose how to use the principles.",
            guidance="Choose the principle that fits what is given, and say why its conditions are met.",
        ),
        Stage(
            "specific_application",
            ("step_by_step_solution",),
            description="Apply the principle to this problem.",
            guidance="Say what each notion of the principle is in this case, and set the problem up with it.",
        ),
        Stage(
            "step_by_step_solution",
            ("solution_verification",),
            description="Solve it step by step.",
            guidance="Work from the set-up to the answer, one step at a time. Stay for the next step; "
            "go on with an answer.",
        ),
        Stage(
            "solution_verification",
            ("final_response",),
            description="Check the solution against the principle.",
            guidance="Check conditions, units, orders of magnitude, and that the question asked is answered. "
            "If it fails, stay and correct it, saying what was wrong.",
            fields=(Field("correct", _CORRECT, required=False),),
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
