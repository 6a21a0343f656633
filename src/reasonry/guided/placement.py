"""Place a thought in its session: find its line, and its path through the strategy's table of stages.

A session has a main line and branches. Each line has its own current stage. An agent names the stage of a thought: the
line's current stage (the line stays) or a legal next stage (the line moves).

Rule 1: `submit` is pure. A refused call has changed nothing.
Rule 2: the agent numbers its thoughts. Numbers may repeat or leave gaps, but a reference must name an existing number.
Rule 3: a path starts at the stage of the thought's own line, of the branch that the thought merges, or of the session's
        latest thought. A path may name this stage first. Every other step of the path is an edge of the table.
Rule 4: the error for a refused thought describes the lines. The error's `instead` has acceptable arguments, if any.
Rule 5: an agent may continue a session that has ended.
"""

import itertools
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ..core.strategy import Strategy
from ..errors import IllegalTransitionError, UsageError
from ..records import SessionView, ThoughtRow
from ..text import did_you_mean, find_name, show_value
from .fields import MAX_PATH, check_fields, find_field, stages_named
from .lines import (
    MAIN,
    Head,
    ThoughtLine,
    ThoughtRecord,
    ancestry,
    decode_record,
    find_thought,
    flatten_data,
    show_lines,
)
from .thinking_tool import ThinkingCall

_BRANCHES = "branch_creation"
"""The stage at which the main line stops continuing a branch, in order to create new branches."""
_PREDICTED_CHARS = 200

Stages = tuple[str, ...]


# -- the table


def shortest_path(strategy: Strategy[Any, Any], start: str, to: str) -> Stages | None:
    """Return the stages after `start` on the shortest path to `to`, or None if there is no path."""
    ways, queue = dict[str, Stages](), [start] if start in strategy.by_name else []
    for here in queue:
        for stage in strategy.by_name[here].to:
            if stage not in ways:
                ways[stage] = (*ways.get(here, ()), stage)
                queue.append(stage)
    return ways.get(to)


def complete_path(strategy: Strategy[Any, Any], start: str, stages: Stages) -> Stages | None:
    """Add missing stages to `stages`, to make a path from `start`. None if there is no path.

    If the first stage is `start`, the path begins there. If `start` is not in the table, any first stage is legal.
    """
    if any(name not in strategy.by_name for name in stages):
        return None
    first, *others = stages
    is_free = start == first or start not in strategy.by_name
    way = (first,) if is_free else shortest_path(strategy, start, first)
    for to in others:
        between = way and shortest_path(strategy, way[-1], to)
        way = way and between and way + between
    return way if way is not None and len(way) <= MAX_PATH else None


def is_legal(strategy: Strategy[Any, Any], start: str, stages: Stages) -> bool:
    """Whether `stages` are a path from `start`. The first stage may be `start` itself."""
    return complete_path(strategy, start, stages) == stages


# -- one thought: placed, checked, recorded


class Placed(Struct, frozen=True):
    """An accepted thought: the new state of the session, the branch of the thought, and the thought's record.

    Attributes:
        expected: The agent's earlier prediction, if the thought is an observation. Otherwise empty.
    """

    head: Head
    branch: str | None
    record: ThoughtRecord
    expected: str = ""


def submit(
    strategy: Strategy[Any, Any],
    head: Head,
    call: ThinkingCall,
    view: SessionView,
    *,
    at_ms: int = 0,
    demand_fields: bool = True,
    recorded: Mapping[str, Any] = {},
    mark: int = 0,
) -> Placed:
    """Accept or refuse a thought.

    Args:
        demand_fields: Whether the thought must have the required fields of its named stages.
        recorded: The exported thought, if this is an import. It has the `seq` of each thought that the call names.
        mark: A checksum of the call, or 0 for none.

    Raises:
        IllegalTransitionError: No edge leads to the stage. `choices` has the legal stages; `instead` has a correction.
        UsageError: The call breaks another rule; `field` names the argument.
    """
    submission = Submission(strategy, head, call, view, stages_named(call))
    placement = submission.place(recorded)
    if demand_fields and submission.stages:
        stages = [strategy.by_name[name] for name in placement.stages if name in strategy.by_name]
        check_fields(stages, call.data or {})
    return placement.record(at_ms, mark)


class OwnLine(NamedTuple):
    """The line to which a thought will be added. A new branch begins at the thought with the number `branch_from`."""

    branch: str | None
    line: ThoughtLine
    branch_from: int | None = None
    branch_from_seq: int | None = None


