"""Answering: an answer is asked for, verified, reviewed, asked for again with the objection, and settled.

Two may look at an answer. A verifier proves: what it finds wrong is never given, what it finds right is settled. The
thinker who reviews its own answer only doubts: when its repairs are used up, the doubted answer is given and said to be
doubted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct
from msgspec.structs import replace

from . import parse
from .effects import Ask, Verify
from .events import Failed, Verified
from .fit import Unreadable
from .strategy import Move, Request, Thought, fail, go, request, stay
from .vote import agree, normalise

REFUTED = "The answer {answer!r} was checked and is wrong."

Answer = Annotated[str | int | float, Meta(description="The answer alone.")]
"""Models that are asked for a number often give one; it is taken as the text they would have written."""


class AnswerReply(Struct, frozen=True):
    """The answer."""

    answer: Answer

    def __post_init__(self) -> None:
        if not self.text:
            raise ValueError("the answer is empty")

    @property
    def text(self) -> str:
        """The answer as text."""
        return str(self.answer).strip()


class CheckReply(Struct, frozen=True):
    """What a review of an answer found."""

    correct: Annotated[bool, Meta(description="Whether the answer holds.")]
    reason: Annotated[str, Meta(description="How it was checked, or what is wrong with it.")]
    answer: Annotated[
        Answer | None, Meta(description="The corrected answer alone, if the answer did not hold.")
    ] = None

    @property
    def text(self) -> str:
        """The corrected answer as text; empty if there is none."""
        return "" if self.answer is None else str(self.answer).strip()


class AnswerOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options of every strategy that settles on an answer; subclasses add their own."""

    max_repairs: Annotated[int, Meta(ge=0, le=20, description="Further answers after one found wrong.")] = 1
    verify: Annotated[bool, Meta(description="Have the run's verifier look at the answer.")] = False


class FinalAnswer(Struct, frozen=True, omit_defaults=True):
    """The answer of a run, from when it is proposed until it is given, and what is known of it.

    Attributes:
        text: None before there is an answer, and after one was proved wrong.
        standing: `doubted`: the last review found it wrong, with no repair left.
        objections: What was wrong with earlier answers, and with a doubted one.
    """

    text: str | None = None
    standing: Literal["open", "reviewed", "doubted", "proved"] = "open"
    objections: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """What a result says of its answer."""
        return {"verification": self.standing, "objections": list(self.objections)}

    def propose(self, text: str) -> FinalAnswer:
        """Return a new answer in place of this one; nobody has looked at it yet."""
        return FinalAnswer(text, objections=self.objections)

    def apply_verdict(self, verdict: Verified | Failed) -> FinalAnswer:
        """Return the answer after a verifier has looked at it."""
        ruling = rule(self.text or "", verdict)
        if ruling.answer is None:
            return FinalAnswer(objections=(*self.objections, ruling.objection))
        return replace(self, text=ruling.answer, standing="proved" if ruling.proved else self.standing)

    def apply_review(self, reply: CheckReply, max_repairs: int) -> FinalAnswer:
        """Return the answer after its author's review, or the corrected one as long as repairs are left."""
        if reply.correct:
            return replace(self, standing="reviewed")
        objection = f"The answer {self.text!r} did not pass the check: {reply.reason}"
        objections = (*self.objections, objection)
        if len(objections) > max_repairs:
            return replace(self, standing="doubted", objections=objections)
        corrected = reply.text if reply.text != self.text else ""
        return FinalAnswer(corrected or None, objections=objections)


class Ruling(Struct, frozen=True):
    """What is left of an answer that was looked at.

    Attributes:
        answer: None if it was proved wrong; the verifier's own closed form where it gave one.
        proved: Whether it was proved right.
        objection: With a wrong answer: the sentence to put to whoever gave it.
    """

    answer: str | None
    proved: bool = False
    objection: str = ""


def claim(problem: str, thoughts: Iterable[str], answer: str) -> Verify:
    """Return the effect that has an answer looked at."""
    return Verify(problem, (*thoughts, answer), final=True)


def rule(answer: str, verdict: Verified | Failed) -> Ruling:
    """Apply a verdict. A verifier that failed has said nothing."""
    if isinstance(verdict, Failed) or verdict.verdict == "unknown":
        return Ruling(answer)
    if verdict.verdict == "right":
        return Ruling(verdict.answer or answer, proved=True)
    return Ruling(None, objection=f"{REFUTED.format(answer=answer)} {verdict.detail}".strip())


