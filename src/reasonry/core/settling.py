"""How an effect is settled: which events fit it, how replies are read, and how a run inside a run is seen from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec.structs import replace

from ..errors import ConflictError
from . import parse
from .budget import NOTHING
from .effects import Ask, CallTool, RunStrategy, Verify
from .events import Answered, Delivered, Event, Failed, Finished, Reply, Stopped, ToolReturned, Verified
from .parse import Unreadable
from .snapshot import Pending, Snapshot, Step
from .strategy import Outcome, Stage, Thought

_KINDS: dict[type, tuple[type, ...]] = {
    Ask: (Answered, Failed),
    CallTool: (ToolReturned, Failed),
    Verify: (Verified, Failed),
    RunStrategy: (),
}


def check_kind(one: Pending, event: Event) -> None:
    """Raise ConflictError unless an event of this kind can settle the effect."""
    kinds = _KINDS[type(one.effect)]
    if not isinstance(event, kinds):
        raise ConflictError(
            f"effect {one.id!r} cannot be settled by {type(event).__name__}",
            effect=one.id,
            choices=[kind.__name__ for kind in kinds],
        )


def read_reply(
    stage: Stage[Any], state: Any, effect: Ask, replies: Sequence[Answered]
) -> tuple[Any, str] | Unreadable:
    """Read the latest reply the way its stage reads; return the value and the rung it was read on."""
    latest = replies[-1]
    if latest.refused:
        return Unreadable("the answer was declined; answer the question as asked")
    if latest.truncated and not parse.is_whole(latest.text):
        return Unreadable("the reply was cut off before its end; answer more briefly")
    if not latest.text.strip():
        return Unreadable("the reply was empty")
    if stage.read is not None:
        return stage.read(state, effect, [reply.text for reply in replies])
    if stage.reply is not None:
        return parse.read_form(latest.text, stage.reply)
    return latest.text, "text"


def delivered(stage: Stage[Any], state: Any, one: Pending) -> Delivered:
    """Return what a stage gets for an effect that is settled, with all it took."""
    event = one.settled
    spent = sum((reply.usage for reply in one.replies), NOTHING)
    if not isinstance(event, Answered):
        assert event is not None, "a stage is folded when all its effects are settled"
        assert not isinstance(event, Stopped), "a stop ends the run and settles nothing"
        return (
            replace(event, usage=event.usage + spent) if isinstance(event, Failed) and one.replies else event
        )
    assert isinstance(one.effect, Ask)
    reading = read_reply(stage, state, one.effect, one.replies)
    assert not isinstance(reading, Unreadable), "a settled answer has been read before"
    return Reply(reading[0], event.text, rung(reading, event), len(one.replies), event.at_ms, spent)


def rung(reading: tuple[Any, str] | Unreadable, event: Answered) -> str:
    """Return how a reply came to be read, for the record; see `Step.read`."""
    if isinstance(reading, Unreadable):
        return f"unreadable: {reading.reason}"
    return "native" if event.native else reading[1]


def finished(
    outcome: Outcome, status: Literal["done", "failed", "cancelled"], at_ms: int, code: str | None = None
) -> Finished:
    """Return the end of a run inside a run as the outer stage gets it."""
    return Finished(
        outcome.answer,
        status,
        outcome.reason,
        outcome.detail,
        outcome.document,
        at_ms,
        short=outcome.short,
        code=code,
    )


def round_of(one: Pending) -> int:
    """Return the round of questions an effect stands in; what is no question adds none."""
    if one.child is not None:
        return max([one.child.rounds, *(round_of(each) for each in one.child.pending)])
    asks = isinstance(one.effect, Ask)
    return one.round if asks else one.round - 1


def later(step: Step, rounds: int) -> Step:
    """Shift the rounds of a run that starts inside another, after that one's first `rounds` rounds."""
    return replace(step, snapshot=_shifted(step.snapshot, rounds))


def _shifted(run: Snapshot, rounds: int) -> Snapshot:
    pending = tuple(
        replace(one, round=one.round + rounds, child=one.child and _shifted(one.child, rounds))
        for one in run.pending
    )
    return replace(run, rounds=run.rounds + rounds, pending=pending)


def inside(effect_id: str, thought: Thought) -> Thought:
    """Put a thought of the run inside an effect on that effect's own branch, which leaves the main line."""
    if thought.branch is None:
        return replace(thought, branch=effect_id)
    leaves = effect_id if thought.leaves is None else f"{effect_id}/{thought.leaves}"
    return replace(thought, branch=f"{effect_id}/{thought.branch}", leaves=leaves)
