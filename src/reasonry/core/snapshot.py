"""Where a run stands: its snapshot, the effects it waits for, and what one answer led to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from .effects import Effect
from .events import Answered, Event, Failed, Finished
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
    settled: Event | Finished | None = None
    child: Snapshot | None = None
    """The run inside this one, for `RunStrategy`."""


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


def without_failures(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with every effect that failed waiting to be performed once more."""
    pending = tuple(
        replace(one, settled=None) if isinstance(one.settled, Failed) else one for one in snapshot.pending
    )
    return replace(snapshot, pending=pending)


def _wanted(snapshot: Snapshot, prefix: str) -> Iterator[Pending]:
    for one in snapshot.pending:
        if one.settled is not None:
            continue
        if one.child is not None:
            yield from _wanted(one.child, f"{prefix}{one.id}/")
        else:
            yield replace(one, id=prefix + one.id) if prefix else one
