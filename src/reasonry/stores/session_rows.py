"""Reads and writes sessions and their thoughts within a transaction.

A session's row has the position and the digest of its last thought.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Unpack

from msgspec.structs import astuple, replace

from ..errors import ConflictError, NotFoundError, UsageError
from ..records import (
    Found,
    InJournal,
    SessionChange,
    SessionFilters,
    SessionRow,
    SessionView,
    Sweep,
    ThoughtRow,
    Use,
    WholeSession,
)
from . import searchable, sql
from .sql import MAX_INT, MAX_SEQ, RUNS, Tx, new_place, page_size, place, places
from .thoughts import BATCH, StoredSession, Thoughts, first_digest, next_digest

Decide = Callable[[SessionView], SessionChange]

_PINNED = SessionRow.__struct_fields__.index("pinned")
"""A column that the database keeps as an integer."""


def no_session_error(session_id: str) -> NotFoundError:
    """Return the error for a session that does not exist."""
    return NotFoundError(
        f"there is no session {session_id[:100]!r}; list the sessions to see which there are",
        session_id=session_id,
    )


def session_exists_error(session_id: str) -> ConflictError:
    """Return the error for a session that already exists."""
    return ConflictError(f"session {session_id} already exists", session_id=session_id)


def _find(tx: Tx, session_id: str, *, lock: bool = False) -> StoredSession | None:
    """Return a session; None: there is none, or it is another owner's."""
    statement = sql.SESSION + (tx.dialect.lock if lock else "")
    found = tx.execute(statement, (session_id,)).fetchone()
    if found is None and lock and tx.dialect.lock_name:
        # Another transaction that is about to begin the session waits here, for there is no row to wait for.
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
        raise no_session_error(session_id)
    return stored


def _values(row: SessionRow) -> list[Any]:
    fields = [*astuple(row)]
    fields[_PINNED] = int(row.pinned)
    return fields


def _set(tx: Tx, stored: StoredSession) -> None:
    _, *values, _ = _values(stored.row)
    tx.execute(sql.SET_SESSION, (*values, stored.last, stored.digest, stored.key))


