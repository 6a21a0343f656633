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


class Pending(Struct, frozen=True, omit_defaults=True, gc=False):
    """An effect to perform, or a settled effect that waits for its siblings."""

    id: str
    stage: str
    effect: Effect
    round: int
    """1 for effects that depend on no model call, n + 1 for effects that depend on a call of round n."""
    replies: tuple[Answered, ...] = ()
    """The replies so far; several after a retry."""
    before: int = 0
    """The number of replies from before the run was resumed: they do not count as tries."""
    settled: Delivered | None = None
    """The answer that the stage receives."""
    child: Snapshot | None = None
    """The child run of a `RunStrategy`."""

    @property
    def tries(self) -> int:
        """The number of tries used."""
        return len(self.replies) - self.before

    @property
    def last_round(self) -> int:
        """The latest round of questions in this effect; effects other than questions add no round."""
        if self.child is not None:
            return max([self.child.rounds, *(inner.last_round for inner in self.child.pending)])
        return self.round if isinstance(self.effect, Ask) else self.round - 1


class Round(Struct, frozen=True, array_like=True, gc=False):
    """The answers to one request, with a digest of its effects."""

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
    """Dependent rounds of model calls so far."""
    at_ms: int = 0
    conclusion: Conclusion | None = None
    """Set when the run has ended."""
    error: str | None = None
    """The code of the failure that ended the run."""
    entry: Any = None
    """The state at the stage's entry. None if it is `state`."""
    rounds_had: tuple[Round, ...] = ()
    """The answers to this stage since its entry, yield by yield."""
    asked: int = 0
    """Digest of the pending effects."""
    has_enough: bool = False
    """Whether the pending request has a test `enough`."""
    by: str = "writer"
    """The role that answers the writer's questions; for a child run, the role in its effect."""
    closing: Closing | None = None
    """The event that closed the run or a child run."""
    calls_left: int | None = None
    """The calls left in the budget by the run's own events; for a child run, its share."""
    is_closed: bool = False
    """Whether the run itself was closed; later effect ids show the closing: `c1e4`."""
    prompts: dict[str, str] = {}
    """Replacements for the questions of stages, in child runs too; see `Ask.with_prompt`."""


def answers_in(pending: Sequence[Pending]) -> Answers:
    """Return the answers of the settled effects."""
    return tuple([waiting.settled for waiting in pending if waiting.settled is not None])


def spent_on(replies: Sequence[Answered]) -> Usage:
    """Return the usage of all tries of a question."""
    return replies[0].usage if len(replies) == 1 else sum((reply.usage for reply in replies), NOTHING)


def open_effects(snapshot: Snapshot) -> tuple[Pending, ...]:
    """Return the open effects of a run and its child runs under their full ids."""
    return tuple(walk_open(snapshot.pending)) if snapshot.status == "active" else ()


def walk_open(pending: Sequence[Pending], prefix: str = "") -> Iterator[Pending]:
    """Yield the open effects under their full ids."""
    for waiting in pending:
        if waiting.settled is not None:
            continue
        if waiting.child is not None:
            yield from walk_open(waiting.child.pending, f"{prefix}{waiting.id}/")
        else:
            yield replace(waiting, id=prefix + waiting.id) if prefix else waiting


def without_failures(snapshot: Snapshot, last: str = "") -> Snapshot:
    """Reopen the failed effects of a run and its child runs.

    A question without a readable reply is asked again, with the reason and its full number of tries.

    Args:
        last: The question whose reply ended the run, if any. The caller applies that reply again.
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
    """Ask a question again after an unreadable reply."""
    assert isinstance(waiting.effect, Ask)
    return replace(
        waiting,
        id=f"{waiting.id.partition('.')[0]}.{len(waiting.replies) + 1}",
        effect=ask_again(waiting.effect, waiting.replies[-1], reading),
        round=waiting.round + 1,
    )
