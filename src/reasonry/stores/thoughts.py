"""Reading the thoughts of a session, each checked against the digest of the one before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import StoreError
from ..records import SessionRow, ThoughtRow
from . import sql
from .checks import MAX_INT
from .checksums import first_digest, next_digest, session_damage_error
from .damage import is_damage
from .sql import MAX_SEQ, Tx, place, seq_of

BATCH = 500
"""Thoughts read at once where a whole session is read."""


class StoredSession(NamedTuple):
    """A session's row with what only the store knows of it."""

    key: int
    row: SessionRow
    used_steady_ms: int | None
    """When it was last used, by the store's own count; see `steady`."""
    due_steady_ms: int | None
    """When a look first found it due for deletion."""
    due_after_ms: int | None
    """After how long unused it was."""
    last: int
    """The seq of the last thought; 0: there is none."""
    digest: bytes | None
    """The last thought's; None: the thoughts are unchecked, from a version that kept no digests."""


class Thoughts:
    """The thoughts of a session as seen in a transaction; not valid after it.

    Raises (every method): StoreError `store_corrupt` if a thought differs from what was written.
    """

    def __init__(self, tx: Tx, stored: StoredSession) -> None:
        self._tx = tx
        self._of = stored
        self._low, self._high = place(stored.key, 0), place(stored.key, MAX_SEQ)

    def after(self, seq: int) -> Iterator[ThoughtRow]:
        """Return the thoughts after `seq`, in the order of the calls."""
        at, digest = self._low + seq, self._digest_at(seq)
        while found := self._read(sql.THOUGHTS, (at, self._high, BATCH)):
            yield from self._check_digests(digest, found)
            at, digest = found[-1][0], found[-1][-1]
        if seq < self._of.last and (seq_of(at), digest) != (self._of.last, self._of.digest):
            raise self._damage_error(self._of.last)

    def latest(self, count: int) -> list[ThoughtRow]:
        """Return the latest `count` thoughts, oldest first."""
        found = self._read(sql.LATEST_THOUGHTS, (self._low, self._high, min(count + 1, MAX_INT)))[::-1]
        before = found.pop(0)[-1] if len(found) > count else first_digest(self._of.row.session_id)
        self._check_tail(found[-1:])
        return list(self._check_digests(before, found))

    def at(self, seq: int) -> ThoughtRow | None:
        """Return the thought with that `seq`, if there is one."""
        found = self._read(sql.THOUGHTS, (self._low + seq - 1, self._high, 1))
        if not found:
            self.check_tail()
            return None
        # Where there is none, the next one proves it: its digest follows that of the one before.
        following = next(self._check_digests(self._digest_at(seq - 1), found))
        return following if following.seq == seq else None

    def with_number(self, number: int) -> list[ThoughtRow]:
        """Return the thoughts that have this number, oldest first."""
        if not -MAX_INT <= number <= MAX_INT:
            return []
        odd = [seq_of(at) for (at,) in self._read(sql.ODD_NUMBER, (self._of.key, number))]
        seqs = sorted({*odd, number} if 1 <= number <= MAX_SEQ else odd)
        found = [self.at(seq) for seq in seqs]
        return [thought for thought in found if thought is not None and thought.number == number]

    def check_tail(self) -> None:
        """Check that the last thought stored is the last one written."""
        self._check_tail(self._read(sql.LATEST_THOUGHTS, (self._low, self._high, 1)))

    def _check_tail(self, found: Sequence[Any]) -> None:
        last, digest = self._of.last, self._of.digest
        if (seq_of(found[0][0]), found[0][-1]) != (last, digest) if found else last:
            raise self._damage_error(last)

    def _digest_at(self, seq: int) -> bytes | None:
        found = self._read(sql.DIGEST_AT, (self._low, self._low + seq))
        return found[0][0] if found else first_digest(self._of.row.session_id)

    def _check_digests(self, before: bytes | None, found: Iterable[Sequence[Any]]) -> Iterator[ThoughtRow]:
        for at, *values, digest in found:
            thought = ThoughtRow(seq_of(at), *values)
            unchecked = self._of.digest is None and digest is None
            if not unchecked and (before is None or next_digest(before, thought) != digest):
                raise self._damage_error(thought.seq)
            yield thought
            before = digest

    def _read(self, statement: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        try:
            return self._tx.rows(statement, values)
        except Exception as error:
            if is_damage(error):
                raise session_damage_error(self._of.row.session_id, "its thoughts") from error
            raise

    def _damage_error(self, seq: int) -> StoreError:
        return session_damage_error(self._of.row.session_id, f"its thought {seq}", thought=seq)
