"""The rules of a guided session: the states of its lines, and the legal next thoughts.

A session has a main line and branches. Each line has its own stage in the strategy's table. An agent names the stage of
a thought: the line's current stage (stay) or a legal next stage (move).

Rule 1: `submit` is pure. A refused call has changed nothing.
Rule 2: numbers are the agent's own. They may repeat and jump, but references must exist.
Rule 3: a session may continue after its end.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..core.strategy import Field, Stage, Strategy
from ..errors import UsageError
from ..reading.json_in_text import json_value
from ..records import SessionView
from ..text import find_name, show_value
from .arguments import not_a_choice, plain_json, unknown_arguments
from .fields import check_fields, find_field, read_data
from .lines import (
    Head,
    ThoughtLine,
    ThoughtRecord,
    ancestry,
    find_thought,
    show_lines,
    without_stages,
)
from .moves import OwnLine, Submission, stages_named
from .thinking_tool import EVIDENCE, ThinkingCall

_BRANCHES = "branch_creation"
"""The stage in which the main line leaves the branch it continued and creates new branches."""


class Placed(Struct, frozen=True):
    """An accepted thought: the new state of the session, and the record.

    Attributes:
        expected: The earlier prediction of its observation.
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
        demand_fields: Whether named stages require their fields.
        recorded: The exported thought, with the `seq` of the thoughts behind the call's numbers.
        mark: Identifies the call, or 0.

    Raises:
        IllegalTransitionError: No edge leads to the named stage; `choices` has the legal stages, `instead` the
            arguments to change.
        UsageError: Another rule is broken; `field` names the part of the call.
    """
    stages = stages_named(call)
    submission = Submission(strategy, head, call, view, stages)
    own = submission.own_line(recorded.get("branch_from_seq"))
    selected = _selected_branch(head, call)
    if selected is not None and not (own.branch or call.merge_branch or head.branches[selected].merged):
        call = replace(call, merge_branch=selected)
    _check_merge(head, call, own.branch)
    revised = None
    if call.revises_thought is not None:
        search = ancestry(head, own.branch, own.line)
        revised = find_thought(
            view, "revises_thought", call.revises_thought, search, recorded.get("revises_seq")
        )
    walked = submission._replace(call=call).walk(own)
    if own.branch is None and not (selected or call.merge_branch) and _BRANCHES in walked.stages:
        head, own = _begin_anew(head, own)
    named = [strategy.by_name[name] for name in walked.stages if name in strategy.by_name]
    if demand_fields and stages:
        check_fields(data_by_stage(named, call.data or {}))
    facts = without_stages(call.data)
    # The estimate is raised to the thought's number, and past it where more are needed.
    total = max(call.total_thoughts, call.thought_number + call.needs_more_thoughts)
    takes_in = bool(call.merge_branch) and own.branch is None
    score_taken_in = head.branches[call.merge_branch].score if takes_in and call.merge_branch else None
    stage, predicted = walked.stages[-1], own.line.predicted
    observes = "observation" in facts or any(stage == each.tested_by for each in strategy.stages)
    expected = predicted if observes else ""
    line = replace(
        _with_score(own.line, facts.get("score"), score_taken_in),
        stage=stage,
        number=call.thought_number,
        total=total,
        thoughts=own.line.thoughts + 1,
        merged=False,
        passed_over=selected not in (None, own.branch),
        predicted=str(facts.get("predict", "" if observes else predicted))[:_PREDICTED_CHARS],
    )
    record = ThoughtRecord(
        stage=line.stage,
        total_thoughts=total,
        next_thought_needed=call.next_thought_needed,
        at_ms=at_ms,
        from_stage=walked.came_from,
        is_revision=call.is_revision or call.revises_thought is not None,
        revises_thought=call.revises_thought,
        branch_from_thought=own.left,
        needs_more_thoughts=call.needs_more_thoughts,
        merge_branch=call.merge_branch or None,
        data=call.data,
        path=walked.stages if len(walked.stages) > 1 else (),
        revises_seq=None if revised is None else revised.seq,
        branch_from_seq=own.left_seq,
        mark=mark,
    )
    after = _head_after(head, own.branch, line, call, selected)
    if own.branch is None and after.chosen is not None:
        valued = _with_score(after.branches[after.chosen], facts.get("score"), None)
        after = replace(after, branches={**after.branches, after.chosen: valued})
    return Placed(after, own.branch, record, expected)


def _begin_anew(head: Head, own: OwnLine) -> tuple[Head, OwnLine]:
    """Reset the main line's score, which it shared with the branch it continued."""
    if head.chosen is None:
        return head, own
    line = replace(own.line, score=None, score_before=None)
    return replace(head, chosen=None), own._replace(line=line)


