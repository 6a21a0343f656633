"""Chain of thought: reason in steps before answering.

Wei et al. 2022, "Chain-of-Thought Prompting Elicits Reasoning in Large Language Models", arXiv:2201.11903.

Algorithm, for a question x, with a chain of intermediate steps z_1, …, z_n:

    what has to be worked out for x                       only with `decompose`          step_decomposition
    z_1, …, z_n, y ~ p(z, y | x)                          as a rule one reply            sequential_reasoning
    y ~ p(y | x, z_1, …, z_n)                             unless a reply brought it      solution_formulation
    does y hold? if not, y' ~ p(y | x, z_1, …, z_n, why)  only with `check`              answer_verification

*Differs from the paper*: an instruction replaces the worked examples; steps and answer may come as JSON as well as in
the paper's text form, "… The answer is …"; an answer that is a text or code may come alone; a reply that does not get
to the answer is gone on with; a reply with a false equation of numbers is asked for again, once. Two options go beyond
the paper: the problem is decomposed before it is reasoned about, and the answer is checked by its author; the table has
no way back from the check, so reasoning about a failed one happens there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..blocks.answers import (
    OPEN_TASK,
    REPAIRED,
    Answer,
    AnswerOptions,
    AnswerReply,
    AnswerState,
    CheckReply,
    read_calculation,
    read_check,
    without_number,
)
from ..core.bodies import Body, Conclusion, Thought, go, request, stay
from ..core.details import AnswerDetails
from ..core.effects import Ask
from ..core.problem import subject_of
from ..core.strategy import UNASKED, Field, Stage, Strategy, final_response, problem_reception
from ..reading.fit import Unreadable
from ..reading.json_in_text import WHOLE_FENCE
from ..reading.open_task import is_open_task

SYSTEM = """You solve a problem by reasoning in steps before you answer. Each step is one inference or one \
calculation, written out so that it can be checked. What was worked out so far is shown to you; build on it. You are \
told at the end what to do now."""
"""The instruction in place of the worked examples of arXiv:2201.11903, figure 1."""

DECOMPOSE = """Now list what has to be worked out, in order, without solving any of it.
{"steps": ["first thing to work out", "second", …]}"""
"""Ours; the paper has no such question."""

REASON = f"""Now solve the problem step by step: first every step with its result, then the answer alone, in the form \
the problem asks for. Reply with one JSON object
{{"steps": ["step with its result", …], "answer": "…"}}
or with the steps in plain text and a last line "Answer: …". {OPEN_TASK}"""
"""The form of the paper's worked examples: the chain, then "The answer is …" (arXiv:2201.11903, appendix G), in words
that have no language of their own.
"""

GO_ON = f"""Now reason on from the last step, without repeating any. When nothing is left to work out, give the answer \
alone, in the form the problem asks for.
{{"steps": ["step with its result", …], "answer": "…" or null}}
{OPEN_TASK}"""
"""Ours: for a chain that a reply did not bring to its end."""

FORMULATE = f"""Now derive the answer from the steps. Give it alone, in the form the problem asks for.
{{"answer": "…"}}
{OPEN_TASK}"""
"""Ours: for a chain that ended without its answer."""

CHECK = """Now check the answer {answer} against the problem: put it back in, or work it out another way.
{{"reason": "how you checked, and what came of it", "correct": true or false, "answer": "the corrected one" or null}}"""
"""Ours; the paper has no check."""

REPAIR = f"""Now go through the steps again with this objection in mind, and correct the answer.
{REPAIRED}"""
"""Ours; see `CHECK`."""


class Options(AnswerOptions, frozen=True):
    """Options of chain of thought."""

    max_steps: Annotated[int, Meta(ge=1, le=1000, description="Most steps before the answer.")] = 20
    decompose: Annotated[bool, Meta(description="List the parts of the problem first: another call.")] = False
    check: Annotated[bool, Meta(description="Let the author check the answer: one more call.")] = False


class Decomposition(Struct, frozen=True):
    """What has to be worked out."""

    steps: Annotated[tuple[str, ...], Meta(min_length=1, description="What to work out, in order.")]


class Reasoning(Struct, frozen=True, kw_only=True):
    """The next steps of the chain, and the answer where it is reached."""

    steps: Annotated[tuple[str, ...], Meta(description="The steps, with their results.")] = ()
    answer: Annotated[Answer | None, Meta(description="The answer alone; null if steps are missing.")] = None
    done: Annotated[bool, UNASKED] = False

    def __post_init__(self) -> None:
        if not self.steps and not str(self.answer or "").strip():
            raise ValueError("it has neither a step nor the answer")


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """x, the plan, z_1 … z_n, and y once it is there."""

    options: Options
    plan: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    done: bool = False


def decompose(s: State) -> Body:
    """What has to be worked out for x; a guide, not a commitment."""
    if not s.options.decompose:
        return go(s, "sequential_reasoning")
    (reply,) = yield request(s, _question(s, "decompose", DECOMPOSE))
    plan = tuple(without_number(step) for step in reply.value.steps)
    thought = Thought(_number_lines(plan), data={"steps": list(plan)})
    return go(replace(s, plan=plan), "sequential_reasoning", thought)


def read_steps(s: State, ask: Ask, texts: Sequence[str]) -> tuple[Reasoning, str] | Unreadable:
    """Read steps and answer, structured or in the paper's text form; refuse a false equation, once."""
    subject = subject_of(s)

    def work(reply: Reasoning) -> str:
        return "" if subject.is_open else "\n".join([*reply.steps, str(reply.answer or "")])

    reading = read_calculation(s.problem, ask, texts, Reasoning, work, subject)
    block = texts[-1].strip()
    is_block = block.count("\n```") == 1 and WHOLE_FENCE.fullmatch(block)
    if isinstance(reading, Unreadable) and is_open_task(s.problem) and is_block:
        # A verifier may look at it, so that prose would be no answer; code alone is nothing else.
        return Reasoning(answer=block), "block"
    return reading


