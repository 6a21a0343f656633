"""Reads and writes sessions and their thoughts within a transaction.

A session's row has the position and the digest of its last thought, and a checksum over all its columns.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any

from msgspec.structs import astuple, replace

from ..errors import ConflictError, NotFoundError, StoreError
from ..records import (
    Damaged,
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
    Written,
)
from . import sql, text_index
from .checks import MAX_INT, check_change
from .checksums import (
    ADDED_SESSION_COLUMNS,
    check_index,
    check_keys,
    first_digest,
    next_digest,
    row_checksum,
    session_damage_error,
)
from .damage import is_damage
from .expiry import Due, look_at
from .first_checksums import chain_thoughts
from .keys_in_order import KeysInOrder
from .sql import MAX_SEQ, Prefetch, Tx, place
from .steady import SECOND_LOOK_MS, Uptime, steady_ms
from .thoughts import BATCH, StoredSession, Thoughts
from .whole import compare_sessions

Decide = Callable[[SessionView], SessionChange]

QUEUED_TOGETHER = 64
"""How many thoughts are one entry of the index's queue at most."""

FEW_SESSIONS = 5_000
"""So many sessions that may contain a text are put in order by themselves, not found in the order of all."""

KEYS_AT_ONCE = 5_000
"""So many keys of sessions of an owner are read together."""

LATEST_SESSIONS = 300
"""So many of the sessions used last are read before the index of texts is asked."""

FIRST_TEXTS = 2_000
"""So many thoughts are read for a short text, which most have, before the index names those that have it."""

READ_FIRST = 200
"""So many texts of a session are read before the index is asked, which takes as long as reading some hundred."""

_PINNED = 5
"""Index of `pinned`, which the database keeps as an integer."""


def no_session_error(session_id: str) -> NotFoundError:
    """Return the error for a session that does not exist."""
    return NotFoundError(
        f"there is no session {session_id[:100]!r}; list the sessions to see which there are",
        session_id=session_id,
    )


def session_exists_error(session_id: str) -> ConflictError:
    """Return the error for a session that already exists."""
    return ConflictError(f"session {session_id} already exists", session_id=session_id)


def thought_exists_error(session_id: str, seq: int) -> ConflictError:
    """Return the error for a thought that already exists."""
    return ConflictError(
        f"thought {seq} of session {session_id} has already been written", session_id=session_id, seq=seq
    )


def _find(tx: Tx, which: str | int) -> StoredSession | None:
    """Return a session by its id or its key.

    Raises:
        StoreError: `store_corrupt`: its row is not as it was written.
    """
    by_id = isinstance(which, str)
    try:
        found = tx.execute(sql.SESSION if by_id else sql.SESSION_AT, (which,)).fetchone()
    except Exception as error:
        if is_damage(error):
            raise session_damage_error(which if by_id else _name(tx, which)) from error
        raise
    if found is None:
        return None
    if _checksum(found[:-1]) != found[-1] or (by_id and found[1] != which):
        raise session_damage_error(which if by_id else _name(tx, which))
    key: int = found[0]
    fields: list[Any] = [*found[1:-7], found[-2]]
    fields[_PINNED] = bool(fields[_PINNED])
    return StoredSession(key, SessionRow(*fields), *found[-7:-2])


def _name(tx: Tx, key: int) -> str:
    return sql.name_of(tx, sql.SESSION_ID, key)


def _find_known(tx: Tx, session_id: str) -> StoredSession:
    stored = _find(tx, session_id)
    if stored is None:
        check_index(tx, "session")
        raise no_session_error(session_id)
    return stored


def _values(stored: StoredSession) -> tuple[Any, ...]:
    """Return a row as it is stored: its key, its columns, and the checksum over them."""
    *fields, owner = astuple(stored.row)
    fields[_PINNED] = int(fields[_PINNED])
    values = (stored.key, *fields, *stored[2:], owner)
    return (*values, _checksum(values))


def _checksum(values: Sequence[Any]) -> bytes:
    return row_checksum("session", values, ADDED_SESSION_COLUMNS)


def _set(tx: Tx, stored: StoredSession) -> None:
    key, _, *values = _values(stored)
    tx.execute(sql.SET_SESSION, (*values, key))


