"""Pending effects of a run and its child runs, and the snapshot of a run between two answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from .bodies import Answers, Conclusion
from .effects import Ask, Effect
from .events import NOTHING, UNREADABLE, Answered, Closing, Delivered, Failed, Usage
from .readings import Reading, ask_again

Status = Literal["active", "done", "failed", "cancelled"]


# `gc=False`, here and in the other structs of a step: each step makes many, and none is part of a reference cycle.
class Pending(Struct, frozen=True, omit_defaults=True, gc=False):
    """An effect that is open, or is settled and waits for the other effects of its request."""

    id: str
    stage: str
    effect: Effect
    round: int
    """1 if the effect depends on no model call, n + 1 if it depends on a call of round n."""
    replies: tuple[Answered, ...] = ()
    """The replies so far. After a retry, there are several."""
    before: int = 0
    """How many of the replies came before the run was resumed. These replies do not count as tries."""
    settled: Delivered | None = None
    """The answer that the stage receives. None while the effect is open."""
    child: Snapshot | None = None
    """The child run of a `RunStrategy`."""

    @property
    def tries(self) -> int:
        """How many tries have been used."""
        return len(self.replies) - self.before

    @property
    def last_round(self) -> int:
        """The number of the latest round of model calls in this effect."""
        if self.child is not None:
            return max([self.child.rounds, *(inner.last_round for inner in self.child.pending)])
        return self.round if isinstance(self.effect, Ask) else self.round - 1


class Round(Struct, frozen=True, array_like=True, gc=False):
    """The answers to one request, with a digest of the request's effects."""

    asked: int
    answers: Answers


class Snapshot(Struct, frozen=True, omit_defaults=True, gc=False):
    """The complete state of a run between two answers."""

    strategy: str
    problem: str
    options: dict[str, Any]
    stage: str
    state: Any
    """The state at the last yield, or at the stage's entry before the first yield."""
    status: Status = "active"
    pending: tuple[Pending, ...] = ()
    counter: int = 0
    rounds: int = 0
    """How many rounds of model calls, each dependent on the round before, the run has had."""
    at_ms: int = 0
    conclusion: Conclusion | None = None
    """The conclusion of the run. None until the run has ended."""
    error: str | None = None
    """The code of the failure that ended the run."""
    entry: Any = None
    """The state at the stage's entry. None means that it is the same as `state`."""
    rounds_had: tuple[Round, ...] = ()
    """The answers that the stage has received since its entry, one item for each yield."""
    asked: int = 0
    """The digest of the pending effects."""
    has_enough: bool = False
    """Whether the pending request has a test `enough`."""
    by: str = "writer"
    """The role that answers questions to the writer. A child run takes this role from its effect."""
    closing: Closing | None = None
    """The event that closed the run or a child run."""
    calls_left: int | None = None
    """How many calls are left in the budget, counting only the run's own events. A child run gets a share."""
    is_closed: bool = False
    """Whether the run itself was closed. The ids of later effects then name the closing, as in `c1e4`."""
    prompts: dict[str, str] = {}
    """Maps `STRATEGY.STAGE` to the user's prompt for that stage, also in child runs; see `Ask.with_prompt`."""


def answers_in(pending: Sequence[Pending]) -> Answers:
    """Return the answers of the settled effects."""
    return tuple([waiting.settled for waiting in pending if waiting.settled is not None])


def spent_on(replies: Sequence[Answered]) -> Usage:
    """Return the usage of all tries of a question."""
    return replies[0].usage if len(replies) == 1 else sum((reply.usage for reply in replies), NOTHING)


def open_effects(snapshot: Snapshot) -> tuple[Pending, ...]:
    """Return the open effects of a run and its child runs, each under its full id, such as `e4/e1`."""
    return tuple(walk_open(snapshot.pending)) if snapshot.status == "active" else ()


def walk_open(pending: Sequence[Pending], prefix: str = "") -> Iterator[Pending]:
    """Yield the open effects, including the open effects of child runs, each with its full id."""
    for waiting in pending:
        if waiting.settled is not None:
            continue
        if waiting.child is not None:
            yield from walk_open(waiting.child.pending, f"{prefix}{waiting.id}/")
        else:
            yield replace(waiting, id=prefix + waiting.id) if prefix else waiting


def without_failures(snapshot: Snapshot, last: str = "") -> Snapshot:
    """Reopen the failed effects of a run and its child runs.

    If a question got no readable reply, it is asked again with the reason, and all of its tries are available again.

    Args:
        last: The id of the question whose reply ended the run, if any. The caller applies that reply again.
    """
    own, _, inner = last.partition("/")
    pending = tuple(_once_more(waiting, inner, waiting.id == own) for waiting in snapshot.pending)
    return replace(snapshot, pending=pending)


def _once_more(waiting: Pending, inner: str, is_last: bool) -> Pending:
    if waiting.settled is None and waiting.child is not None:
        return replace(waiting, child=without_failures(waiting.child, inner if is_last else ""))
    if isinstance(waiting.settled, Failed):
        unreadable = isinstance(waiting.effect, Ask) and waiting.settled.code == UNREADABLE
        reopened = next_try(waiting, Reading(refusal=waiting.settled.message)) if unreadable else waiting
        return replace(reopened, settled=None, before=len(waiting.replies))
    return (
        replace(waiting, before=len(waiting.replies) + 1) if is_last and waiting.settled is None else waiting
    )


def next_try(waiting: Pending, reading: Reading) -> Pending:
    """Return a question's next try after an unreadable reply."""
    assert isinstance(waiting.effect, Ask)
    return replace(
        waiting,
        id=f"{waiting.id.partition('.')[0]}.{len(waiting.replies) + 1}",
        effect=ask_again(waiting.effect, waiting.replies[-1], reading),
        round=waiting.round + 1,
    )
