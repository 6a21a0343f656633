"""Step-back: ask for the principle behind a problem first, then solve the problem from the principle.

Zheng et al. 2023, "Take a Step Back: Evoking Reasoning via Abstraction in Large Language Models",
arXiv:2310.06117.

Algorithm, for a question x:

    q' ← the more general question behind x            abstraction           abstraction
    P ← the answer to q': principles, facts            without x's details   principle_identification
    which of P, why it applies, x set up with it       asked in one reply    approach_selection
    …                                                  written down          specific_application
    y ~ p(y | x, q', P)                                reasoning             step_by_step_solution
    does y agree with P and answer x?                  looked at             solution_verification

*Differs from the paper*: instructions replace the worked examples; between principle and reasoning the problem is
set up in terms of the principle; the solution is checked by its author and, where there is one, by a verifier. The
table has no way back from the check, so a failed solution is corrected there, up to `max_repairs` times.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.answering import Answer, CheckReply
from ..core.closing import Closing, ask_for, propose, read_check, settle
from ..core.effects import Ask, Effect
from ..core.strategy import Field, Move, Outcome, Stage, Strategy, Thought, go

SYSTEM = """You solve a problem by stepping back from its details first: you find the general question behind it, \
answer that one, and reason from the answer. What was worked out so far is shown to you. You are told at the end what \
to do now. Reply with one JSON object of the form given there, and nothing else."""

ABSTRACT = """Now step back: ask the more general question whose answer would settle this one: about the law, the \
definition, or the larger fact it is a case of.
{"stepBackQuestion": "…"}"""
PRINCIPLE = """Now answer the step-back question in general: each principle or fact with the conditions under which it \
holds. Leave the details of the problem aside.
{"generalPrinciple": "…"}"""
APPLY = """Now choose what of this applies to the problem and why its conditions are met; then set the problem up with \
it: what each notion of the principle is here.
{"approach": "…", "application": "…"}"""
SOLVE = """Now solve the problem from this set-up, step by step. Give the answer alone, in the form the problem asks \
for.
{"steps": ["step with its result", …], "answer": "…"}"""
CHECK = """Now check the answer {answer!r}: against the principle and its conditions, for units and magnitude, and \
against what was asked.
{{"correct": true or false, "reason": "how you checked, or what is wrong", "answer": "corrected" or null if correct}}"""
REPAIR = """Now solve it again from the principle with this objection in mind.
{"correct": true, "reason": "where the error was and what follows instead", "answer": "the corrected answer alone"}"""


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of step-back."""

    max_repairs: Annotated[int, Meta(ge=0, le=20, description="Corrections of a solution that failed.")] = 1
    verify: Annotated[bool, Meta(description="Have the run's verifier look at the answer.")] = False


class Abstraction(Struct, frozen=True, rename="camel"):
    """The question behind the question."""

    step_back_question: Annotated[str, Meta(min_length=1, description="The more general question.")]


class Principle(Struct, frozen=True, rename="camel"):
    """What the more general question is answered with."""

    general_principle: Annotated[str, Meta(min_length=1, description="Principles, each with its conditions.")]


class Application(Struct, frozen=True):
    """How the principle is used."""

    approach: Annotated[str, Meta(min_length=1, description="What applies, and why.")]
    application: Annotated[str, Meta(min_length=1, description="The problem set up with it.")]


class Solution(Struct, frozen=True):
    """The reasoning and where it ends."""

    steps: Annotated[tuple[str, ...], Meta(min_length=1, description="Steps with their results.")]
    answer: Answer

    def __post_init__(self) -> None:
        if not str(self.answer).strip():
            raise ValueError("the answer is empty")


class State(Struct, frozen=True, omit_defaults=True):
    """What was worked out so far, as text, and y once it is there."""

    problem: str
    options: Options
    lines: tuple[str, ...] = ()
    application: str = ""
    principle: str = ""
    steps: tuple[str, ...] = ()
    closing: Closing = Closing()


def ask_abstraction(state: State) -> tuple[Effect, ...]:
    """Ask for q'."""
    return (_question(state, "abstraction", ABSTRACT),)


def keep_abstraction(state: State, answers: tuple[Any, ...]) -> Move:
    """Take q'."""
    question: str = answers[0].value.step_back_question
    state = replace(state, lines=(f"Step-back question: {question}",))
    return go(state, "principle_identification", Thought(question, data={"stepBackQuestion": question}))


def ask_principle(state: State) -> tuple[Effect, ...]:
    """Ask for P."""
    return (_question(state, "principle", PRINCIPLE),)


def keep_principle(state: State, answers: tuple[Any, ...]) -> Move:
    """Take P."""
    principle: str = answers[0].value.general_principle
    state = replace(state, lines=(*state.lines, f"Principle: {principle}"), principle=principle)
    return go(state, "approach_selection", Thought(principle, data={"generalPrinciple": principle}))


def ask_application(state: State) -> tuple[Effect, ...]:
    """Ask how P is used on x."""
    return (_question(state, "application", APPLY),)


def keep_approach(state: State, answers: tuple[Any, ...]) -> Move:
    """Take the approach, and what comes of it."""
    reply: Application = answers[0].value
    state = replace(
        state,
        lines=(*state.lines, f"Approach: {reply.approach}", f"Set-up: {reply.application}"),
        application=reply.application,
    )
    return go(state, "specific_application", reply.approach)


