"""Recursive language model: programs hold a long input in a variable and ask a model about pieces of the input.

Zhang et al. 2025, "Recursive Language Models", arXiv:2512.24601. A sub-question writes no programs (depth 1), since
deeper recursion was slower and no better (arXiv:2603.02615).

Algorithm, for a question q about an input C that no call reads whole:

    c_t ~ π(c | q, |C|, c_1, o_1, …, c_{t-1}, o_{t-1})            exploration
    o_t = run(c_t, C), in the sandbox                             execution
        c_t asks sub-questions: a_j ~ π(a | q_j, piece_j)         sub_questions
        stop at final(y), or if no program is left or readable
    y, verified                                                   answer_formulation

*Differs from the paper*: A program does not wait in the sandbox for answers. It ends where it needs an answer, and then
runs again with the answers so far. Only data exists between two runs of a program, so a resumed run repeats no paid
call. The counts of programs and questions are limited, and the model is told the limits.
"""

import ast
from collections.abc import Sequence
from typing import Annotated, Any, Final

from msgspec import Meta
from msgspec.structs import replace

from ..blocks.answers import MARKED, AnswerOptions, AnswerState, ReasonedAnswer, answer_text
from ..blocks.programs import SANDBOX_TOOL, WHERE_IT_RUNS, ProgramReply, read_program, run_programs
from ..blocks.toolcard import ToolCard
from ..core.bodies import Body, Conclusion, EffectFailed, Thought, go, request
from ..core.effects import Ask
from ..core.events import UNREADABLE, Reply
from ..core.problem import without_quoted
from ..core.readings import AROUND, Unreadable
from ..core.strategy import AnswerDetails, Field, Stage, Strategy, final_response, problem_reception
from ..reading.mark import Marked, find_marked
from ..text import shorten

SYSTEM = "You answer questions about texts that are too long to read at once."

EXPLORE = f"""The input is the text `context` in Python programs that you write; you are shown what each prints. They \
can call
ask(question, piece): a reader's answer about a piece of `context` of up to {{piece}} characters, as text
ask_all(question, pieces): the same for a list of pieces, side by side; returns the list of answers
final(answer): ends the work with the answer, in the form the problem asks for
Look at a part of `context` first; search and count with code, and ask where a text has to be understood. Each program \
starts anew: no variable of an earlier one is left. Where it runs: {WHERE_IT_RUNS}
`context` has {{characters}} characters. Left: {{programs}} programs, {{questions}} questions.
Now write the next program, alone, in one ```python block."""
"""The interface of arXiv:2512.24601, appendix, with a limit on each call."""

OR_ANSWER = f" If what was printed settles the answer, write that instead, {AROUND}."

FORMULATE = "Now answer the problem from what the programs printed."

READ = (
    "Now answer the question about the text, briefly and from the text alone; say so where it does not say."
)

LOST = "(no answer: {})"
PIECE_CHARS = 20_000
SHOWN_CHARS = 4_000
"""How many characters of the problem and of each output are shown. A longer problem is shown without its middle."""
SHOWN_AGAIN_CHARS = 1_000
"""How many characters of the problem are shown after the first program."""
MAX_CONTEXT_CHARS = 500_000

_SIGNAL: Final = "<<signal>>"
"""The prefix of an output line in which a program asks a question or gives the answer."""
_PROLOGUE: Final = """context = {context!r}
_known, _asked = {known!r}, [0]

def _locate(piece):
    text = str(piece)
    start = context.find(text)
    return [start, len(text)] if text and start >= 0 else text[:{max_chars}]

def ask_all(question, pieces):
    pieces = list(pieces)
    first = _asked[0]
    _asked[0] = first + len(pieces)
    if _asked[0] <= len(_known):
        return _known[first:_asked[0]]
    missing = [_locate(piece) for piece in pieces[max(0, len(_known) - first):]]
    _signal("ask", str(question), missing)
    raise RuntimeError("it waits for answers")

def ask(question, piece=""):
    return ask_all(question, [piece])[0]

def final(answer):
    _signal("final", str(answer))

def _signal(*data):
    print("\\n{signal}" + repr(data))

"""


