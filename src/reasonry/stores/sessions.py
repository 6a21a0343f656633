"""What a transaction does to sessions and their thoughts, whichever database runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import merge
from typing import Any

from msgspec.structs import astuple

from ..errors import ConflictError, NotFoundError
from ..runtime.ports import InJournal, SessionChange, SessionRow, SessionView, Sweep, ThoughtRow
from . import sql
from .checks import MAX_INT, check_change
from .sql import MAX_SEQ, Tx, place, seq_of
from .steady import SECOND_LOOK_MS, Uptime, steady_ms

Decide = Callable[[SessionView], SessionChange]


def no_session(session_id: str) -> NotFoundError:
    """Return the error of a session that is not there."""
    return NotFoundError(
        f"there is no session {session_id[:100]!r}; list the sessions to see which there are",
        session_id=session_id,
    )


def session_exists(session_id: str) -> ConflictError:
    """Return the error of a session that is there already."""
    return ConflictError(f"there is a session {session_id} already", session_id=session_id)


def thought_exists(session_id: str, seq: int) -> ConflictError:
    """Return the error of a thought that is there already."""
    return ConflictError(
        f"thought {seq} of session {session_id} is written already", session_id=session_id, seq=seq
    )


def _session(found: Sequence[Any]) -> SessionRow:
    values = list(found)
    values[5] = bool(values[5])
    return SessionRow(*values)


def _thought(found: Sequence[Any]) -> ThoughtRow:
    return ThoughtRow(seq_of(found[0]), *found[1:])


def _find(tx: Tx, session_id: str) -> tuple[int | None, SessionRow | None]:
    found = tx.execute(sql.SESSION, (session_id,)).fetchone()
    return (None, None) if found is None else (found[0], _session(found[1:]))


def _key(tx: Tx, session_id: str) -> int:
    key, _ = _find(tx, session_id)
    if key is None:
        raise no_session(session_id)
    return key


class View:
    """A session as it stands in a transaction; of no use after it."""

    def __init__(self, tx: Tx, key: int | None, row: SessionRow | None, steady: int) -> None:
        self.row = row
        self._tx = tx
        self._key = key
        self._steady = steady

    @property
    def idle_ms(self) -> int:
        """See the port."""
        found = self._tx.execute(sql.SESSION_USED, (self._key,)).fetchone() or (None,)
        return 0 if found[0] is None else max(0, self._steady - found[0])

    def has_number(self, number: int) -> bool:
        """See the port."""
        if self._key is None or not -MAX_INT <= number <= MAX_INT:
            return False
        if 1 <= number <= MAX_SEQ:
            there = self._tx.execute(sql.THOUGHT_NUMBER, (place(self._key, number),)).fetchone()
            if there is not None and there[0] == number:
                return True
        return self._tx.execute(sql.ODD_NUMBER, (self._key, number)).fetchone() is not None

    def latest(self, count: int) -> list[ThoughtRow]:
        """See the port."""
        if self._key is None or count < 1:
            return []
        bounds = (place(self._key, 0), place(self._key, MAX_SEQ), min(count, MAX_INT))
        return [_thought(found) for found in self._tx.execute(sql.LATEST_THOUGHTS, bounds)][::-1]


def change(tx: Tx, session_id: str, decide: Decide, up: Uptime) -> Any:
    """Let `decide` look and decide, and write what it wants."""
    key, row = _find(tx, session_id)
    steady = steady_ms(tx, up)
    wanted = decide(View(tx, key, row, steady))
    check_change(wanted, key is not None)
    if wanted.delete and key is not None:
        _drop(tx, key)
        key = None
    if wanted.row is not None:
        same = key if wanted.row.session_id == session_id else None
        key = _put(tx, same, wanted.row, steady if wanted.used else None)
    if wanted.thought is not None and key is not None:
        owner = wanted.row.session_id if wanted.row is not None else session_id
        _add(tx, key, owner, wanted.thought)
    return wanted.value


def _put(tx: Tx, key: int | None, row: SessionRow, used_steady_ms: int | None) -> int:
    if key is not None:
        tx.execute(sql.SET_SESSION, (*astuple(row), used_steady_ms, key))
        return key
    if tx.change(sql.ADD_SESSION, (*astuple(row), used_steady_ms)) != 1:
        raise session_exists(row.session_id)
    return _key(tx, row.session_id)


def _add(tx: Tx, key: int, session_id: str, thought: ThoughtRow) -> None:
    values = (place(key, thought.seq), thought.number, thought.text, thought.branch, thought.body)
    if tx.change(sql.ADD_THOUGHT, values) != 1:
        raise thought_exists(session_id, thought.seq)


def _drop(tx: Tx, key: int) -> None:
    tx.execute(sql.DROP_THOUGHTS, (place(key, 0), place(key, MAX_SEQ)))
    tx.execute(sql.DROP_SESSION, (key,))
    tx.forgot = True


def session(tx: Tx, session_id: str) -> SessionRow:
    """Return a session's row."""
    _, row = _find(tx, session_id)
    if row is None:
        raise no_session(session_id)
    return row


