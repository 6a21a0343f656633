"""Where a thought may go along its strategy's table.

Rule 1: a thought may continue from where its own line stands, from where the branch it merges stands, or from the stage
        of the session's latest thought. To name such a stage itself is to stay.
Rule 2: every further step of a path is an edge of the table.
Rule 3: a refusal says where the lines stand; `instead` has the arguments that would be accepted, if there are any.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..core.strategy import Strategy
from ..errors import IllegalTransitionError, UsageError
from ..reading.names import did_you_mean
from ..records import SessionView, ThoughtRow
from .lines import Head, ancestry, decode_record, find_thought, show_lines
from .thinking_tool import ThinkingCall

MAX_PATH = 32
"""Stages that one call may name."""

Table = Strategy[Any, Any]


def stages_named(call: ThinkingCall) -> tuple[str, ...]:
    """Return the stages that a call names, in order; none if it names none.

    Raises:
        UsageError: There are too many.
    """
    if call.stage is None:
        return ()
    stages = (call.stage,) if isinstance(call.stage, str) else tuple(call.stage)
    if len(stages) > MAX_PATH:
        message = f"stage names {len(stages):,} stages; one call may name {MAX_PATH}"
        raise UsageError(message, field="stage", limit=MAX_PATH)
    return stages


class Walk(NamedTuple):
    """The stages a thought goes through, and the stage it came from where the first of them is a move."""

    stages: tuple[str, ...]
    came_from: str | None


def walk(
    strategy: Table, bases: Sequence[str], stages: Sequence[str], also: Sequence[str] = ()
) -> Walk | None:
    """Return the walk along the table from one of `bases`, else of `also`; None if a step of it is no edge.

    A base that is no stage of the table leads anywhere: a line in no stage has no place to come from.
    """
    table = strategy.by_name
    first = stages[0]
    if first not in table or any(to not in table[start].to for start, to in pairwise(stages)):
        return None
    for group in (bases, also):
        if any(base == first or base not in table for base in group):
            return Walk(tuple(stages), None)
        came_from = next((base for base in group if first in table[base].to), None)
        if came_from is not None:
            return Walk(tuple(stages), came_from)
    return None


class Way(NamedTuple):
    """A shortest way along the table, and whether it is the only one of its length."""

    stages: tuple[str, ...]
    is_only: bool


def shortest_way(strategy: Table, start: str, to: str) -> Way | None:
    """Return the stages from `start`, which is left out, to `to`; None if no way leads there."""
    reached, layer = set[str](), {start: Way((), True)} if start in strategy.by_name else {}
    while layer:
        following: dict[str, Way] = {}
        for here, (stages, is_only) in layer.items():
            for stage in strategy.by_name[here].to:
                if stage in following:
                    following[stage] = following[stage]._replace(is_only=False)
                elif stage not in reached:
                    following[stage] = Way((*stages, stage), is_only)
        if to in following:
            return following[to]
        reached.update(following)
        layer = following
    return None


def way_through(strategy: Table, start: str, stages: Sequence[str]) -> Way | None:
    """Return stages, and between them those that the table has, as one way from `start`; None if there is none.

    To name `start` itself first is to stay. What is no stage of the table leads anywhere, and no way leads there.
    """
    if any(name not in strategy.by_name for name in stages):
        return None
    first, *others = stages
    if start == first or start not in strategy.by_name:
        way = Way((first,), True)
    else:
        way = shortest_way(strategy, start, first)
    for to in others:
        between = way and shortest_way(strategy, way.stages[-1], to)
        way = way and between and Way(way.stages + between.stages, way.is_only and between.is_only)
    return way if way is not None and len(way.stages) <= MAX_PATH else None


def thought_left(head: Head, view: SessionView, number: int, seq: int | None = None) -> ThoughtRow:
    """Return the thought that a new branch leaves: looked up from the main line outwards to the latest thought's line.

    Raises:
        UsageError: There is none.
    """
    lines = [branch for branch, _ in ancestry(head, head.latest)]
    return find_thought(view, "branch_from_thought", number, [(branch, None) for branch in lines[::-1]], seq)


# -- refusals


class RefusedMove(NamedTuple):
    """A call whose stages do not follow, and all that a way out of it is looked for with.

    Attributes:
        branch: The line of the thought.
        bases: The stages it might have continued from; the first is the line's own.
    """

    strategy: Table
    head: Head
    call: ThinkingCall
    branch: str | None
    bases: Sequence[str]
    stages: Sequence[str]
    view: SessionView

    def error(self) -> IllegalTransitionError:
        """Return the error that says which step is no edge, where the lines stand, and what would be accepted."""
        start, to, legal = self._broken_step()
        following = ", ".join(legal) if legal else "none: it is the last stage"
        table, unknown = self.strategy.by_name, ""
        if to not in table:
            unknown = f" {self.strategy.name} has no such stage.{did_you_mean(to, table)}"
        message = f"Invalid transition from {start} to {to}.{unknown} Legal next stages: {following}."
        if self.head.branches:
            latest = f"; the latest thought at {self.head.stage}" if self.head.stage else ""
            message += f" Where the lines stand: {show_lines(self.head)}{latest}."
        instead = next(self._ways_out(), {})
        if instead:
            message += self._required_data(instead)
        elif not unknown:
            message += " Leave `stage` out to stay, or begin a new session."
        details: dict[str, Any] = {"instead": instead} if instead else {}
        return IllegalTransitionError(message, stage=start, choices=legal, **details)

    def path(self) -> Way | None:
        """Return the shortest path to the stages named, from wherever the thought may continue."""
        found = [way_through(self.strategy, base, self.stages) for base in dict.fromkeys(self.bases)]
        ways = [way for way in found if way is not None]
        shortest = min(ways, key=lambda way: len(way.stages), default=None)
        is_only = all(way == shortest for way in ways if shortest and len(way.stages) == len(shortest.stages))
        return shortest and shortest._replace(is_only=shortest.is_only and is_only)

    def ceremony(self) -> tuple[str, ...] | None:
        """Return the one shortest path to the stages named, where those between ask for no field; else None."""
        way, table = self.path(), self.strategy.by_name
        if way is None or not way.is_only:
            return None
        between = [table[name] for name in way.stages if name not in self.stages]
        return None if any(field.required for stage in between for field in stage.fields) else way.stages

    def _broken_step(self) -> tuple[str, str, list[str]]:
        """Return a stage, the stage that cannot follow it, and those that can."""
        table = self.strategy.by_name
        for start, to in pairwise(self.stages):
            if start in table and to not in table[start].to:
                return start, to, list(table[start].to)
        legal = [to for base in self.bases if base in table for to in table[base].to]
        known = list(dict.fromkeys(legal)) if self.bases[0] in table else list(table)
        return self.bases[0] or "no stage", self.stages[0], known

    def _ways_out(self) -> Iterator[dict[str, Any]]:
        """Yield the arguments to change in the call so that it is accepted, the smallest change first."""
        if any(stage not in self.strategy.by_name for stage in self.stages):
            return
        is_known = self.branch is None or self.branch in self.head.branches
        lines = (
            [*reversed(self.head.branches), None] if self.call.branch_from_thought is None or is_known else []
        )
        for branch in lines:
            if branch not in (self.branch, self.call.merge_branch or self.branch) and walk(
                self.strategy, [self.head.line(branch).stage], self.stages
            ):
                yield {"branch_id": branch or self.head.main_name}
        if (way := self.path()) is not None:
            yield {"stage": list(way.stages)}
        for thought in reversed(self.view.latest(self.head.thoughts)):
            way = way_through(self.strategy, decode_record(thought).stage, self.stages)
            if way and thought_left(self.head, self.view, thought.number).seq == thought.seq:
                alone: dict[str, Any] = {"branch_id": None} if is_known else {}
                stage = way.stages[0] if len(way.stages) == 1 else list(way.stages)
                yield {**alone, "branch_from_thought": thought.number, "stage": stage}

    def _required_data(self, instead: Mapping[str, Any]) -> str:
        """Return a sentence on the fields that the path demands; empty if it demands none."""
        path = instead.get("stage")
        named = dict.fromkeys(path) if isinstance(path, list) else ()
        parts = [(name, field) for name in named for field in self.strategy.by_name[name].fields]
        fields = [f"{name}.{field.name}" for name, field in parts if field.required]
        return f" The way there needs {', '.join(fields)} in data." if fields else ""
