"""Sessions and thoughts as the JSON documents that tools and the shell hand out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from ..core.strategy import Strategy, Thought
from ..records import SessionRow, ThoughtRow
from .thinking_tool import NextStage, ShownThought, ThinkingReply
from .thought import Head, ThoughtRecord
from .turn import (
    MAX_SHOWN_CHARS,
    MAX_SHOWN_THOUGHTS,
    Taken,
    decode_head,
    decode_record,
    decode_stored,
    encode,
)

Document = dict[str, Any]
_EXCERPT_CHARS = 100


class _Shown(Struct, frozen=True):
    """The part of a record that a reply's history shows."""

    is_revision: bool = False
    revises: int | None = None
    branch_from: int | None = None
    merges: str | None = None


_shown = msgspec.json.Decoder(_Shown)


def reply_document(taken: Taken, history: int | None) -> Document:
    """Return the thinking tool's reply.

    Args:
        history: Most thoughts wanted; None: as many as fit.
    """
    record, head = taken.placed.record, taken.placed.head
    shown = latest_thoughts([*taken.before, taken.thought], history)
    reply = ThinkingReply(
        thought_number=taken.thought.number,
        total_thoughts=record.total,
        next_thought_needed=record.next_needed,
        branches=list(head.branches),
        thought_history_length=head.thoughts,
        session_id=taken.row.session_id,
        strategy=taken.row.strategy,
        stage=record.stage,
        next_stages=next_stages(taken.strategy, record.stage),
        thought_history=shown,
        history_truncated=len(shown) < head.thoughts,
        summary=None if record.next_needed else summary(head),
        notices=taken.notices,
    )
    return msgspec.to_builtins(reply)


def summary(head: Head) -> str:
    """Return what is said when a session ends."""
    return (
        f"Sequential thinking complete: {head.thoughts} thoughts processed "
        f"across {len(head.branches)} branches."
    )


def next_stages(strategy: Strategy[Any, Any], stage: str) -> list[NextStage]:
    """Return the stages that may follow, in table order."""
    table = strategy.by_name
    if stage not in table:
        return []
    return [NextStage(name, table[name].description) for name in table[stage].to]


def latest_thoughts(thoughts: Sequence[ThoughtRow], maximum: int | None) -> list[ShownThought]:
    """Return the latest thoughts, oldest first and whole, as many as fit into a reply."""
    count = MAX_SHOWN_THOUGHTS if maximum is None else min(maximum, MAX_SHOWN_THOUGHTS)
    room, shown = MAX_SHOWN_CHARS, list[ShownThought]()
    for thought in reversed(thoughts[-count:] if count else ()):
        room -= len(thought.text)
        if room < 0:
            break
        shown.append(_shown_thought(thought))
    shown.reverse()
    return shown


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
    """Return a session as lists show it; of a damaged one nothing but its id can be told."""
    if row.status == "damaged":
        return {"sessionId": row.session_id, "status": row.status}
    document: Document = {
        "sessionId": row.session_id,
        "strategy": row.strategy,
        "status": status or row.status,
        "pinned": row.pinned,
        "thoughtHistoryLength": row.thoughts,
        "purpose": row.purpose,
        "createdAt": instant(row.created_at_ms),
        "usedAt": instant(row.used_at_ms),
    }
    if row.run_id is not None:
        document["runId"] = row.run_id
    return document


def standing_document(row: SessionRow) -> Document:
    """Return where the lines of a session stand; nothing for one that a run writes."""
    if row.run_id is not None or row.head == b"{}":
        return {}
    head = decode_head(row)
    line = head.line(head.latest)
    return {
        "stage": head.main.stage,
        "ended": head.ended,
        "latestThought": {"thoughtNumber": line.number, "totalThoughts": line.total, "branchId": head.latest},
        "branches": [
            {
                "branchId": name,
                "stage": branch.stage,
                "branchFromThought": branch.left,
                "parentBranchId": branch.parent,
                "thoughts": branch.thoughts,
                "latestThoughtNumber": branch.number,
            }
            for name, branch in head.branches.items()
        ],
    }


def thought_document(thought: ThoughtRow) -> Document:
    """Return all there is to a thought; what is not set is left out."""
    record = decode_record(thought)
    document: Document = {
        "seq": thought.seq,
        "thoughtNumber": thought.number,
        "totalThoughts": record.total or None,
        "nextThoughtNeeded": record.next_needed,
        "thought": thought.text,
        "stage": record.stage or None,
        "fromStage": record.came_from,
        "branchId": thought.branch,
        "branchFromThought": record.branch_from,
        "isRevision": record.is_revision or None,
        "revisesThought": record.revises,
        "needsMoreThoughts": record.needs_more or None,
        "mergeBranch": record.merges,
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
    return {"sessionId": session_id, **document, "excerpt": excerpt}


def rows_of_run(thoughts: Iterable[Thought]) -> list[ThoughtRow]:
    """Return the thoughts of a run as the rows of its session, numbered in the order they were had."""
    rows, numbers = list[ThoughtRow](), dict[str, int]()
    for number, thought in enumerate(thoughts, 1):
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
        rows.append(ThoughtRow(number, number, thought.text, thought.branch, encode(record)))
        if thought.branch is not None:
            numbers.setdefault(thought.branch, number)
    return rows


def instant(at_ms: int) -> str:
    """Return an instant as ISO 8601 text in UTC."""
    return (
        datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
