"""Profiles: strategies of one to a few prompts, each a paper, over one mechanism.

    o_1, …, o_n ~ π(o | x, d)              list: subquestions, points, questions about a draft d
    r_i ~ π(r | o_i, …)                    work: each entry, in order with those before, or side by side
    y ~ π(y | x, d, o_1, r_1, …, o_n, r_n) answer

chain_of_verification   Dhuliawala et al. 2023, arXiv:2309.11495, factored: the questions are answered without the draft
least_to_most           Zhou et al. 2022, arXiv:2205.10625: subquestions in order, each with the answers before it
skeleton                Ning et al. 2023, arXiv:2307.15337: points side by side, joined as they stand
plan_and_solve          Wang et al. 2023, arXiv:2305.04091: plan and solution in one reply
chain_of_draft          Xu et al. 2025, arXiv:2502.18600: steps of five words at most

*Differs from the papers*: instructions replace the examples; lists are bounded; an answer that a verifier proves wrong
is asked for again, with the objection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.answering import (
    OPEN_TASK,
    AnswerOptions,
    FinalAnswer,
    ReasonedAnswer,
    conclude_answer,
    settle_answer,
    without_number,
)
from ..core.bodies import Body, Conclusion, Thought, go, raise_if_all_failed, request, stay
from ..core.details import AnswerDetails
from ..core.effects import Ask
from ..core.events import Reply
from ..core.strategy import Field, Stage, Strategy, final_response, problem_reception, text_list

FORM = f"""{{"reasoning": "…", "answer": "the answer alone, in the form the problem asks for"}}
{OPEN_TASK}"""

QUESTION = """Answer the question, briefly and from what you are sure of; say so where you are not sure."""


class Prompts(Struct, frozen=True):
    """The prompts of a profile.

    Attributes:
        answer: For the answer.
        draft: For an answer that is checked afterwards; empty: there is none.
        entries: For the list; empty: there is none.
        work: For an entry.
        in_order: Whether an entry is worked out with those before it; else side by side, and without the problem.
        joins: Whether the answer is what the entries came to, as they stand.
    """

    answer: str = ""
    draft: str = ""
    entries: str = ""
    work: str = ""
    in_order: bool = False
    joins: bool = False


class Options(AnswerOptions, frozen=True):
    """Options of a profile with a list."""

    max_entries: Annotated[int, Meta(ge=1, le=20, description="Most questions or points.")] = 6


class Entries(Struct, frozen=True):
    """A list."""

    entries: Annotated[tuple[str, ...], Meta(min_length=1, description="One entry each, in order.")]


class WorkedOut(Struct, frozen=True):
    """What an entry came to."""

    text: Annotated[str, Meta(min_length=1, description="The answer, or the text of the point.")]


class State(Struct, frozen=True, omit_defaults=True):
    """The draft, the entries, what each came to, and the answer."""

    problem: str
    options: Options
    draft: str = ""
    entries: tuple[str, ...] = ()
    worked: tuple[str, ...] = ()
    final: FinalAnswer = FinalAnswer()


class PlainState(State, frozen=True, omit_defaults=True):
    """The state of a profile without a list."""

    options: AnswerOptions  # pyright: ignore[reportIncompatibleVariableOverride]


def _ask(s: State, task: str, *parts: str) -> Ask:
    facts = {"kind": "profile", "problem": s.problem, "answer": s.final.text}
    return Ask("\n\n".join([*filter(None, parts), *s.final.objections, task]), facts=facts)


def _answers_so_far(s: State) -> str:
    return "\n\n".join(f"{entry}\n{text}" for entry, text in zip(s.entries, s.worked, strict=False))


def _draft(prompts: Prompts, to: str) -> Callable[[State], Body]:
    def draft(s: State) -> Body:
        """Write an answer to be checked."""
        (reply,) = yield request(s, _ask(s, prompts.draft, f"Problem: {s.problem}"))
        return go(replace(s, draft=reply.value.text), to, Thought(reply.value.text))

    return draft


def _list(prompts: Prompts, to: str) -> Callable[[State], Body]:
    def list_entries(s: State) -> Body:
        """List what is to be worked out."""
        draft = f"Draft:\n{s.draft}" if s.draft else ""
        task = prompts.entries.format(count=s.options.max_entries)
        (reply,) = yield request(s, _ask(s, task, f"Problem: {s.problem}", draft))
        entries = tuple(map(without_number, reply.value.entries[: s.options.max_entries]))
        return go(
            replace(s, entries=entries), to, Thought("\n".join(entries), data={"entries": list(entries)})
        )

    return list_entries


def _work(prompts: Prompts, to: str) -> Callable[[State], Body]:
    def in_order(s: State) -> Body:
        """Work out the next entry, with those before it; stay until none is left."""
        if len(s.worked) == len(s.entries):
            return go(s, to)
        entry = s.entries[len(s.worked)]
        task = prompts.work.format(entry=entry)
        (reply,) = yield request(s, _ask(s, task, f"Problem: {s.problem}", _answers_so_far(s)))
        return stay(replace(s, worked=(*s.worked, reply.value.text)), f"{entry}\n{reply.value.text}")

    def side_by_side(s: State) -> Body:
        """Work out all entries, none with knowledge of another; one that is lost says so."""
        problem = f"Problem: {s.problem}" if prompts.joins else ""
        outline = "\n".join(s.entries) if prompts.joins else ""
        asks = [_ask(s, prompts.work.format(entry=entry), problem, outline) for entry in s.entries]
        replies = yield request(s, *asks, give_failures=True)
        raise_if_all_failed(replies)
        worked = tuple(
            reply.value.text if isinstance(reply, Reply) else f"(no answer: {reply.message})"
            for reply in replies
        )
        s = replace(s, worked=worked)
        return go(s, to, Thought(_answers_so_far(s), data={"worked": list(worked)}))

    return in_order if prompts.in_order else side_by_side


def _answer(prompts: Prompts) -> Callable[[State], Body]:
    def answer(s: State) -> Body:
        """The answer, from all there is; asked for again where a verifier proves it wrong."""
        draft = f"Draft:\n{s.draft}" if s.draft else ""
        if prompts.joins and s.final.text is None and not s.final.objections:
            s = replace(s, final=s.final.propose("\n\n".join(s.worked)))

        def ask(s: State) -> Ask:
            return _ask(s, prompts.answer, f"Problem: {s.problem}", draft, _answers_so_far(s))

        return (yield from settle_answer(s, ask, s.worked))

    return answer


class ProfileDetails(AnswerDetails, total=False):
    """What the details of a result have."""

    draft: Annotated[str, Meta(description="The first answer, or the plan.")]
    entries: Annotated[list[str], Meta(description="The questions, sub-problems or points.")]
    worked: Annotated[list[str], Meta(description="The answer to each.")]


def _conclude(prompts: Prompts) -> Callable[[State], Conclusion]:
    def conclude(state: State) -> Conclusion:
        """Return the answer; before there is one, the draft, or the points as they stand."""
        final = state.final
        document = {"draft": state.draft, "entries": list(state.entries), "worked": list(state.worked)}
        document = {name: value for name, value in document.items() if value} | final.document
        so_far = "\n\n".join(state.worked) if prompts.joins else state.draft
        if final.text is None and so_far and not final.objections:
            return Conclusion(so_far, document=document)
        return conclude_answer(final, document)

    return conclude


_ANSWERED = {"answer": "12 boats"}


def _parts(prompts: Prompts, names: list[str]) -> Iterator[dict[str, Any]]:
    """Yield what the stages of a profile do, and the forms of their replies, in order."""
    to = iter(names[1:])
    if prompts.draft:
        yield {"body": _draft(prompts, next(to)), "reply": ReasonedAnswer, "example": _ANSWERED}
    if prompts.entries:
        fields = (Field("entries", text_list("The entries of the list.", min_items=1), required=False),)
        example = {"entries": ["How many rowers are there?", "How many fit into a boat?"]}
        yield {"body": _list(prompts, next(to)), "reply": Entries, "example": example, "fields": fields}
        yield {"body": _work(prompts, next(to)), "reply": WorkedOut, "example": {"text": "48 rowers"}}
    yield {"body": _answer(prompts), "reply": ReasonedAnswer, "example": _ANSWERED}


def _profile(
    name: str,
    title: str,
    source: str,
    summary: str,
    calls: int,
    prompts: Prompts,
    rows: dict[str, tuple[str, str]],
) -> Strategy[State, Any]:
    """Return a strategy; its rows are the stages between the first and the last, each described and guided."""
    names = [*rows, "final_response"]
    stages = [
        Stage(stage, (to,), description=description, guidance=guidance, **part)
        for (stage, (description, guidance)), to, part in zip(
            rows.items(), names[1:], _parts(prompts, names), strict=True
        )
    ]
    first = problem_reception(
        (names[0],), "Say what is asked, what is given, and in which form the answer is wanted."
    )
    last = final_response()
    return Strategy(
        name=name,
        title=title,
        source=source,
        summary=summary,
        options=Options if prompts.entries else AnswerOptions,
        calls=calls,
        state=State if prompts.entries else PlainState,
        conclude=_conclude(prompts),
        details=ProfileDetails,
        progress=lambda state: {"entries": len(state.entries), "worked": len(state.worked)},
        stages=(first, *stages, last),
    )


CHAIN_OF_VERIFICATION = _profile(
    "chain_of_verification",
    "Chain of Verification",
    "arXiv:2309.11495",
    "Drafts, checks the draft's facts one by one without it, and corrects: for lists and facts from memory.",
    5,
    Prompts(
        draft=f"Answer the problem.\n{FORM}",
        entries="""Now list up to {count} questions whose answers show whether the facts in the draft are right: one \