def reason(s: State) -> Body:
    """z_1, …, z_n, y ~ p(z, y | x); stay until the chain is complete."""
    if s.done or len(s.steps) >= s.options.max_steps:
        return go(s, "solution_formulation")
    (answer,) = yield request(s, _question(s, "reason", GO_ON if s.steps else REASON))
    reply: Reasoning = answer.value
    text = "" if reply.answer is None else str(reply.answer).strip()
    final = s.final.propose(text) if text else s.final
    steps = tuple(without_number(step) for step in reply.steps)
    s = replace(s, steps=(*s.steps, *steps), done=reply.done or bool(text), final=final)
    return stay(s, *(["\n".join(steps)] if steps else []))


def formulate(s: State) -> Body:
    """Y ~ p(y | x, z_1, …, z_n), unless a reply brought it; where it cannot be read, the last step is all there is."""
    if s.final.text is None:
        question, best = _question(s, "answer", FORMULATE), s.steps[-1] if s.steps else None
        s, thoughts = yield from s.ask_for_answer(question, best)
        return go(s, "answer_verification", *thoughts)
    return go(s, "answer_verification", Thought(s.final.text, data={"answer": s.final.text}))


def check(s: State) -> Body:
    """Does y hold? If not, y' ~ p(y | x, z_1, …, z_n, why)."""
    return (yield from s.settle_checked_answer(_question, s.steps, check=CHECK, repair=REPAIR))


class ChainOfThoughtDetails(AnswerDetails):
    """What the details of a result have."""

    steps: Annotated[list[str], Meta(description="The reasoning, step by step.")]


def conclude(state: State) -> Conclusion:
    """Return the answer and how it was checked; before there is one, the last step."""
    document = {"steps": list(state.steps), **state.final.document}
    cut = None if state.done else ("max_steps", f"the reasoning was cut after {len(state.steps)} steps")
    return state.conclude(document, so_far=state.steps[-1] if state.steps else None, cut=cut)


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
            reply=Reasoning,
            example={"steps": ["2 cans of 3 balls are 6 balls.", "5 + 6 = 11."], "answer": "11"},
            read=read_steps,
        ),
        Stage(
            "solution_formulation",
            ("answer_verification",),
            tested_by="answer_verification",
            description="Derive the answer from the steps.",
            guidance="Bring the results together into one answer in the form that was asked for.",
            body=formulate,
            reply=AnswerReply,
            example={"answer": "11"},
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
