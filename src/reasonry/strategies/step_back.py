"""Step-back: ask for the principle behind a problem first, then solve the problem from the principle.

Zheng et al. 2023, "Take a Step Back: Evoking Reasoning via Abstraction in Large Language Models",
arXiv:2310.06117.

Algorithm, for a question x:

    q' ← the more general question behind x            one question          abstraction
    P ← the answer to q': principles and facts         in the same reply     principle_identification
    choose a part of P that applies; set up x with it  in the next reply     approach_selection, specific_application
    y ~ p(y | x, q', P)                                one question          step_by_step_solution
    does y agree with P, and does y answer x?          only with `check`     solution_verification

*Differs from the paper*: Instructions replace the worked examples. A mark around the answer replaces "The answer is …".
If the first reply omits the principle, a second question asks for the principle. If a solution has a false equation
between numbers, the model is asked once more. With the option `check`, the model checks its solution. The stage of the
check also corrects a wrong solution, up to `max_repairs` times, since the table has no edge back to an earlier stage.
"""

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..blocks.answers import (
    MARKED,
    AnswerOptions,
    AnswerState,
    CheckReply,
    ReasonedAnswer,
    read_check,
    read_reasoning,
)
from ..core.bodies import Body, Conclusion, Move, Thought, go, replies
from ..core.effects import Ask
from ..core.strategy import (
    SHORT_REPLY,
    AnswerDetails,
    Field,
    Stage,
    Strategy,
    final_response,
    problem_reception,
)

SYSTEM = "You reason from general principles to particular cases."

ABSTRACT = """Now step back: ask the more general question whose answer would settle this one, about the law, the \
definition, or the larger fact that it is a case of. Then answer that question in general: each principle or fact with \
the conditions under which it holds. Leave the details of the problem aside. Reply with one JSON object:
{"stepBackQuestion": "…", "generalPrinciple": "…"}"""
"""Replaces the abstraction prompt of arXiv:2310.06117, table 9: "What are the principles behind this question?"."""

PRINCIPLE = """Now answer the step-back question in general: each principle or fact with the conditions under which it \
holds. Leave the details of the problem aside. Reply with one JSON object:
{"generalPrinciple": "…"}"""
"""The second half of `ABSTRACT`. It is asked alone if the first reply has no principle."""

SOLVE = """First solve the problem from the principle, step by step: say which part of it applies and why its \
conditions are met, set the problem up with it, and work it out."""
"""Replaces the reasoning prompt of arXiv:2310.06117, table 10: "Using the principles … solve step by step"."""

CHECK = """Now check the answer {answer} against the principle and its conditions, for units and magnitude, and \
against the question. If it is wrong, give the corrected one, else null. Reply with one JSON object:
{{"reason": "…", "correct": true or false, "answer": "…" or null}}"""
"""Our prompt. The paper has no check."""

REPAIR = "Now solve the problem from the principle again, with this objection in mind."
"""Our prompt. After the check or the verifier has rejected an answer, it asks for another answer."""


class Options(AnswerOptions, frozen=True):
    """Options of step-back."""

    check: Annotated[bool, Meta(description="Let the author check the solution: one more call.")] = False


class Abstraction(Struct, frozen=True, rename="camel"):
    """The question behind the question."""

    step_back_question: Annotated[str, Meta(min_length=1, description="The more general question.")]
    general_principle: Annotated[str, Meta(description="Its answer: principles with their conditions.")] = ""


