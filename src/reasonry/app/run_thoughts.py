"""Thoughts between runs and sessions: a run's thoughts as the rows of its session, a session's thoughts quoted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..core.bodies import Thought
from ..core.problem import quote_latest
from ..guided.lines import ThoughtRecord, decode_record, encode
from ..records import ThoughtRow
from ..text import cut

MAX_QUOTED_CHARS = 16_000
"""Of all thoughts together: the first one, and of the others the latest that fit."""
MAX_QUOTED_THOUGHT_CHARS = 4_000


def thought_rows(
    thoughts: Iterable[Thought], before: int = 0, branches: dict[str, int] | None = None
) -> list[ThoughtRow]:
    """Return thoughts of a run as the rows of its session, numbered in order.

    Args:
        before: How many thoughts of the run come before these.
        branches: The number of the first thought of each branch that has begun before.
    """
    rows, firsts = list[ThoughtRow](), {} if branches is None else branches
    for number, thought in enumerate(thoughts, before + 1):
        left = None if thought.branch is None or thought.leaves is None else firsts.get(thought.leaves)
        record = ThoughtRecord(
            stage=thought.stage,
            is_revision=thought.revises is not None,
            revises_thought=thought.revises,
            revises_seq=thought.revises,
            branch_from_thought=left,
            branch_from_seq=left,
            data=thought.data or None,
            score=thought.score,
        )
        if thought.branch is not None:
            firsts.setdefault(thought.branch, number)
        rows.append(ThoughtRow(number, number, thought.text, thought.branch, encode(record)))
    return rows


def quote_thoughts(thoughts: Sequence[ThoughtRow]) -> str:
    """Return thoughts under their numbers, branches and revisions, in the order they were had.

    What does not fit is left out between the first thought and the latest ones, and the text says so.
    """
    texts = [_text_of(thought) for thought in thoughts]
    first = texts[:1]
    room = MAX_QUOTED_CHARS - sum(map(len, first))
    return "\n".join([*first, *quote_latest(texts[1:], room, "thoughts")])


def _text_of(thought: ThoughtRow) -> str:
    record = decode_record(thought)
    about = [
        f"branch {thought.branch}" if thought.branch else "",
        f"revises thought {record.revises_thought}" if record.revises_thought is not None else "",
        f"takes branch {record.merge_branch} back in" if record.merge_branch else "",
        str(record.facts.get("evidence") or ""),
    ]
    shown = ", ".join(filter(None, about))
    text = cut(thought.text, MAX_QUOTED_THOUGHT_CHARS)
    return f"Thought {thought.number}{f' ({shown})' if shown else ''}: {text}"
