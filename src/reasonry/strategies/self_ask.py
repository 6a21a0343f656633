"""Self-ask: ask and answer the sub-questions of a question one by one, before the question itself.

Press et al. 2022, "Measuring and Narrowing the Compositionality Gap in Language Models", arXiv:2210.03350.

Algorithm, for a question x, with sub-questions q_i and their answers a_i:

    are follow-up questions needed? q_1                     asked                    problem_decomposition
    q_i                                                     recorded unchanged       sub_question_formulation
    a_i ~ p(a | x, q_1, a_1, …, q_i), or tool(q_i)          asked, or looked up      sub_question_answering
    what follows for x from a_1 … a_i; q_{i+1}, or y        asked                    answer_integration
    is there a q_{i+1}, and is i < limit?                                            completion_check
    y ~ p(y | x, q_1, a_1, …, q_n, a_n)                     asked at the limit only  solution_formulation

As in the paper, the reply that needs no other question gives the final answer.

*Differs from the paper*: Instructions replace the worked examples. Each turn is a separate reply, so that a tool can
answer. A reply is free text that ends with the next question as data, or with the marked answer. If a tool fails, the
answer is a note with the reason. If no follow-up question is needed, the later stages make no call. After a refutation,
the model is asked for another answer, up to `max_repairs` times.
"""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..blocks.answers import MARKED, Answer, AnswerOptions, AnswerState, ReasonedAnswer, answer_text
from ..blocks.evidence import evidence_text
from ..blocks.toolcard import ToolCard, arguments_for, card_named, no_such_tool
from ..core.bodies import Body, Conclusion, Move, Thought, go, request
from ..core.effects import Ask, CallTool
from ..core.events import Failed
from ..core.readings import AROUND, Unreadable
from ..core.strategy import AnswerDetails, Field, Stage, Strategy, final_response, problem_reception
from ..reading.form import read_form
from ..text import shorten

SYSTEM = "You answer questions by way of simpler ones."

ASKS_ON = f"""{MARKED} If one fact is missing for it, write {{"subQuestion": "…"}} instead: a question that can be \
understood by itself."""
"""Replaces "So the final answer is: …" with a mark, and "Follow up: …" with data (arXiv:2210.03350, figure 3)."""

DECOMPOSE = """Are follow-up questions needed here? First say step by step what the answer rests on. Then give it, or \
ask for the first fact that is missing."""

SUB_ANSWER = f"Write the answer to the follow-up question alone, in a few words, {AROUND}."
ANSWER_ONE = "First say what you know about the follow-up question. If you do not know its answer, say so."
"""Asks for the paper's "Intermediate answer: …"."""

INTEGRATE = """First say step by step what follows for the question. Then give the answer, or ask for the next fact \
that is missing."""

SOLVE = "First say what follows from the intermediate answers for the question."
"""Asks for the paper's "So the final answer is: …" once the questions are used up."""

FOLLOW_UP = "Follow up: {question}"
INTERMEDIATE = "Intermediate answer: {answer}"
UNANSWERED = "(none: {why})"


class Options(AnswerOptions, frozen=True):
    """Options of self-ask."""

    tools: Annotated[tuple[ToolCard, ...], Meta(description="Tools that the strategy may call.")] = ()
    tool: Annotated[str | None, Meta(description="Tool that answers; not needed if there is one.")] = None
    max_questions: Annotated[int, Meta(ge=1, le=200, description="Most sub-questions.")] = 8
    max_answer_chars: Annotated[int, Meta(ge=100, description="Characters shown of a result.")] = 2_000

    def __post_init__(self) -> None:
        if self.tool is None and len(self.tools) > 1:
            names = ", ".join(card.name for card in self.tools)
            raise ValueError(f"say in option tool which one answers the sub-questions: {names}")
        if self.tool is not None and card_named(self.tools, self.tool) is None:
            raise ValueError(no_such_tool(self.tools, self.tool))

    @property
    def card(self) -> ToolCard | None:
        """The tool that answers the sub-questions. None if the model answers them."""
        return next(iter(self.tools), None) if self.tool is None else card_named(self.tools, self.tool)


class FollowUp(Struct, frozen=True, rename="camel"):
    """A turn: the facts known so far with the next question, or the answer."""

    thought: Annotated[str, Meta(description="What is known now, and what is missing.")] = ""
    sub_question: Annotated[str | None, Meta(description="The next sub-question; null: no other.")] = None
    answer: Annotated[Answer | None, Meta(description="The answer alone, or null to ask on.")] = None


