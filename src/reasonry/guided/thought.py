"""A guided session: where its lines of thought stand, and what may be thought next.

A session has a main line and branches. Each line has its own stage, walked along the strategy's table. A
thinker names the stage a thought belongs to: the line's own (stay) or a legal next one (move).

Rule 1: `submit` is pure; a call it refuses has changed nothing.
Rule 2: numbers are the thinker's own. They may repeat and jump, but what is referred to must be there.
Rule 3: thinking may go on after its end.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..core.fields import check_fields
from ..core.strategy import Strategy
from ..errors import UsageError
from .lines import (
    MAIN,
    NOT_RECORDED,
    Head,
    Past,
    Place,
    Recorded,
    ThoughtLine,
    ancestry,
    find_thought,
    show_lines,
    show_name,
)
from .moves import (
    RefusedMove,
    Walk,
    check_path_length,
    distance,
    leaving_place,
    show_arguments,
    stages_named,
    walk,
)
from .stage_data import data_by_stage
from .thinking_tool import ThinkingCall


class ThoughtRecord(Struct, frozen=True, omit_defaults=True):
    """What is kept of a thought besides its text, number and branch."""

    stage: str = ""
    total: int = 0
    next_needed: bool = True
    at_ms: int = 0
    """UTC, milliseconds since 1970."""
    came_from: str | None = None
    """The stage before, where the thought moved its line."""
    is_revision: bool = False
    revises: int | None = None
    branch_from: int | None = None
    needs_more: bool = False
    merges: str | None = None
    data: dict[str, Any] | None = None
    score: float | None = None
    path: tuple[str, ...] = ()
    """The stages, where one call named several; the last is `stage`."""
    revises_seq: int | None = None
    """`seq` of the thought it revises: numbers may repeat."""
    branch_from_seq: int | None = None
    """`seq` of the thought that it left, where it begins a branch."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages the thought is in, in order; none where no stage was named."""
        return self.path or ((self.stage,) if self.stage else ())


class Placed(Struct, frozen=True):
    """A thought that was taken: where the session stands now, and what to record."""

    head: Head
    branch: str | None
    record: ThoughtRecord


def open_session(strategy: Strategy[Any, Any] | None = None) -> Head:
    """Return where a session without thoughts stands: in no stage, or in the first of a strategy."""
    return Head(ThoughtLine("" if strategy is None else strategy.first))


def submit(
    strategy: Strategy[Any, Any],
    head: Head,
    call: ThinkingCall,
    past: Past,
    *,
    at_ms: int = 0,
    demand_fields: bool = True,
    recorded: Recorded = NOT_RECORDED,
) -> Placed:
    """Take one thought.

    Args:
        demand_fields: Whether the stages that are named demand their fields.
        recorded: Which thoughts the call's numbers mean, where that is known.

    Raises:
        IllegalTransitionError: No edge leads to the stage named; `choices` has those that can follow, `instead` the
            arguments to change.
        UsageError: Another rule is broken; `field` names the part of the call.
    """
    stages = stages_named(call)
    check_path_length(stages)
    thinker = _thinker_of(strategy, head, call, past, stages, recorded)
    _check_merge(head, call, thinker.branch)
    revised = _revised_thought(head, call, past, thinker, recorded)
    walked = _walk_of(strategy, head, call, past, thinker, stages)
    parts = data_by_stage(
        [strategy.by_name[name] for name in walked.stages if name in strategy.by_name], call.data or {}
    )
    if demand_fields and stages:
        check_fields(parts)
    total = max(call.total_thoughts, call.thought_number)
    if call.needs_more_thoughts and total == call.thought_number:
        total += 1
    line = replace(
        thinker.line,
        stage=walked.stages[-1],
        number=call.thought_number,
        total=total,
        thoughts=thinker.line.thoughts + 1,
        score=_score_of([part.data for part in parts] or [call.data or {}], thinker.line.score),
        merged=False,
    )
    record = ThoughtRecord(
        stage=line.stage,
        total=total,
        next_needed=call.next_thought_needed,
        at_ms=at_ms,
        came_from=walked.came_from,
        is_revision=call.is_revision or call.revises_thought is not None,
        revises=call.revises_thought,
        branch_from=thinker.left,
        needs_more=call.needs_more_thoughts,
        merges=call.merge_branch or None,
        data=call.data,
        path=walked.stages if len(walked.stages) > 1 else (),
        revises_seq=None if revised is None else revised.seq,
        branch_from_seq=thinker.left_seq,
    )
    return Placed(_head_after(head, thinker.branch, line, call), thinker.branch, record)


def _score_of(data: Sequence[Mapping[str, Any]], before: float | None) -> float | None:
    scores = [part.get("score") for part in data]
    numbers = [score for score in scores if isinstance(score, int | float) and not isinstance(score, bool)]
    return float(numbers[-1]) if numbers and abs(numbers[-1]) <= sys.float_info.max else before