class Placement(NamedTuple):
    """The place of a thought: its line, its stages, and its references to branches and thoughts.

    Attributes:
        head: The state of the session before the thought.
        stages: The stages of the thought, in order.
        from_stage: The stage from which the thought moves. None if the thought stays, or if its line has no stage yet.
        selected: The branch that the thought selects.
        revised_seq: The `seq` of the revised thought.
    """

    strategy: Strategy[Any, Any]
    head: Head
    call: ThinkingCall
    own: OwnLine
    stages: Stages
    from_stage: str | None
    selected: str | None
    revised_seq: int | None

    def record(self, at_ms: int, mark: int) -> Placed:
        """Build the record of the thought, and the state of the session after the thought."""
        call, own, data = self.call, self.own, flatten_data(self.call.data)
        tests = {stage.tested_by for stage in self.strategy.stages}
        observes = "observation" in data or self.stages[-1] in tests
        line = self._line_after(data, "" if observes else own.line.predicted)
        record = ThoughtRecord(
            stage=line.stage,
            total_thoughts=line.total,
            next_thought_needed=call.next_thought_needed,
            at_ms=at_ms,
            from_stage=self.from_stage,
            is_revision=call.is_revision or call.revises_thought is not None,
            revises_thought=call.revises_thought,
            branch_from_thought=own.branch_from,
            needs_more_thoughts=call.needs_more_thoughts,
            merge_branch=call.merge_branch or None,
            data=call.data,
            path=self.stages if len(self.stages) > 1 else (),
            revises_seq=self.revised_seq,
            branch_from_seq=own.branch_from_seq,
            mark=mark,
        )
        head = self._head_after(line, data.get("score"))
        return Placed(head, own.branch, record, own.line.predicted if observes else "")

    def _line_after(self, data: Mapping[str, Any], predicted: str) -> ThoughtLine:
        call, own, merged = self.call, self.own, self.call.merge_branch
        score = self.head.branches[merged].score if merged and own.branch is None else None
        return replace(
            _with_score(own.line, data.get("score"), score),
            stage=self.stages[-1],
            number=call.thought_number,
            # The estimate is at least the thought's number, and above this number if more thoughts are needed.
            total=max(call.total_thoughts, call.thought_number + call.needs_more_thoughts),
            thoughts=own.line.thoughts + 1,
            merged=False,
            passed_over=self.selected not in (None, own.branch),
            predicted=str(data.get("predict", predicted))[:_PREDICTED_CHARS],
        )

    def _head_after(self, line: ThoughtLine, score: Any) -> Head:
        head, call, branch, selected = self.head, self.call, self.own.branch, self.selected
        branches, chosen = {**head.branches}, head.chosen
        if selected is not None:
            branches = {
                name: each if name == selected else replace(each, passed_over=True)
                for name, each in branches.items()
            }
        if call.merge_branch:
            branches[call.merge_branch] = replace(branches[call.merge_branch], merged=True)
        if branch is not None:
            branches[branch] = line
        elif (chosen := call.merge_branch or selected or chosen) is not None:
            # The main line shares its score with the branch that it continues.
            branches[chosen] = _with_score(branches[chosen], score)
        return replace(
            head,
            main=line if branch is None else head.main,
            branches=branches,
            latest=branch,
            chosen=chosen,
            thoughts=head.thoughts + 1,
            highest=max(head.highest, line.number),
            ended=not call.next_thought_needed,
        )


def _with_score(line: ThoughtLine, score: Any, merged_score: float | None = None) -> ThoughtLine:
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    if is_number and abs(score) <= sys.float_info.max:
        return replace(line, score=float(score), score_before=line.score)
    return line if merged_score is None else replace(line, score=merged_score, score_before=None)


