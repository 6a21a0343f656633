"""The protocol of a stage's body: the requests it yields, the answers it receives, the move it returns.

Rule 1: each `yield from request(state, …)` states the current state and the effects; the body receives the answers as a
        tuple in the order asked, and returns its `Move`.
Rule 2: the machine replays a body over the stage's earlier answers, so only data lives between two answers. The same
        answers must lead to the same requests. A body has at most about 20 yields: an unbounded loop ends each round
        with `stay` or goes to the next stage of the table.
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
    """A record that a driven run writes into its session.

    Attributes:
        branch: The thought's branch. None for the main line.
        leaves: The branch that `branch` starts from. None for the main line.
    """

    text: str
    stage: str = ""
    branch: str | None = None
    leaves: str | None = None
    revises: int | None = None
    score: float | None = None
    data: dict[str, Any] = {}


class Move(Struct, frozen=True, gc=False):
    """A stage's decision: the new state, the thoughts to record, and the next stage (None for the same stage)."""

    state: Any
    to: str | None = None
    thoughts: tuple[Thought, ...] = ()
    failure: tuple[str, str, str | None] | None = None
    """Ends the run as `failed`: (reason, detail, code)."""


def go(state: Any, to: str, *thoughts: Thought | str) -> Move:
    """Take the edge to stage `to`."""
    return Move(state, to, _as_thoughts(thoughts))


def stay(state: Any, *thoughts: Thought | str) -> Move:
    """Stay in the stage, whose body then starts again; this is not a transition."""
    return Move(state, None, _as_thoughts(thoughts))


def fail(state: Any, reason: str, detail: str = "", code: str | None = None) -> Move:
    """End the run as failed, with the best result so far."""
    return Move(state, failure=(reason, detail, code))


Answers = tuple[Delivered, ...]


class Request(Struct, frozen=True, gc=False):
    """The state and the effects of one yield.

    Attributes:
        state: The state at this yield. From here on, conclusions, readers and stops use it.
        effects: Performed concurrently; the answers keep this order. Without effects the body continues at once.
        thoughts: Recorded once, when the yield is reached.
        give_failures: Whether failures are among the answers; otherwise the first failure is raised at the yield.
        enough: Pure test over the answers so far, with None for a missing one. When it holds, the missing effects are
            cancelled and arrive as `Failed(stopped)`, a child run as `Finished(cancelled)` with its best result so far.
    """

    state: Any
    effects: tuple[Effect, ...]
    thoughts: tuple[Thought, ...] = ()
    give_failures: bool = False
    enough: Callable[[tuple[Delivered | None, ...]], bool] | None = None

    def __iter__(self) -> Generator[Request, Any, Answers]:
        """Support `yield from`, which types the answers; a plain `yield` does not."""
        return (yield self)


Body = Generator[Request, Any, Move]
"""The generator of a stage's body: yields requests, receives `Answers`, returns a `Move`."""


def request(
    state: Any,
    *items: Effect | Thought,
    give_failures: bool = False,
    enough: Callable[[tuple[Delivered | None, ...]], bool] | None = None,
) -> Request:
    """Build a request from the current state, effects to perform and thoughts to record.

    Args:
        give_failures: Receive failures as answers; otherwise the first is raised as `EffectFailed` when all answers
            are in. Implied by `enough`.
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
    """Ask concurrently: `yield from` returns the typed replies in the order asked and raises a failure."""
    values = [answer.value for answer in (yield request(state, *items))]
    if other := next((value for value in values if not isinstance(value, reply)), None):
        raise TypeError(f"the stage's replies are {type(other).__name__}, not {reply.__name__}")
    return values


class EffectFailed(Exception):
    """The first failure in the order asked, raised at the yield. Uncaught, it ends the run with the failure's code."""

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.message)
        self.failure = failure


def raise_if_all_failed(answers: Answers) -> None:
    """Raise `EffectFailed` with the first failure if all answers are failures. Does nothing without answers."""
    failures = [answer for answer in answers if isinstance(answer, Failed)]
    if failures and len(failures) == len(answers):
        raise EffectFailed(failures[0])


def _as_thoughts(thoughts: Sequence[Thought | str]) -> tuple[Thought, ...]:
    if not thoughts:
        return ()
    return tuple([Thought(thought) if isinstance(thought, str) else thought for thought in thoughts])
