"""The chain over the thoughts of a session, and the errors of what is not as it was written.

Lines of a journal are chained by whoever writes the journal, thoughts of a session here: the digest of each covers the
one before, and the owner's row has the last. So a lost end shows, which the checksums of pages cannot tell. They use no
secret key: they show damage, not forgery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from msgspec import msgpack

from ..errors import StoreError
from ..records import ThoughtRow

_encode = msgpack.Encoder().encode


def _digest(before: bytes, values: Sequence[Any]) -> bytes:
    return hashlib.sha256(before + _encode(values)).digest()[:16]


def first_digest(session_id: str) -> bytes:
    """Return the digest that the first thought of a session follows."""
    return _digest(b"thoughts", (session_id,))


def next_digest(before: bytes, thought: ThoughtRow) -> bytes:
    """Return the digest of a thought that follows the one with the digest `before`."""
    return _digest(before, (thought.seq, thought.number, thought.text, thought.branch, thought.body))


def run_damage_error(run_id: str, part: str, **details: Any) -> StoreError:
    """Return the error for a run that differs from what was written."""
    return StoreError(
        f"run {run_id[:100]} is damaged at {part}; other runs are not affected. Restore it from a backup",
        code="store_corrupt",
        run_id=run_id,
        **details,
    )


def session_damage_error(session_id: str, thought: int) -> StoreError:
    """Return the error for a session that differs from what was written."""
    return StoreError(
        f"session {session_id[:100]} is damaged at its thought {thought}; other sessions are not affected. "
        "Restore it from a backup",
        code="store_corrupt",
        session_id=session_id,
        thought=thought,
    )