class SubAnswer(Struct, frozen=True, rename="camel", kw_only=True):
    """The answer to a sub-question."""

    thought: Annotated[str, Meta(description="What is known of it.")] = ""
    sub_question_answer: Answer

    def __post_init__(self) -> None:
        if not str(self.sub_question_answer).strip():
            raise ValueError("the answer is empty; if you do not know it, say so")


class State(AnswerState, frozen=True, omit_defaults=True, kw_only=True):
    """The state of the strategy: the questions and answers so far, as text, and the open question."""

    options: Options
    lines: tuple[str, ...] = ()
    hops: tuple[tuple[str, str], ...] = ()
    """The pairs (q_i, a_i), in order."""
    question: str | None = None


def decompose(s: State) -> Body:
    """Ask whether follow-up questions are needed and, if so, for the first question q_1."""
    (reply,) = yield request(s, _question(s, "decompose", DECOMPOSE, ASKS_ON))
    return _follow_up(s, reply.value, "sub_question_formulation")


def read_follow_up(_: State, __: Ask, texts: Sequence[str]) -> tuple[FollowUp, str] | Unreadable:
    """Read a turn that ends with one question or with the marked answer."""
    found = read_form(texts[-1], FollowUp)
    if isinstance(found, Unreadable) or (found[1] != "json" and found[0].sub_question in (None, "", "…")):
        marked = read_form(texts, ReasonedAnswer)
        if isinstance(marked, Unreadable):
            return marked
        return FollowUp(marked[0].reasoning, answer=marked[0].answer), marked[1]
    turn, rung = found
    if (turn.sub_question or "").count("?") > 1:
        return Unreadable("it asks several questions; ask one")
    return replace(turn, thought=turn.thought or texts[-1].partition("{")[0].strip("`json \n")), rung


def formulate(s: State) -> Move:
    """Record the sub-question q_i unchanged, if there is one."""
    if s.question is None:
        return go(s, "sub_question_answering")
    thought = Thought(s.question, data={"subQuestion": s.question})
    lines = (*s.lines, FOLLOW_UP.format(question=s.question))
    return go(replace(s, lines=lines), "sub_question_answering", thought)


def answer_question(s: State) -> Body:
    """Answer the sub-question q_i: a_i = tool(q_i) or, if there is no tool, a_i ~ p(a | x, q_1, a_1, …, q_i)."""
    if s.question is None:
        return go(s, "answer_integration")
    if s.options.card is None:
        # No verifier checks a sub-answer, so the whole text of an unmarked reply counts as the sub-answer.
        question = replace(_question(s, "sub_answer", ANSWER_ONE, SUB_ANSWER), wants_value=False)
        (reply,) = yield request(s, question)
        answer = _evidence(s, reply.value.sub_question_answer)
    else:
        found = arguments_for(s.options.card, s.question)
        arguments = {"query": s.question} if isinstance(found, Unreadable) else found
        (result,) = yield request(s, CallTool(s.options.card.name, arguments), give_failures=True)
        failed = isinstance(result, Failed)
        answer = UNANSWERED.format(why=result.message) if failed else _evidence(s, result.value)
    lines = (*s.lines, INTERMEDIATE.format(answer=answer))
    s = replace(s, lines=lines, hops=(*s.hops, (s.question, answer)))
    return go(s, "answer_integration", Thought(answer, data={"subQuestionAnswer": answer}))


def integrate(s: State) -> Body:
    """Ask what the answers a_1 … a_i imply for x. The reply has the next question q_{i+1} or the answer y."""
    if s.question is None:
        return go(s, "completion_check")
    (reply,) = yield request(s, _question(s, "integrate", INTEGRATE, ASKS_ON))
    return _follow_up(s, reply.value, "completion_check")


def decide(s: State) -> Move:
    """Continue while there is a question and the limit of questions is not reached."""
    asks_on = s.question is not None and len(s.hops) < s.options.max_questions
    return go(s, "sub_question_formulation" if asks_on else "solution_formulation")


def solve(s: State) -> Body:
    """Settle the answer. If the last turn gave no answer, ask for y ~ p(y | x, q_1, a_1, …, q_n, a_n)."""
    return (yield from s.settle_answer(_question(s, "answer", SOLVE, MARKED), s.lines))


class SelfAskDetails(AnswerDetails):
    """The details of a result."""

    sub_questions: Annotated[list[dict[str, str]], Meta(description="Each sub-question with its `answer`.")]