def _head_after(head: Head, branch: str | None, line: ThoughtLine, call: ThinkingCall) -> Head:
    branches = head.branches
    if call.merge_branch:
        merged = replace(branches[call.merge_branch], merged=True)
        branches = {**branches, call.merge_branch: merged}
    if branch is not None:
        branches = {**branches, branch: line}
    main = line if branch is None else head.main
    return replace(
        head,
        main=main,
        branches=branches,
        latest=branch,
        thoughts=head.thoughts + 1,
        ended=not call.next_thought_needed,
    )


class _OwnLine(NamedTuple):
    """The line a thought is on, as it stood before; and what the thought leaves, where it begins a branch."""

    branch: str | None
    line: ThoughtLine
    left: int | None = None
    left_seq: int | None = None


def _thinker_of(
    strategy: Strategy[Any, Any],
    head: Head,
    call: ThinkingCall,
    past: Past,
    stages: Sequence[str],
    recorded: Recorded,
) -> _OwnLine:
    name, left = call.branch_id, call.branch_from_thought
    place = None if left is None else leaving_place(head, past, left, recorded.branch_from)
    if name is None and left is not None:
        name = _free_name(head)
    if not name or (name == MAIN and name not in head.branches and left is None):
        return _OwnLine(None, head.main, left)
    if name in head.branches:
        return _OwnLine(name, head.branches[name], left)
    place = place or _latest_place(head, past, _parent_of(strategy, head, stages))
    if place is None:
        return _OwnLine(name, ThoughtLine(head.main.stage))
    line = ThoughtLine(place.stage, left=place.number, parent=place.branch)
    return _OwnLine(name, line, place.number, place.seq)


def _latest_place(head: Head, past: Past, branch: str | None) -> Place | None:
    """Return the latest thought of a line; None: it has none."""
    line = head.line(branch)
    there = past.with_number(line.number) if line.thoughts else ()
    return next((place for place in there if place.branch == branch), None)


def _parent_of(strategy: Strategy[Any, Any], head: Head, stages: Sequence[str]) -> str | None:
    """Return the line that a new branch leaves if its call names no thought.

    It is the latest thought's line; where the stages named cannot follow there, the nearest of the lines which that one
    left from which they can, so that branches are begun side by side.
    """
    lines = [branch for branch, _ in ancestry(head, head.latest)] if stages else []
    fits = (branch for branch in lines if walk(strategy, [head.line(branch).stage], stages) is not None)
    return next(fits, head.latest)


def _free_name(head: Head) -> str:
    count = 1
    while f"branch-{count}" in head.branches:
        count += 1
    return f"branch-{count}"


def _check_merge(head: Head, call: ThinkingCall, branch: str | None) -> None:
    if not call.merge_branch:
        return
    if call.merge_branch not in head.branches:
        known = (
            f"where its lines stand: {show_lines(head)}"
            if head.branches
            else "it has no branches; leave it out"
        )
        raise UsageError(
            f"mergeBranch: there is no branch {call.merge_branch!r} in this session; {known}.",
            field="mergeBranch",
            choices=list(head.branches),
        )
    if call.merge_branch == branch:
        name, parent = show_name(call.merge_branch), head.branches[call.merge_branch].parent or ""
        instead = {"branchId": parent}
        raise UsageError(
            f"mergeBranch: a thought on branch {name} cannot merge {name}; a thought on another line takes it in. "
            f"Where the lines stand: {show_lines(head)}. "
            f"This would be accepted: {show_arguments(instead)}{'' if parent else ' (the main line)'}.",
            field="mergeBranch",
            instead=instead,
        )


def _revised_thought(
    head: Head, call: ThinkingCall, past: Past, thinker: _OwnLine, recorded: Recorded
) -> Place | None:
    if call.revises_thought is None:
        return None
    search = ancestry(head, thinker.branch, thinker.line)
    return find_thought(past, "revisesThought", call.revises_thought, search, recorded.revises)


def _walk_of(
    strategy: Strategy[Any, Any],
    head: Head,
    call: ThinkingCall,
    past: Past,
    thinker: _OwnLine,
    stages: Sequence[str],
) -> Walk:
    """Return the stages the thought goes through; a branch that it merges brings its position along.

    If it names none, the line then stands where it stood or where the branch stands, whichever is further along.
    """
    own = thinker.line.stage
    merged = head.branches[call.merge_branch].stage if call.merge_branch else ""
    if not stages:
        stays = max(filter(None, [merged, own]), key=lambda stage: distance(strategy, stage), default="")
        return Walk((stays or ("" if call.strategy is None else strategy.first),), None)
    bases, latest = [*filter(None, [merged]), own], [*filter(None, [head.stage])]
    walked = walk(strategy, bases, stages, also=latest)
    if walked is None:
        bases += latest
        raise RefusedMove(strategy, head, call, thinker.branch, bases, stages, past).error()
    return walked