def _add(tx: Tx, row: SessionRow, thoughts: Sequence[ThoughtRow], used: int | None) -> None:
    if tx.execute(sql.SESSION_KEY, (row.session_id,)).fetchone() is not None:
        raise session_exists_error(row.session_id)
    (key,) = tx.rows(sql.NEXT_SESSION_KEY)[0]
    stored = StoredSession(key, row, used, None, None, 0, first_digest(row.session_id))
    stored = _add_thoughts(tx, stored, thoughts)
    tx.execute(sql.ADD_SESSION, _values(stored))
    tx.texts.queue(tx, place(key, 0), place(key, 0))
    if row.run_id is not None:
        _note_rest(tx, stored)


def _note_rest(tx: Tx, stored: StoredSession) -> None:
    """Note whether thoughts of a session that a run writes are in the journal alone."""
    tx.execute(
        sql.DROP_IN_JOURNAL if stored.last >= stored.row.thoughts else sql.SET_IN_JOURNAL, (stored.key,)
    )


def _add_thoughts(tx: Tx, stored: StoredSession, thoughts: Sequence[ThoughtRow]) -> StoredSession:
    """Add thoughts, in the order of their `seq`; return the row as it then has to be stored."""
    key, row, last, digest = stored.key, stored.row, stored.last, stored.digest
    if digest is None:
        digest = chain_thoughts(tx, key, row.session_id)
    for thought in thoughts:
        digest = next_digest(digest, thought)
        values = (place(key, thought.seq), thought.number, thought.text, thought.branch, thought.body, digest)
        if thought.seq <= last or tx.change(sql.ADD_THOUGHT, values) != 1:
            raise thought_exists_error(row.session_id, thought.seq)
        last = thought.seq
    for first in range(0, len(thoughts), QUEUED_TOGETHER):
        some = thoughts[first : first + QUEUED_TOGETHER]
        tx.texts.queue(tx, place(key, some[0].seq), place(key, some[-1].seq))
    return stored._replace(last=last, digest=digest)


class View:
    """A session as seen in a transaction; not valid after it."""

    def __init__(self, tx: Tx, stored: StoredSession | None, steady: int) -> None:
        self.row = stored and stored.row
        self.idle_ms = 0 if stored is None else _idle_ms(stored, steady)
        self._thoughts = stored and Thoughts(tx, stored)
        self._tx, self._steady = tx, steady

    def with_number(self, number: int) -> list[ThoughtRow]:
        """See `Store`."""
        return [] if self._thoughts is None else self._thoughts.with_number(number)

    def latest(self, count: int) -> list[ThoughtRow]:
        """See `Store`."""
        return self._thoughts.latest(count) if self._thoughts is not None and count > 0 else []

    def other(self, session_id: str) -> View:
        """See `Store`."""
        return View(self._tx, _find(self._tx, session_id), self._steady)


def _idle_ms(stored: StoredSession, steady: int) -> int:
    return 0 if stored.used_steady_ms is None else max(0, steady - stored.used_steady_ms)


def change(tx: Tx, session_id: str, decide: Decide, up: Uptime) -> Any:
    """Call `decide` with the session and write the change it returns."""
    stored, steady = _find(tx, session_id), steady_ms(tx, up)
    wanted = decide(View(tx, stored, steady))
    check_change(wanted, stored is not None)
    if wanted.delete and stored is not None:
        _drop(tx, stored.key)
        stored = None
    elif wanted.archive_as is not None and stored is not None:
        stored = _archive(tx, stored, wanted.archive_as)
    if wanted.instead is not None:
        session_id, stored = wanted.instead, _find_known(tx, wanted.instead)
    thoughts = [] if wanted.thought is None else [wanted.thought]
    if wanted.row is not None and (stored is None or wanted.row.session_id != session_id):
        _add(tx, wanted.row, thoughts, steady if wanted.used else None)
    elif stored is not None and (wanted.row is not None or thoughts):
        if wanted.row is not None:
            if wanted.row.purpose != stored.row.purpose:
                tx.texts.queue(tx, place(stored.key, 0), place(stored.key, 0))
            of_owner = replace(wanted.row, owner=stored.row.owner)
            stored = _mark_used(stored, of_owner, steady) if wanted.used else stored._replace(row=of_owner)
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
    _add(tx, row, thoughts, stored.used_steady_ms)
    _drop(tx, stored.key)
    return None