def keep_application(state: State, _: tuple[Any, ...]) -> Move:
    """Write down how x stands in terms of P."""
    return go(state, "step_by_step_solution", state.application)


def ask_solution(state: State) -> tuple[Effect, ...]:
    """Ask for y ~ p(y | x, q', P)."""
    return (_question(state, "solution", SOLVE),)


def keep_solution(state: State, answers: tuple[Any, ...]) -> Move:
    """Take the reasoning and y."""
    reply: Solution = answers[0].value
    answer = str(reply.answer).strip()
    lines = (*state.lines, "\n".join(f"Step {number}: {step}" for number, step in enumerate(reply.steps, 1)))
    state = replace(state, lines=lines, steps=reply.steps, closing=propose(state.closing, answer))
    return go(state, "solution_verification", Thought("\n".join(reply.steps), data={"answer": answer}))


def ask_check(state: State) -> tuple[Effect, ...]:
    """Have y looked at, by the verifier and by its author; or ask for another after an objection."""
    check = CHECK.format(answer=state.closing.answer)
    path = (state.principle, *state.steps)
    return ask_for(state, path, _question(state, "repair", REPAIR), review=_question(state, "check", check))


def outcome(state: State) -> Outcome:
    """Return the answer, the principle it stands on and how it was checked."""
    closing = state.closing
    document = {"principle": state.principle or None, "steps": list(state.steps), **closing.document}
    if closing.doubted:
        return Outcome(closing.answer, "max_repairs", closing.objections[-1], document)
    return Outcome(closing.answer, document=document)


def progress(state: State) -> dict[str, Any]:
    """Return whether principle and answer are there."""
    return {"principle": bool(state.principle), "steps": len(state.steps)}


def _question(state: State, kind: str, task: str) -> Ask:
    prompt = "\n\n".join([f"Problem: {state.problem}", *state.lines, *state.closing.objections, task])
    facts = {
        "kind": kind,
        "problem": state.problem,
        "principle": state.principle,
        "answer": state.closing.answer,
    }
    return Ask(prompt, SYSTEM, facts)


_QUESTION = {"type": "string", "description": "The more general question behind the problem."}
_PRINCIPLE = {
    "type": "string",
    "minLength": 1,
    "description": "The principle, law or fact, with its conditions.",
}
_CORRECT = {"type": "boolean", "description": "Whether the solution passed the check."}

STEP_BACK: Strategy[State, Options] = Strategy(
    name="step_back",
    title="Step-Back",
    source="arXiv:2310.06117",
    summary="Finds the principle first and reasons from it: for science, and questions dense with detail.",
    options=Options,
    state=State,
    begin=lambda problem, options: State(problem, options),
    outcome=outcome,
    progress=progress,
    suits=("science",),
    stages=(
        Stage(
            "problem_reception",
            ("abstraction",),
            description="Take in the problem.",
            guidance="Say what is asked and what is given.",
            absorb=lambda state, _: go(state, "abstraction"),
        ),
        Stage(
            "abstraction",
            ("principle_identification",),
            description="Step back to the general question.",
            guidance="Say what kind of problem this is, and ask the more general question behind it.",
            fields=(Field("stepBackQuestion", _QUESTION, required=False),),
            ask=ask_abstraction,
            absorb=keep_abstraction,
            reply=Abstraction,
            example={"stepBackQuestion": "How do pressure, volume and temperature of a gas hang together?"},
        ),
        Stage(
            "principle_identification",
            ("approach_selection",),
            description="Name the principles that answer the general question.",
            guidance="State each law, definition or fact with the conditions under which it holds. "
            "Do not touch the numbers of the problem yet.",
            fields=(Field("generalPrinciple", _PRINCIPLE),),
            ask=ask_principle,
            absorb=keep_principle,
            reply=Principle,
            example={"generalPrinciple": "Ideal gas law: PV = nRT, for a dilute gas."},
        ),
        Stage(
            "approach_selection",
            ("specific_application",),
            description="Choose how to use the principles.",
            guidance="Choose the principle that fits what is given, and say why its conditions are met.",
            ask=ask_application,
            absorb=keep_approach,
            reply=Application,
            example={
                "approach": "n is constant, so P ~ T / V.",
                "application": "T doubles, V grows eightfold.",
            },
        ),
        Stage(
            "specific_application",
            ("step_by_step_solution",),
            description="Apply the principle to this problem.",
            guidance="Say what each notion of the principle is in this case, and set the problem up with it.",
            absorb=keep_application,
        ),
        Stage(
            "step_by_step_solution",
            ("solution_verification",),
            description="Solve it step by step.",
            guidance="Work from the set-up to the answer, one step at a time. Stay for the next step; "
            "go on with an answer.",
            ask=ask_solution,
            absorb=keep_solution,
            reply=Solution,
            example={"steps": ["P changes by 2 / 8 = 1 / 4."], "answer": "It falls to a quarter."},
        ),
        Stage(
            "solution_verification",
            ("final_response",),
            description="Check the solution against the principle.",
            guidance="Check conditions, units, orders of magnitude, and that the question asked is answered. "
            "If it fails, stay and correct it, saying what was wrong.",
            fields=(Field("correct", _CORRECT, required=False),),
            ask=ask_check,
            absorb=settle,
            reply=CheckReply,
            example={"correct": True, "reason": "PV grows by 8 / 4 = 2, as T does."},
            read=read_check,
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
