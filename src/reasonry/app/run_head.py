"""The head of a run: what lists show of it on every surface, under the names that its record has."""

from __future__ import annotations

from typing import Literal, TypedDict

from ..engine.journal import CALLER
from ..records import Outcome, RunRow

RunMode = Literal["driven", "coached"]


class HeadTermination(TypedDict):
    """Why a run ended; both are empty while it works."""

    reason: str
    detail: str


class HeadUsage(TypedDict):
    """The usage of a run; `usd` is null if the price is unknown."""

    calls: int
    total_tokens: int
    usd: float | None


class RunHead(TypedDict):
    """A run as a list shows it; `resumable`: nobody drives it, though it has not ended."""

    run_id: str
    session_id: str
    outcome: Outcome | None
    status: Literal["active", "done", "failed", "cancelled"]
    paused: bool
    resumable: bool
    mode: RunMode
    strategy: str
    model: str
    problem: str
    answer: str | None
    best_answer: str | None
    termination: HeadTermination
    usage: HeadUsage
    created_at_ms: int
    updated_at_ms: int


def run_head(row: RunRow, *, resumable: bool = False) -> RunHead:
    """Return the head of a run; of its problem and its answer it has the beginning."""
    is_answered = row.outcome in ("solved", "answered")
    return RunHead(
        run_id=row.run_id,
        session_id=row.session_id,
        outcome=row.outcome,
        status=row.status,
        paused=row.paused,
        resumable=resumable,
        mode="coached" if row.model == CALLER else "driven",
        strategy=row.strategy,
        model=row.model,
        problem=row.problem,
        answer=row.answer if is_answered else None,
        best_answer=None if is_answered else row.answer,
        termination=HeadTermination(reason=row.reason or "", detail=row.detail),
        usage=HeadUsage(calls=row.calls, total_tokens=row.tokens, usd=row.usd),
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
    )
