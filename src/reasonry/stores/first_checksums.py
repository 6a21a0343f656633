"""Adds checksums to a store written by a version that kept none.

What is visibly damaged gets none, and so is reported as damaged from then on. Runs and sessions get theirs at once; so
do the thoughts of the sessions used last. Those of the others stay unchecked until their session is next changed, so
that a large store opens quickly.

The statements stay as they are, whatever becomes of the tables: this is a step of the migrations.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..errors import StoreError
from ..records import ThoughtRow
from .checksums import first_digest, next_digest, row_checksum, run_damage_error, session_damage_error
from .damage import is_damage
from .packing import UnpackError, unpack
from .sql import MAX_SEQ, Tx, place, seq_of

THOUGHTS_AT_ONCE = 50_000
"""Thoughts that get their digests when the store is opened, which takes them half a second."""

_FORKED_FROM = 7
"""Where the first line of a journal says which run it was forked from."""

_RUN = """
SELECT key, run_id, session_id, strategy, model, problem, status, created_at_ms, updated_at_ms, reason, answer
FROM run WHERE key = ?
"""
_STATUS = 6
_SET_RUN = "UPDATE run SET last_line = ?, last_digest = ?, checksum = ? WHERE key = ?"
_LAST_LINE = "SELECT place, body, digest FROM line WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1"
_LINE = "SELECT body FROM line WHERE place = ?"
_SESSION = """
SELECT key, session_id, strategy, created_at_ms, used_at_ms, status, pinned, thoughts, purpose, run_id, head,
  used_steady_ms, due_steady_ms, due_after_ms
FROM session WHERE key = ?
"""
_COUNT, _RUN_ID = 7, 9
_SET_SESSION = "UPDATE session SET last_thought = ?, last_digest = ?, checksum = ? WHERE key = ?"
_LAST_THOUGHT = "SELECT max(place) FROM thought WHERE place BETWEEN ? AND ?"
_THOUGHTS = "SELECT place, number, text, branch, body FROM thought WHERE place BETWEEN ? AND ? ORDER BY place"
_SET_DIGEST = "UPDATE thought SET digest = ? WHERE place = ?"


def add_checksums(tx: Tx) -> None:
    """Give every row its checksum, but for those that are damaged."""
    for (key,) in tx.rows("SELECT key FROM run"):
        _if_whole(_add_to_run, tx, key)
    left = THOUGHTS_AT_ONCE
    for (key,) in tx.rows("SELECT key FROM session ORDER BY used_at_ms DESC"):
        left -= _if_whole(_add_to_session, tx, key, left) or 0


def _if_whole(add: Callable[..., int | None], tx: Tx, *values: int) -> int | None:
    try:
        return add(tx, *values)
    except (StoreError, UnpackError, msgspec.DecodeError, IndexError):
        return None
    except Exception as error:
        if is_damage(error):
            return None
        raise


def _add_to_run(tx: Tx, key: int) -> None:
    row = tx.rows(_RUN, (key,))[0]
    last = tx.execute(_LAST_LINE, (place(key, 1), place(key, MAX_SEQ))).fetchone()
    tail = (seq_of(last[0]), last[2]) if last else (0, b"")
    if row[_STATUS] != "active" and not _has_its_end(tx, key):
        raise run_damage_error(row[1], "the end of its journal")
    tx.execute(_SET_RUN, (*tail, row_checksum("run", (*row, *tail)), key))


def _has_its_end(tx: Tx, key: int) -> bool:
    """Whether the journal of a run that has ended says so; that of a fork of an ended run need not."""
    at, entry = place(key, MAX_SEQ), b'["sent"'
    while entry.startswith(b'["sent"'):
        found = tx.execute(_LAST_LINE, (place(key, 1), at)).fetchone()
        if found is None:
            return False
        at, entry = found[0] - 1, unpack(found[1])
    first = msgspec.json.decode(unpack(tx.rows(_LINE, (place(key, 1),))[0][0]))
    return entry.startswith(b'["ended"') or (len(first) > _FORKED_FROM and first[_FORKED_FROM] is not None)


def _add_to_session(tx: Tx, key: int, left: int) -> int:
    row = tx.rows(_SESSION, (key,))[0]
    session_id, count = row[1], 0 if row[_RUN_ID] is not None else row[_COUNT]
    (at,) = tx.rows(_LAST_THOUGHT, (place(key, 0), place(key, MAX_SEQ)))[0]
    if (0 if at is None else seq_of(at)) != count:
        raise session_damage_error(session_id)
    tail = (count, chain_thoughts(tx, key, session_id) if count <= left else None)
    tx.execute(_SET_SESSION, (*tail, row_checksum("session", (*row, *tail)), key))
    return count if count <= left else 0


def chain_thoughts(tx: Tx, key: int, session_id: str) -> bytes:
    """Give the thoughts of a session their digests; return the last one.

    Raises:
        StoreError: `store_corrupt`: one is missing. Those before it have theirs.
    """
    digest, expected = first_digest(session_id), 0
    for at, *values in tx.rows(_THOUGHTS, (place(key, 0), place(key, MAX_SEQ))):
        thought, expected = ThoughtRow(seq_of(at), *values), expected + 1
        if thought.seq != expected:
            raise session_damage_error(session_id, f"its thought {expected}", thought=expected)
        digest = next_digest(digest, thought)
        tx.execute(_SET_DIGEST, (digest, at))
    return digest
