"""The thoughts of a session, and the chain over them.

Lines of a journal are chained by whoever writes the journal, thoughts of a session here: the digest of each covers the
one before, and the owner's row has the last. So a lost end shows, which the checksums of pages cannot tell. They use no
secret key: they show damage, not forgery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import msgpack

from ..errors import StoreError
from ..records import SessionRow, ThoughtRow
from . import sql
from .sql import MAX_INT, Tx, places, seq_of

BATCH = 500
"""Thoughts read at once where a whole session is read."""


_encode = msgpack.Encoder().encode


def _digest(before: bytes, values: Sequence[Any]) -> bytes:
    return hashlib.sha256(before + _encode(values)).digest()[:16]


def first_digest(session_id: str) -> bytes:
    """Return the digest that the first thought of a session follows."""
    return _digest(b"thoughts", (session_id,))


def next_digest(before: bytes, thought: ThoughtRow) -> bytes:
    """Return the digest of a thought that follows the one with the digest `before`."""
    return _digest(before, (thought.seq, thought.number, thought.text, thought.branch, thought.body))


class StoredSession(NamedTuple):
    """A session's row with what only the store knows of it."""

    key: int
    row: SessionRow
    last: int
    """The seq of the last thought; 0: there is none."""
    digest: bytes
    """The last thought's."""


class Thoughts:
    """The thoughts of a session as seen in a transaction; not valid after it.

    Raises (every method): StoreError `store_corrupt` if a thought differs from what was written.
    """

    def __init__(self, tx: Tx, stored: StoredSession) -> None:
        self._tx = tx
        self._of = stored
        self._low, self._high = places(stored.key)

    def after(self, seq: int) -> Iterator[ThoughtRow]:
        """Yield the thoughts after `seq`, in the order of the calls."""
        at, digest = self._low + seq, self._digest_at(seq)
        while found := self._tx.rows(sql.THOUGHTS, (at, self._high, BATCH)):
            yield from self._check_digests(digest, found)
            at, digest = found[-1][0], found[-1][-1]
        if seq < self._of.last and (seq_of(at), digest) != (self._of.last, self._of.digest):
            raise self._damage_error(self._of.last)

    def latest(self, count: int) -> list[ThoughtRow]:
        """Return the latest `count` thoughts, oldest first."""
        found = self._latest(self._high, min(count + 1, MAX_INT))[::-1]
        before = found.pop(0)[-1] if len(found) > count else first_digest(self._of.row.session_id)
        end = (seq_of(found[-1][0]), found[-1][-1]) if found else (0, self._of.digest)
        if end != (self._of.last, self._of.digest):
            raise self._damage_error(self._of.last)
        return list(self._check_digests(before, found))

    def with_number(self, number: int) -> list[ThoughtRow]:
        """Return the thoughts that have this number, oldest first."""
        if not -MAX_INT <= number <= MAX_INT:
            return []
        odd = [seq_of(at) for (at,) in self._tx.rows(sql.ODD_NUMBER, (self._of.key, number))]
        seqs = sorted({*odd, number} if 1 <= number <= self._of.last else odd)
        return [thought for seq in seqs for thought in self._at(seq) if thought.number == number]

    def _at(self, seq: int) -> Iterator[ThoughtRow]:
        # The next one proves that a thought is missing: its digest follows that of the one before.
        found = self._tx.rows(sql.THOUGHTS, (self._low + seq - 1, self._high, 1))
        following = self._check_digests(self._digest_at(seq - 1), found)
        return (thought for thought in following if thought.seq == seq)

    def _digest_at(self, seq: int) -> bytes:
        found = self._latest(self._low + seq, 1) if seq else ()
        return found[0][-1] if found else first_digest(self._of.row.session_id)

    def _latest(self, at: int, count: int) -> list[Any]:
        return self._tx.rows(sql.LATEST_THOUGHTS, (self._low, at, count))

    def _check_digests(self, before: bytes, found: Iterable[Sequence[Any]]) -> Iterator[ThoughtRow]:
        for at, *values, digest in found:
            thought = ThoughtRow(seq_of(at), *values)
            if next_digest(before, thought) != digest:
                raise self._damage_error(thought.seq)
            yield thought
            before = digest

    def _damage_error(self, seq: int) -> StoreError:
        session_id = self._of.row.session_id
        return StoreError(
            f"session {session_id[:100]} is damaged at its thought {seq}; other sessions are not affected. "
            "Restore it from a backup",
            code="store_corrupt",
            session_id=session_id,
            thought=seq,
        )