def _mark_used(stored: StoredSession, row: SessionRow, steady: int) -> StoredSession:
    """Return a session that is used at this moment, with the row that it has then."""
    return stored._replace(row=row, used_steady_ms=steady, due_steady_ms=None, due_after_ms=None)


def use(tx: Tx, session_id: str, run_id: str, use: Use, up: Uptime) -> None:
    """Note that a run has used the session it writes, if that is there and whole."""
    try:
        stored = _find(tx, session_id)
    except StoreError:
        # The run goes on; the damage shows where the session is read.
        return
    if stored is not None and stored.row.run_id == run_id:
        row = replace(stored.row, thoughts=use.thoughts, used_at_ms=use.at_ms, status="active")
        stored = _add_following(tx, _mark_used(stored, row, steady_ms(tx, up)), use.added)
        _set(tx, stored)
        _note_rest(tx, stored)


def _add_following(tx: Tx, stored: StoredSession, thoughts: Sequence[ThoughtRow]) -> StoredSession:
    """Add those of the thoughts that come next."""
    new = [thought for thought in thoughts if thought.seq > stored.last]
    if not new or new[0].seq != stored.last + 1:
        return stored
    return _add_thoughts(tx, stored, new)


def keep_thoughts(tx: Tx, session_id: str, thoughts: Sequence[ThoughtRow]) -> None:
    """Keep what the journal has of the thoughts of a session; see `Store`."""
    stored = _find_known(tx, session_id)
    count = max(stored.row.thoughts, len(thoughts))
    stored = _add_following(tx, stored._replace(row=replace(stored.row, thoughts=count)), thoughts)
    _set(tx, stored)
    _note_rest(tx, stored)


def forget_thoughts(tx: Tx, session_id: str, run_id: str) -> None:
    """Remove the thoughts that a run has written into its session."""
    with contextlib.suppress(StoreError):
        stored = _find(tx, session_id)
        if stored is not None and stored.row.run_id == run_id:
            tx.texts.drop(tx, place(stored.key, 1), place(stored.key, MAX_SEQ))
            tx.execute(sql.DROP_THOUGHTS, (place(stored.key, 0), place(stored.key, MAX_SEQ)))
            tx.execute(sql.DROP_IN_JOURNAL, (stored.key,))
            _set(tx, stored._replace(last=0, digest=first_digest(session_id)))


def _drop(tx: Tx, key: int) -> None:
    tx.texts.drop(tx, place(key, 0), place(key, MAX_SEQ))
    tx.execute(sql.DROP_IN_JOURNAL, (key,))
    tx.execute(sql.DROP_THOUGHTS, (place(key, 0), place(key, MAX_SEQ)))
    tx.execute(sql.DROP_SESSION, (key,))
    tx.has_deleted = True


def session(tx: Tx, session_id: str) -> SessionRow:
    """Return a session's row.

    Raises:
        StoreError: `store_corrupt`: it is not as it was written, or has lost thoughts at its end.
    """
    stored = _find_known(tx, session_id)
    Thoughts(tx, stored).check_tail()
    return stored.row


def sessions(tx: Tx, which: SessionFilters, limit: int, before: str | None) -> list[SessionRow]:
    """Return a page of the sessions that are listed, last used first."""
    check_keys(tx, "session")
    bound, used = MAX_INT, MAX_INT
    if before is not None:
        bound, used = tx.execute(sql.SESSION_USE, (before,)).fetchone() or (None, None)
        if bound is None:
            raise no_session_error(before)
    tests = [f"AND {test}" for name, test in sql.SESSION_FILTERS.items() if which.get(name) is not None]
    wanted = " ".join(tests)
    bounds = {**which, "before": bound, "used": used}
    query = (which.get("query") or "").casefold()
    if not query:
        return _list_entries(tx, (key for key, _ in _keys(tx, wanted, bounds, limit)))
    latest = _keys(tx, wanted, bounds, LATEST_SESSIONS)
    found = list(islice(_that_contain(tx, (key for key, _ in latest), query), limit))
    if len(found) < limit and len(latest) == LATEST_SESSIONS:
        bounds["before"], bounds["used"] = latest[-1]
        few = _few(tx, query, which.get("owner"), wanted, bounds)
        rest = (key for key, _ in _keys(tx, wanted, bounds, MAX_INT)) if few is None else few
        found += islice(_that_contain(tx, rest, query), limit - len(found))
    return _list_entries(tx, found)


