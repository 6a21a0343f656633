"""A guided session: where its lines of thought stand, and what may be thought next.

A session has a main line and branches. Each line has its own stage, walked along the strategy's table. A
thinker names the stage a thought belongs to: the line's own (stay) or a legal next one (move).

Rule 1: `submit` is pure; a call it refuses has changed nothing.
Rule 2: numbers are the thinker's own. They may repeat and jump, but what is referred to must be there.
Rule 3: thinking may go on after its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..core.fields import check_fields
from ..core.strategy import Strategy
from ..errors import UsageError
from .thinking_tool import ThinkingCall

_SHOWN_SPANS = 20


class ThoughtLine(Struct, frozen=True, array_like=True):
    """Where one line of a session stands."""

    stage: str
    """Empty: neither a strategy nor a stage was named on it, so its first stage may be any."""
    number: int = 0
    """Of its latest thought; 0: none yet."""
    total: int = 0
    """Thoughts expected, as of its latest thought."""
    thoughts: int = 0
    left: int | None = None
    """Number of the thought a branch left."""
    parent: str | None = None
    """The branch it left; None: the main line."""
    score: float | None = None
    """The latest one given on this line, as `data.score`."""
    merged: bool = False
    """Whether its latest thought was taken back in by another line."""


class Head(Struct, frozen=True, omit_defaults=True):
    """Where a session stands: all that is needed to judge the next call, besides the numbers there are."""

    main: ThoughtLine
    branches: dict[str, ThoughtLine] = {}
    """In the order in which they were begun."""
    latest: str | None = None
    """The branch of the latest thought; None: the main line."""
    thoughts: int = 0
    ended: bool = False
    """Whether the latest thought said that no other is needed."""
    directory: str = ""
    """The working directory in which the session was begun; never exported."""
    entered: tuple[str, ...] = ()
    """The stages that thoughts were handed in for, each when it was first."""

    def line(self, branch: str | None) -> ThoughtLine:
        """Return the line of that name; None: the main line."""
        return self.main if branch is None else self.branches[branch]

    @property
    def has_stage(self) -> bool:
        """Whether a strategy or a stage was named, on any line."""
        return any(line.stage for line in (self.main, *self.branches.values()))


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

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages the thought was handed in for, in order; none where no stage was named."""
        return (self.stage,) if self.stage else ()


class Placed(Struct, frozen=True):
    """A thought that was taken: where the session stands now, and what to record."""

    head: Head
    branch: str | None
    record: ThoughtRecord


class Past(Protocol):
    """The thoughts a session has already, as far as its rules ask."""

    def has(self, number: int) -> bool:
        """Whether some thought bears this number."""
        ...

    def place(self, number: int) -> tuple[str | None, str]:
        """Return branch and stage of the latest thought of this number, which there is."""
        ...

    def numbers(self) -> Iterable[int]:
        """Return all numbers, in any order."""
        ...


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
) -> Placed:
    """Take one thought.

    Args:
        demand_fields: Whether a stage that is named demands its fields.

    Raises:
        IllegalTransitionError: The line cannot go to the stage named; `choices` has those it can go to.
        UsageError: Another rule is broken; `field` names the part of the call.
    """
    if call.revises_thought is not None:
        _must_exist(past, "revisesThought", call.revises_thought)
    branch, line, left = _line_of(head, call, past)
    _check_merge(head, call, branch)
    stage = _stage_of(strategy, line, call, demand_fields)
    total = max(call.total_thoughts, call.thought_number)
    if call.needs_more_thoughts and total == call.thought_number:
        total += 1
    record = ThoughtRecord(
        stage=stage,
        total=total,
        next_needed=call.next_thought_needed,
        at_ms=at_ms,
        came_from=None if stage == line.stage else line.stage or None,
        is_revision=call.is_revision or call.revises_thought is not None,
        revises=call.revises_thought,
        branch_from=left,
        needs_more=call.needs_more_thoughts,
        merges=call.merge_branch or None,
        data=call.data,
    )
    stands = replace(
        line,
        stage=stage,
        number=call.thought_number,
        total=total,
        thoughts=line.thoughts + 1,
        score=_score_of(call, line.score),
        merged=False,
    )
    return Placed(_head_after(head, branch, stands, call), branch, record)


def _score_of(call: ThinkingCall, before: float | None) -> float | None:
    score = (call.data or {}).get("score")
    return float(score) if isinstance(score, int | float) and not isinstance(score, bool) else before


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
        entered=_with_stage(head.entered, line.stage),
    )


def _with_stage(entered: tuple[str, ...], stage: str) -> tuple[str, ...]:
    return entered if not stage or stage in entered else (*entered, stage)


def _line_of(head: Head, call: ThinkingCall, past: Past) -> tuple[str | None, ThoughtLine, int | None]:
    """Return the branch (None: main line), where it stands, and the number it leaves or left off at."""
    left = call.branch_from_thought
    if left is not None:
        _must_exist(past, "branchFromThought", left)
    name = call.branch_id
    if name is None and left is not None:
        name = _free_name(head)
    if not name:
        return None, head.main, left
    if name in head.branches:
        return name, head.branches[name], left
    if left is not None:
        parent, stage = past.place(left)
    else:
        parent = head.latest
        stage, left = head.line(parent).stage, head.line(parent).number or None
    return name, ThoughtLine(stage, left=left, parent=parent), left


def _free_name(head: Head) -> str:
    count = 1
    while f"branch-{count}" in head.branches:
        count += 1
    return f"branch-{count}"


def _check_merge(head: Head, call: ThinkingCall, branch: str | None) -> None:
    if not call.merge_branch:
        return
    if call.merge_branch not in head.branches:
        known = ", ".join(head.branches) or "none"
        raise UsageError(
            f"mergeBranch: there is no branch {call.merge_branch!r} in this session. Its branches: {known}.",
            field="mergeBranch",
            choices=list(head.branches),
        )
    if call.merge_branch == branch:
        raise UsageError(
            f"mergeBranch: branch {branch!r} cannot take itself back in; merge it on another line.",
            field="mergeBranch",
        )


def _stage_of(
    strategy: Strategy[Any, Any], line: ThoughtLine, call: ThinkingCall, demand_fields: bool
) -> str:
    if call.stage is None:
        return line.stage if line.stage or call.strategy is None else strategy.first
    if line.stage and call.stage != line.stage:
        strategy.check_move(line.stage, call.stage)
    stage = strategy.stage(call.stage)
    if demand_fields:
        check_fields(stage, call.data or {})
    return call.stage


def _must_exist(past: Past, field: str, number: int) -> None:
    if past.has(number):
        return
    there = spans(past.numbers())
    branches = f"it has: {there}" if there else "it has none yet"
    raise UsageError(
        f"{field}: there is no thought {number} in this session; {branches}.",
        field=field,
        number=number,
        exists=there,
    )


def spans(numbers: Iterable[int]) -> str:
    """Return numbers as a short text: `1-5, 8`."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    texts = [str(a) if a == b else f"{a}-{b}" for a, b in found]
    if len(texts) > _SHOWN_SPANS:
        half = _SHOWN_SPANS // 2
        texts = [*texts[:half], "…", *texts[-half:]]
    return ", ".join(texts)
