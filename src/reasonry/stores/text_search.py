"""Case-insensitive search in the texts of a store: problems, answers, errors, purposes and thoughts.

The transaction that writes a text also writes a copy of the text with folded case. A part is the folded text that is
searched for. A trigram index finds parts of three or more characters. Shorter parts, databases without an index, and
texts that SQLite's index lacks (it receives them in batches) need a scan. The index and the scan find the same texts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..records import Found, ThoughtRow
from . import sql
from .sql import INDEXED_CHARS, MAX_SEQ, RUNS, Tx

FEW = 1_000
"""The most places that are taken from the index. If more texts contain a part, a scan of the texts is fast enough."""

_TEXT_OF_RUN = f"t.place = {RUNS} + run.key"
_TEXTS_OF_SESSION = f"t.place BETWEEN session.key << 24 AND (session.key << 24) + {MAX_SEQ}"
_SESSION_OF_RUN = "session.session_id = run.session_id AND session.run_id = run.run_id"


def fold(text: str) -> str:
    """Fold the case of a text, and replace each NUL with U+FFFD."""
    return text.casefold().replace("\x00", "\ufffd")


def put(tx: Tx, texts: Sequence[tuple[int, str]]) -> None:
    """Make texts searchable. Each text replaces the text at the same place, if any."""
    for at, text in texts:
        tx.execute(sql.PUT_TEXT, (at, fold(text)))


def find_thoughts(tx: Tx, query: str, low: int, high: int, limit: int) -> list[Found]:
    """Search the places from `low` to `high` for `query`, ignoring case. Return the first `limit` thoughts found."""
    part, is_owned = fold(query), tx.owner is not None
    if is_owned and _find_few(tx, part) is None:
        # The texts of an owner are not adjacent, so they are read session by session.
        scan = _scan(tx, part, low, high)
        own = f"{scan.test} AND session.key BETWEEN $1 >> 24 AND $2 >> 24 AND {_TEXTS_OF_SESSION}"
        looks = [_Look("session CROSS JOIN searchable t", own, "session.key, t.place", scan.values)]
    else:
        looks = [
            look._replace(tables=f"{look.tables} CROSS JOIN session") for look in _looks(tx, part, low, high)
        ]
    found = list[Any]()
    for look in looks:
        tests, owners = sql.tests_of(tx, {}, {}, len(look.values) + 1)
        statement = sql.FOUND.format(**look._asdict(), tests=tests, limit=limit)
        found += tx.rows(statement, [*look.values, *owners])
    found = sorted(found, key=lambda each: each[0])[:limit]
    return [(at, session_id, ThoughtRow(sql.seq_of(at), *fields)) for at, session_id, *fields in found]


def runs_with(tx: Tx, part: str, parameter: str) -> tuple[str, list[str]]:
    """Return the SQL condition for runs that contain `part`, and the values of its parameters."""
    if (few := _find_few(tx, part)) is None:
        in_text = tx.dialect.has.format("t.folded", parameter)
        return (
            f"AND (EXISTS (SELECT 1 FROM searchable t WHERE {_TEXT_OF_RUN} AND {in_text}) OR EXISTS ("
            f"SELECT 1 FROM session JOIN searchable t ON {_TEXTS_OF_SESSION} WHERE {_SESSION_OF_RUN} AND {in_text}))"
        ), [part]
    keys = {at - RUNS for at in few if at >= RUNS}
    for session in {at >> sql.PLACE_BITS for at in few if at < RUNS}:
        keys.update(key for (key,) in tx.execute(sql.RUN_OF_SESSION, (session,)))
    return _among(keys), []


def sessions_with(tx: Tx, part: str, parameter: str) -> tuple[str, list[str]]:
    """Return the SQL condition for sessions that contain `part`, and the values of its parameters."""
    if (few := _find_few(tx, part)) is None:
        in_text = tx.dialect.has.format("t.folded", parameter)
        return f"AND EXISTS (SELECT 1 FROM searchable t WHERE {_TEXTS_OF_SESSION} AND {in_text})", [part]
    return _among({at >> sql.PLACE_BITS for at in few if at < RUNS}), []


class _Look(NamedTuple):
    """The clauses and parameter values of an SQL query that searches the texts."""

    tables: str
    test: str
    order: str
    values: list[Any]


def _scan(tx: Tx, part: str, low: int, high: int) -> _Look:
    test = f"t.place BETWEEN $1 AND $2 AND {tx.dialect.has.format('t.folded', '$3')}"
    return _Look("searchable t", test, "t.place", [low, high, part])


def _index(tx: Tx, part: str) -> sql.TextIndex | None:
    return tx.dialect.text_index if len(part) >= INDEXED_CHARS else None


def _looks(tx: Tx, part: str, low: int, high: int) -> list[_Look]:
    """Return queries that together search all texts: the indexed texts, and the texts not in the index."""
    index, scan = _index(tx, part), _scan(tx, part, low, high)
    if index is None:
        return [scan]
    indexed = _Look(index.tables, index.test, index.order, [index.pattern_of(part), low, high, part])
    if not index.waiting:
        return [indexed]
    return [indexed, scan._replace(test=f"{index.waiting} AND {scan.test}")]


def _find_few(tx: Tx, part: str) -> list[int] | None:
    """Return the places of the texts that contain `part`. None if no index applies or too many texts match."""
    if _index(tx, part) is None:
        return None
    found = list[int]()
    for look in _looks(tx, part, 0, sql.MAX_INT):
        statement = sql.TEXTS_WITH.format(**look._asdict(), limit=FEW + 1)
        found += [at for (at,) in tx.execute(statement, look.values)]
    return found if len(found) <= FEW else None


def _among(keys: set[int]) -> str:
    return f"AND key IN ({', '.join(map(str, sorted(keys)))})" if keys else "AND FALSE"
