"""Sessions and thoughts as the JSON documents that tools and the shell hand out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from ..core.describe import required_fields
from ..core.strategy import Strategy, Thought
from ..records import SessionRow, ThoughtRow
from .guidance import guidance_due
from .history import HistoryBound
from .open_lines import LaidThought, scoreboard, what_is_left_open
from .thinking_tool import NextStage, Notice, ShownThought, ThinkingReply
from .thought import Head, ThoughtLine, ThoughtRecord
from .turn import Taken, decode_head, decode_record, decode_stored, encode

Document = dict[str, Any]
_EXCERPT_CHARS = 100


class _Shown(Struct, frozen=True):
    """The part of a record that a reply's history shows."""

    is_revision: bool = False
    revises: int | None = None
    branch_from: int | None = None
    merges: str | None = None


_shown = msgspec.json.Decoder(_Shown)


def reply_document(taken: Taken) -> Document:
    """Return the thinking tool's reply."""
    record, head = taken.placed.record, taken.placed.head
    reply = ThinkingReply(
        thought_number=taken.thought.number,
        total_thoughts=record.total,
        next_thought_needed=record.next_needed,
        branches=list(head.branches),
        thought_history_length=head.thoughts,
        session_id=taken.row.session_id,
        notices=taken.notices,
    )
    if record.stage in taken.strategy.by_name:
        reply = replace(reply, **_place(taken))
    if not record.next_needed:
        reply = replace(reply, summary=summary(head), left_open=_left_open(taken))
    document = msgspec.to_builtins(reply)
    if taken.bound.thoughts != 0:
        shown, is_cut = _history([*taken.before, taken.thought], taken.bound, head.thoughts)
        document |= {"thoughtHistory": msgspec.to_builtins(shown), "historyTruncated": is_cut}
    return document


def _place(taken: Taken) -> Document:
    """Return what a reply says of the stage: on entering it, or on a connection that is new to it, in full."""
    record, stage = taken.placed.record, taken.strategy.stage(taken.placed.record.stage)
    due = guidance_due(taken.strategy, stage.name, () if taken.recalls else taken.earlier.guided)
    entered = bool(due) or record.came_from is not None or bool(record.path) or _had_no_stage(taken)
    members: Document = {
        "stage": stage.name,
        "next_stages": next_stages(taken.strategy, stage.name, due, entered=entered),
        "guidance": due.get(stage.name, ""),
    }
    if not taken.earlier.has_stage or taken.recalls:
        members["strategy"] = taken.strategy.name
    if stage.compares:
        members["scores"] = scoreboard(taken.placed.head)
    return members


def _had_no_stage(taken: Taken) -> bool:
    """Whether the thought's line was there before, in no stage."""
    branch, earlier = taken.placed.branch, taken.earlier
    line = earlier.main if branch is None else earlier.branches.get(branch)
    return line is not None and not line.stage


def _left_open(taken: Taken) -> str:
    thoughts = [*taken.before, taken.thought]
    laid = [
        LaidThought(thought.seq, thought.number, thought.branch, decode_record(thought))
        for thought in thoughts
    ]
    return what_is_left_open(taken.strategy, taken.placed.head, laid)


def summary(head: Head) -> str:
    """Return what is said when a session ends."""
    return (
        f"Sequential thinking complete: {head.thoughts} thoughts processed "
        f"across {len(head.branches)} branches."
    )


def next_stages(
    strategy: Strategy[Any, Any], stage: str, due: Mapping[str, str], *, entered: bool
) -> list[NextStage]:
    """Return the stages that may follow, in table order.

    Args:
        due: The guidance to give, by stage.
        entered: Whether to tell their required fields.
    """
    following = [strategy.by_name[name] for name in strategy.stage(stage).to]
    return [
        NextStage(
            then.name,
            due.get(then.name, "") if then.name != stage else "",
            required_fields(then) if entered else {},
        )
        for then in following
    ]


def history_document(thoughts: Sequence[ThoughtRow], bound: HistoryBound, there: int) -> Document:
    """Return the members of a session's document that show its history.

    Args:
        thoughts: At least the latest that fit, oldest first.
        there: How many the session has.
    """
    shown, is_cut = _history(thoughts, bound, there)
    return {"thought_history": [_members(thought) for thought in shown], "history_truncated": is_cut}


def _history(
    thoughts: Sequence[ThoughtRow], bound: HistoryBound, there: int
) -> tuple[list[ShownThought], bool]:
    shown = [_shown_thought(thought) for thought in bound.cut(thoughts)]
    return shown, len(shown) < there


def notice_documents(notices: Iterable[Notice]) -> list[Document]:
    """Return what is to be said beside a session's document."""
    return [_members(notice) for notice in notices]


def _members(struct: Struct) -> Document:
    """Return the members of a part of the thinking tool's reply that say something, in snake case."""
    return {
        field.name: value
        for field in fields(struct)
        if (value := getattr(struct, field.name)) != field.default
    }


