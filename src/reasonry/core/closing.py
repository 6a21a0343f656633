"""Closing a run: an answer is proposed, looked at, put right within limits, and settled.

Two may look at an answer. A verifier proves: what it finds wrong is never given, what it finds right is settled. The
thinker who reviews its own answer only doubts: when its repairs are used up, the doubted answer is given and said to be
doubted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from . import parse
from .answering import AnswerReply, CheckReply, claim, rule
from .effects import Ask, Effect
from .events import Failed, Reply, Verified
from .parse import Unreadable
from .strategy import Move, Thought, fail, go, stay
from .vote import agree, normalise


class Closing(Struct, frozen=True, omit_defaults=True):
    """An answer on its way to being given."""

    answer: str | None = None
    proved: bool = False
    looked_at: bool = False
    """Whether the verifier has looked at this answer."""
    reviewed: bool = False
    """Whether the thinker has reviewed this answer."""
    doubted: bool = False
    """Whether the last review found it wrong, with no repair left."""
    objections: tuple[str, ...] = ()
    """What was wrong with earlier answers, and with a doubted one."""

    def wants(self, *, verify: bool, review: bool = False) -> Literal["answer", "verdict", "review"] | None:
        """Return what is missing before the answer can be given; None: nothing."""
        if self.answer is None:
            return "answer"
        if verify and not self.looked_at and not self.proved:
            return "verdict"
        return "review" if review and not (self.reviewed or self.proved) else None

    @property
    def document(self) -> dict[str, Any]:
        """What a result says of its answer."""
        standing = "proved" if self.proved else "doubted" if self.doubted else "open"
        if standing == "open" and self.reviewed:
            standing = "reviewed"
        return {"verification": standing, "objections": list(self.objections)}


class _Options(Protocol):
    @property
    def max_repairs(self) -> int: ...
    @property
    def verify(self) -> bool: ...


class _Closable(Protocol):
    @property
    def problem(self) -> str: ...
    @property
    def options(self) -> _Options: ...
    @property
    def closing(self) -> Closing: ...


def propose(closing: Closing, answer: str) -> Closing:
    """Take a new answer; nobody has looked at it yet."""
    return Closing(answer, objections=closing.objections)


def ruled(closing: Closing, verdict: Verified | Failed) -> Closing:
    """Apply a verifier's verdict."""
    ruling = rule(closing.answer or "", verdict)
    objections = (*closing.objections, ruling.objection) if ruling.objection else closing.objections
    return replace(closing, answer=ruling.answer, proved=ruling.proved, looked_at=True, objections=objections)


def reviewed(closing: Closing, reply: CheckReply, max_repairs: int) -> Closing:
    """Apply a review: an answer found wrong makes room for the corrected one, as long as repairs are left."""
    if reply.correct:
        return replace(closing, reviewed=True)
    objections = (
        *closing.objections,
        f"The answer {closing.answer!r} did not pass the check: {reply.reason}",
    )
    doubtful = replace(closing, reviewed=True, objections=objections)
    if len(objections) > max_repairs:
        return replace(doubtful, doubted=True)
    if reply.text and reply.text != closing.answer:
        return propose(doubtful, reply.text)
    return replace(doubtful, answer=None)


def ask_for(
    state: _Closable, thoughts: Iterable[str], question: Ask, review: Ask | None = None
) -> tuple[Effect, ...]:
    """Return the effect that is missing before the answer can be given, if any.

    Args:
        thoughts: What led to the answer, oldest first.
        question: Asks for the answer, or for another one after an objection.
        review: Asks the thinker to check the answer; None: it is not asked to.
    """
    match state.closing.wants(verify=state.options.verify, review=review is not None):
        case "answer":
            return (question,)
        case "verdict":
            return (claim(state.problem, thoughts, state.closing.answer or ""),)
        case "review":
            return () if review is None else (review,)
        case None:
            return ()


def settle(state: Any, answers: Sequence[Any], to: str = "final_response") -> Move:
    """Take what came back for `ask_for`; go on once nothing is missing.

    Ends the run as failed when every answer within the repairs was proved wrong.

    Args:
        state: Struct with `problem`, `options` (`max_repairs`, `verify`) and `closing`.
        to: The stage to go to when the answer is settled.
    """
    if not answers:
        return go(state, to)
    closing: Closing = state.closing
    after, thoughts = _taken(closing, answers[0], state.options.max_repairs)
    state = replace(state, closing=after)
    if after.answer is None and len(after.objections) > state.options.max_repairs:
        return replace(fail(state, "verification_failed", after.objections[-1]), thoughts=thoughts)
    return stay(state, *thoughts)


def _taken(
    closing: Closing, event: Reply | Verified | Failed, limit: int
) -> tuple[Closing, tuple[Thought, ...]]:
    if not isinstance(event, Reply):
        after = ruled(closing, event)
        new = after.objections[len(closing.objections) :]
        return after, tuple(Thought(one, data={"correct": False}) for one in new)
    value: AnswerReply | CheckReply = event.value
    if closing.answer is not None:
        assert isinstance(value, CheckReply)
        data = {"correct": value.correct}
        return reviewed(closing, value, limit), (Thought(value.reason or str(value.correct), data=data),)
    text = value.reason if isinstance(value, CheckReply) and value.reason else value.text
    return propose(closing, value.text), (Thought(text, data={"answer": value.text}),)


def read_check(state: _Closable, _: Ask, texts: Sequence[str]) -> tuple[CheckReply, str] | Unreadable:
    """Read a review: a corrected answer has to be there where it was asked for, and only where one is wrong."""
    reading = parse.read_form(texts[-1], CheckReply)
    if isinstance(reading, Unreadable):
        return reading
    reply, answer = reading[0], state.closing.answer
    if answer is None:
        return reading if reply.text else Unreadable("give the corrected answer in `answer`")
    if reply.correct and reply.text and not agree(normalise(reply.text), normalise(answer)):
        return Unreadable(
            f"`correct` is true, but `answer` is not the answer that was checked, {answer[:200]!r}: set `correct` to "
            "false if that one is wrong, or leave `answer` out"
        )
    return reading
