"""The thoughts of a session as one bounded text, to be quoted below the problem of a run."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.text import beginning
from ..records import ThoughtRow
from .turn import decode_record

MAX_CHARS = 16_000
"""Of all thoughts together: the first one, and of the others the latest that fit."""
MAX_THOUGHT_CHARS = 4_000


def quote_thoughts(thoughts: Sequence[ThoughtRow]) -> str:
    """Return thoughts under their numbers, branches and revisions, in the order they were had.

    What does not fit is left out between the first thought and the latest ones, and the text says so.
    """
    texts = [_text_of(thought) for thought in thoughts]
    first, latest = texts[:1], list[str]()
    room = MAX_CHARS - sum(map(len, first))
    for text in reversed(texts[1:]):
        room -= len(text) + 1
        if room < 0:
            break
        latest.append(text)
    left_out = len(texts) - len(first) - len(latest)
    gap = [f"({left_out} thoughts are left out here)"] if left_out else []
    return "\n".join([*first, *gap, *reversed(latest)])


def _text_of(thought: ThoughtRow) -> str:
    record = decode_record(thought)
    about = [
        f"branch {thought.branch}" if thought.branch else "",
        f"revises thought {record.revises}" if record.revises is not None else "",
        f"takes branch {record.merges} back in" if record.merges else "",
    ]
    shown = ", ".join(filter(None, about))
    text = beginning(thought.text, MAX_THOUGHT_CHARS)
    return f"Thought {thought.number}{f' ({shown})' if shown else ''}: {text}"
