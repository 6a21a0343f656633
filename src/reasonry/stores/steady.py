"""Monotonic time of a store: a count of milliseconds that have certainly passed, whatever the clock says.

While the computer is up the count advances with time, for all processes alike. The time between two starts of the
computer is not counted, because only a clock could tell it; nor is up to an hour before it goes down. So whatever is
old by this count is really at least that old.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

from . import sql
from .checksums import row_checksum

KEEP_EVERY_MS = 3_600_000
"""How much of the count may be lost when the computer goes down."""

SECOND_LOOK_MS = 86_400_000
"""A session that is old only by the clock is deleted if it is found so twice, this far apart by this count."""


class Uptime(NamedTuple):
    """How long the computer has been up, its sleep included where the system says so."""

    boot: str
    """Identifies this start of the computer or, where the system has no such id, the computer."""
    ms: int


def uptime() -> Uptime:
    """Return how long the computer has been up."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    ns = time.monotonic_ns() if clock is None else time.clock_gettime_ns(clock)
    return Uptime(_boot(), ns // 1_000_000)


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        import uuid

        return f"{uuid.getnode():x}"


def steady_ms(tx: sql.Tx, up: Uptime) -> int:
    """Return the count at the moment of `up`; store it where a new base is needed."""
    found = tx.execute(sql.STEADY).fetchone()
    kept, passed = 0, None
    # A count that is damaged might run ahead, and old would be what is not; so it begins anew.
    if found is not None and row_checksum("steady", found[:-1]) == found[-1]:
        boot, since, kept, _ = found
        if boot == up.boot and since <= up.ms:
            passed = up.ms - since
    if passed is not None and passed < KEEP_EVERY_MS:
        return kept + passed
    # Where the computer was started anew nothing is known to have passed since.
    count = kept + (passed or 0)
    values = (*up, count)
    tx.execute(sql.KEEP_STEADY, (*values, row_checksum("steady", values)))
    return count
