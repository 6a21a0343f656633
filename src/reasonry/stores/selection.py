"""Which runs and sessions are listed, as far as their rows tell."""

from __future__ import annotations

from typing import Unpack

from ..records import RunFilters, RunRow, SessionFilters, SessionRow
from .checks import check_texts


def check_filters(which: RunFilters | SessionFilters) -> None:
    """Check each text of the filters."""
    check_texts(*(value for value in which.values() if isinstance(value, str)))


def lists_run(row: RunRow, **which: Unpack[RunFilters]) -> bool:
    """Whether a run is listed, whatever the query."""
    wanted = (
        (which.get("status"), row.status),
        (which.get("strategy"), row.strategy),
        (which.get("model"), row.model),
        (which.get("owner"), row.owner),
        (which.get("unattended"), row.unattended),
        (which.get("paused"), row.paused),
    )
    return all(asked in (None, is_) for asked, is_ in wanted) and is_within(
        row.created_at_ms, which.get("since_ms"), which.get("until_ms")
    )


def lists_session(row: SessionRow, **which: Unpack[SessionFilters]) -> bool:
    """Whether a session is listed, whatever the query."""
    wanted = (
        (which.get("status"), row.status),
        (which.get("strategy"), row.strategy),
        (which.get("owner"), row.owner),
        (which.get("guided"), row.run_id is None),
    )
    return all(asked in (None, is_) for asked, is_ in wanted) and is_within(
        row.used_at_ms, which.get("since_ms"), which.get("until_ms")
    )


def is_within(at_ms: int, since_ms: int | None, until_ms: int | None) -> bool:
    """Whether an instant is not before the one and before the other."""
    return (since_ms is None or at_ms >= since_ms) and (until_ms is None or at_ms < until_ms)
