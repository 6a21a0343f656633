"""Chain of thought: break the problem into steps, reason through them in order, derive the answer, check it.

Wei et al. 2022, "Chain-of-Thought Prompting Elicits Reasoning in Large Language Models", arXiv:2201.11903.

Algorithm, for a question x, with a chain of intermediate steps z_1, …, z_n:

    what has to be worked out for x                       asked first                    step_decomposition
    z_i ~ p(z | x, z_1, …, z_{i-1})                       until the reasoning is done    sequential_reasoning
    y ~ p(y | x, z_1, …, z_n)                             unless a reply brought it      solution_formulation
    does y hold? if not, y' ~ p(y | x, z_1, …, z_n, why)  looked at again                answer_verification

*Differs from the paper*: instructions replace the worked examples; the problem is decomposed before it is
reasoned about; a reply holds as many steps as it likes, so a short chain is still one call (the paper's text form
ending in "The answer is …" is read too); the answer is checked by its author and, where there is one, by a verifier.
The table has no way back from the check, so reasoning about a failed one happens there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core import parse
from ..core.answering import (
    Answer,
    AnswerOptions,
    AnswerReply,
    CheckReply,
    FinalAnswer,
    read_check,
    settle_answer,
)
from ..core.effects import Ask
from ..core.fit import Unreadable
from ..core.stated import stated_answer
from ..core.strategy import Body, Field, Outcome, Stage, Strategy, Thought, go, request, stay

SYSTEM = """You solve a problem by reasoning in steps. What was worked out so far is shown to you; build on it \
and do not repeat it. Each step is one inference or one calculation, written out so that it can be checked. You \
are told at the end what to do now. Reply with one JSON object of the form given there, and nothing else."""

DECOMPOSE = """Now list what has to be worked out, in order, without solving any of it.
{"steps": ["first thing to work out", "second", …]}"""
REASON = """Now reason on: the next steps, in order, as many as you can be sure of. When nothing is left to work \
out, set done to true and give the answer alone, in the form the problem asks for.
{"steps": ["step with its result", …], "done": true or false, "answer": "only if done"}"""
FORMULATE = """Now derive the answer from the steps. Give it alone, in the form the problem asks for.
{"answer": "…"}"""
CHECK = """Now check the answer {answer!r} against the problem: put it back in, or work it out another way.
{{"correct": true or false, "reason": "how you checked, or what is wrong", "answer": "corrected" or null if correct}}"""
REPAIR = """Now go through the steps again with this objection in mind, and correct the answer.
{"correct": true, "reason": "where the error was and what follows instead", "answer": "the corrected answer alone"}"""


class Options(AnswerOptions, frozen=True):
    """Options of chain of thought."""

    max_steps: Annotated[int, Meta(ge=1, le=1000, description="Steps before the answer is derived.")] = 20


class Decomposition(Struct, frozen=True):
    """What has to be worked out."""

    steps: Annotated[tuple[str, ...], Meta(min_length=1, description="What to work out, in order.")]


class Reasoning(Struct, frozen=True):
    """The next steps of the chain."""

    steps: Annotated[tuple[str, ...], Meta(min_length=1, description="The next steps, with their results.")]
    done: Annotated[bool, Meta(description="Whether nothing is left to work out.")] = False
    answer: Annotated[Answer | None, Meta(description="With done: the answer alone.")] = None


class State(Struct, frozen=True, omit_defaults=True):
    """x, the plan, z_1 … z_n, and y once it is there."""

    problem: str
    options: Options
    plan: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    done: bool = False
    final: FinalAnswer = FinalAnswer()

    @property
    def is_reasoned(self) -> bool:
        """Whether the chain is complete, or as long as it may get."""
        return self.done or len(self.steps) >= self.options.max_steps


def decompose(s: State) -> Body:
    """What has to be worked out for x; a guide, not a commitment."""
    (reply,) = yield request(s, _question(s, "decompose", DECOMPOSE))
    plan: tuple[str, ...] = reply.value.steps
    thought = Thought(_number_lines(plan), data={"steps": list(plan)})
    return go(replace(s, plan=plan), "sequential_reasoning", thought)


def read_steps(_: State, __: Ask, texts: Sequence[str]) -> tuple[Reasoning, str] | Unreadable:
    """Read steps: structured, or prose that ends with the answer, as in the paper."""
    reading = parse.read_form(texts[-1], Reasoning)
    if isinstance(reading, Unreadable) and isinstance(answer := stated_answer(texts[-1]), str):
        lines = [line.strip() for line in texts[-1].splitlines() if line.strip()]
        return Reasoning(tuple(lines), done=True, answer=answer), "lines"
    return reading


def reason(s: State) -> Body:
    """z_i ~ p(z | x, z_1, …, z_{i-1}); stay until the chain is complete."""
    if s.is_reasoned:
        return go(s, "solution_formulation")
    (answer,) = yield request(s, _question(s, "reason", REASON))
    reply: Reasoning = answer.value
    text = "" if reply.answer is None else str(reply.answer).strip()
    final = s.final.propose(text) if text else s.final
    s = replace(s, steps=(*s.steps, *reply.steps), done=reply.done or bool(text), final=final)
    return stay(s, "\n".join(reply.steps))


def formulate(s: State) -> Body:
    """Y ~ p(y | x, z_1, …, z_n), unless a reply brought it."""
    if s.final.text is None:
        (reply,) = yield request(s, _question(s, "answer", FORMULATE))
        s = replace(s, final=s.final.propose(reply.value.text))
    answer = s.final.text or ""
    return go(s, "answer_verification", Thought(answer, data={"answer": answer}))


def check(s: State) -> Body:
    """Does y hold? If not, y' ~ p(y | x, z_1, …, z_n, why)."""

    def repair(s: State) -> Ask:
        return _question(s, "repair", REPAIR)

    def review(s: State) -> Ask:
        return _question(s, "check", CHECK.format(answer=s.final.text))

    return (yield from settle_answer(s, repair, s.steps, review=review))


