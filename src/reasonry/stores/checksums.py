"""Checksums of what a store keeps, so that damage shows.

Lines of a journal are chained by whoever writes the journal, thoughts of a session here: the digest of each covers the
one before. The owner's row has the position and the digest of the last one, and a checksum of its own over all its
fields, so that nothing can be changed, lost or swapped unseen. They use no secret key: they show damage, not forgery
by someone who computes them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from msgspec import msgpack

from ..errors import StoreError
from ..records import ThoughtRow
from .sql import Tx

_encode = msgpack.Encoder().encode


def _digest(before: bytes, values: Sequence[Any]) -> bytes:
    return hashlib.sha256(before + _encode(values)).digest()[:16]


ADDED_RUN_COLUMNS: tuple[Any, ...] = ("", 0, 0, 0, 0, None)
"""The defaults of the columns that were added to runs after they had checksums, in their order."""
ADDED_SESSION_COLUMNS: tuple[Any, ...] = ("",)


def row_checksum(table: str, values: Sequence[Any], added: Sequence[Any] = ()) -> bytes:
    """Return the checksum of a row: its key, then its other columns in their order.

    Args:
        added: The defaults of its last columns, which were added to the table later. Those at its end that have them
            are left out, so that the checksum of a row from before is right.
    """
    count, shortest = len(values), len(values) - len(added)
    while count > shortest and values[count - 1] == added[count - shortest - 1]:
        count -= 1
    return _digest(table.encode(), values[:count])


def first_digest(session_id: str) -> bytes:
    """Return the digest that the first thought of a session follows."""
    return _digest(b"thoughts", (session_id,))


def next_digest(before: bytes, thought: ThoughtRow) -> bytes:
    """Return the digest of a thought that follows the one with the digest `before`."""
    return _digest(before, (thought.seq, thought.number, thought.text, thought.branch, thought.body))


def run_damage_error(run_id: str, part: str = "its row", **details: Any) -> StoreError:
    """Return the error for a run that differs from what was written."""
    return StoreError(
        f"run {run_id[:100]} is damaged at {part}; other runs are not affected. Restore it from a backup",
        code="store_corrupt",
        run_id=run_id,
        **details,
    )


def session_damage_error(session_id: str, part: str = "its row", **details: Any) -> StoreError:
    """Return the error for a session that differs from what was written."""
    return StoreError(
        f"session {session_id[:100]} is damaged at {part}; other sessions are not affected. "
        "Restore it from a backup",
        code="store_corrupt",
        session_id=session_id,
        **details,
    )


def check_index(tx: Tx, table: str) -> None:
    """Check the index of a table, before something is reported as not found.

    Raises:
        StoreError: `store_corrupt`: the table and its index do not agree.
    """
    if tx.checked is None:
        return
    faults = [fault for (fault,) in tx.execute(f"PRAGMA integrity_check({table})")]
    if faults != ["ok"]:
        raise list_damage_error(table)


_INDEXES = {
    "run": ("run_key", "run_owner", "sqlite_autoindex_run_1"),
    "session": ("session_owner", "sqlite_autoindex_session_1"),
}


def check_keys(tx: Tx, table: str) -> None:
    """Compare the keys in the indexes that lists go by with those in another, before the first list of a connection.

    What the table itself lacks shows as damaged where it is listed.

    Raises:
        StoreError: `store_corrupt`: they are not the same.
    """
    if tx.checked is None or table in tx.checked:
        return
    keys = {
        tx.rows(f"SELECT count(*), total(key) FROM {table} INDEXED BY {index}")[0]
        for index in _INDEXES[table]
    }
    if len(keys) != 1:
        raise list_damage_error(table)
    tx.checked.add(table)


def list_damage_error(table: str) -> StoreError:
    """Return the error of a list that may be incomplete."""
    return StoreError(
        f"the index of {table}s is damaged, so lists may be incomplete; `reasonry store verify` shows what is whole. "
        "Restore the store from a backup",
        code="store_corrupt",
    )
