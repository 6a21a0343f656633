"""The protocol of a stage's body: the body yields requests, receives the answers, and returns a move.

Rule 1: each `yield from request(state, …)` gives the machine the current state and the effects. The body receives the
        answers as a tuple, in the order of the effects. At its end, the body returns a `Move`.
Rule 2: the machine keeps only data between two answers. It replays the body from the start with the stage's earlier
        answers, so the same answers must lead to the same requests. A body should have at most about 20 yields. An
        unbounded loop returns `stay` after each round, or goes to the next stage.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Self, TypeVar

from msgspec import Struct

from .effects import Ask, Effect
from .events import Conclusion as Conclusion
from .events import Delivered, Failed

T = TypeVar("T")


class Thought(Struct, frozen=True, omit_defaults=True):
    """A record that a driven run writes into its session.

    Attributes:
        branch: The thought's branch. None means the main line.
        leaves: The branch from which `branch` starts. None means the main line.
    """

    text: str
    stage: str = ""
    branch: str | None = None
    leaves: str | None = None
    revises: int | None = None
    score: float | None = None
    data: dict[str, Any] = {}


class Move(Struct, frozen=True, gc=False):
    """A stage's decision: the new state, the thoughts to record, and the next stage (None means the same stage)."""

    state: Any
    to: str | None = None
    thoughts: tuple[Thought, ...] = ()
    failure: tuple[str, str, str | None] | None = None
    """(reason, detail, code) if the move ends the run as `failed`. None means that the run continues."""


def go(state: Any, to: str, *thoughts: Thought | str) -> Move:
    """Return a move along the edge to the stage `to`."""
    return Move(state, to, _as_thoughts(thoughts))


def stay(state: Any, *thoughts: Thought | str) -> Move:
    """Return a move that repeats the current stage. The move is recorded as an edge if `Stage.repeats` is set."""
    return Move(state, None, _as_thoughts(thoughts))


def fail(state: Any, reason: str, detail: str = "", code: str | None = None) -> Move:
    """Return a move that ends the run as failed. The result has no answer, but keeps the data gathered so far."""
    return Move(state, failure=(reason, detail, code))


Answers = tuple[Delivered, ...]


class Request(Struct, frozen=True, gc=False):
    """One yield of a body: the current state, and the effects that the body requests.

    Attributes:
        state: The state at this yield. Until the next yield, conclusions, readers and stops use this state.
        effects: The effects to perform concurrently. If there are none, the body continues at once.
        thoughts: The thoughts to record when the body reaches this yield for the first time.
        give_failures: Whether the body receives failures as answers. Otherwise the yield raises the first failure.
        enough: A pure test of the answers so far (None if missing). Once the test is true, open effects are cancelled.
            Cancelled child runs give `Finished(cancelled)` with their best result, and other effects `Failed(stopped)`.
    """

    state: Any
    effects: tuple[Effect, ...]
    thoughts: tuple[Thought, ...] = ()
    give_failures: bool = False
    enough: Callable[[tuple[Delivered | None, ...]], bool] | None = None

    def __iter__(self) -> Generator[Self, Any, Answers]:
        """Let `yield from` return the answers with their type. A plain `yield` returns `Any`."""
        return (yield self)


Body = Generator[Request, Any, Move]
"""The generator of a stage's body: it yields requests, receives `Answers`, and returns a `Move`."""


def request(
    state: Any,
    *items: Effect | Thought,
    give_failures: bool = False,
    enough: Callable[[tuple[Delivered | None, ...]], bool] | None = None,
) -> Request:
    """Build a request from the current state, the effects to perform, and the thoughts to record.

    Args:
        give_failures: Whether the body receives failures as answers. Otherwise the first failure is raised as
            `EffectFailed` once all answers have arrived. A test `enough` implies `give_failures`.
        enough: See `Request.enough`.
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
    """Ask questions concurrently. `yield from` returns replies of the type `reply`, or raises the first failure."""
    values = [answer.value for answer in (yield request(state, *items))]
    if other := next((value for value in values if not isinstance(value, reply)), None):
        raise TypeError(f"the stage's replies are {type(other).__name__}, not {reply.__name__}")
    return values


class EffectFailed(Exception):
    """Raised at a yield for the first failed effect. If the body does not catch this exception, the run fails."""

    def __init__(self, failure: Failed) -> None:
        super().__init__(failure.message)
        self.failure = failure


def raise_if_all_failed(answers: Answers) -> None:
    """Raise `EffectFailed` with the first failure if there are answers and all of them are failures."""
    failures = [answer for answer in answers if isinstance(answer, Failed)]
    if failures and len(failures) == len(answers):
        raise EffectFailed(failures[0])


def _as_thoughts(thoughts: Sequence[Thought | str]) -> tuple[Thought, ...]:
    if not thoughts:
        return ()
    return tuple([Thought(thought) if isinstance(thought, str) else thought for thought in thoughts])