def sessions(tx: Tx, status: str | None, limit: int, before: str | None) -> list[SessionRow]:
    """Return a page of sessions, last used first."""
    key, used = None, None
    if before is not None:
        key, used = _key(tx, before), session(tx, before).used_at_ms
    found = tx.execute(sql.SESSIONS, (key, used, used, key, status, status, limit))
    return [_session(one) for one in found]


def thoughts(
    tx: Tx,
    session_id: str,
    numbers: tuple[int | None, int | None],
    branch: str | None,
    after_seq: int,
    limit: int,
) -> list[ThoughtRow]:
    """Return a page of a session's thoughts, in call order."""
    key = _key(tx, session_id)
    after = min(max(after_seq, 0), MAX_SEQ)
    first = -MAX_INT if numbers[0] is None else max(numbers[0], -MAX_INT)
    last = MAX_INT if numbers[1] is None else min(numbers[1], MAX_INT)
    bounds = (place(key, after) + 1, place(key, MAX_SEQ), min(first, MAX_INT), max(last, -MAX_INT))
    found = tx.execute(sql.THOUGHTS, (*bounds, branch, branch, branch, limit))
    return [_thought(one) for one in found]


def search(
    tx: Tx, query: str, session_id: str | None, after: int, limit: int
) -> list[tuple[int, str, ThoughtRow | InJournal]]:
    """Return a page of the thoughts that contain `query`, whatever its case, and of the runs that have thoughts."""
    low, high = min(max(after, 0), MAX_INT), MAX_INT
    if session_id is not None:
        key = _key(tx, session_id)
        low, high = max(low, place(key, 0)), place(key, MAX_SEQ)
    # The database folds the case of ASCII alone, and cuts texts at NUL.
    needle = query.casefold()
    places = list[int]()
    ends = (found for found in tx.execute(sql.SESSIONS_OF_RUNS, (low, high)) if found[0] > low)
    for at, text in merge(tx.execute(sql.TEXTS, (low, high)), ends):
        if text is None or needle in text.casefold():
            places.append(at)
            if len(places) == limit:
                break
    return [_match(tx, at) for at in places]


def _match(tx: Tx, at: int) -> tuple[int, str, ThoughtRow | InJournal]:
    owner, run_id = tx.execute(sql.SESSION_IDS, (at >> sql.PLACE_BITS,)).fetchone() or ("", None)
    if run_id is not None:
        return at, owner, InJournal(run_id, at - MAX_SEQ)
    return at, owner, _thought(tx.execute(sql.THOUGHT, (at,)).fetchone() or ())


def import_session(tx: Tx, row: SessionRow, thoughts: Sequence[ThoughtRow], up: Uptime) -> None:
    """Add a whole session."""
    key = _put(tx, None, row, steady_ms(tx, up))
    values = [(place(key, one.seq), one.number, one.text, one.branch, one.body) for one in thoughts]
    tx.executemany(sql.ADD_THOUGHT, values)


def sweep(tx: Tx, sweep: Sweep, up: Uptime) -> None:
    """Archive and delete what was not used for long; see the port."""
    values = {"now": sweep.now_ms, "steady": steady_ms(tx, up), "second_look": SECOND_LOOK_MS}
    ttl, retention = values | {"limit": sweep.ttl_ms}, values | {"limit": sweep.retention_ms}
    tx.execute(sql.NO_LONGER_DUE, values)
    if sweep.delete:
        _drop_all(tx, sql.LAPSED_SESSIONS, ttl)
        tx.execute(sql.ARCHIVE_LAPSING_SESSIONS, ttl)
    else:
        tx.execute(sql.ARCHIVE_SESSIONS, ttl)
    _drop_all(tx, sql.SESSIONS_TO_DELETE, retention)
    tx.execute(sql.NOW_DUE, retention)


def _drop_all(tx: Tx, statement: str, values: dict[str, int]) -> None:
    for (key,) in list(tx.execute(statement, values)):
        _drop(tx, key)


def delete_session(tx: Tx, session_id: str) -> None:
    """Remove a session and its thoughts."""
    _drop(tx, _key(tx, session_id))