def _keys(tx: Tx, wanted: str, bounds: Mapping[str, Any], limit: int) -> list[tuple[int, int]]:
    """Return the keys of the first sessions that are listed, whatever the query, and when each was last used."""
    return tx.rows(sql.SESSION_KEYS.format(wanted), {**bounds, "limit": limit})


def own_keys(tx: Tx, owner: str | None, first: int = 0, *, backwards: bool = False) -> KeysInOrder | None:
    """Return the keys of the sessions of an owner, from one on; None: all are asked for."""
    return None if owner is None else KeysInOrder(_each_key(tx, owner, first, backwards), backwards=backwards)


def _each_key(tx: Tx, owner: str, first: int, backwards: bool = False) -> Iterator[int]:
    """Yield the keys of the sessions of an owner, from one on, in their order or the other way round."""
    low, high = first, MAX_INT
    statement = sql.LAST_SESSIONS_OF if backwards else sql.SESSIONS_OF
    while low <= high and (keys := tx.rows(statement, (owner, low, high, KEYS_AT_ONCE))):
        yield from (key for (key,) in keys)
        low, high = (low, keys[-1][0] - 1) if backwards else (keys[-1][0] + 1, high)


def _few(tx: Tx, query: str, owner: str | None, wanted: str, bounds: Mapping[str, Any]) -> list[int] | None:
    """Return the keys of the sessions that are listed and may contain a text, in the order of the list.

    Returns:
        None: too many may contain it.
    """
    few, of_owner = set[int](), own_keys(tx, owner)
    for at in tx.texts.candidates(tx, query, 0, text_index.RUNS - 1):
        if of_owner is None or at >> sql.PLACE_BITS in of_owner:
            few.add(at >> sql.PLACE_BITS)
        if len(few) > FEW_SESSIONS:
            return None
    uses = tx.rows(sql.SESSIONS_IF.format(wanted), {**bounds, "keys": str([*few])})
    return [key for _, key in sorted(uses, reverse=True)]


def containing(tx: Tx, needle: str, among: KeysInOrder | None, *, backwards: bool = False) -> Iterator[int]:
    """Yield the keys of sessions, of all or among some, that contain a text whose case is folded, in their order."""
    candidates = tx.texts.candidates(tx, needle, 0, text_index.RUNS - 1, backwards=backwards)
    places = (at for at in candidates if among is None or at >> sql.PLACE_BITS in among)
    last = -1
    for at in tx.each(places, _prefetch_texts_at):
        key = at >> sql.PLACE_BITS
        if key != last and _has_at(tx, at, needle):
            last = key
            yield last


def _prefetch_texts_at(prefetch: Prefetch, places: list[int]) -> None:
    prefetch(sql.TEXT_AT, [(at,) for at in places if sql.seq_of(at)])
    prefetch(sql.PURPOSE_OF, [(at >> sql.PLACE_BITS,) for at in places if not sql.seq_of(at)])


def _that_contain(tx: Tx, keys: Iterable[int], needle: str) -> Iterator[int]:
    """Yield those of the sessions that contain a text whose case is folded."""
    return (key for key in tx.each(keys, prefetch_texts) if contains(tx, key, needle))


def prefetch_texts(prefetch: Prefetch, keys: list[int]) -> None:
    """Prefetch what `contains` reads first of sessions."""
    prefetch(sql.TEXTS_OF, [_first_texts(key) for key in keys])


def _first_texts(key: int) -> tuple[int, int, int, int]:
    return key, place(key, 0), place(key, MAX_SEQ), READ_FIRST


