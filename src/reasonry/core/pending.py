"""What a run waits for: its effects that are pending, those of runs inside it, and the run between two answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from .bodies import Answers, Conclusion
from .effects import Ask, Effect
from .events import NOTHING, Answered, Closing, Delivered, Failed, Usage
from .readings import Reading, ask_again

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
    settled: Delivered | None = None
    """What the stage gets for it."""
    child: Snapshot | None = None
    """The run inside this one, for `RunStrategy`."""

    @property
    def tries(self) -> int:
        """How many of its tries the question has used up."""
        return len(self.replies) - self.before

    @property
    def last_round(self) -> int:
        """The round of questions it stands in; what is no question adds none."""
        if self.child is not None:
            return max([self.child.rounds, *(inner.last_round for inner in self.child.pending)])
        return self.round if isinstance(self.effect, Ask) else self.round - 1


class Round(Struct, frozen=True, array_like=True):
    """The answers to one request, with a digest of what it asked."""

    asked: int
    answers: Answers


class Snapshot(Struct, frozen=True, omit_defaults=True):
    """A run between two answers: all there is to know of it."""

    strategy: str
    problem: str
    options: dict[str, Any]
    stage: str
    state: Any
    """As of the last yield, or of the stage's entry before the first one."""
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
    """The state at the stage's entry, where it is not `state`."""
    rounds_had: tuple[Round, ...] = ()
    """What this stage has been answered since its entry, yield by yield."""
    asked: int = 0
    """Digest of what is pending."""
    has_enough: bool = False
    """Whether the request that is pending has a test `enough`."""
    by: str = "writer"
    """Who answers what is asked of the writer; of a run inside another, as its effect says."""
    closing: Closing | None = None
    """What closed the run, or a run inside it, if anything did."""
    calls_left: int | None = None
    """How many calls the budget leaves, as far as the run's own events tell; of a run inside another, its share."""
    is_closed: bool = False
    """Whether it was the run itself; the ids of its effects from then on tell: `c1e4`."""
    prompts: dict[str, str] = {}
    """Questions of stages in place of the strategy's own; see `Ask.with_prompt`. Runs inside this one have them too."""


def answers_in(pending: Sequence[Pending]) -> Answers:
    """Return what those that are settled have brought."""
    return tuple([waiting.settled for waiting in pending if waiting.settled is not None])


def spent_on(replies: Sequence[Answered]) -> Usage:
    """Return what all tries of a question took."""
    return replies[0].usage if len(replies) == 1 else sum((reply.usage for reply in replies), NOTHING)


def open_effects(snapshot: Snapshot) -> tuple[Pending, ...]:
    """Return the effects a run waits for, those of runs inside it included, with the ids to answer them by."""
    return tuple(walk_open(snapshot.pending)) if snapshot.status == "active" else ()


def walk_open(pending: Sequence[Pending], prefix: str = "") -> Iterator[Pending]:
    """Yield those that are open, with the ids to answer them by."""
    for waiting in pending:
        if waiting.settled is not None:
            continue
        if waiting.child is not None:
            yield from walk_open(waiting.child.pending, f"{prefix}{waiting.id}/")
        else:
            yield replace(waiting, id=prefix + waiting.id) if prefix else waiting


def without_failures(snapshot: Snapshot, last: str = "") -> Snapshot:
    """Return the snapshot with every effect that failed waiting to be performed once more.

    A question whose replies could not be read is asked again, with the reason and as many tries as at first; runs
    inside this one included.

    Args:
        last: The question whose reply ended the run, if it was one; it is about to be taken once more.
    """
    own, _, inner = last.partition("/")
    pending = tuple(_once_more(waiting, inner, waiting.id == own) for waiting in snapshot.pending)
    return replace(snapshot, pending=pending)


def _once_more(waiting: Pending, inner: str, is_last: bool) -> Pending:
    if waiting.settled is None and waiting.child is not None:
        return replace(waiting, child=without_failures(waiting.child, inner if is_last else ""))
    if isinstance(waiting.settled, Failed):
        unreadable = isinstance(waiting.effect, Ask) and waiting.settled.code == "output_invalid"
        reopened = next_try(waiting, Reading(refusal=waiting.settled.message)) if unreadable else waiting
        return replace(reopened, settled=None, before=len(waiting.replies))
    return (
        replace(waiting, before=len(waiting.replies) + 1) if is_last and waiting.settled is None else waiting
    )


def next_try(waiting: Pending, reading: Reading) -> Pending:
    """Return a question whose latest reply cannot be read as it is asked next."""
    assert isinstance(waiting.effect, Ask)
    return replace(
        waiting,
        id=f"{waiting.id.partition('.')[0]}.{len(waiting.replies) + 1}",
        effect=ask_again(waiting.effect, waiting.replies[-1], reading),
        round=waiting.round + 1,
    )
