"""Reads and writes sessions and their thoughts within a transaction.

The digest of each thought covers the digest of the previous thought. The session's row has the position and the digest
of the last thought, so a loss of the last thoughts is detected. Page checksums cannot detect this loss. The digests use
no secret key, so they detect damage but not forgery.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple, Unpack

from msgspec import msgpack
from msgspec.structs import astuple, replace

from ..errors import ConflictError, StoreError, UsageError
from ..records import (
    Found,
    SessionChange,
    SessionFilters,
    SessionRow,
    SessionView,
    Sweep,
    ThoughtRow,
    Use,
    WholeSession,
    missing_error,
)
from . import sql, text_search
from .sql import MAX_INT, MAX_SEQ, RUNS, Tx, new_place, page_size, place, places, seq_of

Decide = Callable[[SessionView], SessionChange]

BATCH = 500
"""How many thoughts each query reads."""

_PINNED = SessionRow.__struct_fields__.index("pinned")
"""The index of the field `pinned` of `SessionRow`, which the database stores as an integer."""


_encode = msgpack.Encoder().encode


def _digest(before: bytes, values: Sequence[Any]) -> bytes:
    return hashlib.sha256(before + _encode(values)).digest()[:16]


def _first_digest(key: int) -> bytes:
    return _digest(b"thoughts", (key,))


def _next_digest(before: bytes, thought: ThoughtRow) -> bytes:
    return _digest(before, (thought.seq, thought.number, thought.text, thought.branch, thought.body))


class StoredSession(NamedTuple):
    """A session's row, together with the columns that only the store uses."""

    key: int
    row: SessionRow
    last: int
    """The `seq` of the last thought, or 0 if the session has none."""
    digest: bytes
    """The digest of the last thought."""


class View:
    """Reads a session inside a transaction. Do not use the view after the end of the transaction.

    Raises (every method): StoreError `store_corrupt` if a thought is missing or differs from the thought as written.
    """

    def __init__(self, tx: Tx, stored: StoredSession | None) -> None:
        self.row = stored and stored.row
        self._tx = tx
        self._of = stored or _NOTHING
        self._low, self._high = places(self._of.key)

    def other(self, session_id: str) -> View:
        """Return a view of another session in the same transaction."""
        return View(self._tx, _find(self._tx, session_id))

    def after(self, seq: int) -> Iterator[ThoughtRow]:
        """Yield the thoughts after the position `seq`, in order of position."""
        before = self._tx.rows(sql.LATEST_THOUGHTS, (self._low, self._low + seq, 1)) if seq else ()
        at, digest = self._low + seq, before[0][-1] if before else _first_digest(self._of.key)
        while found := self._tx.rows(sql.THOUGHTS, (at, self._high, BATCH)):
            yield from self._check_digests(digest, found)
            at, digest = found[-1][0], found[-1][-1]
        if seq < self._of.last and (seq_of(at), digest) != (self._of.last, self._of.digest):
            raise self._damage_error(self._of.last)

    def latest(self, count: int) -> list[ThoughtRow]:
        """Return the latest `count` thoughts, oldest first."""
        return self._until(self._of.last, count) if self._of.last and count > 0 else []

    def find_text(self, text: str, count: int) -> int | None:
        """See `SessionView`. The thoughts are not checked for damage."""
        oldest = self._low + max(0, self._of.last - count) + 1
        found = self._tx.execute(sql.SAME_TEXT, (oldest, self._high, text)).fetchone()
        return found and found[0]

    def with_number(self, number: int) -> list[ThoughtRow]:
        """Return the thoughts that have this number, oldest first."""
        if not -MAX_INT <= number <= MAX_INT:
            return []
        odd = [seq_of(at) for (at,) in self._tx.rows(sql.ODD_NUMBER, (self._of.key, number))]
        seqs = sorted({*odd, number} if 1 <= number <= self._of.last else odd)
        return [thought for seq in seqs for thought in self._until(seq, 1) if thought.number == number]

    def _until(self, seq: int, count: int) -> list[ThoughtRow]:
        """Return the last `count` thoughts up to the position `seq`, oldest first."""
        values = self._low, self._low + seq, min(count + 1, MAX_INT)
        found = self._tx.rows(sql.LATEST_THOUGHTS, values)[::-1]
        before = found.pop(0)[-1] if len(found) > count else _first_digest(self._of.key)
        thoughts = list(self._check_digests(before, found))
        end = found[-1][-1] if found else before
        if seq == self._of.last and end != self._of.digest:
            raise self._damage_error(seq)
        return thoughts

    def _check_digests(self, before: bytes, found: Iterable[Sequence[Any]]) -> Iterator[ThoughtRow]:
        for at, *values, digest in found:
            thought = ThoughtRow(seq_of(at), *values)
            if _next_digest(before, thought) != digest:
                raise self._damage_error(thought.seq)
            yield thought
            before = digest

    def _damage_error(self, seq: int) -> StoreError:
        return sql.damage_error("session", self._of.row.session_id, f"its thought {seq}", thought=seq)


