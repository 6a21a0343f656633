"""Build the JSON documents of sessions and thoughts, for tools and the command line."""

from collections.abc import Container, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec.structs import astuple, replace

from ..core.strategy import Strategy
from ..records import SessionRow, ThoughtRow
from .fields import required_fields
from .lines import Head, decode_head, decode_record
from .placement import guidance_due
from .session_review import left_open, scoreboard, with_records
from .thinking_tool import NextStage, ShownThought, ThinkingReply
from .turn import TurnResult

Document = dict[str, Any]
_EXCERPT_CHARS = 100
_VERDICT = ("thought_number", "verdict", "claim", "reason")


# -- the reply to a thought


def reply_document(result: TurnResult) -> Document:
    """Return the thinking tool's reply."""
    record, head = result.placed.record, result.placed.head
    reply = ThinkingReply(
        thought_number=result.thought.number,
        total_thoughts=record.total_thoughts,
        next_thought_needed=record.next_thought_needed,
        branches=list(head.branches),
        thought_history_length=head.thoughts,
        session_id=result.row.session_id,
        branch_id=result.placed.branch or "",
        notices=result.notices,
        before_you_end=result.before_end,
        left_open=result.left_open,
    )
    if record.stage in result.strategy.by_name:
        reply = replace(reply, **_stage_part(result))
    if not record.next_thought_needed:
        done = f"{head.thoughts} thoughts processed across {len(head.branches)} branches"
        reply = replace(reply, summary=f"Sequential thinking complete: {done}.")
    document = msgspec.to_builtins(reply)
    return document if result.history is None else document | history_document(result.history, head.thoughts)


def _stage_part(result: TurnResult) -> Document:
    """Return the reply members about the thought's stage. If `result.recalls` is set, repeat guidance given before."""
    strategy, record, earlier = result.strategy, result.placed.record, result.earlier
    line = earlier.main if result.placed.branch is None else earlier.branches.get(result.placed.branch)
    had_no_stage = line is not None and not line.stage
    entered = record.from_stage is not None or bool(record.path) or had_no_stage
    guided = () if result.recalls else earlier.guided
    members = _stage_members(strategy, result.placed.head, record.stage, guided, entered)
    if not earlier.has_stage or result.recalls:
        members["strategy"] = strategy.name
    return members


def _stage_members(
    strategy: Strategy[Any, Any],
    head: Head,
    name: str,
    guided: Container[str] = (),
    entered: bool = False,
) -> Document:
    """Return the reply members that describe a stage and its next stages.

    Args:
        guided: The stages whose guidance the agent already has.
        entered: Whether to list the required fields of the next stages even if no guidance is due.
    """
    due = guidance_due(strategy, name, guided)
    stage = strategy.by_name[name]
    following = [
        NextStage(
            then.name,
            due.get(then.name, "") if then.name != name else "",
            required_fields(then) if entered or due else {},
        )
        for then in map(strategy.by_name.__getitem__, stage.to)
    ]
    scores = scoreboard(head) if stage.compares else ""
    return {"stage": name, "next_stages": following, "guidance": due.get(name, ""), "scores": scores}


# -- history


def history_document(thoughts: Sequence[ThoughtRow], there: int) -> Document:
    """Build the history members of a document. `there` is the number of thoughts in the whole session."""
    shown = list[ShownThought]()
    for thought in thoughts:
        of = decode_record(thought)
        references = of.is_revision, of.revises_thought, of.branch_from_thought, of.merge_branch
        shown.append(ShownThought(thought.number, thought.text, thought.branch, *references))
    return {"thought_history": msgspec.to_builtins(shown), "history_truncated": len(shown) < there}


# -- sessions


def resumed_document(strategy: Strategy[Any, Any], head: Head, thoughts: Sequence[ThoughtRow]) -> Document:
    """Return the facts that an agent needs to continue: the open points, and the stage if the session has one."""
    members: Document = {"left_open": left_open(head, strategy, with_records(thoughts))}
    if head.stage in strategy.by_name:
        members |= _stage_members(strategy, head, head.stage)
    return {name: value for name, value in msgspec.to_builtins(members).items() if value not in ("", {})}


def session_document(row: SessionRow, status: str) -> Document:
    """Describe a session for lists. The strategy is left out if an agent's session has no stages yet."""
    has_strategy = row.run_id is not None or row.head == b"{}" or decode_head(row).has_stage
    document: Document = {
        "session_id": row.session_id,
        **({"strategy": row.strategy} if has_strategy else {}),
        "status": status,
        "pinned": row.pinned,
        "thought_history_length": row.thoughts,
        "purpose": row.purpose,
        "created_at": instant(row.created_at_ms),
        "used_at": instant(row.used_at_ms),
    }
    if row.run_id is not None:
        document["run_id"] = row.run_id
    return document


def position_document(row: SessionRow) -> Document:
    """Return the states of a session's lines, and the verdicts on its claims. Return {} for the session of a run."""
    if row.run_id is not None or row.head == b"{}":
        return {}
    head = decode_head(row)
    line = head.line(head.latest)
    branches = [
        {
            "branch_id": name,
            "stage": branch.stage,
            "branch_from_thought": branch.branch_from,
            "parent_branch_id": branch.parent,
            "thoughts": branch.thoughts,
            "latest_thought_number": branch.number,
        }
        for name, branch in head.branches.items()
    ]
    document: Document = {
        "stage": line.stage,
        "ended": head.ended,
        "latest_thought": {
            "thought_number": line.number,
            "total_thoughts": line.total,
            "branch_id": head.latest,
        },
        "branches": [_without_empty(branch, "stage") for branch in branches],
        "verdicts": [dict(zip(_VERDICT, astuple(each), strict=False)) for each in head.verdicts],
    }
    return _without_empty(document, "stage", "verdicts")


def _without_empty(document: Document, *names: str) -> Document:
    return {name: value for name, value in document.items() if value or name not in names}


# -- thoughts


def thought_document(thought: ThoughtRow) -> Document:
    """Return the document of a thought, without the members that are not set."""
    record = decode_record(thought)
    document: Document = {
        "seq": thought.seq,
        "thought_number": thought.number,
        "next_thought_needed": record.next_thought_needed,
        "thought": thought.text,
        "branch_id": thought.branch,
        **msgspec.to_builtins(replace(record, path=(), mark=0, at_ms=0)),
        "stages": list(record.path) or None,
        "at": instant(record.at_ms) if record.at_ms else None,
    }
    return {name: value for name, value in document.items() if value is not None}


def match_document(session_id: str, thought: ThoughtRow, query: str) -> Document:
    """Describe a found thought. An excerpt around the first match replaces the whole text."""
    document = thought_document(thought)
    text = document.pop("thought")
    place = max(text.lower().find(query.lower()), 0)
    start, end = max(place - _EXCERPT_CHARS, 0), place + len(query) + _EXCERPT_CHARS
    excerpt = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    return {"session_id": session_id, **document, "excerpt": excerpt}


def instant(at_ms: int) -> str:
    """Format a time (milliseconds since 1970) as ISO 8601 in UTC."""
    return (
        datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