def resumed_document(strategy: Strategy[Any, Any], head: Head) -> Document:
    """Return what a thinker needs to go on in the stage of the latest thought; nothing where no stage was named."""
    name = head.line(head.latest).stage
    if name not in strategy.by_name:
        return {}
    stage, due = strategy.by_name[name], guidance_due(strategy, name)
    members: Document = {
        "stage": name,
        "next_stages": msgspec.to_builtins(next_stages(strategy, name, due, entered=True)),
        "guidance": due[name],
        "scores": scoreboard(head) if stage.compares else "",
    }
    return {key: value for key, value in members.items() if value != ""}


def _shown_thought(thought: ThoughtRow) -> ShownThought:
    record = decode_stored(_shown, thought.body, f"thought {thought.seq}")
    return ShownThought(
        thought_number=thought.number,
        thought=thought.text,
        branch_id=thought.branch,
        is_revision=record.is_revision,
        revises_thought=record.revises,
        branch_from_thought=record.branch_from,
        merge_branch=record.merges,
    )


def session_document(row: SessionRow, *, status: str | None = None) -> Document:
    """Return a session as lists show it."""
    document: Document = {
        "session_id": row.session_id,
        **({"strategy": row.strategy} if has_strategy(row) else {}),
        "status": status or row.status,
        "pinned": row.pinned,
        "thought_history_length": row.thoughts,
        "purpose": row.purpose,
        "created_at": instant(row.created_at_ms),
        "used_at": instant(row.used_at_ms),
    }
    if row.run_id is not None:
        document["run_id"] = row.run_id
    return document


def has_strategy(row: SessionRow) -> bool:
    """Whether a session shows a strategy: those of runs do, others once a strategy or a stage was named."""
    return row.run_id is not None or row.head == b"{}" or decode_head(row).has_stage


def standing_document(row: SessionRow) -> Document:
    """Return where the lines of a session stand; nothing for one that a run writes."""
    if row.run_id is not None or row.head == b"{}":
        return {}
    head = decode_head(row)
    line = head.line(head.latest)
    return {
        **_stage_member(line),
        "ended": head.ended,
        "latest_thought": {
            "thought_number": line.number,
            "total_thoughts": line.total,
            "branch_id": head.latest,
        },
        "branches": [
            {
                "branch_id": name,
                **_stage_member(branch),
                "branch_from_thought": branch.left,
                "parent_branch_id": branch.parent,
                "thoughts": branch.thoughts,
                "latest_thought_number": branch.number,
            }
            for name, branch in head.branches.items()
        ],
    }


def _stage_member(line: ThoughtLine) -> Document:
    return {"stage": line.stage} if line.stage else {}


def thought_document(thought: ThoughtRow) -> Document:
    """Return all there is to a thought; what is not set is left out."""
    record = decode_record(thought)
    document: Document = {
        "seq": thought.seq,
        "thought_number": thought.number,
        "total_thoughts": record.total or None,
        "next_thought_needed": record.next_needed,
        "thought": thought.text,
        "stage": record.stage or None,
        "stages": list(record.path) or None,
        "from_stage": record.came_from,
        "branch_id": thought.branch,
        "branch_from_thought": record.branch_from,
        "branch_from_seq": record.branch_from_seq,
        "is_revision": record.is_revision or None,
        "revises_thought": record.revises,
        "revises_seq": record.revises_seq,
        "needs_more_thoughts": record.needs_more or None,
        "merge_branch": record.merges,
        "data": record.data,
        "score": record.score,
        "at": instant(record.at_ms) if record.at_ms else None,
    }
    return {name: value for name, value in document.items() if value is not None}


def match_document(session_id: str, thought: ThoughtRow, query: str) -> Document:
    """Return a thought that was found, with the neighbourhood of the first match for its text."""
    document = thought_document(thought)
    text = document.pop("thought")
    place = max(text.lower().find(query.lower()), 0)
    start, end = max(place - _EXCERPT_CHARS, 0), place + len(query) + _EXCERPT_CHARS
    excerpt = ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")
    return {"session_id": session_id, **document, "excerpt": excerpt}


class RowsOfRun:
    """Turns the thoughts of a run, as they are had, into the rows of its session, numbered in this order."""

    def __init__(self) -> None:
        self.count = 0
        self._numbers = dict[str, int]()

    def add(self, thoughts: Iterable[Thought]) -> list[ThoughtRow]:
        """Return the rows of the thoughts that come next."""
        return [self._row(thought) for thought in thoughts]

    def _row(self, thought: Thought) -> ThoughtRow:
        self.count += 1
        number, numbers = self.count, self._numbers
        record = ThoughtRecord(
            stage=thought.stage,
            is_revision=thought.revises is not None,
            revises=thought.revises,
            branch_from=None
            if thought.branch is None or thought.leaves is None
            else numbers.get(thought.leaves),
            data=thought.data or None,
            score=thought.score,
        )
        if thought.branch is not None:
            numbers.setdefault(thought.branch, number)
        return ThoughtRow(number, number, thought.text, thought.branch, encode(record))


def rows_of_run(thoughts: Iterable[Thought]) -> list[ThoughtRow]:
    """Return the thoughts of a run as the rows of its session, numbered in the order they were had."""
    return RowsOfRun().add(thoughts)


def instant(at_ms: int) -> str:
    """Return an instant as ISO 8601 text in UTC."""
    return (
        datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
