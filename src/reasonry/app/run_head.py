"""The head of a run: a summary of the run for lists. The members have the same names as in the run's record."""

from typing import Literal, NotRequired, TypedDict

from ..engine.journal import CALLER
from ..records import ANSWERED, Outcome, RunRow

RunMode = Literal["driven", "coached"]


class TerminationDocument(TypedDict):
    """Why a run ended: `reason` for programs, `detail` for people, `code` for an error. Empty if the run is active."""

    reason: str
    detail: str
    code: NotRequired[str]


class HeadUsage(TypedDict):
    """The usage of a run; `usd` is null if the price is unknown."""

    calls: int
    total_tokens: int
    usd: float | None


class RunMembers(TypedDict):
    """The members that a run has both in lists and in its own document."""

    run_id: str
    session_id: str
    outcome: Outcome | None
    status: Literal["active", "done", "failed", "cancelled"]
    paused: bool
    mode: RunMode
    strategy: str
    model: str
    problem: str
    answer: str | None
    termination: TerminationDocument
    created_at_ms: int


class RunHead(RunMembers):
    """A run as a list shows it. A `resumable` run is active, but no process drives it."""

    resumable: bool
    best_answer: str | None
    usage: HeadUsage
    updated_at_ms: int


def run_head(row: RunRow, *, resumable: bool = False) -> RunHead:
    """Build the head of a run, with the beginning of its problem and answer."""
    is_answered = row.outcome in ANSWERED
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
        termination=TerminationDocument(reason=row.reason or "", detail=row.detail),
        usage=HeadUsage(calls=row.calls, total_tokens=row.tokens, usd=row.usd),
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
    )
