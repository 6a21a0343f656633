"""Where a thought goes: on which line, and along its strategy's table.

Rule 1: a thought may continue from where its own line stands, from where the branch it merges stands, or from the stage
        of the session's latest thought. To name such a stage itself is to stay.
Rule 2: every further step of a path is an edge of the table.
Rule 3: a refusal says where the lines stand; `instead` has the arguments that would be accepted, if there are any.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..core.strategy import Strategy
from ..errors import IllegalTransitionError, UsageError
from ..names import did_you_mean
from ..patterns import lazy_pattern
from ..records import SessionView, ThoughtRow
from .fields import find_field
from .lines import MAIN, Head, ThoughtLine, ancestry, decode_record, find_thought, show_lines
from .thinking_tool import ThinkingCall

_ARROW = lazy_pattern(r"\s*(?:->|→)\s*")
MAX_PATH = 32
"""Stages that one call may name."""

Table = Strategy[Any, Any]
Stages = tuple[str, ...]


def stages_named(call: ThinkingCall) -> Stages:
    """Return the stages that a call names, in order, also as one text `a -> b`; none if it names none.

    Raises:
        UsageError: There are too many.
    """
    if call.stage is None:
        return ()
    named = call.stage
    if isinstance(named, str):
        # An arrow at an end leads from or to no other stage.
        named = [*filter(None, _ARROW.split(named))] or [named]
    stages = tuple(named)
    if len(stages) > MAX_PATH:
        message = f"stage names {len(stages):,} stages; one call may name {MAX_PATH}"
        raise UsageError(message, field="stage", limit=MAX_PATH)
    return stages


# -- the table


def shortest_way(strategy: Table, start: str, to: str) -> Stages | None:
    """Return the stages from `start`, which is left out, to `to`; None if no way leads there."""
    reached, layer = set[str](), dict[str, Stages]({start: ()} if start in strategy.by_name else {})
    while layer:
        following: dict[str, Stages] = {}
        for here, stages in layer.items():
            for stage in strategy.by_name[here].to:
                if stage not in reached:
                    following.setdefault(stage, (*stages, stage))
        if to in following:
            return following[to]
        reached.update(following)
        layer = following
    return None


def way_through(strategy: Table, start: str, stages: Stages) -> Stages | None:
    """Return stages, and between them those that the table has, as one way from `start`; None if there is none.

    To name `start` itself first is to stay. What is no stage of the table leads anywhere, and no way leads there.
    """
    if any(name not in strategy.by_name for name in stages):
        return None
    first, *others = stages
    is_free = start == first or start not in strategy.by_name
    way = (first,) if is_free else shortest_way(strategy, start, first)
    for to in others:
        between = way and shortest_way(strategy, way[-1], to)
        way = way and between and way + between
    return way if way is not None and len(way) <= MAX_PATH else None


def leads(strategy: Table, start: str, stages: Stages) -> bool:
    """Whether each step of a path from `start` is an edge of the table, or stays."""
    return way_through(strategy, start, stages) == stages


# -- one thought


class OwnLine(NamedTuple):
    """The line a thought is on, as it stood before; and what the thought leaves, where it begins a branch."""

    branch: str | None
    line: ThoughtLine
    left: int | None = None
    left_seq: int | None = None


class Walk(NamedTuple):
    """The stages a thought goes through, and the stage it came from where the first of them is a move."""

    stages: Stages
    came_from: str | None


class Submission(NamedTuple):
    """A call, the stages that it names, and the session that it is for."""

    strategy: Table
    head: Head
    call: ThinkingCall
    view: SessionView
    stages: Stages

    def own_line(self, left_seq: int | None) -> OwnLine:
        """Return the line that the thought is on.

        Args:
            left_seq: Of the thought that it leaves, where that is on record.

        Raises:
            UsageError: It leaves a thought that is not there.
        """
        head, name, left = self.head, self.call.branch_id, self.call.branch_from_thought
        if name is None and left is None and not self.call.merge_branch:
            name = self._line_continued()
        base = None if left is None else self._thought_left(left, left_seq)
        if name is None and left is not None:
            name = next(
                free for count in itertools.count(1) if (free := f"branch-{count}") not in head.branches
            )
        if not name or (name == MAIN and name not in head.branches and left is None):
            return OwnLine(None, head.main, left)
        if name in head.branches:
            return OwnLine(name, head.branches[name], left)
        base = base or self._thought_to_leave()
        if base is None:
            return OwnLine(name, ThoughtLine(head.main.stage))
        line = ThoughtLine(decode_record(base).stage, left=base.number, parent=base.branch)
        return OwnLine(name, line, base.number, base.seq)

    def walk(self, own: OwnLine) -> Walk:
        """Return the stages the thought goes through; a branch that it merges brings its position along.

        If it names none, the line then stands where it stood or where the branch stands, whichever is further along.

        Raises:
            IllegalTransitionError: No edge leads there.
        """
        stage, merging, table = own.line.stage, self.call.merge_branch, [*self.strategy.by_name]
        bases = [*filter(None, [self.head.branches[merging].stage if merging else ""]), stage]
        if not self.stages:
            stays = max(bases, key=lambda name: table.index(name) if name in table else 0)
            return Walk((stays or ("" if self.call.strategy is None else self.strategy.first),), None)
        latest = [*filter(None, [self.head.stage])]
        walked = self._walk_from(bases, self.stages) or self._walk_from(latest, self.stages)
        if walked is None:
            raise self._refusal(own.branch, bases + latest)
        return walked

    def _walk_from(self, bases: Sequence[str], stages: Stages) -> Walk | None:
        legal = [base for base in bases if leads(self.strategy, base, stages)]
        stays = any(base == stages[0] or base not in self.strategy.by_name for base in legal)
        return Walk(stages, None if stays else legal[0]) if legal else None

    def _shortest_way(self, bases: Sequence[str]) -> Stages | None:
        """Return the shortest path to the stages named, from wherever the thought may continue."""
        found = [way_through(self.strategy, base, self.stages) for base in bases]
        return min(filter(None, found), key=len, default=None)

    # -- the line

    def _line_continued(self) -> str | None:
        """Return the branch of a thought that names no line and merges none; None: the main line.

        A revision is on the line of the thought that it revises, any other where its stages and its number continue.
        """
        head, call = self.head, self.call
        follows = [
            name
            for name in (head.latest, None, *reversed(head.branches))
            if call.thought_number == head.line(name).number + 1
            and (name is None or not head.branches[name].merged)
        ]
        if self.stages and head.stage:
            branch = head.latest if self._continues_branch(is_next=follows[:1] == [head.latest]) else None
        else:
            branch = follows[0] if follows else None
        if call.revises_thought is None:
            return branch
        lines = ancestry(head, branch)
        return find_thought(self.view, "revises_thought", call.revises_thought, lines).branch

    def _continues_branch(self, *, is_next: bool) -> bool:
        """Whether a thought that names stages and no line belongs to the latest thought's branch.

        So it is where that leads to its stages as soon as the main line, or its number comes next there, on a way
        without a stage that compares branches; one that takes a score values the branch alone.
        """
        head, table = self.head, self.strategy.by_name
        there = way_through(self.strategy, head.stage, self.stages)
        if head.latest is None or there is None:
            return False
        own = way_through(self.strategy, head.main.stage, self.stages)
        is_stay = self.stages[0] == head.stage
        if not is_next and own is not None and len(own) < len(there) + is_stay:
            return False
        return not any(
            table[name].compares and find_field("score", table[name].fields) is None for name in there
        )

    def _thought_left(self, number: int, seq: int | None = None) -> ThoughtRow:
        """Return the thought that a branch leaves: looked up from the main line outwards to the latest thought's."""
        lines = [(branch, None) for branch, _ in ancestry(self.head, self.head.latest)]
        return find_thought(self.view, "branch_from_thought", number, lines[::-1], seq)

    def _thought_to_leave(self) -> ThoughtRow | None:
        """Return the thought that a new branch leaves if its call names none: the latest of a line; None: it has none.

        It is the latest thought's line; where the stages named cannot follow there, the nearest of the lines which
        that one left from which they can, so that branches are begun side by side.
        """
        head = self.head
        lines = [branch for branch, _ in ancestry(head, head.latest)] if self.stages else []
        fits = (name for name in lines if leads(self.strategy, head.line(name).stage, self.stages))
        parent = next(fits, head.latest)
        line = head.line(parent)
        there = self.view.with_number(line.number) if line.thoughts else []
        return next((thought for thought in reversed(there) if thought.branch == parent), None)

    # -- refusals

    def _refusal(self, branch: str | None, bases: Sequence[str]) -> IllegalTransitionError:
        """Return the error that says which step is no edge and where the lines stand, with what would be accepted.

        Args:
            branch: The line of the thought.
            bases: The stages it might have continued from; the first is the line's own.
        """
        start, to, legal = self._broken_step(bases)
        following = ", ".join(legal) if legal else "none: it is the last stage"
        table, unknown = self.strategy.by_name, ""
        if to not in table:
            unknown = f" {self.strategy.name} has no such stage.{did_you_mean(to, table)}"
        message = f"Invalid transition from {start} to {to}.{unknown} Legal next stages: {following}."
        if self.head.branches:
            latest = f"; the latest thought at {self.head.stage}" if self.head.stage else ""
            message += f" Where the lines stand: {show_lines(self.head)}{latest}."
        instead = next(self._ways_out(branch, bases), {})
        if instead:
            message += self._required_data(instead)
        elif not unknown:
            message += " Leave `stage` out to stay, or begin a new session."
        details: dict[str, Any] = {"instead": instead} if instead else {}
        return IllegalTransitionError(message, stage=start, choices=legal, **details)

    def _broken_step(self, bases: Sequence[str]) -> tuple[str, str, list[str]]:
        """Return a stage, the stage that cannot follow it, and those that can."""
        table = self.strategy.by_name
        for start, to in pairwise(self.stages):
            if start in table and to not in table[start].to:
                return start, to, list(table[start].to)
        legal = [to for base in bases if base in table for to in table[base].to]
        known = list(dict.fromkeys(legal)) if bases[0] in table else list(table)
        return bases[0] or "no stage", self.stages[0], known

    def _ways_out(self, branch: str | None, bases: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the arguments to change in the call so that it is accepted, the smallest change first."""
        head, call, strategy = self.head, self.call, self.strategy
        if any(stage not in strategy.by_name for stage in self.stages):
            return
        is_known = branch is None or branch in head.branches
        for name in [*reversed(head.branches), None] if is_known or call.branch_from_thought is None else ():
            is_other = name not in (branch, call.merge_branch or branch)
            if is_other and leads(strategy, head.line(name).stage, self.stages):
                yield {"branch_id": name or head.main_name}
        if (way := self._shortest_way(bases)) is not None:
            yield {"stage": list(way)}
        for thought in reversed(self.view.latest(head.thoughts)):
            way = way_through(strategy, decode_record(thought).stage, self.stages)
            if way and self._thought_left(thought.number).seq == thought.seq:
                alone: dict[str, Any] = {"branch_id": None} if is_known else {}
                stage = way[0] if len(way) == 1 else list(way)
                yield {**alone, "branch_from_thought": thought.number, "stage": stage}

    def _required_data(self, instead: Mapping[str, Any]) -> str:
        """Return a sentence on the fields that the path demands; empty if it demands none."""
        path = instead.get("stage")
        named = dict.fromkeys(path) if isinstance(path, list) else ()
        parts = [(name, field) for name in named for field in self.strategy.by_name[name].fields]
        fields = [f"{name}.{field.name}" for name, field in parts if field.required]
        return f" The way there needs {', '.join(fields)} in data." if fields else ""