def contains(tx: Tx, which: int, needle: str) -> bool:
    """Whether a session contains a text whose case is folded."""
    read, (_, first, last, _) = 0, _first_texts(which)
    for (text,) in tx.execute(sql.TEXTS_OF, _first_texts(which)):
        if needle in str(text).casefold():
            return True
        read += 1
    if read < READ_FIRST:
        return False
    if len(needle) >= text_index.SEQUENCE_CHARS:
        found = tx.texts.candidates(tx, needle, first, last)
        return any(_has_at(tx, at, needle) for at in found)
    # Looking up all the sequences that a short text begins would take longer than to read all.
    while rows := tx.rows(sql.TEXTS_FROM, (first, last, BATCH)):
        if any(needle in str(text).casefold() for _, text in rows):
            return True
        first = rows[-1][0]
    return False


def _has_at(tx: Tx, at: int, needle: str) -> bool:
    """Whether the thought of that place, or for seq 0 the purpose of its session, contains a text."""
    if sql.seq_of(at):
        found = tx.execute(sql.TEXT_AT, (at,)).fetchone()
    else:
        found = tx.execute(sql.PURPOSE_OF, (at >> sql.PLACE_BITS,)).fetchone()
    return found is not None and needle in str(found[0]).casefold()


def _list_entries(tx: Tx, keys: Iterable[int]) -> list[SessionRow]:
    return [_list_entry(tx, key) for key in tx.each(keys, _prefetch_rows)]


def _prefetch_rows(prefetch: Prefetch, keys: list[int]) -> None:
    prefetch(sql.SESSION_AT, [(key,) for key in keys])
    prefetch(sql.LATEST_THOUGHTS, [(place(key, 0), place(key, MAX_SEQ), 1) for key in keys])


def _list_entry(tx: Tx, key: int) -> SessionRow:
    try:
        stored = _find(tx, key)
        if stored is not None:
            Thoughts(tx, stored).check_tail()
            return stored.row
    except StoreError:
        pass
    return SessionRow(_name(tx, key), "", 0, 0, "damaged")


def thoughts(
    tx: Tx,
    session_id: str,
    numbers: tuple[int | None, int | None],
    branch: str | None,
    after_seq: int,
    limit: int,
) -> list[ThoughtRow]:
    """Return a page of a session's thoughts, in call order."""
    first, last = numbers
    stored_thoughts = Thoughts(tx, _find_known(tx, session_id))
    stored_thoughts.check_tail()
    page = (
        thought
        for thought in stored_thoughts.after(min(max(after_seq, 0), MAX_SEQ))
        if (first is None or thought.number >= first)
        and (last is None or thought.number <= last)
        and (branch is None or (thought.branch or "") == branch)
    )
    return list(islice(page, limit))


def search(
    tx: Tx, query: str, session_id: str | None, owner: str | None, after: int, limit: int
) -> list[Found]:
    """Return a page of the thoughts that contain `query`, whatever its case, and of the runs that have thoughts."""
    low = min(max(after, 0), MAX_INT)
    # The database folds the case of ASCII alone, and cuts texts at NUL.
    needle = query.casefold()
    if session_id is not None:
        matches = _matches_in(tx, _find_known(tx, session_id).key, needle, owner, low)
    else:
        check_keys(tx, "session")
        if needle and low < text_index.RUNS:
            matches = _matches(tx, needle, owner, low)
        else:
            first = low >> sql.PLACE_BITS
            keys = (
                [key for (key,) in tx.execute(sql.SESSION_KEYS_FROM, (first,))]
                if owner is None
                else _each_key(tx, owner, first)
            )
            matches = (match for key in keys for match in _matches_in(tx, key, needle, owner, low))
    return list(islice((match for match in matches if match[0] > low), limit))