class Submission(NamedTuple):
    """A call, the stages that it names, and its session.

    Attributes:
        is_trial: Whether the call is only a test. The error for a refused test suggests no other arguments.
    """

    strategy: Strategy[Any, Any]
    head: Head
    call: ThinkingCall
    view: SessionView
    stages: Stages
    is_trial: bool = False

    def place(self, recorded: Mapping[str, Any]) -> Placement:
        """Find the line and the path of the new thought, and its references to branches and thoughts.

        If a thought on the main line merges no other branch, it merges the branch in `data.selected`, unless this
        branch is merged already. The errors are as in `submit`.
        """
        head, call = self.head, self.call
        own = self.own_line(recorded.get("branch_from_seq"))
        selected = flatten_data(call.data).get("selected")
        selected = find_name(selected, head.branches) if isinstance(selected, str) else None
        if selected is not None and not (own.branch or call.merge_branch or head.branches[selected].merged):
            call = replace(call, merge_branch=selected)
        if call.merge_branch:
            self._check_merge(call.merge_branch, own.branch)
        revised = None
        if (number := call.revises_thought) is not None:
            lines, seq = ancestry(head, own.branch, own.line), recorded.get("revises_seq")
            revised = find_thought(self.view, "revises_thought", number, lines, seq).seq
        stages, from_stage = self._replace(call=call).walk(own)
        is_alone = own.branch is None and not (selected or call.merge_branch)
        if is_alone and _BRANCHES in stages and head.chosen is not None:
            own = own._replace(line=replace(own.line, score=None, score_before=None))
            head = replace(head, chosen=None)
        return Placement(self.strategy, head, call, own, stages, from_stage, selected, revised)

    def _check_merge(self, merged: str, branch: str | None) -> None:
        head = self.head
        if merged not in head.branches:
            known = "it has no branches; leave it out"
            if head.branches:
                known = f"where its lines stand: {show_lines(head)}"
            message = f"There is no branch {merged!r} in this session; {known}."
            raise UsageError(message, field="merge_branch", choices=list(head.branches))
        if merged == branch:
            name, parent = show_value(branch), head.branches[merged].parent or head.main_name
            raise UsageError(
                f"A thought on branch {name} cannot merge {name}; a thought on another line takes it in. "
                f"Where the lines stand: {show_lines(head)}.",
                field="merge_branch",
                **self._offer([{"branch_id": parent}]),
            )

    def own_line(self, branch_from_seq: int | None) -> OwnLine:
        """Return the line that the new thought belongs to.

        Args:
            branch_from_seq: The `seq` of the thought from which the branch begins, if an export recorded it.

        Raises:
            UsageError: The branch begins at a thought that does not exist.
        """
        head, name, branch_from = self.head, self.call.branch_id, self.call.branch_from_thought
        if name is None and branch_from is None and not self.call.merge_branch:
            name = self._line_continued()
        base = None if branch_from is None else self._find_branching_thought(branch_from, branch_from_seq)
        if name is None and branch_from is not None:
            names = (f"branch-{count}" for count in itertools.count(1))
            name = next(free for free in names if free not in head.branches)
        if not name or (name == MAIN and name not in head.branches and branch_from is None):
            return OwnLine(None, head.main, branch_from)
        if name in head.branches:
            return OwnLine(name, head.branches[name], branch_from)
        base = base or self._default_branching_thought()
        if base is None:
            return OwnLine(name, ThoughtLine(head.main.stage))
        line = ThoughtLine(decode_record(base).stage, branch_from=base.number, parent=base.branch)
        return OwnLine(name, line, base.number, base.seq)

    def walk(self, own: OwnLine) -> tuple[Stages, str | None]:
        """Return the stages that the thought passes, and the stage that it leaves, if any.

        If the call names no stage, the line keeps its stage, unless a merged branch's stage is later in the table.

        Raises:
            IllegalTransitionError: No edge leads to the named stage.
        """
        stage, merging, table = own.line.stage, self.call.merge_branch, [*self.strategy.by_name]
        bases = [*filter(None, [self.head.branches[merging].stage if merging else ""]), stage]
        if not self.stages:
            stays = max(bases, key=lambda name: table.index(name) if name in table else 0)
            return ((stays or ("" if self.call.strategy is None else self.strategy.first),), None)
        latest = [*filter(None, [self.head.stage])]
        walked = self._walk_from(bases, self.stages) or self._walk_from(latest, self.stages)
        if walked is None:
            raise self._refusal(own.branch, bases + latest)
        return walked

    def _walk_from(self, bases: Sequence[str], stages: Stages) -> tuple[Stages, str | None] | None:
        legal = [base for base in bases if is_legal(self.strategy, base, stages)]
        stays = any(base == stages[0] or base not in self.strategy.by_name for base in legal)
        return (stages, None if stays else legal[0]) if legal else None

    # -- the line

    def _line_continued(self) -> str | None:
        """Choose the branch of a thought that does not name its line. None means the main line.

        A revision belongs to the line of the revised thought. Any other thought belongs to the line that its stages and
        its number continue.
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
        """Whether a new thought that names stages, but no line, belongs to the latest thought's branch.

        The number of the thought must be the branch's next number, or the main line must not have a shorter path to the
        stages. Also, a stage on the path may compare branches only if it has a field `score` and so values its branch.
        """
        head, table = self.head, self.strategy.by_name
        there = complete_path(self.strategy, head.stage, self.stages)
        if head.latest is None or there is None:
            return False
        own = complete_path(self.strategy, head.main.stage, self.stages)
        is_stay = self.stages[0] == head.stage
        if not is_next and own is not None and len(own) < len(there) + is_stay:
            return False
        return not any(
            table[name].compares and find_field("score", table[name].fields) is None for name in there
        )

    def _find_branching_thought(self, number: int, seq: int | None = None) -> ThoughtRow:
        """Find the thought from which a branch begins. The search begins with the main line."""
        lines = [(branch, None) for branch, _ in ancestry(self.head, self.head.latest)]
        return find_thought(self.view, "branch_from_thought", number, lines[::-1], seq)

    def _default_branching_thought(self) -> ThoughtRow | None:
        """Choose a line to branch from, and return its latest thought. Return None if the line has no thoughts.

        Try the latest thought's line and then the ancestors of this line, until a line permits the named stages. So
        several new branches begin at the same thought. If no line permits the stages, the latest thought's line counts.
        """
        head = self.head
        lines = [branch for branch, _ in ancestry(head, head.latest)] if self.stages else []
        fits = (name for name in lines if is_legal(self.strategy, head.line(name).stage, self.stages))
        parent = next(fits, head.latest)
        line = head.line(parent)
        there = self.view.with_number(line.number) if line.thoughts else []
        return next((thought for thought in reversed(there) if thought.branch == parent), None)

    # -- refusals

    def _refusal(self, branch: str | None, bases: Sequence[str]) -> IllegalTransitionError:
        """Build the error for an illegal step. The error describes the lines and suggests acceptable arguments.

        Args:
            bases: The stages where the path may start: the stages of a merged branch, the line and the latest thought.
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
        offer = self._offer(self._find_ways_out(branch, bases))
        if offer:
            path = offer["instead"].get("stage")
            named = dict.fromkeys(path) if isinstance(path, list) else ()
            fields = [
                f"{name}.{field.name}" for name in named for field in table[name].fields if field.required
            ]
            message += f" The way there needs {', '.join(fields)} in data." if fields else ""
        elif not unknown:
            message += " Leave `stage` out to stay, or begin a new session."
        return IllegalTransitionError(message, stage=start, choices=legal, **offer)

    def _offer(self, ways: Iterable[dict[str, Any]]) -> dict[str, Any]:
        """Return {"instead": CHANGES} with the first of `ways` that makes the call valid. If none does, return {}."""
        for changes in () if self.is_trial else ways:
            call = replace(self.call, **changes)
            with suppress(UsageError):
                self._replace(call=call, stages=stages_named(call), is_trial=True).place({})
                return {"instead": changes}
        return {}

    def _broken_step(self, bases: Sequence[str]) -> tuple[str, str, list[str]]:
        """Return the stages before and after the illegal step, and the legal next stages."""
        table = self.strategy.by_name
        for start, to in pairwise(self.stages):
            if start in table and to not in table[start].to:
                return start, to, list(table[start].to)
        legal = [to for base in bases if base in table for to in table[base].to]
        known = list(dict.fromkeys(legal)) if bases[0] in table else list(table)
        return bases[0] or "no stage", self.stages[0], known

    def _find_ways_out(self, branch: str | None, bases: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield possible corrections of the call, the smallest first. Each correction maps arguments to new values."""
        head, call, strategy = self.head, self.call, self.strategy
        if any(stage not in strategy.by_name for stage in self.stages):
            return
        is_known = branch is None or branch in head.branches
        for name in [*reversed(head.branches), None] if is_known or call.branch_from_thought is None else ():
            is_other = name not in (branch, call.merge_branch or branch)
            if is_other and is_legal(strategy, head.line(name).stage, self.stages):
                yield {"branch_id": name or head.main_name}
        ways = filter(None, (complete_path(strategy, base, self.stages) for base in bases))
        if way := min(ways, key=len, default=None):
            yield {"stage": list(way)}
        for thought in reversed(self.view.latest(head.thoughts)):
            way = complete_path(strategy, decode_record(thought).stage, self.stages)
            if way and self._find_branching_thought(thought.number).seq == thought.seq:
                alone: dict[str, Any] = {"branch_id": None} if is_known else {}
                stage = way[0] if len(way) == 1 else list(way)
                yield {**alone, "branch_from_thought": thought.number, "stage": stage}


# -- guidance: a session gives the guidance for each stage once, in the reply that first offers this stage


def guidance_due(strategy: Strategy[Any, Any], stage: str, already: Container[str] = ()) -> dict[str, str]:
    """Return the guidance for a stage and for its next stages, by stage name.

    Args:
        already: Stages to leave out, because an earlier reply has given their guidance.
    """
    names = (stage, *strategy.by_name[stage].to)
    return {name: strategy.by_name[name].guidance for name in names if name not in already}


def with_guidance_given(strategy: Strategy[Any, Any], head: Head) -> Head:
    """Mark the guidance for the current stage and the next stages as sent, and return the new state."""
    if head.stage not in strategy.by_name:
        return head
    return replace(head, guided=(*head.guided, *guidance_due(strategy, head.stage, head.guided)))