class Options(AnswerOptions, frozen=True):
    """Options of a recursive language model."""

    context: Annotated[
        str, Meta(max_length=MAX_CONTEXT_CHARS, description="The long input; empty: the problem itself.")
    ] = ""
    programs: Annotated[int, Meta(ge=1, le=20, description="Most programs.")] = 6
    questions: Annotated[int, Meta(ge=0, le=500, description="Most questions of all programs.")] = 40
    tools: Annotated[tuple[ToolCard, ...], Meta(description="Tools that the strategy may call.")] = ()


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state: the programs with their outputs, the questions of the last program, and the answer."""

    options: Options
    programs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    """The answers so far to the questions of the last program, in order."""
    waiting: tuple[tuple[str, str], ...] = ()
    """The open questions of the last program, each with its piece of the input."""
    asked: int = 0
    """How many questions all programs have asked."""

    @property
    def context(self) -> str:
        """The long input: the option `context`, or the problem if the option is empty."""
        return self.options.context or without_quoted(self.problem)


def explore(s: State) -> Body:
    """Ask for the next program, to answer question q on input C: c_t ~ π(c | q, |C|, c_1, o_1, …, c_{t-1}, o_{t-1})."""
    programs, questions = s.options.programs - len(s.programs), s.options.questions - s.asked
    task = EXPLORE.format(
        piece=f"{PIECE_CHARS:,}", characters=f"{len(s.context):,}", programs=programs, questions=questions
    )
    try:
        (reply,) = yield request(s, _question(s, task + (OR_ANSWER if s.programs else "")))
    except EffectFailed as lost:
        if lost.failure.code != UNREADABLE or not s.outputs:
            raise
        return go(s, "answer_formulation", Thought(f"No further program: {lost.failure.message}"))
    program = reply.value.program
    return go(replace(s, programs=(*s.programs, program), known=()), "execution", Thought(program))


def _question(s: State, task: str, mark: str = "") -> Ask:
    problem, limit = s.problem, SHOWN_AGAIN_CHARS if s.outputs else SHOWN_CHARS
    if len(problem) > limit:
        half = limit // 2
        hidden = f"[… {len(problem) - 2 * half:,} characters, all in `context` …]"
        problem = f"{problem[:half]}\n{hidden}\n{problem[-half:]}"
    rounds = zip(s.programs, s.outputs, strict=False)
    shown = [f"Program:\n{program}\n\nIt printed:\n{output}" for program, output in rounds]
    facts = {"kind": "recursive", "problem": s.problem, "programs": len(s.programs)}
    prompt = "\n\n".join([f"Problem: {problem}", *shown, *s.final.objections])
    return Ask(prompt, SYSTEM, mark, task, wants_value=s.options.verify, facts=facts)


def read_step(s: State, ask: Ask, texts: Sequence[str]) -> tuple[ProgramReply, str] | Unreadable:
    """Read a program. After the first program, a marked answer also counts, as the program `final(answer)`."""
    marked = find_marked(texts[-1])
    if isinstance(marked, Marked) and s.programs:
        return ProgramReply(f"final({marked.answer!r})"), marked.mode
    return read_program(s, ask, texts)


def execute(s: State) -> Body:
    """Run the last program c_t on the input C, and get its output: o_t = run(c_t, C)."""
    prologue = _PROLOGUE.format(context=s.context, known=list(s.known), max_chars=PIECE_CHARS, signal=_SIGNAL)
    (output,) = yield from run_programs(s, {f"program-{len(s.programs)}": prologue + s.programs[-1]})
    printed, signal = _last_signal(output.printed)
    match signal:
        case ("ask", str(question), [*pieces]):
            waiting = tuple((question, _piece(s.context, place)) for place in pieces)
            return go(replace(s, waiting=waiting), "sub_questions")
        case ("final", str(answer)) if answer.strip():
            s, shown = replace(s, final=s.final.propose(answer_text(answer))), printed
        case _ if output.fault:
            shown = f"{output.printed}\n{output.fault}"
        case _:
            shown = output.printed.strip() or output.text
    shown = shorten(shown.strip(), SHOWN_CHARS)
    s = replace(s, outputs=(*s.outputs, shown))
    is_over = s.final.text is not None or len(s.programs) >= s.options.programs
    return go(s, "answer_formulation" if is_over else "exploration", Thought(shown or str(s.final.text)))


def _last_signal(printed: str) -> tuple[str, Any]:
    """Split a program's output into its text and its last signal, which is a question or the final answer."""
    before, _, last = printed.rpartition(f"\n{_SIGNAL}")
    try:
        return before, ast.literal_eval(last.partition("\n")[0])
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return printed, None


