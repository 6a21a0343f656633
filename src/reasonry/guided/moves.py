"""Where a thought may go: the stages it names, one or a path of several, walked along the strategy's table.

Rule 1: a thought may go on from where its own line stands, from where the branch it merges stands, or from the stage
        of the session's latest thought. To name such a stage itself is to stay.
Rule 2: every further step of a path is an edge of the table.
Rule 3: a refusal says where the lines stand and, if there is one, which arguments would be accepted in its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..core.strategy import Strategy
from ..errors import IllegalTransitionError, UsageError
from ..reading.names import closest_names
from .lines import Head, Past, Place, ancestry, find_thought, show_lines
from .thinking_tool import ThinkingCall

MAX_PATH = 32
"""Stages that one call may name."""

Table = Strategy[Any, Any]


class Walk(NamedTuple):
    """The stages a thought goes through, and the stage it came from where the first of them is a move."""

    stages: tuple[str, ...]
    came_from: str | None


def stages_named(call: ThinkingCall) -> tuple[str, ...]:
    """Return the stages that a call names, in order; none if it names none."""
    if call.stage is None:
        return ()
    return (call.stage,) if isinstance(call.stage, str) else tuple(call.stage)


def check_path_length(stages: Sequence[str]) -> None:
    """Check that a call does not name too many stages."""
    if len(stages) > MAX_PATH:
        raise UsageError(
            f"stage names {len(stages):,} stages; one call may name {MAX_PATH}", field="stage", limit=MAX_PATH
        )


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


def distance(strategy: Table, stage: str) -> int:
    """Return how many edges a stage is from the first; -1 for no stage of the table."""
    if stage == strategy.first:
        return 0
    return len(shortest_way(strategy, strategy.first, stage) or ()) or -1


class RefusedMove(NamedTuple):
    """A call whose stages do not follow, and all that a way out of it is looked for with.

    Attributes:
        branch: The line of the thought.
        bases: The stages it might have gone on from; the first is the line's own.
    """

    strategy: Table
    head: Head
    call: ThinkingCall
    branch: str | None
    bases: Sequence[str]
    stages: Sequence[str]
    past: Past

    def error(self) -> IllegalTransitionError:
        """Return the error that says which step is no edge, where the lines stand, and what would be accepted."""
        start, to, legal = self._broken_step()
        following = ", ".join(legal) if legal else "none: it is the last stage"
        message = (
            f"Invalid transition from {start} to {to}{self._unknown(to)}. Legal next stages: {following}."
        )
        if self.head.branches:
            message += (
                f" Where the lines stand: {show_lines(self.head)}; the latest thought at {self.head.stage}."
            )
        instead = self._instead()
        if instead:
            message += f" This would be accepted: {show_arguments(instead)}{self._required_data(instead)}."
        elif to in self.strategy.by_name:
            message += " Leave `stage` out to stay, or begin a new session."
        details: dict[str, Any] = {"instead": instead} if instead else {}
        return IllegalTransitionError(message, stage=start, choices=legal, **details)

    def _unknown(self, stage: str) -> str:
        """Return what to say of a stage that the table has not; nothing where it has."""
        table = self.strategy.by_name
        if stage in table:
            return ""
        meant = " or ".join(closest_names(stage, table))
        return f": {self.strategy.name} has no such stage{f' (did you mean {meant}?)' if meant else ''}"

    def _broken_step(self) -> tuple[str, str, list[str]]:
        """Return a stage, the stage that cannot follow it, and those that can."""
        table = self.strategy.by_name
        for start, to in pairwise(self.stages):
            if start in table and to not in table[start].to:
                return start, to, list(table[start].to)
        legal = [to for base in self.bases if base in table for to in table[base].to]
        known = list(dict.fromkeys(legal)) if self.bases[0] in table else list(table)
        return self.bases[0] or "no stage", self.stages[0], known

    def _instead(self) -> dict[str, Any]:
        """Return the arguments to change in the call; empty if nothing would be accepted."""
        if any(stage not in self.strategy.by_name for stage in self.stages):
            return {}
        ways = (
            self._on_another_line,
            self._by_a_path,
            self._by_a_path_elsewhere,
            self._from_an_earlier_thought,
        )
        return next(filter(None, (way() for way in ways)), {})

    def _on_another_line(self) -> dict[str, Any]:
        for branch in self._other_lines():
            if walk(self.strategy, [self.head.line(branch).stage], self.stages) is not None:
                return {"branchId": branch or ""}
        return {}

    def _by_a_path(self) -> dict[str, Any]:
        paths = [path for base in dict.fromkeys(self.bases) for path in self._paths(base)]
        return {"stage": min(paths, key=len)} if paths else {}

    def _by_a_path_elsewhere(self) -> dict[str, Any]:
        for branch in self._other_lines():
            for path in self._paths(self.head.line(branch).stage):
                return {"branchId": branch or "", "stage": path}
        return {}

    def _from_an_earlier_thought(self) -> dict[str, Any]:
        for place in self.past.places():
            for path in self._paths(place.stage):
                if leaving_place(self.head, self.past, place.number) == place:
                    alone: dict[str, Any] = {} if self._names_new_branch() else {"branchId": None}
                    stage = path[0] if len(path) == 1 else path
                    return {**alone, "branchFromThought": place.number, "stage": stage}
        return {}

    def _other_lines(self) -> Iterator[str | None]:
        """Return the other lines the thought could be on, the latest first, and last the main line."""
        if self.call.branch_from_thought is None or not self._names_new_branch():
            excluded = (self.branch, self.call.merge_branch)
            yield from (name for name in reversed(self.head.branches) if name not in excluded)
            if self.branch is not None:
                yield None

    def _names_new_branch(self) -> bool:
        return self.branch is not None and self.branch not in self.head.branches

    def _paths(self, start: str) -> Iterator[list[str]]:
        """Return the stages named, and between them those that the table has, as one path from `start`."""
        first, *others = self.stages
        path = [start] if first == start else shortest_way(self.strategy, start, first)
        for to in others:
            between = shortest_way(self.strategy, path[-1], to) if path else None
            path = None if path is None or between is None else [*path, *between]
        if path is not None and len(path) <= MAX_PATH:
            yield path

    def _required_data(self, instead: Mapping[str, Any]) -> str:
        """Return which required fields the path demands."""
        path = instead.get("stage")
        if not isinstance(path, list):
            return ""
        fields = [
            f"{name}.{field.name}"
            for name in dict.fromkeys(path)
            for field in self.strategy.by_name[name].fields
            if field.required
        ]
        return f", with {', '.join(fields)} in data" if fields else ""


def leaving_place(head: Head, past: Past, number: int, seq: int | None = None) -> Place:
    """Return the thought that a new branch leaves: looked up from the main line outwards to the latest thought's line.

    Raises:
        UsageError: There is none.
    """
    lines = [branch for branch, _ in ancestry(head, head.latest)]
    search = [(branch, None) for branch in reversed(lines)]
    return find_thought(past, "branchFromThought", number, search, seq)


def show_arguments(arguments: Mapping[str, Any]) -> str:
    """Return arguments of a call as an error shows them."""
    texts = [
        f"no {name}" if value is None else f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for name, value in arguments.items()
    ]
    return ", ".join(texts)


def shortest_way(strategy: Table, start: str, to: str) -> list[str] | None:
    """Return the stages from `start`, which is left out, to `to`; None if no way leads there."""
    table = strategy.by_name
    before: dict[str, str] = {}
    waiting = [start] if start in table else []
    for here in waiting:
        for following in table[here].to:
            if following not in before:
                before[following] = here
                waiting.append(following)
    if to not in before:
        return None
    path = [to]
    while before[path[0]] != start:
        path.insert(0, before[path[0]])
    return path