def _with_score(line: ThoughtLine, score: Any, taken_in: float | None) -> ThoughtLine:
    """Give a line the score in a thought, else the score of a merged branch."""
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    if is_number and abs(score) <= sys.float_info.max:
        return replace(line, score=float(score), score_before=line.score)
    return line if taken_in is None else replace(line, score=taken_in, score_before=None)


def _selected_branch(head: Head, call: ThinkingCall) -> str | None:
    """Return the branch named in `data.selected` on the main line, which merges it unless already merged."""
    selected = without_stages(call.data).get("selected")
    return find_name(selected, head.branches) if isinstance(selected, str) else None


def _head_after(
    head: Head, branch: str | None, line: ThoughtLine, call: ThinkingCall, selected: str | None
) -> Head:
    branches = head.branches
    if selected is not None:
        branches = {
            name: each if name == selected else replace(each, passed_over=True)
            for name, each in branches.items()
        }
    if call.merge_branch:
        merged = replace(branches[call.merge_branch], merged=True)
        branches = {**branches, call.merge_branch: merged}
    if branch is not None:
        branches = {**branches, branch: line}
    main = line if branch is None else head.main
    chosen = head.chosen if branch is not None else call.merge_branch or selected or head.chosen
    return replace(
        head,
        main=main,
        branches=branches,
        latest=branch,
        chosen=chosen,
        thoughts=head.thoughts + 1,
        highest=max(head.highest, line.number),
        ended=not call.next_thought_needed,
    )


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
            f"There is no branch {call.merge_branch!r} in this session; {known}.",
            field="merge_branch",
            choices=list(head.branches),
        )
    if call.merge_branch == branch:
        name, parent = show_value(branch), head.branches[call.merge_branch].parent or head.main_name
        raise UsageError(
            f"A thought on branch {name} cannot merge {name}; a thought on another line takes it in. "
            f"Where the lines stand: {show_lines(head)}.",
            field="merge_branch",
            instead={"branch_id": parent},
        )


# -- guidance: given once in a session, as soon as its stage is offered, so before its first thought there


def guidance_due(strategy: Strategy[Any, Any], stage: str, already: Container[str] = ()) -> dict[str, str]:
    """Return the guidance for a stage and its next stages, by stage.

    Args:
        already: Stages whose guidance is not repeated.
    """
    names = (stage, *strategy.by_name[stage].to)
    return {name: strategy.by_name[name].guidance for name in names if name not in already}


def with_guidance_given(strategy: Strategy[Any, Any], head: Head) -> Head:
    """Return the state of the session after the reply to its latest thought."""
    if head.stage not in strategy.by_name:
        return head
    return replace(head, guided=(*head.guided, *guidance_due(strategy, head.stage, head.guided)))


_PREDICTED_CHARS = 200
_OF_ANY_THOUGHT = (
    Field("evidence", {"type": "string", "enum": list(EVIDENCE)}, required=False),
    Field("confidence", {"type": "number", "minimum": 0, "maximum": 1}, required=False),
    Field("predict", {"type": "string"}, required=False),
    Field("confirms", {"type": "array", "items": {"type": "integer"}}, required=False),
)
"""Fields of any stage: evidence, confidence, prediction and confirmed thoughts."""

# -- fields: by stage (`{"action_planning": {"action": …}}`), or flat for the stages that have a field of the name