def _matches(tx: Tx, needle: str, owner: str | None, low: int) -> Iterator[Found]:
    """Read what the index names, and what it does not have yet, in all sessions or those of an owner."""
    in_journal = {key for (key,) in tx.execute(sql.IN_JOURNAL, (low >> sql.PLACE_BITS,))}
    to_read = dict.fromkeys(in_journal, -1)
    for first, _ in tx.texts.queued_ranges(tx, low + 1, text_index.RUNS - 1):
        key = first >> sql.PLACE_BITS
        to_read[key] = min(to_read.get(key, first), first - 1)
    own = own_keys(tx, owner, low >> sql.PLACE_BITS)
    read = (
        match
        for key in sorted(to_read)
        if own is None or key in own
        for match in _matches_in(tx, key, needle, owner, max(low, to_read[key]))
    )
    places = _places(tx, needle, owner, low)
    return heapq.merge(_matches_at(tx, places, needle, owner, to_read), read, key=itemgetter(0))


def _places(tx: Tx, needle: str, owner: str | None, low: int) -> Iterator[int]:
    """Yield the places of thoughts that may contain a text and are in the index, of all sessions or of an owner's."""
    first_key = low >> sql.PLACE_BITS
    if len(needle) < text_index.SEQUENCE_CHARS:
        bounds = (
            [(low, MAX_INT)]
            if owner is None
            else ((max(low, place(key, 0)), place(key, MAX_SEQ)) for key in _each_key(tx, owner, first_key))
        )
        room = FIRST_TEXTS
        for first, last in bounds:
            try:
                texts = tx.rows(sql.TEXTS_FROM, (first, last, room))
            except Exception as error:
                if not is_damage(error):
                    raise
                # Where the index names them, each shows its damage by itself.
                low = first
                break
            yield from (at for at, text in texts if needle in str(text).casefold())
            room -= len(texts)
            if room == 0:
                low = texts[-1][0]
                break
        else:
            return
    own = own_keys(tx, owner, first_key)
    for at in tx.texts.indexed_places(tx, needle, low + 1, text_index.RUNS - 1):
        if own is None or at >> sql.PLACE_BITS in own:
            yield at


def _matches_at(
    tx: Tx, places: Iterable[int], needle: str, owner: str | None, read: Mapping[int, int]
) -> Iterator[Found]:
    """Read thoughts, but for those behind a place from which their session is read anyway."""
    stored, done = None, -1
    wanted = (at for at in places if sql.seq_of(at) and at <= read.get(at >> sql.PLACE_BITS, at))
    for at in tx.each(wanted, _prefetch_thoughts):
        key, seq = at >> sql.PLACE_BITS, sql.seq_of(at)
        if key == done:
            continue
        try:
            if stored is None or stored.key != key:
                stored = _find_searched(tx, key)
                if stored is None or owner not in (None, stored.row.owner):
                    stored, done = None, key
                    continue
                Thoughts(tx, stored).check_tail()
            thought = Thoughts(tx, stored).at(seq)
            if thought is not None and needle in thought.text.casefold():
                yield at, stored.row.session_id, thought
        except StoreError as error:
            done = key
            yield place(key, MAX_SEQ), _name(tx, key), Damaged(error.message)


def _find_searched(tx: Tx, key: int) -> StoredSession | None:
    """Return a session that is searched; None: there is neither it nor a thought of it.

    Raises:
        StoreError: `store_corrupt`: its row is not as it was written, or cannot be found.
    """
    stored = _find(tx, key)
    if stored is None and tx.rows(sql.TEXTS_FROM, (place(key, 0), place(key, MAX_SEQ), 1)):
        raise session_damage_error(_name(tx, key) or f"number {key}")
    return stored


def _prefetch_thoughts(prefetch: Prefetch, places: list[int]) -> None:
    """Prefetch what is read of thoughts, and of their sessions."""
    _prefetch_rows(prefetch, list(dict.fromkeys(at >> sql.PLACE_BITS for at in places)))
    prefetch(sql.THOUGHTS, [(at - 1, at | MAX_SEQ, 1) for at in places])
    prefetch(sql.DIGEST_AT, [(at & ~MAX_SEQ, at - 1) for at in places])


