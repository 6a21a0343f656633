"""When a session that was not used for long is archived, and when it is deleted: the rule of every store."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from ..records import SessionRow, Sweep
from .steady import SECOND_LOOK_MS


class Due(NamedTuple):
    """When a look first found a session due for deletion by the clock, and after how long unused it is."""

    since_steady_ms: int
    after_ms: int


class Look(NamedTuple):
    """What a look at a session came to."""

    row: SessionRow
    due: Due | None
    is_over: bool
    """Whether it is to be deleted."""


def look_at(row: SessionRow, due: Due | None, idle_ms: int, sweep: Sweep, steady_ms: int) -> Look:
    """Archive a session that was not used for long, and say whether it is to be deleted.

    Args:
        idle_ms: How long it certainly was not used, by the store's monotonic time; the clock may say more.
        steady_ms: The store's monotonic time.
    """
    by_clock_ms = sweep.now_ms - row.used_at_ms
    if due is not None and by_clock_ms <= due.after_ms:
        # The clock was ahead when it was looked at; where it would have been deleted for that, it has not ended.
        if sweep.delete and due.after_ms == sweep.ttl_ms:
            row = replace(row, status="active")
        due = None
    if row.status == "active" and max(idle_ms, by_clock_ms) > sweep.ttl_ms:
        if sweep.delete and idle_ms > sweep.ttl_ms:
            return Look(row, due, is_over=True)
        row = replace(row, status="archived")
        due = Due(steady_ms, sweep.ttl_ms) if sweep.delete else None
    if row.status == "active":
        return Look(row, due, is_over=False)
    if due is None and by_clock_ms > sweep.retention_ms:
        due = Due(steady_ms, sweep.retention_ms)
    limit_ms = sweep.retention_ms if due is None else min(due.after_ms, sweep.retention_ms)
    was_due_before = due is not None and steady_ms - due.since_steady_ms >= SECOND_LOOK_MS
    return Look(row, due, is_over=was_due_before or idle_ms > limit_ms)
