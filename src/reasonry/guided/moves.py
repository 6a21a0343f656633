"""The move of a thought: its line, and its path along the strategy's table.

Rule 1: a thought may continue from the stage of its own line, of the branch it merges, or of the session's latest
        thought. To name that stage itself is to stay.
Rule 2: every further step of a path is an edge of the table.
Rule 3: a refusal describes the lines; `instead` has acceptable arguments, if any.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..core.strategy import Strategy
from ..errors import IllegalTransitionError, UsageError
from ..records import SessionView, ThoughtRow
from ..text import did_you_mean, lazy_pattern
from .fields import find_field
from .lines import MAIN, Head, ThoughtLine, ancestry, decode_record, find_thought, show_lines
from .thinking_tool import ThinkingCall

_ARROW = lazy_pattern(r"\s*(?:->|→)\s*")
MAX_PATH = 32
"""The most stages in a call."""

Table = Strategy[Any, Any]
Stages = tuple[str, ...]


def stages_named(call: ThinkingCall) -> Stages:
    """Return the stages named in a call, in order, also from a text `a -> b`.

    Raises:
        UsageError: The call names too many stages.
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
    """Return the stages after `start` on the shortest path to `to`, or None without a path."""
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
    """Complete stages to a path from `start` along the table, or None without a path.

    To name `start` first is to stay. An unknown stage leads anywhere, and no path leads to it.
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
    """Whether each step of a path from `start` is an edge of the table or stays."""
    return way_through(strategy, start, stages) == stages


# -- one thought


class OwnLine(NamedTuple):
    """The line of a thought before the thought, and the thought from which a new branch begins."""

    branch: str | None
    line: ThoughtLine
    left: int | None = None
    left_seq: int | None = None


class Walk(NamedTuple):
    """The path of a thought, and the previous stage if the first step is a move."""

    stages: Stages
    came_from: str | None


class Submission(NamedTuple):
    """A call, its named stages, and its session."""

    strategy: Table
    head: Head
    call: ThinkingCall
    view: SessionView
    stages: Stages

    def own_line(self, left_seq: int | None) -> OwnLine:
        """Return the line of the thought.

        Args:
            left_seq: The `seq` of the thought from which its branch begins, if recorded.

        Raises:
            UsageError: The branch begins from an unknown thought.
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
        """Return the path of the thought. It may continue from a merged branch.

        Without a named stage, the line stays at its own stage or at the branch's, whichever is further along.

        Raises:
            IllegalTransitionError: No edge leads to the stage.
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
        """Return the shortest path to the named stages from any legal start."""
        found = [way_through(self.strategy, base, self.stages) for base in bases]
        return min(filter(None, found), key=len, default=None)

    # -- the line

    def _line_continued(self) -> str | None:
        """Return the branch of a thought without a named line or a merge, or None for the main line.

        A revision belongs to the line of the revised thought; another thought belongs where its stages and its number
        continue.
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
        """Whether a thought with stages and without a line belongs to the latest thought's branch.

        It does if its stages are no farther from there than from the main line, or if its number is next there, on a
        path without a comparing stage. A stage with a score values the branch alone.
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
        """Find the thought from which a branch begins, on the main line first and the latest thought's line last."""
        lines = [(branch, None) for branch, _ in ancestry(self.head, self.head.latest)]
        return find_thought(self.view, "branch_from_thought", number, lines[::-1], seq)

    def _thought_to_leave(self) -> ThoughtRow | None:
        """Return the default parent thought of a new branch: the latest thought of a line, if any.

        The line is the latest thought's, or its nearest ancestor from which the named stages can follow, so that
        branches begin side by side.
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
        """Build the error for an illegal step, with the states of the lines and acceptable arguments.

        Args:
            branch: The line of the thought.
            bases: The possible starting stages; the first is the line's own.
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
        """Return a stage, the illegal next stage, and the legal next stages."""
        table = self.strategy.by_name
        for start, to in pairwise(self.stages):
            if start in table and to not in table[start].to:
                return start, to, list(table[start].to)
        legal = [to for base in bases if base in table for to in table[base].to]
        known = list(dict.fromkeys(legal)) if bases[0] in table else list(table)
        return bases[0] or "no stage", self.stages[0], known

    def _ways_out(self, branch: str | None, bases: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield changes to the arguments that make the call acceptable, smallest first."""
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
        """Return a sentence about the fields required by the path, if any."""
        path = instead.get("stage")
        named = dict.fromkeys(path) if isinstance(path, list) else ()
        parts = [(name, field) for name in named for field in self.strategy.by_name[name].fields]
        fields = [f"{name}.{field.name}" for name, field in parts if field.required]
        return f" The way there needs {', '.join(fields)} in data." if fields else ""