def _matches_in(tx: Tx, key: int, needle: str, owner: str | None, low: int) -> Iterator[Found]:
    """Read a session through."""
    begin, end = place(key, 0), place(key, MAX_SEQ)
    try:
        stored = _find_searched(tx, key)
        if stored is None or owner not in (None, stored.row.owner):
            return
        row, stored_thoughts = stored.row, Thoughts(tx, stored)
        stored_thoughts.check_tail()
        if row.run_id is not None and tx.execute(sql.IS_IN_JOURNAL, (key,)).fetchone():
            yield end, row.session_id, InJournal(row.run_id, begin)
            return
        for thought in stored_thoughts.after(min(max(low - begin, 0), MAX_SEQ)):
            if needle in thought.text.casefold():
                yield begin + thought.seq, row.session_id, thought
    except StoreError as error:
        yield end, _name(tx, key), Damaged(error.message)


def walk(tx: Tx, key: int) -> tuple[str, int, bool]:
    """Check each thought of a session; return its id, how many there are, and whether they have digests.

    Raises:
        StoreError: `store_corrupt`: part of it differs from what was written.
    """
    stored, thoughts = _read_through(tx, key)
    return stored.row.session_id, sum(1 for _ in thoughts), stored.digest is not None


def _read_through(tx: Tx, key: int) -> tuple[StoredSession, Iterator[ThoughtRow]]:
    stored = _find(tx, key)
    if stored is None:
        raise session_damage_error(_name(tx, key))
    stored_thoughts = Thoughts(tx, stored)
    stored_thoughts.check_tail()
    return stored, stored_thoughts.after(0)


def whole_session(tx: Tx, key: int) -> WholeSession:
    """Return all that is kept of the session with that key; raises as `walk`."""
    stored, thoughts = _read_through(tx, key)
    return WholeSession(stored.row, tuple(thoughts))


def write_whole(tx: Tx, session: WholeSession, up: Uptime) -> Written:
    """Write a session of another store; see `Store`."""
    stored = _find(tx, session.row.session_id)
    if stored is None:
        import_session(tx, session.row, session.thoughts, up)
        return "new"
    there = whole_session(tx, stored.key)
    written = compare_sessions(there, session)
    if written == "continued":
        stored = _mark_used(stored, replace(session.row, owner=stored.row.owner), steady_ms(tx, up))
        stored = _add_thoughts(tx, stored, session.thoughts[len(there.thoughts) :])
        _set(tx, stored)
        if stored.row.run_id is not None:
            _note_rest(tx, stored)
    return written


def import_session(tx: Tx, row: SessionRow, thoughts: Sequence[ThoughtRow], up: Uptime) -> None:
    """Add a whole session."""
    _add(tx, row, sorted(thoughts, key=lambda thought: thought.seq), steady_ms(tx, up))


def sweep(tx: Tx, sweep: Sweep, up: Uptime) -> None:
    """Archive and delete sessions that were not used for long; see `Store`.

    A damaged session is left unchanged, because its last use is unknown.
    """
    steady = steady_ms(tx, up)
    long = {"ttl": sweep.ttl_ms, "retention": sweep.retention_ms, "second_look": SECOND_LOOK_MS}
    for (key,) in tx.rows(sql.SESSIONS_TO_LOOK_AT, {"now": sweep.now_ms, "steady": steady, **long}):
        with contextlib.suppress(StoreError):
            stored = _find(tx, key)
            if stored is not None:
                _look(tx, stored, sweep, steady)


def _look(tx: Tx, stored: StoredSession, sweep: Sweep, steady: int) -> None:
    """Archive a session if it was not used for long, or delete it."""
    since_ms, after_ms = stored.due_steady_ms, stored.due_after_ms
    due = None if since_ms is None or after_ms is None else Due(since_ms, after_ms)
    look = look_at(stored.row, due, _idle_ms(stored, steady), sweep, steady)
    if look.is_over:
        return _drop(tx, stored.key)
    since_ms, after_ms = look.due or (None, None)
    return _set(tx, stored._replace(row=look.row, due_steady_ms=since_ms, due_after_ms=after_ms))


def delete_session(tx: Tx, session_id: str) -> None:
    """Remove a session and its thoughts, damaged or not."""
    found = tx.execute(sql.SESSION_KEY, (session_id,)).fetchone()
    if found is None:
        check_index(tx, "session")
        raise no_session_error(session_id)
    if _name(tx, found[0]) != session_id:
        raise session_damage_error(session_id)
    _drop(tx, found[0])