class Answering(Protocol):
    """What the state of a strategy has for its answer to be settled."""

    @property
    def problem(self) -> str:
        """The problem as it was given."""
        ...

    @property
    def options(self) -> AnswerOptions:
        """The strategy's options."""
        ...

    @property
    def final(self) -> FinalAnswer:
        """The answer so far."""
        ...


def settle_answer(
    state: Any,
    question: Callable[[Any], Ask],
    path: Sequence[str],
    *,
    review: Callable[[Any], Ask] | None = None,
    to: str = "final_response",
) -> Generator[Request, Any, Move]:
    """Ask for the answer, have it verified and reviewed; stay for another one as long as repairs are left.

    The tail of a stage: `return (yield from settle_answer(…))`. An answer that the state already has is not asked for.
    Ends the run as `verification_failed` when every answer within the repairs was proved wrong.

    Args:
        state: See `Answering`.
        question: From the state to the question for an answer, or for another one after `final.objections`.
        path: The thoughts that led to the answer, oldest first, as the verifier is shown them.
        review: From the state to the question whether its answer holds; None: it is not reviewed.
        to: The stage to go to when the answer is settled.
    """
    thoughts: tuple[Thought, ...] = ()
    if state.final.text is None:
        (reply,) = yield request(state, question(state))
        state, thoughts = _proposed(state, reply.value)
    state, thoughts = yield from verify_answer(state, path, *thoughts)
    if state.final.text is None:
        return repair_or_fail(state)
    if review is not None and state.final.standing != "proved":
        (reply,) = yield request(state, *thoughts, review(state))
        found: CheckReply = reply.value
        state = replace(state, final=state.final.apply_review(found, state.options.max_repairs))
        thoughts = (Thought(found.reason or str(found.correct), data={"correct": found.correct}),)
        if state.final.standing == "open":
            return stay(state, *thoughts)
    return go(state, to, *thoughts)


def verify_answer(
    state: Any, path: Sequence[str], *thoughts: Thought, give_failures: bool = False
) -> Generator[Request, Any, tuple[Any, tuple[Thought, ...]]]:
    """Have the answer verified, where that is wanted and it is not proved yet; return the state after it.

    An answer that is proved wrong is gone from the state, see `repair_or_fail`.

    Args:
        thoughts: To record; those returned with the state are not recorded yet.
        give_failures: Take a verifier that failed as one that said nothing, instead of ending the run.
    """
    if not state.options.verify or state.final.standing == "proved":
        return state, thoughts
    effect = claim(state.problem, path, state.final.text)
    (verdict,) = yield request(state, *thoughts, effect, give_failures=give_failures)
    return replace(state, final=state.final.apply_verdict(verdict)), ()


def repair_or_fail(state: Any, *, can_ask: bool = True) -> Move:
    """Stay, to ask for another answer after one that was proved wrong; fail when the repairs are used up.

    Args:
        can_ask: Whether another answer can be asked for at all.
    """
    objection = state.final.objections[-1]
    thought = Thought(objection, data={"correct": False})
    if can_ask and len(state.final.objections) <= state.options.max_repairs:
        return stay(state, thought)
    return replace(fail(state, "verification_failed", objection), thoughts=(thought,))


def _proposed(state: Any, reply: AnswerReply | CheckReply) -> tuple[Any, tuple[Thought, ...]]:
    text = reply.reason if isinstance(reply, CheckReply) and reply.reason else reply.text
    thought = Thought(text, data={"answer": reply.text})
    return replace(state, final=state.final.propose(reply.text)), (thought,)


def read_check(state: Answering, _: Ask, texts: Sequence[str]) -> tuple[CheckReply, str] | Unreadable:
    """Read a review: a corrected answer has to be there where it was asked for, and only where one is wrong."""
    reading = parse.read_form(texts[-1], CheckReply)
    if isinstance(reading, Unreadable):
        return reading
    reply, answer = reading[0], state.final.text
    if answer is None:
        return reading if reply.text else Unreadable("give the corrected answer in `answer`")
    if reply.correct and reply.text and not agree(normalise(reply.text), normalise(answer)):
        return Unreadable(
            f"`correct` is true, but `answer` is not the answer that was checked, {answer[:200]!r}: set `correct` to "
            "false if that one is wrong, or leave `answer` out"
        )
    return reading
