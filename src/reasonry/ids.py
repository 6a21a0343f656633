"""Ids: UUIDv7, so that they sort by time (RFC 9562, section 5.7)."""

from __future__ import annotations

import os
import threading
import time
import uuid

_lock = threading.Lock()
_last = 0


def new_id() -> str:
    """Return a UUIDv7 that sorts after every earlier one of this process."""
    global _last
    with _lock:
        # Milliseconds, then 12 bits that count on within one: `rand_a` as a counter (method 1 of section 6.2).
        now = max((time.time_ns() // 1_000_000) << 12, _last + 1)
        _last = now
    random = int.from_bytes(os.urandom(8)) & ((1 << 62) - 1)
    value = (now >> 12) << 80 | 0x7 << 76 | (now & 0xFFF) << 64 | 0b10 << 62 | random
    return str(uuid.UUID(int=value))
