"""Chain of thought: reason in steps before answering.

Wei et al. 2022, "Chain-of-Thought Prompting Elicits Reasoning in Large Language Models", arXiv:2201.11903.

Algorithm, for a question x, with a chain of intermediate steps z_1, …, z_n:

    what has to be worked out for x                       only with `decompose`          step_decomposition
    z_1, …, z_n, y ~ p(z, y | x)                          one reply with y in a mark             sequential_reasoning
    y                                                     as marked in the reply                 solution_formulation
    does y hold? if not, y' ~ p(y | x, z_1, …, z_n, why)  only with `check`                      answer_verification

*Differs from the paper*: An instruction replaces the worked examples. A mark around the answer replaces "The answer is
…". If a reply has a false equation between numbers, the model is asked once more. The option `style` selects another
instruction: `plan` comes from plan-and-solve prompting (Wang et al. 2023, arXiv:2305.04091), and `draft` from chain of
draft (Xu et al. 2025, arXiv:2502.18600). Two options go beyond the paper: `decompose` lists the parts of the problem
first, and `check` lets the model check its answer. The stage that checks an answer also corrects a wrong answer, since
the table has no edge back to an earlier stage.
"""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

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
    without_number,
)
from ..core.bodies import Body, Conclusion, Move, Thought, go, replies, request
from ..core.effects import Ask
from ..core.strategy import AnswerDetails, Field, Stage, Strategy, final_response, problem_reception

SYSTEM = "You solve problems by reasoning."

DECOMPOSE = """Now list what has to be worked out, in order, without solving any of it. Reply with one JSON object:
{"steps": ["…", …]}"""
"""Our prompt. The paper has no such question."""

REASON: Final = {
    "steps": "First solve the problem step by step, and write every step with its result.",
    "plan": "First understand the problem, extract its variables with their numbers, and make a plan. Then carry the "
    "plan out step by step, with every intermediate result.",
    "draft": "First think step by step, but keep only a draft of each step, five words at most.",
}
"""The instruction for each `style`: `steps` replaces the worked examples of arXiv:2201.11903, figure 1; `plan` follows
arXiv:2305.04091, table 6; `draft` follows arXiv:2502.18600, section 3."""

CHECK = """Now check the answer {answer} against the problem: put it back in, or work it out another way. If it \
is wrong, give the corrected one, else null. Reply with one JSON object:
{{"reason": "…", "correct": true or false, "answer": "…" or null}}"""
"""Our prompt. The paper has no check."""

REPAIR = "Now go through the steps again with this objection in mind: first where the error was, then the correction."
"""Our prompt. After the check or the verifier has rejected an answer, it asks for another answer."""


class Options(AnswerOptions, frozen=True):
    """Options of chain of thought."""

    style: Annotated[
        Literal["steps", "plan", "draft"],
        Meta(description="Reason in whole steps, by a plan first, or in drafts of a few words."),
    ] = "steps"
    decompose: Annotated[bool, Meta(description="List the parts of the problem first: another call.")] = False
    check: Annotated[bool, Meta(description="Let the author check the answer: one more call.")] = False


class Decomposition(Struct, frozen=True):
    """The parts of the problem."""

    steps: Annotated[tuple[str, ...], Meta(min_length=1, description="What to work out, in order.")]


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the problem x, the plan, the steps z_1 … z_n, and finally the answer y."""

    options: Options
    plan: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


def decompose(s: State) -> Body:
    """If the option `decompose` is set, ask for a list of the parts of problem x."""
    if not s.options.decompose:
        return go(s, "sequential_reasoning")
    (reply,) = yield request(s, _question(s, "decompose", DECOMPOSE))
    plan = tuple(without_number(step) for step in reply.value.steps)
    thought = Thought(_number_lines(plan), data={"steps": list(plan)})
    return go(replace(s, plan=plan), "sequential_reasoning", thought)


def reason(s: State) -> Body:
    """Ask for the steps z and the answer y to question x in one reply: z_1, …, z_n, y ~ p(z, y | x)."""
    question = replace(_question(s, "reason", REASON[s.options.style]), mark=MARKED)
    (reply,) = yield from replies(s, ReasonedAnswer, question)
    chain = reply.reasoning.strip()
    s = replace(s, steps=reply.steps, final=s.final.propose(reply.text))
    return go(s, "solution_formulation", *([chain] if chain else []))


def formulate(s: State) -> Move:
    """Record the marked answer y as a thought."""
    return go(s, "answer_verification", Thought(s.final.text or "", data={"answer": s.final.text}))


def check(s: State) -> Body:
    """Settle the answer y. If a check finds y wrong, ask for another answer: y' ~ p(y | x, z_1, …, z_n, why)."""
    return (yield from s.settle_checked_answer(_question, s.steps, check=CHECK, repair=REPAIR))