def _add(tx: Tx, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
    if tx.execute(sql.SESSION, (row.session_id,)).fetchone() is not None:
        raise session_exists_error(row.session_id)
    row = row if tx.owner is None else replace(row, owner=tx.owner)
    stored = StoredSession(tx.next_key("session"), row, 0, first_digest(row.session_id))
    stored = _add_thoughts(tx, stored, thoughts)
    tx.execute(sql.ADD_SESSION, (stored.key, *_values(row), stored.last, stored.digest))
    searchable.put(tx, [(place(stored.key, 0), row.purpose)])


def _add_thoughts(tx: Tx, stored: StoredSession, thoughts: Sequence[ThoughtRow]) -> StoredSession:
    """Add thoughts, in the order of their `seq`; return the row as it then has to be stored."""
    key, row, last, digest = stored
    for thought in thoughts:
        at, digest = new_place(key, thought.seq), next_digest(digest, thought)
        values = (at, thought.number, thought.text, thought.branch, thought.body, digest)
        if thought.seq <= last or tx.change(sql.ADD_THOUGHT, values) != 1:
            raise ConflictError(
                f"thought {thought.seq} of session {row.session_id} has already been written",
                session_id=row.session_id,
                seq=thought.seq,
            )
        last = thought.seq
    searchable.put(tx, [(place(key, thought.seq), thought.text) for thought in thoughts])
    return stored._replace(last=last, digest=digest)


class View:
    """A session as seen in a transaction; not valid after it."""

    def __init__(self, tx: Tx, stored: StoredSession | None) -> None:
        self.row = stored and stored.row
        self._thoughts = stored and Thoughts(tx, stored)
        self._tx = tx

    def with_number(self, number: int) -> list[ThoughtRow]:
        """See `Store`."""
        return [] if self._thoughts is None else self._thoughts.with_number(number)

    def latest(self, count: int) -> list[ThoughtRow]:
        """See `Store`."""
        return self._thoughts.latest(count) if self._thoughts is not None and count > 0 else []

    def other(self, session_id: str) -> View:
        """See `Store`."""
        return View(self._tx, _find(self._tx, session_id))


def change(tx: Tx, session_id: str, decide: Decide) -> Any:
    """Call `decide` with the session and write the change it returns."""
    stored = _find(tx, session_id, lock=True)
    wanted = decide(View(tx, stored))
    if wanted.thought is not None and wanted.row is None and (wanted.delete or stored is None):
        raise UsageError("a thought needs a session to be written to")
    if wanted.delete and stored is not None:
        _drop(tx, stored.key)
        stored = None
    elif wanted.archive_as is not None and stored is not None:
        stored = _archive(tx, stored, wanted.archive_as)
    if wanted.instead is not None:
        session_id, stored = wanted.instead, _find_known(tx, wanted.instead, lock=True)
    thoughts = [] if wanted.thought is None else [wanted.thought]
    if wanted.row is not None and (stored is None or wanted.row.session_id != session_id):
        _add(tx, wanted.row, thoughts)
    elif stored is not None and (wanted.row is not None or thoughts):
        if wanted.row is not None:
            if wanted.row.purpose != stored.row.purpose:
                searchable.put(tx, [(place(stored.key, 0), wanted.row.purpose)])
            stored = stored._replace(row=replace(wanted.row, owner=stored.row.owner))
        _set(tx, _add_thoughts(tx, stored, thoughts))
    return wanted.value


def _archive(tx: Tx, stored: StoredSession, session_id: str) -> StoredSession | None:
    """Archive a session; return it, or None where it now has another id.

    The digests of its thoughts begin with its id, so for another one they are written anew.
    """
    row = replace(stored.row, session_id=session_id, status="archived")
    if session_id == stored.row.session_id:
        archived = stored._replace(row=row)
        _set(tx, archived)
        return archived
    thoughts = list(Thoughts(tx, stored).after(0))
    _add(tx, row, thoughts)
    _drop(tx, stored.key)
    return None


def use(tx: Tx, session_id: str, run_id: str, use: Use) -> None:
    """Note that a run has used the session it writes, if that is there."""
    stored = _find(tx, session_id, lock=True)
    if stored is not None and stored.row.run_id == run_id:
        row = replace(stored.row, thoughts=use.thoughts, used_at_ms=use.at_ms, status="active")
        _set(tx, _add_following(tx, stored._replace(row=row), use.added))


def _add_following(tx: Tx, stored: StoredSession, thoughts: Sequence[ThoughtRow]) -> StoredSession:
    """Add those of the thoughts that come next."""
    new = [thought for thought in thoughts if thought.seq > stored.last]
    if not new or new[0].seq != stored.last + 1:
        return stored
    return _add_thoughts(tx, stored, new)


def keep_thoughts(tx: Tx, session_id: str, thoughts: Sequence[ThoughtRow]) -> None:
    """Keep what the journal has of the thoughts of a session; see `Store`."""
    stored = _find_known(tx, session_id, lock=True)
    count = max(stored.row.thoughts, len(thoughts))
    _set(tx, _add_following(tx, stored._replace(row=replace(stored.row, thoughts=count)), thoughts))


def forget_thoughts(tx: Tx, session_id: str, run_id: str) -> None:
    """Remove the thoughts that a run has written into its session."""
    stored = _find(tx, session_id, lock=True)
    if stored is not None and stored.row.run_id == run_id:
        first, last = places(stored.key)
        searchable.drop(tx, first + 1, last)
        tx.execute(sql.DROP_THOUGHTS, (first, last))
        row = replace(stored.row, thoughts=0)
        _set(tx, stored._replace(row=row, last=0, digest=first_digest(session_id)))


def _drop(tx: Tx, key: int) -> None:
    first, last = places(key)
    searchable.drop(tx, first, last)
    tx.execute(sql.DROP_THOUGHTS, (first, last))
    tx.execute(sql.DROP_SESSION, (key,))


def session(tx: Tx, session_id: str) -> SessionRow:
    """Return a session's row."""
    return _find_known(tx, session_id).row


def session_ids(tx: Tx, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
    """Return ids of sessions that begin with a prefix."""
    return sql.ids_from(tx, "session", prefix, limit, owner)


def sessions(
    tx: Tx, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
) -> list[SessionRow]:
    """Return a page of the sessions that are listed, last used first."""
    bound = MAX_INT, MAX_INT
    if before is not None:
        last = _find_known(tx, before)
        bound = last.row.used_at_ms, last.key
    tests, values = sql.tests_of(tx, sql.SESSION_FILTERS, which, 3)
    tests += sql.GUIDED[which.get("guided")]
    hint = tx.dialect.hint.format("session_list")
    if query := searchable.fold(which.get("query") or ""):
        test, takes = searchable.sessions_with(tx, query, f"${len(values) + 3}")
        tests, values = f"{tests} {test}", [*values, *([query] if takes else [])]
        hint = hint if takes else ""
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
    """Return a page of a session's thoughts, in call order."""
    page = (
        thought
        for thought in Thoughts(tx, _find_known(tx, session_id)).after(min(max(after_seq, 0), MAX_SEQ))
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
    owner: str | None = None,
    after: int = 0,
    limit: int = 50,
) -> list[Found]:
    """Return a page of the thoughts that contain `query`, whatever its case, and of the runs that have thoughts."""
    limit = page_size(limit)
    low, high, only = min(max(after, 0), MAX_INT - 1) + 1, RUNS - 1, None
    if session_id is not None:
        only = _find_known(tx, session_id).key
        first, last = places(only)
        low, high = max(low, first), min(high, last)
    journals = _in_journals(tx, owner, low, only)
    apart = {at >> sql.PLACE_BITS for at, _, _ in journals}
    found = searchable.find_thoughts(tx, searchable.fold(query), low, high, max(limit, BATCH))
    here = _matches(tx, found, owner, apart)
    return list(islice(heapq.merge(here, journals, key=itemgetter(0)), limit))


def _in_journals(tx: Tx, owner: str | None, low: int, only: int | None) -> list[Found]:
    """Return the sessions of runs some of whose thoughts are in the journal alone."""
    return [
        (place(key, MAX_SEQ), session_id, InJournal(run_id, place(key, 0)))
        for key, session_id, run_id, of in tx.rows(sql.IN_JOURNAL, (low >> sql.PLACE_BITS,))
        if owner in (None, of) and not tx.hides(of) and only in (None, key)
    ]


def _matches(tx: Tx, found: Iterator[int], owner: str | None, apart: set[int]) -> Iterator[Found]:
    """Read thoughts, but those of some sessions and of other owners."""
    session: SessionRow | None = None
    at_key = -1
    for at in found:
        key = at >> sql.PLACE_BITS
        if key != at_key:
            at_key, rows = key, tx.rows(sql.SESSION_AT, (key,))
            session = _read_stored(rows[0]).row if rows and key not in apart else None
        if session is not None and owner in (None, session.owner) and not tx.hides(session.owner):
            for _, *values, _ in tx.rows(sql.THOUGHTS, (at - 1, at, 1)):
                yield at, session.session_id, ThoughtRow(sql.seq_of(at), *values)


def find_key(tx: Tx, session_id: str) -> int | None:
    """Return the key of a session; None: there is none."""
    stored = _find(tx, session_id, lock=True)
    return None if stored is None else stored.key


def whole_session(tx: Tx, key: int) -> WholeSession:
    """Return all that is kept of the session with that key.

    Raises:
        StoreError: `store_corrupt`: part of it differs from what was written.
    """
    stored = _read_stored(tx.rows(sql.SESSION_AT, (key,))[0])
    return WholeSession(stored.row, tuple(Thoughts(tx, stored).after(0)))


def continue_whole(tx: Tx, session: WholeSession, count: int) -> None:
    """Put a later state of a session, whose first `count` thoughts are there, in the place of an earlier one."""
    stored = _find_known(tx, session.row.session_id)._replace(row=session.row)
    searchable.put(tx, [(place(stored.key, 0), session.row.purpose)])
    _set(tx, _add_thoughts(tx, stored, session.thoughts[count:]))


def import_session(tx: Tx, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
    """Add a whole session."""
    _add(tx, row, sorted(thoughts, key=lambda thought: thought.seq))


def sweep(tx: Tx, sweep: Sweep) -> None:
    """Archive or delete sessions that were not used for long; see `Store`."""
    if sweep.retention_ms is not None:
        _drop_old(tx, "archived", sweep.now_ms - sweep.retention_ms)
    if sweep.delete:
        _drop_old(tx, "active", sweep.now_ms - sweep.ttl_ms)
    else:
        tx.execute(sql.ARCHIVE_OLD, (sweep.now_ms - sweep.ttl_ms,))


def _drop_old(tx: Tx, status: str, before_ms: int) -> None:
    for (key,) in tx.rows(sql.OLD_SESSIONS, (status, before_ms)):
        _drop(tx, key)


def delete_session(tx: Tx, session_id: str) -> None:
    """Remove a session and its thoughts."""
    _drop(tx, _find_known(tx, session_id, lock=True).key)
