"""Self-consistency: reason several times independently and take the answer most of the paths arrive at.

Wang et al. 2022, "Self-Consistency Improves Chain of Thought Reasoning in Language Models", arXiv:2203.11171.
Early stopping: Aggarwal et al. 2023, "Let's Sample Step by Step: Adaptive-Consistency", arXiv:2305.11860.

Algorithm, for a question with up to m samples:

    m, and how a path is drawn                                             multiple_path_sampling
    (r_i, a_i) ~ P(r, a | prompt, question), as many side by side          reasoning_path_execution
        as could settle it, until no further sample is worth drawing
    a_1, …, a_k, normalised                                                answer_collection
    v(a) = Σ_i 1(a_i = a)                                                  consistency_analysis
    argmax_a v(a), a tie going to the answer seen first                    majority_selection

*Differs from the paper*: paths are drawn with an instruction instead of examples, which asks for the answer at the end
as the paper's have it, or with any other strategy; a path without a readable answer is drawn anew;
sampling stops when the leader can no longer lose, which changes no answer, or, with `stop="beta"`, when it is
the majority with probability `confidence`; answers that a verifier proves wrong have no vote, and one proved
right ends the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from ..core.answering import Answer, AnswerReply, claim, rule
from ..core.effects import Ask, Effect, RunStrategy
from ..core.events import STOPPED, Failed, Finished, Verified
from ..core.problem import subject_of
from ..core.strategy import Body, Conclusion, Field, Move, Stage, Strategy, Thought, fail, go, request, stay
from ..reading import parse
from ..reading.fit import Unreadable
from ..reading.vote import Vote, confidence, is_settled, tally, tidy

SYSTEM = """Solve the problem by yourself, from scratch. End with the answer alone, in the form the problem asks \
for; a text or code begins on the next line:
Answer: …"""
"""In place of the last sentence of the paper's examples, "The answer is …" (arXiv:2203.11171, appendix A.3), a word for
every language.
"""


LEAST_DRAWN_ANEW = 2
"""Samples without a readable answer for which others are drawn, at least; otherwise half as many as are wanted."""
UNREADABLE = "output_invalid"


REASON = "Reason step by step until the answer is certain."
"""In the place of the paper's examples, which reason before they answer."""


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of self-consistency."""

    over: Annotated[
        str,
        Meta(
            min_length=1,
            description="Strategy that draws a sample; chain_of_thought without over_options is one call.",
        ),
    ] = "chain_of_thought"
    over_options: Annotated[dict[str, Any], Meta(description="Options of that strategy.")] = {}
    samples: Annotated[int, Meta(ge=1, le=1000, description="Most samples drawn.")] = 20
    window: Annotated[
        Annotated[int, Meta(ge=1, le=1000)] | None,
        Meta(description="Samples drawn side by side in a round; null: as many as could settle the vote."),
    ] = None
    stop: Annotated[
        Literal["beta", "exact", "full"],
        Meta(
            description="When to stop early: as soon as it is likely safe, only when it is certain, or never."
        ),
    ] = "beta"
    confidence: Annotated[
        float,
        Meta(gt=0.5, lt=1, description="How likely the leader must be the majority to stop, with beta."),
    ] = 0.95
    temperature: Annotated[float, Meta(ge=0, le=2, description="Of the samples drawn in one call.")] = 0.7
    verify: Annotated[bool, Meta(description="Have the run's verifier look at each answer.")] = False


NO_ANSWER = 'it states no answer; end with "Answer: …"'


class Sample(Struct, frozen=True, kw_only=True):
    """One path."""

    reasoning: Annotated[str, Meta(description="All steps.")] = ""
    answer: Answer

    def __post_init__(self) -> None:
        AnswerReply(answer=self.answer)


class State(Struct, frozen=True, omit_defaults=True):
    """The answers drawn so far."""

    problem: str
    options: Options
    drawn: int = 0
    answers: tuple[str, ...] = ()
    """In the order drawn; failed samples left out."""
    numbers: tuple[int, ...] = ()
    """Of the samples that gave them, from 1."""
    lost: tuple[tuple[int, str], ...] = ()
    """The samples that gave none, with why."""
    failures: tuple[str, ...] = ()
    unreadable: int = 0
    """Samples that had no readable answer."""
    known: dict[str, bool] = {}
    """What the verifier said of each different answer: False where it is proved wrong."""
    proved: str | None = None
    """The answer proved right."""
    unfinished: str | None = None
    """The best so far of a path that was cut off; it has no vote."""
    code: str | None = None
    """Of the last failure."""

    @property
    def votes(self) -> tuple[Vote, ...]:
        """The votes that count, most first."""
        return tuple(vote for vote in tally(self.answers) if self.known.get(vote.answer, True))

    @property
    def remaining(self) -> int:
        """How many samples may still be drawn: up to a point, one without a readable answer is drawn anew."""
        drawn_anew = min(self.unreadable, max(LEAST_DRAWN_ANEW, self.options.samples // 2))
        return self.options.samples - self.drawn + drawn_anew

    @property
    def is_over(self) -> bool:
        """Whether no further sample is worth drawing."""
        if self.proved is not None or self.remaining <= 0:
            return True
        return self._is_settled(self.votes, self.remaining)

    @property
    def width(self) -> int:
        """How many samples to draw now: those wanted in a round, else the fewest that could settle the vote."""
        options, votes, remaining = self.options, self.votes, self.remaining
        if options.stop == "full":
            return remaining
        if options.window is not None:
            return min(options.window, remaining)
        leader = votes[0] if votes else Vote("", 0, ())
        numbers = range(1, remaining)
        for number in numbers:
            ahead = replace(leader, count=leader.count + number)
            if self._is_settled((ahead, *votes[1:]), remaining - number):
                return number
        return remaining

    def _is_settled(self, votes: tuple[Vote, ...], remaining: int) -> bool:
        """Whether the stopping rule holds."""
        if self.options.stop == "full" or not votes:
            return False
        likely = self.options.stop == "beta" and confidence(votes) >= self.options.confidence
        return likely or is_settled(votes, remaining)


def sample_paths(s: State) -> Body:
    """(r_i, a_i) ~ P(r, a | prompt, question), one window; stay until no further sample is worth drawing."""
    numbers = range(s.drawn, s.drawn + s.width)
    paths = yield request(s, *(_path(s, number) for number in numbers), give_failures=True)
    s, thoughts = _add_samples(s, paths)
    if new := _new_answers(s):
        claims = [claim(s.problem, (), answer) for answer in new]
        verdicts = yield request(s, *thoughts, *claims, give_failures=True)
        s, thoughts = _apply_verdicts(s, new, verdicts), ()
    if not s.is_over:
        return stay(s, *thoughts)
    if s.votes:
        return go(s, "answer_collection", *thoughts)
    if s.answers:
        return fail(s, "verification_failed", f"all {len(s.answers)} answers were proved wrong")
    last = s.failures[-1] if s.failures else ""
    return fail(
        s, "all_samples_failed", f"none of {s.drawn} samples gave an answer; the last: {last}", s.code
    )


def _path(state: State, sample: int) -> Effect:
    options = state.options
    about, over = sample_id(sample + 1), options.over.strip().replace("-", "_")
    if over.lower() != "chain_of_thought" or options.over_options:
        return RunStrategy(over, state.problem, options.over_options, sample, about)
    facts = {"kind": "sample", "problem": state.problem}
    prompt = f"Problem: {state.problem}"
    # Asked again with its own text, it would be no draw of the same question any more: it is drawn anew.
    ask = Ask(prompt, SYSTEM, facts, sample=sample, retries=0, temperature=options.temperature)
    return replace(ask, step_by_step=REASON, about=about)


def read_sample(s: State, ask: Ask, texts: Sequence[str]) -> tuple[Sample, str] | Unreadable:
    """Read a path: prose that ends with the answer, as in the paper, or data."""
    text = texts[-1]
    if text.strip() in ask.system:
        return Unreadable("it repeats the form of the question; answer the question")
    reading = parse.read_form(text, Sample, subject=replace(subject_of(s), alone=True))
    is_prose = not text.lstrip().startswith(("{", "[", "```"))
    return Unreadable(NO_ANSWER) if isinstance(reading, Unreadable) and is_prose else reading


def _was_cut(path: Any) -> bool:
    if isinstance(path, Finished):
        return path.status == "cancelled"
    return isinstance(path, Failed) and path.code == STOPPED


def _add_samples(state: State, paths: tuple[Any, ...]) -> tuple[State, tuple[Thought, ...]]:
    """Book what the paths brought; those that were cut off have no vote."""
    texts, failures, thoughts = list(state.answers), list(state.failures), list[Thought]()
    code, unreadable = state.code, state.unreadable
    numbers, lost = list(state.numbers), list(state.lost)
    cut = [path for path in paths if _was_cut(path)]
    paths = tuple(path for path in paths if not _was_cut(path))
    for number, path in enumerate(paths, state.drawn + 1):
        if isinstance(path, Failed):
            failures.append(path.message)
            lost.append((number, path.message))
            code = path.code
            unreadable += path.code == UNREADABLE
            continue
        if isinstance(path, Finished):
            done = path.status == "done"
            answer, reasoning = (path.short or path.answer, path.answer) if done else (None, "")
            code = path.code or code
        else:
            answer, reasoning = str(path.value.answer), path.value.reasoning
        if answer is None or not answer.strip():
            failures.append(path.detail or path.reason)
            lost.append((number, failures[-1]))
            continue
        texts.append(answer)
        numbers.append(number)
        thoughts.append(
            Thought(
                reasoning or answer,
                branch=f"path-{number}",
                data={"answer": answer, "node_id": sample_id(number)},
            )
        )
    best = next(
        (path.short or path.answer for path in cut if isinstance(path, Finished) and path.answer is not None),
        None,
    )
    state = replace(state, drawn=state.drawn + len(paths), unfinished=best, code=code)
    state = replace(state, unreadable=unreadable, numbers=tuple(numbers), lost=tuple(lost))
    return replace(state, answers=tuple(texts), failures=tuple(failures)), tuple(thoughts)


def _new_answers(state: State) -> tuple[str, ...]:
    """Return the different answers that nobody has looked at yet."""
    votes = tally(state.answers) if state.options.verify else ()
    return tuple(vote.answer for vote in votes if vote.answer not in state.known)


def _apply_verdicts(state: State, answers: Sequence[str], verdicts: Sequence[Verified | Failed]) -> State:
    known, proved = dict(state.known), state.proved
    for answer, verdict in zip(answers, verdicts, strict=True):
        ruling = rule(answer, verdict)
        known[answer] = ruling.answer is not None
        if ruling.proved and proved is None:
            proved = ruling.answer
    return replace(state, known=known, proved=proved)


def select(state: State) -> Move:
    """argmax_a v(a)."""
    lines = [f"{tidy(vote.answer)}: {vote.count} of {len(state.answers)}" for vote in state.votes]
    chosen = conclude(state)
    return go(
        state, "final_response", Thought("\n".join(lines), data={"answer": chosen.answer, **chosen.document})
    )


def conclude(state: State) -> Conclusion:
    """Return the answer most paths have arrived at so far, and the votes."""
    votes = state.votes
    answer = state.proved or (tidy(votes[0].answer) if votes else state.unfinished)
    saved = max(0, state.options.samples - state.drawn) if state.is_over else 0
    document = {
        "votes": [{"answer": tidy(vote.answer), "count": vote.count} for vote in votes],
        "samples": _samples(state, votes),
        "confidence": 1.0 if state.proved is not None else round(confidence(votes), 6),
        "samples_used": state.drawn,
        "samples_saved": saved,
        "samples_failed": len(state.failures),
    }
    lost = f", {len(state.lost)} without an answer that could be read" if state.lost else ""
    detail = f"{state.drawn} of {state.options.samples} samples drawn{lost}"
    standing = "given" if state.proved is None else "proved"
    return Conclusion(answer, detail=detail, document=document, standing=standing)


def _samples(state: State, votes: Sequence[Vote]) -> list[dict[str, Any]]:
    """Return every sample drawn: its answer and the vote it counts to, or why it counts to none."""
    sides = {voter: tidy(vote.answer) for vote in votes for voter in vote.voters}
    found = {
        number: {"answer": tidy(answer), "vote": sides.get(place)}
        | (
            {}
            if place in sides
            else {"dropped": {"code": "verifier", "text": "the verifier proved it wrong"}}
        )
        for place, (number, answer) in enumerate(zip(state.numbers, state.answers, strict=False))
    }
    found |= {
        number: {"answer": None, "vote": None, "dropped": {"code": "failed", "text": why}}
        for number, why in state.lost
    }
    return [{"id": sample_id(number), "number": number, **found[number]} for number in sorted(found)]


def sample_id(number: int) -> str:
    """Return the id of a sample in the result document."""
    return f"sample-{number}"


_PATHS = {
    "type": "array",
    "items": {"type": "string"},
    "description": "One line for each path: how it sets out.",
}
_PATH = {"type": "string", "description": "Which path this is."}
_ANSWER = {"type": "string", "description": "Where the path ended."}
_ANSWERS = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "description": "Each path's answer, in order.",
}
_VOTES = {"type": "object", "description": "How many paths gave each answer."}

SELF_CONSISTENCY: Strategy[State, Options] = Strategy(
    name="self_consistency",
    title="Self-consistency",
    source="arXiv:2203.11171",
    summary="Draws independent solutions and votes on the answer: for problems with one short answer.",
    options=Options,
    version=4,
    state=State,
    conclude=conclude,
    progress=lambda state: {"samples_used": state.drawn, "votes": conclude(state).document["votes"]},
    suits=("short_answer",),
    stages=(
        Stage(
            "problem_reception",
            ("multiple_path_sampling",),
            description="Take in the problem.",
            guidance="Say what is asked, and in which form, so that answers can be compared.",
        ),
        Stage(
            "multiple_path_sampling",
            ("reasoning_path_execution",),
            description="Set out several independent ways to reason about it.",
            guidance="Name three or more ways to set out. No path may lean on another's result.",
            fields=(Field("paths", _PATHS, required=False),),
        ),
        Stage(
            "reasoning_path_execution",
            ("answer_collection",),
            description="Follow each path to its answer.",
            guidance="Reason along one path at a time, from problem to answer, as if it were the only one. "
            "Stay for the next path; go on when all have an answer.",
            fields=(Field("path", _PATH, required=False), Field("answer", _ANSWER, required=False)),
            body=sample_paths,
            example={"reasoning": "16 - 3 - 4 = 9 eggs are sold at 2 dollars each.", "answer": "18"},
            read=read_sample,
            value=Sample,
        ),
        Stage(
            "answer_collection",
            ("consistency_analysis",),
            description="Collect the answers.",
            guidance="List the answer of every path in one form: same units, same notation.",
            fields=(Field("answers", _ANSWERS),),
        ),
        Stage(
            "consistency_analysis",
            ("majority_selection",),
            description="Count which answers agree.",
            guidance="Count how often each answer came up; say how clear the lead is.",
            fields=(Field("votes", _VOTES, required=False),),
        ),
        Stage(
            "majority_selection",
            ("final_response",),
            description="Take the answer with the most votes.",
            guidance="Take the most frequent answer; on a tie, the first one. Do not overrule the count.",
            body=select,
        ),
        Stage(
            "final_response",
            description="Give the answer.",
            guidance="State the answer alone, in the form that was asked for.",
        ),
    ),
)
