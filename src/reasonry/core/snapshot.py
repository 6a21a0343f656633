"""Where a run stands: its snapshot, the effects it waits for, and what one answer led to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from .effects import Ask, Effect
from .events import Answered, Event, Failed, Finished
from .parse import ask_again
from .strategy import Outcome, Thought

Status = Literal["active", "done", "failed", "cancelled"]


class Pending(Struct, frozen=True, omit_defaults=True):
    """An effect to perform, or one already settled that waits for its siblings."""

    id: str
    stage: str
    effect: Effect
    round: int
    """1 for effects that wait for no model call, n + 1 for those that wait for one of round n."""
    replies: tuple[Answered, ...] = ()
    """What was answered so far; more than one after a re-ask."""
    before: int = 0
    """Of the replies, those that came before the run was taken up again: they use up no try."""
    settled: Event | Finished | None = None
    child: Snapshot | None = None
    """The run inside this one, for `RunStrategy`."""

    @property
    def tries(self) -> int:
        """How many of its tries the question has used up."""
        return len(self.replies) - self.before


class Snapshot(Struct, frozen=True, omit_defaults=True):
    """A run between two answers: all there is to know of it."""

    strategy: str
    problem: str
    options: dict[str, Any]
    stage: str
    state: Any
    status: Status = "active"
    pending: tuple[Pending, ...] = ()
    counter: int = 0
    rounds: int = 0
    """Dependent rounds of model calls so far."""
    at_ms: int = 0
    outcome: Outcome | None = None
    """Set when the run has ended."""
    error: str | None = None
    """The code of the failure that ended the run."""


class Step(Struct, frozen=True):
    """One answer taken: the new snapshot, what to perform now, and what happened on the way."""

    snapshot: Snapshot
    effects: tuple[Pending, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    thoughts: tuple[Thought, ...] = ()
    read: str = ""
    """How the reply just taken came to be read: `native`, a rung of `core.parse`, or `unreadable: REASON`."""


def wanted(snapshot: Snapshot) -> tuple[Pending, ...]:
    """Return the effects a run waits for, those of runs inside it included, with the ids to answer them by."""
    return tuple(_wanted(snapshot, "")) if snapshot.status == "active" else ()


def without_failures(snapshot: Snapshot, last: str = "") -> Snapshot:
    """Return the snapshot with every effect that failed waiting to be performed once more.

    A question whose replies could not be read is asked again, with the reason and as many tries as at first; runs
    inside this one included.

    Args:
        last: The question whose reply ended the run, if it was one; it is about to be taken once more.
    """
    own, _, inner = last.partition("/")
    pending = tuple(_once_more(one, inner, one.id == own) for one in snapshot.pending)
    return replace(snapshot, pending=pending)


def _once_more(one: Pending, inner: str, ended: bool) -> Pending:
    if one.settled is None and one.child is not None:
        return replace(one, child=without_failures(one.child, inner if ended else ""))
    if isinstance(one.settled, Failed):
        unreadable = isinstance(one.effect, Ask) and one.settled.code == "output_invalid"
        again = asked_again(one, one.settled.message) if unreadable else one
        return replace(again, settled=None, before=len(one.replies))
    return replace(one, before=len(one.replies) + 1) if ended and one.settled is None else one


def asked_again(one: Pending, reason: str) -> Pending:
    """Return a question whose latest reply cannot be read as it is asked next."""
    assert isinstance(one.effect, Ask)
    return replace(
        one,
        id=f"{one.id.partition('.')[0]}.{len(one.replies) + 1}",
        effect=ask_again(one.effect, one.replies[-1], reason),
        round=one.round + 1,
    )


def _wanted(snapshot: Snapshot, prefix: str) -> Iterator[Pending]:
    for one in snapshot.pending:
        if one.settled is not None:
            continue
        if one.child is not None:
            yield from _wanted(one.child, f"{prefix}{one.id}/")
        else:
            yield replace(one, id=prefix + one.id) if prefix else one