def outcome(state: State) -> Outcome:
    """Return the answer and how it was checked; before there is one, the last step."""
    final = state.final
    document = {"steps": list(state.steps), **final.document}
    if final.text is None and not final.objections:
        return Outcome(state.steps[-1] if state.steps else None, document=document)
    if final.standing == "doubted":
        return Outcome(final.text, "max_repairs", final.objections[-1], document)
    if not state.done and final.standing != "proved":
        detail = f"the reasoning was cut after {len(state.steps)} steps"
        return Outcome(final.text, "max_steps", detail, document)
    return Outcome(final.text, document=document)


def _question(state: State, kind: str, task: str) -> Ask:
    plan = [f"To be worked out:\n{_number_lines(state.plan)}"] if state.plan else []
    steps = [f"Step {number}: {step}" for number, step in enumerate(state.steps, 1)]
    prompt = "\n\n".join([f"Problem: {state.problem}", *plan, *steps, *state.final.objections, task])
    facts = {
        "kind": kind,
        "problem": state.problem,
        "steps": list(state.steps),
        "answer": state.final.text,
    }
    return Ask(prompt, SYSTEM, facts)


def _number_lines(items: Sequence[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


_STEPS = {"type": "array", "items": {"type": "string"}, "description": "What has to be worked out, in order."}
_CORRECT = {"type": "boolean", "description": "Whether the answer passed the check."}

CHAIN_OF_THOUGHT: Strategy[State, Options] = Strategy(
    name="chain_of_thought",
    title="Chain of Thought",
    source="arXiv:2201.11903",
    summary="Reasons through a problem in steps and checks the answer: for arithmetic and logic.",
    aliases=("cot",),
    options=Options,
    state=State,
    outcome=outcome,
    progress=lambda state: {"steps": len(state.steps), "max_steps": state.options.max_steps},
    suits=("anything",),
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
            example={"steps": ["2 cans of 3 balls are 6 balls.", "5 + 6 = 11."], "done": True},
            read=read_steps,
        ),
        Stage(
            "solution_formulation",
            ("answer_verification",),
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
            fields=(Field("correct", _CORRECT, required=False),),
            body=check,
            reply=CheckReply,
            example={"correct": True, "reason": "11 less 2 cans of 3 are the 5 he began with."},
            read=read_check,
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, complete and in the form that was asked for.",
        ),
    ),
)
