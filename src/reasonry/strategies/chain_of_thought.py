"""Chain of thought: break the problem into steps, reason through them in order, derive the answer, check it.

Wei et al. 2022, "Chain-of-Thought Prompting Elicits Reasoning in Large Language Models", arXiv:2201.11903.
"""

from __future__ import annotations

from typing import Any

from ..core.strategy import Field, Stage, Strategy

_STEPS = {"type": "array", "items": {"type": "string"}, "description": "What has to be worked out, in order."}
_CORRECT = {"type": "boolean", "description": "Whether the answer passed the check."}

CHAIN_OF_THOUGHT: Strategy[Any, Any] = Strategy(
    name="chain_of_thought",
    title="Chain of Thought",
    source="arXiv:2201.11903",
    summary="Reasons through a problem in steps and checks the answer: for arithmetic and logic.",
    aliases=("cot",),
    stages=(
        Stage(
            "problem_reception",
            ("step_decomposition",),
            description="Take in the problem.",
            guidance="Say what is asked, what is given and in which form the answer is wanted.",
        ),
        Stage(
            "step_decomposition",
            ("sequential_reasoning",),
            description="Break the problem into steps.",
            guidance="List what has to be worked out, so ordered that each step needs only earlier ones. "
            "Solve none of them yet.",
            fields=(Field("steps", _STEPS, required=False),),
        ),
        Stage(
            "sequential_reasoning",
            ("solution_formulation",),
            description="Reason through the steps in order.",
            guidance="One step at a time, on the results of those before. Stay for the next step; "
            "go on when nothing is left to work out.",
        ),
        Stage(
            "solution_formulation",
            ("answer_verification",),
            description="Derive the answer from the steps.",
            guidance="Bring the results together into one answer in the form that was asked for.",
        ),
        Stage(
            "answer_verification",
            ("final_response",),
            description="Check the answer.",
            guidance="Put the answer back into the problem, or work it out another way. If it fails, stay "
            "and correct it, saying what was wrong; go on when it holds.",
            fields=(Field("correct", _CORRECT, required=False),),
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
