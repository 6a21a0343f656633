"""Instants as a list shows them: in local time, as short as they stay clear."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def local_time(instant: str, now: datetime | None = None) -> str:
    """Return an instant as people say it: `today 14:02`, `Fri 14:02` within a week, `21 Nov 14:02`, `2025-11-21`.

    Args:
        instant: ISO 8601 text with its offset.
    """
    try:
        local = datetime.fromisoformat(instant).astimezone()
    except (ValueError, OverflowError, OSError):
        # A file that was imported may name the year 1, which has no local time.
        return instant[:10]
    now = (now or datetime.fromtimestamp(time.time_ns() / 1e9, UTC)).astimezone()
    days = (now.date() - local.date()).days
    if days == 0:
        return f"today {local:%H:%M}"
    if 0 < days < 7:
        return f"{local:%a %H:%M}"
    if local.year == now.year:
        return f"{local.day} {local:%b %H:%M}"
    return local.date().isoformat()
