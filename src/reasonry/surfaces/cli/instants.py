"""Instants as lists show them and as options name them."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from ...errors import UsageError
from ...patterns import lazy_pattern

_AGO = lazy_pattern(r"([0-9]{1,6})([mhdw])")
_UNITS_MS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}


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


def read_instant(text: str, option: str) -> int:
    """Return an instant in milliseconds since 1970.

    Args:
        text: So long ago (`30m`, `12h`, `7d`, `2w`), or ISO 8601: local time, unless it has an offset.

    Raises:
        UsageError: It is neither.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(0, time.time_ns() // 1_000_000 - int(ago[1]) * _UNITS_MS[ago[2]])
    try:
        return max(0, int(datetime.fromisoformat(text).astimezone().timestamp() * 1_000))
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"--{option} must be so long ago (30m, 12h, 7d, 2w) or an instant (2026-11-01, 2026-11-01T09:30), "
            f"got {text[:100]!r}",
            option=option,
        ) from None
