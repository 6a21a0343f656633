"""Walking a strategy through the pure machine, with someone who answers each effect."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from reasonry.core.bodies import Conclusion, Thought
from reasonry.core.effects import Ask
from reasonry.core.events import Answered, Event, Stopped
from reasonry.core.machine import Pending, Snapshot, begin, open_effects
from reasonry.core.strategy import Strategy
from reasonry.strategies import STRATEGIES

from ..playing import advance


@dataclass
class Walked:
    """Where a walk has come to, and what it left behind."""

    snapshot: Snapshot
    edges: list[tuple[str, str]] = field(default_factory=list)
    thoughts: list[Thought] = field(default_factory=list)
    performed: list[Pending] = field(default_factory=list)

    @property
    def conclusion(self) -> Conclusion:
        assert self.snapshot.conclusion is not None
        return self.snapshot.conclusion

    @property
    def asks(self) -> list[Ask]:
        return [one.effect for one in self.performed if isinstance(one.effect, Ask)]


def walk(
    strategy: Strategy[Any, Any],
    problem: str,
    answer: Callable[[Pending], Event],
    options: Mapping[str, Any] | None = None,
) -> Walked:
    """Answer whatever is wanted, in order, until the run has ended."""
    step = begin(strategy, problem, msgspec.convert(options or {}, strategy.options), strategies=STRATEGIES)
    walked = Walked(step.snapshot, list(step.edges), list(step.thoughts))
    while pending := open_effects(walked.snapshot):
        one = pending[0]
        walked.performed.append(one)
        step = advance(strategy, walked.snapshot, one.id, answer(one), strategies=STRATEGIES)
        walked.snapshot = step.snapshot
        walked.edges += step.edges
        walked.thoughts += step.thoughts
        assert len(walked.performed) < 500
    return walked


def reply(value: Any) -> Answered:
    """A model's reply: text as it stands, anything else as JSON."""
    return Answered(value if isinstance(value, str) else json.dumps(value))


class Mind:
    """A model that says what `reply` returns, and keeps what it was asked."""

    name = "mind"

    def __init__(self) -> None:
        self.asked: list[Ask] = []

    def reply(self, ask: Ask) -> Any:
        raise NotImplementedError

    async def answer(self, question: Any, on_text: Any = None) -> Answered:
        self.asked.append(question.ask)
        return reply(self.reply(question.ask))

    async def close(self) -> None:
        """Nothing is open."""


def in_order(*events: Any) -> Callable[[Pending], Event]:
    """Answer with these, one after the other, whatever is wanted; what is no event is a reply."""
    waiting: Sequence[Any] = list(events)

    def answer(_: Pending) -> Event:
        event = waiting.pop(0)  # type: ignore[attr-defined]
        return event if isinstance(event, msgspec.Struct) else reply(event)

    return answer


def stopped_after(strategy: Strategy[Any, Any], problem: str, *replies: Any) -> Conclusion:
    """Return what a run gives that is stopped at a limit after these replies, each to the one question asked."""
    snapshot = begin(strategy, problem).snapshot
    for one in replies:
        (asked,) = open_effects(snapshot)
        snapshot = advance(strategy, snapshot, asked.id, Answered(json.dumps(one))).snapshot
    conclusion = advance(strategy, snapshot, None, Stopped("max_calls")).snapshot.conclusion
    assert conclusion is not None
    return conclusion