class Principle(Struct, frozen=True, rename="camel"):
    """The answer to the more general question."""

    general_principle: Annotated[str, Meta(min_length=1, description="Principles, each with its conditions.")]


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the step-back question, the principle, the steps, and finally the answer y."""

    options: Options
    question: str = ""
    principle: str = ""
    steps: tuple[str, ...] = ()


def abstract(s: State) -> Body:
    """Ask for the more general question q' behind question x, and its principle P: q', P ~ p(q', P | x)."""
    (reply,) = yield from replies(s, Abstraction, _question(s, "abstraction", ABSTRACT))
    question = reply.step_back_question
    s = replace(s, question=question, principle=reply.general_principle.strip())
    return go(s, "principle_identification", Thought(question, data={"stepBackQuestion": question}))


def identify(s: State) -> Body:
    """Ask for the principle P behind the question q' if P is still missing: P ~ p(P | x, q')."""
    if not s.principle:
        (reply,) = yield from replies(s, Principle, _question(s, "principle", PRINCIPLE))
        s = replace(s, principle=reply.general_principle)
    return go(s, "approach_selection", Thought(s.principle, data={"generalPrinciple": s.principle}))


def solve(s: State) -> Body:
    """Ask for the steps and the answer y, based on the principle P: y ~ p(y | x, q', P)."""
    (reply,) = yield from replies(s, ReasonedAnswer, replace(_question(s, "solution", SOLVE), mark=MARKED))
    s = replace(s, steps=reply.steps, final=s.final.propose(reply.text))
    text = reply.reasoning.strip() or reply.text
    return go(s, "solution_verification", Thought(text, data={"answer": reply.text}))


def check(s: State) -> Body:
    """Settle the answer y. If a check finds y wrong, ask for another answer: y' ~ p(y | x, q', P, why)."""
    path = (s.principle, *s.steps)
    return (yield from s.settle_checked_answer(_question, path, check=CHECK, repair=REPAIR))


def close(s: State) -> Move:
    """End with the solution so far, even if the model doubts it. If there is none, ask for a solution."""
    return s.close_unchecked() if s.final.can_be_given else go(s, "step_by_step_solution")


class StepBackDetails(AnswerDetails):
    """The details of a result."""

    principle: Annotated[str | None, Meta(description="The principle.")]
    steps: Annotated[list[str], Meta(description="The steps that follow from it.")]


def conclude(state: State) -> Conclusion:
    """Return the answer, the principle, and the result of the check."""
    document = {"principle": state.principle or None, "steps": list(state.steps), **state.final.document}
    return state.conclude(document).because("", "principle_identification")


def _question(state: State, kind: str, task: str) -> Ask:
    found = {"Step-back question": state.question, "Principle": state.principle}
    known = [f"{name}: {text}" for name, text in found.items() if text]
    steps = "\n".join(f"Step {number}: {step}" for number, step in enumerate(state.steps, 1))
    return state.build_question(SYSTEM, kind, [*known, steps], task)


STEP_BACK: Strategy[State, Options] = Strategy(
    name="step_back",
    title="Step-Back",
    source="arXiv:2310.06117",
    summary="Finds the principle first and reasons from it: for questions whose details hide the rule.",
    options=Options,
    state=State,
    conclude=conclude,
    close=close,
    details=StepBackDetails,
    calls=2,
    least_calls=2,
    version=2,
    stages=(
        problem_reception(("abstraction",), "Say what is asked and what is given."),
        Stage(
            "abstraction",
            ("principle_identification",),
            description="Step back to the general question.",
            guidance="Say what kind of problem this is, and ask the more general question behind it.",
            fields=(
                Field.optional("stepBackQuestion", "string", "The more general question behind the problem."),
            ),
            body=abstract,
            reply=Abstraction,
            max_output_tokens=SHORT_REPLY,
            example={
                "stepBackQuestion": "How do pressure, volume and temperature of a gas hang together?",
                "generalPrinciple": "Ideal gas law: PV = nRT, for a dilute gas.",
            },
        ),
        Stage(
            "principle_identification",
            ("approach_selection",),
            description="Name the principles that answer the general question.",
            guidance="State each law, definition or fact with the conditions under which it holds. "
            "Do not touch the numbers of the problem yet.",
            fields=(
                Field.mandatory(
                    "generalPrinciple",
                    "string",
                    "The principle, law or fact, with its conditions.",
                    minLength=1,
                ),
            ),
            body=identify,
            reply=Principle,
            example={"generalPrinciple": "Ideal gas law: PV = nRT, for a dilute gas."},
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
            tested_by="solution_verification",
            description="Solve it step by step.",
            guidance="Work from the set-up to the answer, one step at a time. Stay for the next step; "
            "go on with an answer.",
            body=solve,
            reply=ReasonedAnswer,
            read=read_reasoning,
            example={"reasoning": "P changes by 2 / 8 = 1 / 4.", "answer": "It falls to a quarter."},
        ),
        Stage(
            "solution_verification",
            ("final_response",),
            description="Check the solution against the principle.",
            guidance="Check conditions, units, orders of magnitude, and that the question asked is answered. "
            "If it fails, stay and correct it, saying what was wrong.",
            fields=(Field.optional("correct", "boolean", "Whether the solution passed the check."),),
            body=check,
            reply=CheckReply,
            example={"reason": "PV grows by 8 / 4 = 2, as T does.", "correct": True},
            read=read_check,
        ),
        final_response(),
    ),
)
