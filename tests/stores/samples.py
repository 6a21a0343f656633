"""Rows to store, and ways to look at what was stored."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from reasonry.errors import ReasonryError
from reasonry.records import (
    Found,
    Line,
    RunRow,
    SessionChange,
    SessionRow,
    SessionView,
    Store,
    ThoughtRow,
)


@contextmanager
def refused(code: str, words: str | None = None) -> Iterator[pytest.ExceptionInfo[ReasonryError]]:
    """Expect an error with this code."""
    with pytest.raises(ReasonryError, match=words) as caught:
        yield caught
    assert caught.value.code == code


def run_row(run_id: str, **fields: Any) -> RunRow:
    values: dict[str, Any] = {
        "session_id": f"session-of-{run_id[:20]}",
        "strategy": "tree_of_thoughts",
        "model": "offline",
        "problem": "4 9 10 13",
        "status": "active",
        "created_at_ms": 1_000,
        "updated_at_ms": 1_000,
    }
    return RunRow(run_id=run_id, **{**values, **fields})


def line(seq: int, body: bytes | None = None) -> Line:
    return Line(seq, body if body is not None else b'["sent","%d"]' % seq, seq.to_bytes(16, "big"))


def session_row(session_id: str, **fields: Any) -> SessionRow:
    values: dict[str, Any] = {"strategy": "linear", "created_at_ms": 1_000, "used_at_ms": 1_000}
    return SessionRow(session_id=session_id, **{**values, **fields})


def thoughts(*texts: str) -> list[ThoughtRow]:
    return [ThoughtRow(number, number, text) for number, text in enumerate(texts, start=1)]


async def think(store: Store, session_id: str, text: str, **fields: Any) -> int:
    """Add a thought to a session, which is begun if need be; return its seq."""

    def decide(view: SessionView) -> SessionChange:
        row = view.row or session_row(session_id)
        seq = row.thoughts + 1
        thought = ThoughtRow(**{"seq": seq, "number": seq, "text": text, **fields})
        return SessionChange(
            row=session_row(session_id, thoughts=seq, used_at_ms=row.used_at_ms + 1),
            thought=thought,
            value=seq,
        )

    return await store.change(session_id, decide)


async def texts(store: Store, session_id: str) -> list[str]:
    return [thought.text for thought in await store.thoughts(session_id, limit=100_000)]


def found(matches: Sequence[Found]) -> list[tuple[str, int]]:
    return [(session_id, thought.seq) for _, session_id, thought in matches]