def settle_fields(
    strategy: Strategy[Any, Any], call: ThinkingCall, others: Mapping[str, Any], max_chars: int
) -> tuple[ThinkingCall, list[str]]:
    """Normalise the stages of a call, and move their fields into `data`.

    Args:
        others: Unknown arguments. Fields of a named stage, or of any stage if none is named, become `data`.
        max_chars: The limit for `data` as JSON.

    Returns:
        The call, and a sentence for each dropped argument.

    Raises:
        UsageError: A field is not plain JSON data, or `data` is a bare value that fits no single field.
        TooLargeError: `data` is too long.
    """
    if call.stage is None and call.data is None and not others:
        return call, []
    names = [find_name(name, strategy.by_name) or name for name in stages_named(call)]
    stages = [strategy.by_name[name] for name in names if name in strategy.by_name]
    fields = _fields_of(stages if names else strategy.stages)
    data = _by_stage(call.data or {}, stages)
    unknown, faults = list[str](), list[str]()
    for name, value in others.items():
        field = find_field(name, _OF_ANY_THOUGHT) or _field_meant(name, value, fields, is_named=bool(names))
        if field is None:
            unknown.append(name)
        elif field.name == "evidence" and find_name(str(value), EVIDENCE) is None:
            faults.append(f"{not_a_choice('evidence', str(value), EVIDENCE).message} It was not kept.")
        else:
            data.setdefault(field.name, value)
    data = read_data(data, [*fields, *_OF_ANY_THOUGHT])
    if others:
        data = plain_json("data", data, max_chars)
    stage = names[0] if isinstance(call.stage, str) and len(names) == 1 else names or None
    known = [name.replace("_", " ") for name in ThinkingCall.__struct_fields__]
    for sentence in unknown_arguments("sequentialthinking", unknown, known):
        faults.append(f"{sentence} It was not kept; a stage's fields go into data.")
    return replace(call, stage=stage, data=data if data or call.data is not None else None), faults


def _by_stage(data: Mapping[str, Any], stages: Sequence[Stage[Any]]) -> dict[str, Any]:
    """Convert data grouped by stage, field by field."""
    by_name = {stage.name: stage for stage in stages}
    found: dict[str, Any] = {}
    for key, value in data.items():
        name = find_name(key, by_name)
        part = json_value(value) if isinstance(value, str) and name is not None else value
        if name is not None and name not in found and isinstance(part, dict):
            found[name] = read_data(part, by_name[name].fields)
        else:
            found[key] = value
    return found


def _fields_of(stages: Iterable[Stage[Any]]) -> Sequence[Field]:
    """Return the fields of stages, without names that have different meanings."""
    by_name: dict[str, list[Field]] = {}
    for stage in stages:
        for field in stage.fields:
            by_name.setdefault(field.name, []).append(field)
    return [found[0] for found in by_name.values() if all(field.schema == found[0].schema for field in found)]


def _field_meant(name: str, value: Any, fields: Sequence[Field], *, is_named: bool) -> Field | None:
    """Find the field for an argument. A bare `data` value is the only field, or the only required one.

    Args:
        is_named: Whether the call names the stages of the fields.
    """
    if name != "data":
        return find_field(name, fields)
    required = [field for field in fields if field.required]
    meant = fields if len(fields) == 1 else required
    if is_named and len(meant) == 1:
        return meant[0]
    names = [field.name for field in fields] if is_named else []
    listed = f": {', '.join(names)}" if names else ""
    raise UsageError(
        f"data must be an object with the stage's fields{listed}; not {show_value(value)}",
        field="data",
        choices=names,
    )


def data_by_stage(
    stages: Sequence[Stage[Any]], data: Mapping[str, Any]
) -> Iterator[tuple[Stage[Any], Mapping[str, Any], str]]:
    """Yield each stage with its part of the data, and its path in errors."""
    names = {stage.name for stage in stages}
    nested = {name: value for name, value in data.items() if name in names and isinstance(value, dict)}
    flat = {name: value for name, value in data.items() if name not in nested}
    for stage in stages:
        path = "data" if len(names) == 1 else f"data.{stage.name}"
        yield stage, {**flat, **nested.get(stage.name, {})}, path