_NOTHING = StoredSession(0, SessionRow("", "", 0, 0), 0, b"")


def _find(tx: Tx, session_id: str, *, lock: bool = False) -> StoredSession | None:
    """Return a session, or None if it does not exist or belongs to another owner."""
    statement = sql.SESSION + (tx.dialect.lock if lock else "")
    found = tx.execute(statement, (session_id,)).fetchone()
    if found is None and lock and tx.dialect.lock_name:
        # There is no row to lock, so lock the name: other transactions that would create the session wait here.
        tx.execute(tx.dialect.lock_name, (session_id,))
        found = tx.execute(statement, (session_id,)).fetchone()
    stored = None if found is None else _read_stored(found)
    return None if stored is None or tx.hides(stored.row.owner) else stored


def _read_stored(found: Sequence[Any]) -> StoredSession:
    key, *fields, last, digest = found
    fields[_PINNED] = bool(fields[_PINNED])
    return StoredSession(key, SessionRow(*fields), last, digest)


def _find_known(tx: Tx, session_id: str, *, lock: bool = False) -> StoredSession:
    stored = _find(tx, session_id, lock=lock)
    if stored is None:
        raise missing_error("session", session_id)
    return stored


def _set(tx: Tx, stored: StoredSession) -> None:
    _, *values, _ = sql.column_values(astuple(stored.row))
    tx.execute(sql.SET_SESSION, (*values, stored.last, stored.digest, stored.key))


def _check_new(tx: Tx, session_id: str) -> None:
    if tx.execute(sql.SESSION, (session_id,)).fetchone() is not None:
        raise ConflictError(f"session {session_id} already exists", session_id=session_id)


