"""Program of thought: write a program that computes the answer, run it in the sandbox, and repair it until it runs.

Chen et al. 2022, "Program of Thoughts Prompting: Disentangling Computation from Reasoning for Numerical Reasoning
Tasks", arXiv:2211.12588; Gao et al. 2022, "PAL: Program-aided Language Models", arXiv:2211.10435.

Algorithm, for a problem x and k programs:

    c_1, …, c_k ~ π(c | x), in parallel                           program_writing
    o_i = run(c_i), in the sandbox                                execution
        an error, a wrong example or the verifier makes c_i fail
    c'_i ~ π(c | x, c_i, what failed), if all c_i failed          program_repair
    argmax_o Σ_i 1(o_i = o)                                       answer_selection

*Differs from the papers*: Instructions replace the examples. A failed program goes back to the model with the
error, for at most `rounds` rounds. A caller may give examples that a program has to reproduce. Several programs vote.
"""

from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..blocks.answers import MARKED, ReasonedAnswer
from ..blocks.drafts import Draft, DraftState, answer_selection, list_drafts, read_draft
from ..blocks.programs import (
    SANDBOX_TOOL,
    WHERE_IT_RUNS,
    ProgramOutput,
    ProgramReply,
    read_program,
    run_programs,
)
from ..blocks.toolcard import ToolCard
from ..core.bodies import Body, Conclusion, Move, go, replies, request
from ..core.effects import Ask
from ..core.events import Reply
from ..core.strategy import DraftsDetails, Field, Stage, Strategy, final_response, problem_reception

WRITE = f"""Write a Python program that works the answer out. Put the data of the problem into variables with telling \
names, compute every step, and print the answer alone, in the form the problem asks for. The program takes no input. \
Leave to it whatever can be computed: never print a result that you found in your head. Where it runs: {WHERE_IT_RUNS}
Reply with the program alone, in one ```python block."""
"""Replaces the examples of arXiv:2211.12588, appendix, whose point is that variables have meaningful names."""

EXAMPLES = """The program has a function solve(given) that returns the output for an input, and calls it for the \
answer. It must reproduce these examples:
{examples}"""

REPAIR = f"""Now write the whole program again, with this corrected. Where it runs: {WHERE_IT_RUNS}
Reply with the program alone, in one ```python block."""

BY_HAND = "First work the answer out without a program, step by step."
"""Our prompt. It is for a run that has no call left for another program."""

SHOWN_EXAMPLES = 20


class Example(Struct, frozen=True):
    """An input, and its expected output."""

    input: Any
    output: Any


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of program of thought."""

    programs: Annotated[int, Meta(ge=1, le=16, description="Programs whose outputs vote.")] = 1
    rounds: Annotated[int, Meta(ge=1, le=20, description="Attempts at a program that runs.")] = 4
    examples: Annotated[tuple[Example, ...], Meta(description="Inputs and outputs to reproduce.")] = ()
    verify: Annotated[bool, Meta(description="Let the run's verifier check each output.")] = False
    tools: Annotated[tuple[ToolCard, ...], Meta(description="Tools that the strategy may call.")] = ()


class State(DraftState, frozen=True, omit_defaults=True, kw_only=True):
    """The state: a draft for each program. The draft's step is the program, and the draft's answer is the output."""

    options: Options
    round: int = 0
    written: int = 0
    """How many programs the last round has."""
    closes: bool = False
    """Whether the run is closing, so that no other program can be written."""

    @property
    def last(self) -> tuple[Draft, ...]:
        """The programs of the last round."""
        return self.drafts[len(self.drafts) - self.written :]


def write(s: State) -> Body:
    """Ask for programs c_i ~ π(c | x), or for repairs of failed programs: c'_i ~ π(c | x, c_i, what failed)."""
    failed = [draft for draft in s.last if draft.steps] or [None] * s.options.programs
    numbers = range(len(s.drafts) + 1, len(s.drafts) + len(failed) + 1)
    asks = [_question(s, number, draft) for number, draft in zip(numbers, failed, strict=True)]
    written = yield request(s, *asks, give_failures=True)
    new = [
        Draft(number, status="lost", steps=(reply.value.program,))
        if isinstance(reply, Reply)
        else read_draft(number, reply)
        for number, reply in zip(numbers, written, strict=True)
    ]
    return go(replace(s, round=s.round + 1, written=len(new), drafts=(*s.drafts, *new)), "execution")


def _question(s: State, number: int, failed: Draft | None) -> Ask:
    shown = [f"solve({each.input!r}) == {each.output!r}" for each in s.options.examples[:SHOWN_EXAMPLES]]
    examples = [EXAMPLES.format(examples="\n".join(shown))] if shown else []
    before = [*failed.steps, f"What failed:\n{failed.why}"] if failed else []
    facts = {"kind": "program", "problem": s.problem, "failed": failed.why if failed else ""}
    prompt = "\n\n".join([f"Problem: {s.problem}", *examples, *before])
    task = REPAIR if failed else WRITE
    return Ask(prompt, task=task, facts=facts, sample=number, about=f"draft-{number}")


