"""Self-ask: ask and answer the sub-questions a question rests on, one by one, before the question itself.

Press et al. 2022, "Measuring and Narrowing the Compositionality Gap in Language Models", arXiv:2210.03350.
"""

from __future__ import annotations

from typing import Any

from ..core.strategy import Field, Stage, Strategy

_QUESTION = {"type": "string", "minLength": 1, "description": "One question that can be answered by itself."}
_ANSWER = {"type": "string", "minLength": 1, "description": "Its answer, in a few words."}
_COMPLETE = {"type": "boolean", "description": "Whether no further question is needed."}

SELF_ASK: Strategy[Any, Any] = Strategy(
    name="self_ask",
    title="Self-Ask",
    source="arXiv:2210.03350",
    summary="Answers the sub-questions first, by itself or with a tool: for questions of several hops.",
    stages=(
        Stage(
            "problem_reception",
            ("problem_decomposition",),
            description="Take in the question.",
            guidance="Say what is asked and in which form the answer is wanted.",
        ),
        Stage(
            "problem_decomposition",
            ("sub_question_formulation",),
            description="See what the answer rests on.",
            guidance="Say whether the question can be answered directly; if not, which facts it rests on.",
        ),
        Stage(
            "sub_question_formulation",
            ("sub_question_answering",),
            description="Ask the next sub-question.",
            guidance="Ask for one fact that is still missing, so that it can be answered without the main "
            "question; put in what earlier answers have settled.",
            fields=(Field("subQuestion", _QUESTION),),
        ),
        Stage(
            "sub_question_answering",
            ("answer_integration",),
            description="Answer the sub-question.",
            guidance="Answer it alone, from what you know or by looking it up; say so if you cannot.",
            fields=(Field("subQuestionAnswer", _ANSWER),),
        ),
        Stage(
            "answer_integration",
            ("completion_check",),
            description="Fit the answer in.",
            guidance="Say what follows for the main question from this answer and those before it.",
        ),
        Stage(
            "completion_check",
            ("sub_question_formulation", "solution_formulation"),
            description="Decide whether another sub-question is needed.",
            guidance="Ask on while a needed fact is missing; formulate the solution when none is.",
            fields=(Field("complete", _COMPLETE, required=False),),
        ),
        Stage(
            "solution_formulation",
            ("final_response",),
            description="Answer the question from the sub-answers.",
            guidance="Compose the answer from the sub-answers alone.",
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