def close(s: State) -> Move | None:
    """End with the answer, even if the model doubts it. If there is no answer yet, ask for one."""
    if s.final.can_be_given:
        return s.close_unchecked()
    return None if s.final.objections else go(s, "sequential_reasoning")


class ChainOfThoughtDetails(AnswerDetails):
    """The details of a result."""

    steps: Annotated[list[str], Meta(description="The reasoning, step by step.")]


def conclude(state: State) -> Conclusion:
    """Return the answer and how it was checked."""
    return state.conclude({"steps": list(state.steps), **state.final.document})


def _question(state: State, kind: str, task: str) -> Ask:
    plan = [f"To be worked out:\n{_number_lines(state.plan)}"] if state.plan else []
    steps = [f"Step {number}: {step}" for number, step in enumerate(state.steps, 1)]
    return state.build_question(SYSTEM, kind, [*plan, *steps], task)


def _number_lines(items: Sequence[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


CHAIN_OF_THOUGHT: Strategy[State, Options] = Strategy(
    name="chain_of_thought",
    title="Chain of Thought",
    source="arXiv:2201.11903",
    summary="Reasons through a problem in steps before it answers: for arithmetic and logic.",
    aliases=("cot",),
    options=Options,
    state=State,
    conclude=conclude,
    close=close,
    details=ChainOfThoughtDetails,
    suits=("anything",),
    stages=(
        problem_reception(
            ("step_decomposition",),
            "Say what is asked, what is given and in which form the answer is wanted.",
        ),
        Stage(
            "step_decomposition",
            ("sequential_reasoning",),
            description="Break the problem into steps.",
            guidance="List what has to be worked out, so ordered that each step needs only earlier ones. "
            "Solve none of them yet.",
            fields=(Field.optional("steps", "texts", "What has to be worked out, in order."),),
            body=decompose,
            reply=Decomposition,
            example={"steps": ["How many balls the cans hold.", "How many balls there are in all."]},
        ),
        Stage(
            "sequential_reasoning",
            ("solution_formulation",),
            description="Reason through the steps in order.",
            guidance="One step at a time, on the results of those before. Stay for the next step; "
            "go on when nothing is left to work out.",
            body=reason,
            reply=ReasonedAnswer,
            example={"reasoning": "2 cans of 3 balls are 6 balls. 5 + 6 = 11.", "answer": "11"},
            read=read_reasoning,
        ),
        Stage(
            "solution_formulation",
            ("answer_verification",),
            tested_by="answer_verification",
            description="Derive the answer from the steps.",
            guidance="Bring the results together into one answer in the form that was asked for.",
            body=formulate,
        ),
        Stage(
            "answer_verification",
            ("final_response",),
            description="Check the answer.",
            guidance="Put the answer back into the problem, or work it out another way. If it fails, stay "
            "and correct it, saying what was wrong; go on when it holds.",
            fields=(Field.optional("correct", "boolean", "Whether the answer passed the check."),),
            body=check,
            reply=CheckReply,
            example={"reason": "11 less 2 cans of 3 are the 5 he began with.", "correct": True},
            read=read_check,
        ),
        final_response(),
    ),
)