fact each, so that it can be answered without the draft.
{{"entries": ["…", …]}}""",
        work=f"""{QUESTION}
Question: {{entry}}
{{{{"text": "…"}}}}""",
        answer=f"""Now answer the problem again: keep of the draft what the answers bear out, correct what they \
refute, and leave out what they leave open.
{FORM}""",
    ),
    {
        "baseline_response": ("Answer the problem.", "Write the answer that is to be checked."),
        "verification_planning": (
            "List questions that check the facts in it.",
            "One fact a question; each can be answered by a reader without the draft.",
        ),
        "verification_execution": (
            "Answer each question without the draft.",
            "Answer each question by itself, as if the draft were not there.",
        ),
        "verified_response": (
            "Correct the draft by the answers.",
            "Keep what the answers bear out, correct what they refute, leave out what they leave open.",
        ),
    },
)

LEAST_TO_MOST = _profile(
    "least_to_most",
    "Least to Most",
    "arXiv:2205.10625",
    "Solves easier subquestions in order, each with the answers before it: for problems harder than their parts.",
    4,
    Prompts(
        entries="""First list up to {count} easier questions that lead to the problem, the easiest first, each to be \
answered with the answers before it; the problem itself is none of them.
{{"entries": ["…", …]}}""",
        work="""Now answer this question only, with the answers above: {entry}
{{"text": "the answer, with how it follows"}}""",
        in_order=True,
        answer=f"Now answer the problem with the answers above.\n{FORM}",
    ),
    {
        "decomposition": (
            "List easier questions that lead to the problem.",
            "The easiest first, each answerable with the answers before it.",
        ),
        "subproblem_solving": (
            "Answer them in order.",
            "One question at a time, on the answers before it. Stay for the next; go on when none is left.",
        ),
        "solution": ("Answer the problem.", "Answer the problem from the answers to the questions."),
    },
)

SKELETON = _profile(
    "skeleton",
    "Skeleton of Thought",
    "arXiv:2307.15337",
    "Outlines an answer and writes its points side by side: for longer texts that are wanted soon.",
    3,
    Prompts(
        entries="""First write the skeleton of the answer only: up to {count} points of three to five words each.
{{"entries": ["…", …]}}""",
        work="""Now write this point of the outline only, in one or two sentences that can stand in the answer: {entry}
{{"text": "…"}}""",
        answer=f"Now write the whole answer again.\n{FORM}",
        joins=True,
    ),
    {
        "skeleton": (
            "Write the outline of the answer.",
            "Points of three to five words, in the order of the answer.",
        ),
        "point_expanding": (
            "Write each point.",
            "One or two sentences a point, without leaning on the text of another.",
        ),
        "joining": ("Join the points.", "Put the points together as they stand."),
    },
)

PLAN_AND_SOLVE = _profile(
    "plan_and_solve",
    "Plan and Solve",
    "arXiv:2305.04091",
    "Plans and carries out the plan in one reply: for word problems, in one call.",
    1,
    Prompts(
        answer=f"""First understand the problem, extract the variables with their numbers, and make a plan. Then carry \
the plan out step by step: compute each intermediate result, check the arithmetic, and answer.
{FORM}"""
    ),
    {
        "planned_solution": (
            "Plan, and carry the plan out.",
            "Variables first, then the plan, then each step.",
        )
    },
)

CHAIN_OF_DRAFT = _profile(
    "chain_of_draft",
    "Chain of Draft",
    "arXiv:2502.18600",
    "Reasons in steps of five words at most: for short answers at a fraction of the tokens.",
    1,
    Prompts(
        answer=f"""Think step by step, but keep only a draft of each step, five words at most. Then answer.
{FORM}"""
    ),
    {
        "drafted_reasoning": (
            "Reason in drafts.",
            "Five words a step at most: numbers and operators, no sentences.",
        )
    },
)

PROFILES = (CHAIN_OF_VERIFICATION, LEAST_TO_MOST, SKELETON, PLAN_AND_SOLVE, CHAIN_OF_DRAFT)