def import_session(tx: Tx, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
    """Add a session and its thoughts."""
    _check_new(tx, row.session_id)
    row = row if tx.owner is None else replace(row, owner=tx.owner)
    key = tx.next_key("session")
    stored = _add_thoughts(tx, StoredSession(key, row, 0, _first_digest(key)), thoughts)
    tx.execute(sql.ADD_SESSION, (key, *sql.column_values(astuple(row)), stored.last, stored.digest))
    text_search.put(tx, [(place(stored.key, 0), row.purpose)])


def _add_thoughts(tx: Tx, stored: StoredSession, thoughts: Sequence[ThoughtRow]) -> StoredSession:
    key, row, last, digest = stored
    for thought in sorted(thoughts, key=lambda thought: thought.seq):
        at, digest = new_place(key, thought.seq), _next_digest(digest, thought)
        values = (at, thought.number, thought.text, thought.branch, thought.body, digest)
        if thought.seq <= last or not tx.rows(sql.ADD_THOUGHT, values):
            raise ConflictError(
                f"thought {thought.seq} of session {row.session_id} has already been written",
                session_id=row.session_id,
                seq=thought.seq,
            )
        last = thought.seq
    text_search.put(tx, [(place(key, thought.seq), thought.text) for thought in thoughts])
    return stored._replace(last=last, digest=digest)


def change(tx: Tx, session_id: str, decide: Decide) -> Any:
    """Write the change that `decide` returns for a session. Return the `value` of the change."""
    stored = _find(tx, session_id, lock=True)
    wanted = decide(View(tx, stored))
    if wanted.thought is not None and wanted.row is None and (wanted.delete or stored is None):
        raise UsageError("a thought needs a session to be written to")
    if wanted.delete and stored is not None:
        _drop(tx, stored.key)
        stored = None
    elif wanted.archive_as is not None and stored is not None:
        stored = stored._replace(row=replace(stored.row, status="archived"))
        _set(tx, stored)
        if wanted.archive_as != session_id:
            _check_new(tx, wanted.archive_as)
            tx.execute(sql.NAME_SESSION, (wanted.archive_as, stored.key))
            stored = None
    if wanted.instead is not None:
        session_id, stored = wanted.instead, _find_known(tx, wanted.instead, lock=True)
    thoughts = [] if wanted.thought is None else [wanted.thought]
    if wanted.row is not None and (stored is None or wanted.row.session_id != session_id):
        import_session(tx, wanted.row, thoughts)
    elif stored is not None and (wanted.row is not None or thoughts):
        if wanted.row is not None:
            if wanted.row.purpose != stored.row.purpose:
                text_search.put(tx, [(place(stored.key, 0), wanted.row.purpose)])
            stored = stored._replace(row=replace(wanted.row, owner=stored.row.owner))
        _set(tx, _add_thoughts(tx, stored, thoughts))
    return wanted.value


def use(tx: Tx, session_id: str, run_id: str, use: Use) -> None:
    """Update a session that a run used, and add the new thoughts. Do nothing unless the run owns the session."""
    stored = _find(tx, session_id, lock=True)
    if stored is not None and stored.row.run_id == run_id:
        row = replace(stored.row, thoughts=use.thoughts, used_at_ms=use.at_ms, status="active")
        new = [thought for thought in use.added if thought.seq > stored.last]
        _set(tx, _add_thoughts(tx, stored._replace(row=row), new))


def forget_thoughts(tx: Tx, session_id: str, run_id: str) -> None:
    """Remove all thoughts of a session if the session belongs to this run."""
    stored = _find(tx, session_id, lock=True)
    if stored is not None and stored.row.run_id == run_id:
        first, last = places(stored.key)
        tx.execute(sql.DROP_TEXTS, (first + 1, last))
        tx.execute(sql.DROP_THOUGHTS, (first, last))
        row = replace(stored.row, thoughts=0)
        _set(tx, stored._replace(row=row, last=0, digest=_first_digest(stored.key)))


def _drop(tx: Tx, key: int) -> None:
    tx.execute(sql.DROP_TEXTS, places(key))
    tx.execute(sql.DROP_THOUGHTS, places(key))
    tx.execute(sql.DROP_SESSION, (key,))


def session(tx: Tx, session_id: str) -> SessionRow:
    """Return a session's row."""
    return _find_known(tx, session_id).row


def sessions(
    tx: Tx, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
) -> list[SessionRow]:
    """Return a page of sessions, most recently used first."""
    bound = MAX_INT, MAX_INT
    if before is not None:
        last = _find_known(tx, before)
        bound = last.row.used_at_ms, last.key
    tests, values = sql.tests_of(tx, sql.SESSION_FILTERS, which, 3)
    tests += sql.GUIDED[which.get("guided")]
    hint = tx.dialect.hint.format("session_list")
    if query := text_search.fold(which.get("query") or ""):
        test, part = text_search.sessions_with(tx, query, f"${len(values) + 3}")
        tests, values, hint = f"{tests} {test}", values + part, hint if part else ""
    statement = sql.SESSION_LIST.format(hint=hint, tests=tests, limit=page_size(limit))
    return [_read_stored(found).row for found in tx.execute(statement, (*bound, *values))]


def thoughts(
    tx: Tx,
    session_id: str,
    *,
    first: int | None = None,
    last: int | None = None,
    branch: str | None = None,
    after_seq: int = 0,
    limit: int = 50,
) -> list[ThoughtRow]:
    """Return a page of a session's thoughts with the numbers `first` to `last`, in order of position."""
    page = (
        thought
        for thought in View(tx, _find_known(tx, session_id)).after(min(max(after_seq, 0), MAX_SEQ))
        if (first is None or thought.number >= first)
        and (last is None or thought.number <= last)
        and (branch is None or (thought.branch or "") == branch)
    )
    return list(islice(page, page_size(limit)))


def search_thoughts(
    tx: Tx,
    query: str,
    *,
    session_id: str | None = None,
    after: int = 0,
    limit: int = 50,
) -> list[Found]:
    """Return a page of the thoughts that contain `query`. Case is ignored."""
    low, high = min(max(after, 0), MAX_INT - 1) + 1, RUNS - 1
    if session_id is not None:
        first, last = places(_find_known(tx, session_id).key)
        low, high = max(low, first), min(high, last)
    return text_search.find_thoughts(tx, query, low, high, page_size(limit))


def find_whole(tx: Tx, session_id: str, *, lock: bool = False) -> WholeSession:
    """Return everything stored about a session.

    Raises:
        StoreError: `store_corrupt`: part of the session is damaged.
    """
    stored = _find_known(tx, session_id, lock=lock)
    return WholeSession(stored.row, tuple(View(tx, stored).after(0)))


def add_whole(tx: Tx, session: WholeSession) -> None:
    """Add a session that was read from another store."""
    import_session(tx, session.row, session.thoughts)


def update_whole(tx: Tx, session: WholeSession, count: int) -> None:
    """Update a stored session to a later state. The first `count` thoughts are already stored."""
    stored = _find_known(tx, session.row.session_id)._replace(row=session.row)
    text_search.put(tx, [(place(stored.key, 0), session.row.purpose)])
    _set(tx, _add_thoughts(tx, stored, session.thoughts[count:]))


def sweep(tx: Tx, sweep: Sweep) -> None:
    """Archive or delete sessions that have not been used for a long time; see `Sweep`."""
    if sweep.retention_ms is not None:
        _drop_each(tx, sql.OLD_SESSIONS, sweep.now_ms - sweep.retention_ms)
    if sweep.delete:
        _drop_each(tx, sql.EXPIRED_SESSIONS, sweep.now_ms, sweep.ttl_ms)
    else:
        tx.execute(sql.ARCHIVE_OLD, (sweep.now_ms, sweep.ttl_ms))


def _drop_each(tx: Tx, statement: str, *values: int) -> None:
    for (key,) in tx.rows(statement, values):
        _drop(tx, key)


def delete_session(tx: Tx, session_id: str) -> None:
    """Remove a session and its thoughts."""
    _drop(tx, _find_known(tx, session_id, lock=True).key)