def _piece(context: str, place: Any) -> str:
    """Return the text that a question is about. `place` is a range of `context`, or the text itself."""
    match place:
        case [int(start), int(length)]:
            return shorten(context[start : start + length], PIECE_CHARS)
        case _:
            return shorten(str(place), PIECE_CHARS)


def answer_sub_questions(s: State) -> Body:
    """Ask each sub-question q_j about its piece of the input, in parallel: a_j ~ π(a | q_j, piece_j)."""
    allowed = s.waiting[: s.options.questions - s.asked]
    asks: list[Ask] = []
    for number, (question, piece) in enumerate(allowed, s.asked + 1):
        prompt = f"Text:\n{piece}\n\nQuestion: {question}" if piece else f"Question: {question}"
        facts = {"kind": "sub_question", "question": question, "text": piece}
        asks.append(Ask(prompt, task=READ, facts=facts, about=f"question-{number}"))
    replies = yield request(s, *asks, give_failures=True)
    answers = [str(each.value) if isinstance(each, Reply) else LOST.format(each.message) for each in replies]
    missing = [LOST.format("the questions are used up")] * (len(s.waiting) - len(allowed))
    s = replace(s, known=(*s.known, *answers, *missing), asked=s.asked + len(allowed), waiting=())
    lines = [f"{question} → {text}" for (question, _), text in zip(allowed, answers, strict=True)]
    return go(s, "execution", *([Thought("\n".join(lines))] if lines else []))


def formulate(s: State) -> Body:
    """Settle and verify the answer y. If no program gave an answer, ask the model."""
    best = next((output.rpartition("\n")[2] for output in reversed(s.outputs) if output), None)
    return (yield from s.settle_answer(_question(s, FORMULATE, MARKED), s.outputs, best=best))


class RecursiveDetails(AnswerDetails):
    """The details of a result."""

    programs: Annotated[list[dict[str, Any]], Meta(description="Each `program` with its `output`.")]
    questions_asked: Annotated[int, Meta(description="Questions that programs asked.")]


def conclude(state: State) -> Conclusion:
    """Return the answer, the programs with their outputs, and how many questions the programs asked."""
    rounds = zip(state.programs, state.outputs, strict=False)
    programs = [{"program": program, "output": output} for program, output in rounds]
    details = {"programs": programs, "questions_asked": state.asked} | state.final.document
    return state.conclude(details).because("", "exploration", "sub_questions")


RECURSIVE: Strategy[State, Options] = Strategy(
    name="recursive",
    title="Recursive Language Model",
    source="arXiv:2512.24601",
    summary="Writes programs that search a long input and ask about its pieces: for inputs too long for one prompt.",
    aliases=("rlm", "recursive_language_model"),
    options=Options,
    state=State,
    conclude=conclude,
    close=lambda s: go(s, "answer_formulation"),
    version=2,
    details=RecursiveDetails,
    resources=(SANDBOX_TOOL,),
    calls=7,
    stages=(
        problem_reception(
            ("exploration",),
            "Say what is asked, and how long the input is; do not read it whole.",
            description="Take in the question.",
        ),
        Stage(
            "exploration",
            ("execution", "answer_formulation"),
            description="Write a program that looks at the input.",
            guidance="Look at its form first; then search, count and split with code, and ask about pieces.",
            fields=(Field.optional("program", "string", "The program."),),
            body=explore,
            example={"program": "final(ask('Who signed it?', context[-2000:]))"},
            read=read_step,
            value=ProgramReply,
        ),
        Stage(
            "execution",
            ("exploration", "sub_questions", "answer_formulation"),
            description="Run it.",
            guidance="Run the program in a sandbox and write down what it printed.",
            fields=(Field.optional("output", "string", "What it printed."),),
            body=execute,
        ),
        Stage(
            "sub_questions",
            ("execution",),
            description="Answer its questions.",
            guidance="Answer each question from its piece of the input alone.",
            body=answer_sub_questions,
            read=lambda _state, _ask, texts: (texts[-1], "text"),
        ),
        Stage(
            "answer_formulation",
            ("final_response",),
            repeats=True,
            description="Settle the answer.",
            guidance="Answer from what the programs found; have it checked.",
            body=formulate,
            reply=ReasonedAnswer,
            example={"reasoning": "The last page is signed.", "answer": "Ada Lovelace"},
        ),
        final_response("State the answer alone, in the form that was asked for."),
    ),
)
