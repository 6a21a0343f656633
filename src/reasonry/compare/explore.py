"""A test for strategy authors: walk the paths of a strategy, and check the laws below.

The depth of a path is its count of unusual outcomes. The usual outcomes are the first fitting reply, the first result
of a tool, and the verdict `unknown`. All paths are walked without a limit on calls, and again with each limit from one
call up. At each point, a cancellation is also tried, and (without a limit) a time-out. Equal points are walked once.

Law 1: a run does not take more calls than its limit.
Law 2: a run ends with a reason. It is `done` only if it has an answer, and `failed` only if not. No stage body raises.
Law 3: an answer that a verifier refuted is never given.
Law 4: an answer comes from the last stage, is proved, or is marked as the best so far.
Law 5: if a limit on calls ends a run that can be closed, the run keeps its answer, even after an unusable last reply.
Law 6: if a crash between any two events interrupts a run, the resumed run equals the uninterrupted run.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from ..blocks.reply import read_reply
from ..core.codec import dump_snapshot, load_snapshot
from ..core.effects import Ask, CallTool, Verify
from ..core.events import NOTHING, Answered, Closing, Event, Failed, Stopped, ToolReturned, Usage, Verified
from ..core.machine import advance, as_recorded, begin, last_questions
from ..core.options import read_options
from ..core.pending import Pending, Snapshot, open_effects
from ..core.readings import Reading
from ..core.strategy import Strategy
from ..strategies import STRATEGIES

MAX_EVENTS: Final = 500
"""The most events on a path. A run that has more events counts as endless."""
_USAGE: Final = Usage(usd=0.01)
_LOST: Final[dict[str, Event]] = {
    "unreadable": Answered("{{{[", usage=_USAGE),
    "declined": Answered("I decline to answer.", usage=_USAGE, refused=True),
    "cut off": Answered('{"reasoning": "It continues and', usage=_USAGE, truncated=True),
    "failed": Failed("provider_error", "the provider is down", usage=_USAGE),
}
_RULED: Final[dict[str, Event]] = {
    **{verdict: Verified(verdict) for verdict in ("unknown", "right", "wrong")},
    "failed": Failed("verifier_error", "the verifier is down"),
}


class Explored(Struct, frozen=True):
    """The result of `explore`: broken laws, untaken edges, and the size of the walk."""

    faults: tuple[str, ...]
    untaken: tuple[tuple[str, str], ...]
    states: int
    events: int
    limits: int


class _Point(Struct, frozen=True):
    """A point on a path. `left` is the number of unusual outcomes that may still follow."""

    snapshot: Snapshot
    left: int
    way: tuple[str, ...] = ()
    calls: int = 0
    ruled: Mapping[str, str] = {}


def explore(
    strategy: Strategy[Any, Any],
    depth: int = 1,
    options: Mapping[str, Any] | None = None,
    outcomes: Callable[[Pending], Sequence[Any]] = lambda _: (),
) -> Explored:
    """Walk the paths of a strategy, and report broken laws. A path has at most `depth` unusual outcomes.

    Args:
        options: The strategy's options by name.
        outcomes: Returns more outcomes to try for an effect, as data or text. For a question, these are replies, which
            are tried before the example of the question's stage. For a tool call, these are results.
    """
    walk, chosen, limit = _Walk(strategy, outcomes), read_options(strategy, options or {}), 0
    while limit <= walk.most_calls:
        walk.take_paths(chosen, depth, limit)
        limit += 1
    untaken = tuple(edge for edge in strategy.edges if edge not in walk.taken)
    return Explored(tuple(sorted(walk.faults, key=len)), untaken, len(walk.states), walk.events, limit - 1)


class _Walk:
    events = most_calls = 0

    def __init__(self, strategy: Strategy[Any, Any], outcomes: Callable[[Pending], Sequence[Any]]) -> None:
        self.strategy, self.more, self.known = strategy, outcomes, {**STRATEGIES, strategy.name: strategy}
        self.taken, self.states, self.faults = set[tuple[str, str]](), set[bytes](), set[str]()

    def take_paths(self, options: Struct, depth: int, limit: int) -> None:
        """Walk every path of a run that may make `limit` model calls. If `limit` is 0, there is no limit."""
        problem, left = "Use 4, 6 and 1 to make 24", limit or None
        first = begin(self.strategy, problem, options, strategies=self.known, calls_left=left)
        self.taken.update(first.edges)
        points, passed = [_Point(first.snapshot, depth)], set[Any]()
        while points:
            point = points.pop()
            if len(point.way) == MAX_EVENTS:
                self.faults.add(f"the run does not end: {' > '.join(point.way)}")
                self.most_calls = 0
                break
            if point.snapshot.status == "active":
                data = dump_snapshot(point.snapshot)
                here = data, point.left, point.calls, frozenset(point.ruled.items()), point.way[-1:]
                if here not in passed:
                    passed.add(here)
                    self.states.add(data)
                    points += self._next_points(point, load_snapshot(data, self.known), limit)
                continue
            self.most_calls = self.most_calls if limit else max(self.most_calls, point.calls)
            self.faults |= {f"{law}: {' > '.join(point.way)}" for law in self._broken_laws(point, limit)}

    def _next_points(self, point: _Point, loaded: Snapshot, limit: int) -> Iterator[_Point]:
        before, price = point.snapshot, 0
        waiting = min(open_effects(before), key=lambda each: isinstance(each.effect, Ask))
        asks = last_questions(self.strategy, before, self.known)
        end = Stopped if asks is None else Closing
        if limit and isinstance(waiting.effect, Ask) and point.calls + len(asks or ()) >= limit:
            yield from self._apply(point, loaded, "limit", None, end("max_calls"))
            return
        for name, event in self._outcomes(point, waiting):
            cost = 0 if name == "again" else price
            for after in self._apply(point, loaded, name, waiting, event, cost) if cost <= point.left else ():
                price = 1
                yield after
        yield from self._apply(point, loaded, "cancelled", None, Stopped("cancelled"))
        if not limit and before.closing is None:
            yield from self._apply(point, loaded, "out of time", None, end("max_seconds"))

    def _apply(
        self, point: _Point, loaded: Snapshot, name: str, waiting: Pending | None, event: Event, cost: int = 0
    ) -> Iterator[_Point]:
        """Apply an event, and yield the next point. If the reader refuses a reply that should fit, yield nothing."""
        before, own, read, ruled = point.snapshot, waiting and waiting.id, read_reply, dict(point.ruled)
        step = advance(self.strategy, before, own, event, read=read, strategies=self.known)
        if (reading := step.reading) is not None:
            if reading.refusal is not None and name.startswith("fits"):
                return
            read = as_recorded(msgspec.json.decode(msgspec.json.encode(reading), type=Reading))
        resumed = advance(self.strategy, loaded, own, event, read=read, strategies=self.known)
        way = (*point.way, f"{own} {waiting.stage}: {name}" if waiting else name)
        if loaded != before or resumed != step:
            self.faults.add(f"a crash changes the run: {' > '.join(way)}")
        if waiting and isinstance(waiting.effect, Verify):
            ruled[waiting.effect.path[-1]] = name
        self.taken.update(step.edges)
        self.events += 1
        calls = point.calls + getattr(event, "usage", NOTHING).calls
        yield _Point(step.snapshot, point.left - cost, way, calls, ruled)

    def _outcomes(self, point: _Point, waiting: Pending) -> Iterator[tuple[str, Event]]:
        effect, more = waiting.effect, self.more(waiting)
        if isinstance(effect, Verify):
            known = point.ruled.get(effect.path[-1])
            yield from ((name, event) for name, event in _RULED.items() if known in (None, name))
        elif isinstance(effect, CallTool):
            yield from ((f"returns {value!r:.60}", ToolReturned(value)) for value in (*more, "42"))
            yield "failed", Failed("tool_error", "the tool is down")
        else:
            tables = self.strategy, *self.known.values()
            examples = [
                table.by_name[waiting.stage].example for table in tables if waiting.stage in table.by_name
            ]
            fitting = filter(None, (*more, *examples, "<answer>42</answer>", "<answer>43</answer>"))
            texts = (
                each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in fitting
            )
            yield from ((f"fits {text!r:.60}", Answered(text, usage=_USAGE)) for text in dict.fromkeys(texts))
            yield from [("again", waiting.replies[-1])] if waiting.replies else _LOST.items()

    def _broken_laws(self, point: _Point, limit: int) -> Iterator[str]:
        end, snapshot, ruled = point.snapshot.conclusion, point.snapshot, point.ruled
        if limit and point.calls > limit:
            yield "the limit is passed"
        if end is None or not end.reason or snapshot.status == ("done" if end.answer is None else "failed"):
            yield "there is no outcome"
        elif snapshot.error in ("stage_error", "stage_loop"):
            yield end.detail
        elif end.answer is None or end.certainty == "best_so_far":
            is_lost = point.way[-1] == "limit" and ": fits" not in "".join(point.way[-2:])
            is_open = end.answer is not None and "wrong" not in ruled.values()
            if is_lost and is_open and self.strategy.close(snapshot.state) is not None:
                yield "a limit takes the answer"
        elif ruled.get(end.answer) == "wrong":
            yield "a refuted answer is given"
        elif end.certainty == "given" and self.strategy.by_name[snapshot.stage].to:
            yield "the answer does not come from the last stage"
