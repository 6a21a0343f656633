"""Least-to-most: reduce the problem to simpler ones, then solve these in order, each with the answers before it.

Zhou et al. 2022, "Least-to-Most Prompting Enables Complex Reasoning in Large Language Models", arXiv:2205.10625.

Algorithm, for a question x:

    q_1 … q_n ~ p(q | x)                          decomposition          easiest first
    a_i ~ p(a | x, q_1 a_1 … q_{i-1} a_{i-1} q_i)  subproblem_solving     one after the other
    y ~ p(a | x, q_1 a_1 … q_n a_n, x)             final_answer

*Differs from the paper*: instructions replace the worked examples; the number of subproblems is bounded.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from reasonry.ext import Ask, Body, Conclusion, Stage, Strategy, Thought, go, replies, stay

DECOMPOSE = """Which simpler questions are to be answered before this problem can be, the easiest first? At most {most}.
{{"subproblems": ["…", …]}}"""
SOLVE = """Now answer this question alone, from the problem and the answers so far: {question}
{{"answer": "…"}}"""
FINISH = """Now answer the problem itself, from the answers so far: the answer alone, in the form the problem asks for.
{"answer": "…"}"""


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Options of least-to-most."""

    max_subproblems: Annotated[int, Meta(ge=1, le=20, description="Simpler questions at most.")] = 5


class Reduction(Struct, frozen=True):
    """The simpler questions."""

    subproblems: Annotated[tuple[str, ...], Meta(min_length=1, description="The easiest first.")]


class Solution(Struct, frozen=True):
    """The answer to one question."""

    answer: Annotated[str | int | float, Meta(description="The answer alone.")]


class State(Struct, frozen=True, omit_defaults=True):
    """The subproblems q_1 … q_n, the answers a_1 … a_i that are there, and y."""

    problem: str
    options: Options
    subproblems: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    answer: str | None = None


def decompose(s: State) -> Body:
    """q_1 … q_n ~ p(q | x)."""
    (reply,) = yield from replies(s, Reduction, question(s, DECOMPOSE.format(most=s.options.max_subproblems)))
    found = reply.subproblems[: s.options.max_subproblems]
    return go(replace(s, subproblems=found), "subproblem_solving", Thought("\n".join(found)))


def solve(s: State) -> Body:
    """a_i ~ p(a | x, q_1 a_1 … q_i)."""
    if len(s.answers) == len(s.subproblems):
        return go(s, "final_answer")
    asked = s.subproblems[len(s.answers)]
    (reply,) = yield from replies(s, Solution, question(s, SOLVE.format(question=asked)))
    answer = str(reply.answer)
    return stay(replace(s, answers=(*s.answers, answer)), Thought(f"{asked} {answer}"))


def finish(s: State) -> Body:
    """Y ~ p(a | x, q_1 a_1 … q_n a_n, x)."""
    (reply,) = yield from replies(s, Solution, question(s, FINISH))
    return go(replace(s, answer=str(reply.answer)), "final_response")


def question(s: State, task: str) -> Ask:
    """Return what is known, and what to do now."""
    solved = [f"{asked}\n{answer}" for asked, answer in zip(s.subproblems, s.answers, strict=False)]
    return Ask("\n\n".join([f"Problem: {s.problem}", *solved, task]))


def conclude(s: State) -> Conclusion:
    """Return y and the steps to it."""
    return Conclusion(s.answer, document={"subproblems": list(s.subproblems), "answers": list(s.answers)})


LEAST_TO_MOST = Strategy(
    name="least_to_most",
    title="Least-to-Most",
    source="arXiv:2205.10625",
    summary="Answers simpler questions first and builds on them: for problems harder than their examples.",
    options=Options,
    state=State,
    conclude=conclude,
    stages=(
        Stage("problem_reception", ("decomposition",), description="Take the problem in."),
        Stage(
            "decomposition",
            ("subproblem_solving",),
            description="Reduce the problem to simpler questions.",
            guidance="Ask what has to be known first; order the questions from easy to hard.",
            body=decompose,
            reply=Reduction,
            example={"subproblems": ["How long does one trip take?"]},
        ),
        Stage(
            "subproblem_solving",
            ("final_answer",),
            description="Answer the questions in order, each from the answers before it.",
            guidance="One question a thought; go on to the final answer when all are answered.",
            body=solve,
            repeats=True,
            reply=Solution,
            example={"answer": "5 minutes"},
        ),
        Stage(
            "final_answer",
            ("final_response",),
            description="Answer the problem from the answers so far.",
            body=finish,
            reply=Solution,
            example={"answer": "3"},
        ),
        Stage("final_response", description="The answer."),
    ),
)