def execute(s: State) -> Body:
    """Run each new program c_i, and get its output: o_i = run(c_i). Then check the outputs."""
    unrun = {draft.id: draft for draft in s.drafts if draft.steps and not (draft.answer or draft.why)}
    inputs = [each.input for each in s.options.examples]
    tests = [f"[solve(given) for given in {inputs!r}]"] if inputs else []
    programs = {name: "\n\n".join([*draft.steps, *tests]) for name, draft in unrun.items()}
    outputs = yield from run_programs(s, programs)
    run = {name: _judge(s, unrun[name], output) for name, output in zip(unrun, outputs, strict=True)}
    s = replace(s, drafts=tuple(run.get(draft.id, draft) for draft in s.drafts))
    s = yield from s.verify()
    can_repair = s.round < s.options.rounds and any(draft.steps for draft in s.last)
    to = "program_repair" if s.best is None and can_repair else "answer_selection"
    return go(s, to, list_drafts(s.last))


def _judge(s: State, draft: Draft, output: ProgramOutput) -> Draft:
    if output.fault:
        return replace(draft, why=output.fault, code="program_failed")
    results = output.value if isinstance(output.value, list) else []
    wrong = [
        f"solve({each.input!r}) returned {result!r}, not {each.output!r}"
        for each, result in zip(s.options.examples, results, strict=False)
        if each.output != result
    ]
    if s.options.examples and not output.printed:
        wrong.append("it prints no answer")
    why = f"it fails examples ({len(wrong)} of {len(s.options.examples)}); {wrong[0]}" if wrong else ""
    return replace(draft, answer=output.text, status="refuted" if wrong else "open", why=why)


def select(s: State) -> Body:
    """Choose the most frequent output o: argmax_o Σ_i 1(o_i = o)."""
    if s.closes and s.best is None:
        number, failed = len(s.drafts) + 1, next(draft for draft in s.last if draft.steps)
        question = replace(_question(s, number, failed), mark=MARKED, task=BY_HAND)
        question = replace(question, wants_value=s.options.verify, facts={**question.facts, "kind": "answer"})
        (reply,) = yield from replies(s, ReasonedAnswer, question)
        s = replace(s, drafts=(*s.drafts, Draft(number, reply.text)))
    return (yield from s.choose())


def close(s: State) -> Move | None:
    """Choose the best output so far. If there is none even after a repair, ask the model for the answer."""
    can_ask = s.round > 1 and any(draft.steps for draft in s.last)
    return go(replace(s, closes=True), "answer_selection") if s.best or can_ask else None


class ProgramOfThoughtDetails(DraftsDetails, total=False):
    """The details of a result."""

    rounds: Annotated[int, Meta(description="Rounds of programs.")]
    program: Annotated[str, Meta(description="The program of the answer.")]


def conclude(state: State) -> Conclusion:
    """Return the most frequent output, and the program that printed it."""
    best, details = state.best, dict[str, Any](rounds=state.round)
    if best is not None and best.steps:
        details["program"] = best.steps[0]
    conclusion = state.conclude(details, authors="programs" if state.options.programs > 1 else "")
    if not best or not best.steps:
        return conclusion.because("", "execution")
    votes = state.votes_for(best) or 1
    return conclusion.because(f"{votes} of {len(state.drafts)} programs printed the answer", "execution")


_WRITING: dict[str, Any] = {
    "tested_by": "execution",
    "body": write,
    "example": {"program": "eggs = 16 - 3 - 4\nprice = 2\nprint(eggs * price)"},
    "read": read_program,
    "value": ProgramReply,
}
"""The arguments of `Stage` that are the same for both stages that write programs."""

PROGRAM_OF_THOUGHT: Strategy[State, Options] = Strategy(
    name="program_of_thought",
    title="Program of Thought",
    source="arXiv:2211.12588",
    summary="Writes and runs a program that computes the answer: for arithmetic, counting, dates and tables.",
    aliases=("pot", "pal"),
    options=Options,
    state=State,
    conclude=conclude,
    close=close,
    details=ProgramOfThoughtDetails,
    version=3,
    resources=(SANDBOX_TOOL,),
    suits=("number",),
    stages=(
        problem_reception(
            ("program_writing",), "Say which quantities are known, which is asked for, and in which form."
        ),
        Stage(
            "program_writing",
            ("execution",),
            description="Write a program that works the answer out.",
            guidance="Name variables after the quantities; compute every step; print the answer alone.",
            fields=(Field.optional("program", "string", "The whole program."),),
            **_WRITING,
        ),
        Stage(
            "execution",
            ("program_repair", "answer_selection"),
            description="Run it.",
            guidance="Run the program in a sandbox and write down its output, or the error as it came.",
            fields=(Field.optional("output", "string", "What the program printed, or its error."),),
            body=execute,
        ),
        Stage(
            "program_repair",
            ("execution",),
            description="Correct the program.",
            guidance="Find the cause of the failure and write the whole program again.",
            **_WRITING,
        ),
        answer_selection(
            "Take the output that most programs have.",
            "Compare the outputs of all programs that ran; take the most frequent.",
            body=select,
            reply=ReasonedAnswer,
            example={"reasoning": "16 - 3 - 4 = 9, times 2.", "answer": "18"},
        ),
        final_response("State the output alone, in the form that was asked for."),
    ),
)
