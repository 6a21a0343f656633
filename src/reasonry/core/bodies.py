"""Bodies: what the body of a stage yields, is sent, and returns.

Rule 1: each `yield from request(state, …)` says what is known and what is asked; the body is sent the answers, a tuple
        in the order asked, and returns its `Move`.
Rule 2: a body is run again over the answers the stage has had, so nothing but data lives between two of them. It must
        ask the same again when it is given the same, and it has at most about 20 yields: an unbounded loop ends its
        round with `stay` or goes to the next stage of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from .effects import Ask, Effect
from .events import Conclusion as Conclusion
from .events import Delivered, Failed

T = TypeVar("T")


class Thought(Struct, frozen=True, omit_defaults=True):
    """A record that a driven run writes into its session, in its stage.

    `branch` names the line the thought is on; `leaves` is the text of nothing but the branch it left (None: main line).
    """

    text: str
    stage: str = ""
    branch: str | None = None
    leaves: str | None = None
    revises: int | None = None
    score: float | None = None
    data: dict[str, Any] = {}


class Move(Struct, frozen=True):
    """What a stage decided: the new state, the thoughts to record, and where to go (None: stay in this stage)."""

    state: Any
    to: str | None = None
    thoughts: tuple[Thought, ...] = ()
    failure: tuple[str, str, str | None] | None = None
    """Ends the run as `failed`: (reason, detail, code)."""


def go(state: Any, to: str, *thoughts: Thought | str) -> Move:
    """Take the edge to stage `to`."""
    return Move(state, to, _as_thoughts(thoughts))


def stay(state: Any, *thoughts: Thought | str) -> Move:
    """Stay in the stage, which then asks again; this is not a transition."""
    return Move(state, None, _as_thoughts(thoughts))


def fail(state: Any, reason: str, detail: str = "", code: str | None = None) -> Move:
    """End the run as failed; the best so far is kept.

    Args:
        code: Of the failure behind it, where a stage gives up on one.
    """
    return Move(state, failure=(reason, detail, code))


Answers = tuple[Delivered, ...]


class Request(Struct, frozen=True):
    """What a stage knows and asks in one yield.

    Attributes:
        state: As it stands. Conclusion, progress, readers and stops see this one from here on.
        effects: Performed side by side; the answers come back in this order. None: the stage goes on at once.
        thoughts: Recorded once, when the yield is reached.
        give_failures: Whether failures are among the answers; otherwise the first one is raised at the yield.
        enough: Pure test over the answers so far (None where one is missing). When it holds, the rest is cancelled
            and arrives as `Failed(stopped)`, a strategy run inside as `Finished(cancelled)` with its best so far.
    """

    state: Any
    effects: tuple[Effect, ...]
    thoughts: tuple[Thought, ...] = ()
    give_failures: bool = False
    enough: Callable[[tuple[Delivered | None, ...]], bool] | None = None

    def __iter__(self) -> Generator[Request, Any, Answers]:
        """Ask: `yield from` gives the answers under their type, where `yield` gives them under none."""
        return (yield self)


Body = Generator[Request, Any, Move]
"""What the body of a stage returns when it is called: yields requests, is sent `Answers`, returns a `Move`."""


def request(
    state: Any,
    *items: Effect | Thought,
    give_failures: bool = False,
    enough: Callable[[tuple[Delivered | None, ...]], bool] | None = None,
) -> Request:
    """Return what a stage yields: the state as it stands, effects to perform, thoughts to record.

    Args:
        give_failures: Have failures among the answers, instead of the first one raised as `EffectFailed` when all
            answers are in. Implied by `enough`.
        enough: See `Request`.
    """
    effects: Any = items
    thoughts: tuple[Thought, ...] = ()
    for item in items:
        if type(item) is Thought:
            thoughts = tuple([item for item in items if isinstance(item, Thought)])
            effects = tuple([item for item in items if not isinstance(item, Thought)])
            break
    return Request(state, effects, thoughts, give_failures or enough is not None, enough)


def replies(state: Any, reply: type[T], *items: Ask | Thought) -> Generator[Request, Any, list[T]]:
    """Ask side by side: `yield from` gives the replies under their type, in the order asked; a failure is raised.

    Args:
        reply: The type of the stage's replies.
        items: What is asked, and thoughts to record.
    """
    values = [answer.value for answer in (yield request(state, *items))]
    if other := next((value for value in values if not isinstance(value, reply)), None):
        raise TypeError(f"the stage's replies are {type(other).__name__}, not {reply.__name__}")
    return values


class EffectFailed(Exception):
    """Raised at the yield whose effect failed; uncaught, it ends the run with that failure's code.

    Attributes:
        failure: The first one in the order asked.
    """

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.message)
        self.failure = failure


def raise_if_all_failed(answers: Answers) -> None:
    """Raise `EffectFailed` with the first failure if no answer is anything else; nothing where nothing was asked."""
    failures = [answer for answer in answers if isinstance(answer, Failed)]
    if failures and len(failures) == len(answers):
        raise EffectFailed(failures[0])


def _as_thoughts(thoughts: Sequence[Thought | str]) -> tuple[Thought, ...]:
    if not thoughts:
        return ()
    return tuple([Thought(thought) if isinstance(thought, str) else thought for thought in thoughts])