def conclude(state: State) -> Conclusion:
    """Return the answer, and the sub-questions with their answers."""
    hops = [{"question": question, "answer": answer} for question, answer in state.hops]
    document = {"sub_questions": hops, **state.final.document}
    detail = f"a question was open after {len(state.hops)} sub-questions: {state.question}"
    shorten = None if state.question is None else ("max_questions", detail)
    return state.conclude(document, cut=shorten).because("", "sub_question_answering")


def _follow_up(state: State, reply: FollowUp, to: str) -> Move:
    question = (reply.sub_question or "").strip() or None
    data = {} if question is None else {"subQuestion": question}
    thought = reply.thought.strip()
    answer = answer_text(reply.answer) if question is None else ""
    lines = (*state.lines, thought) if thought else state.lines
    state = replace(state, lines=lines, question=question)
    if answer:
        state, data = replace(state, final=state.final.propose(answer)), {"answer": answer}
    return go(state, to, Thought(thought or question or "No further question is needed.", data=data))


def _question(state: State, kind: str, task: str, mark: str = "") -> Ask:
    return state.build_question(SYSTEM, kind, state.lines, task, mark=mark, name="Question")


def _evidence(state: State, value: Any) -> str:
    return shorten(evidence_text(value).strip() or "(nothing)", state.options.max_answer_chars)


_QUESTION = {"type": "string", "minLength": 1, "description": "One question that can be answered by itself."}
_ANSWER = {"type": "string", "minLength": 1, "description": "Its answer, in a few words."}

SELF_ASK: Strategy[State, Options] = Strategy(
    name="self_ask",
    title="Self-Ask",
    source="arXiv:2210.03350",
    summary="Answers sub-questions first, by itself or with a tool: for questions that rest on other questions.",
    options=Options,
    state=State,
    conclude=conclude,
    close=lambda s: go(s, "solution_formulation"),
    details=SelfAskDetails,
    resources=("search_documents",),
    calls=3,
    version=2,
    stages=(
        problem_reception(
            ("problem_decomposition",),
            "Say what is asked and in which form the answer is wanted.",
            description="Take in the question.",
        ),
        Stage(
            "problem_decomposition",
            ("sub_question_formulation",),
            description="See what the answer rests on.",
            guidance="Say whether the question can be answered directly; if not, which facts it rests on.",
            body=decompose,
            reply=FollowUp,
            example={
                "thought": "It rests on who was president then.",
                "subQuestion": "Who was president in 1967?",
                "answer": None,
            },
            read=read_follow_up,
        ),
        Stage(
            "sub_question_formulation",
            ("sub_question_answering",),
            description="Ask the next sub-question.",
            guidance="Ask for one fact that is still missing, so that it can be answered without the main "
            "question; put in what earlier answers have settled.",
            fields=(Field("subQuestion", _QUESTION),),
            body=formulate,
        ),
        Stage(
            "sub_question_answering",
            ("answer_integration",),
            description="Answer the sub-question.",
            guidance="Answer it alone, from what you know or by looking it up; say so if you cannot.",
            fields=(Field("subQuestionAnswer", _ANSWER),),
            body=answer_question,
            reply=SubAnswer,
            example={
                "thought": "Johnson followed Kennedy in 1963.",
                "subQuestionAnswer": "Lyndon B. Johnson",
            },
        ),
        Stage(
            "answer_integration",
            ("completion_check",),
            description="Fit the answer in.",
            guidance="Say what follows for the main question from this answer and those before it.",
            body=integrate,
            reply=FollowUp,
            example={
                "thought": "Only the president was missing.",
                "subQuestion": None,
                "answer": "Lyndon B. Johnson",
            },
            read=read_follow_up,
        ),
        Stage(
            "completion_check",
            ("sub_question_formulation", "solution_formulation"),
            description="Decide whether another sub-question is needed.",
            guidance="Ask on while a needed fact is missing; formulate the solution when none is.",
            fields=(Field.optional("complete", "boolean", "Whether no further question is needed."),),
            body=decide,
        ),
        Stage(
            "solution_formulation",
            ("final_response",),
            description="Answer the question from the sub-answers.",
            guidance="Compose the answer from the sub-answers alone.",
            body=solve,
            reply=ReasonedAnswer,
            example={"reasoning": "The president was Johnson.", "answer": "Lyndon B. Johnson"},
        ),
        final_response(),
    ),
)
