"""Searching the texts of a store: problems, answers, purposes and thoughts, whatever their case.

Each text is kept a second time with its case folded, in the transaction that writes it. From three characters on an
index of its sequences of three characters finds it; a shorter part, and a database without such an index, read the
folded texts themselves. Both find the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import sql
from .sql import MAX_SEQ, RUNS, Tx

INDEXED_CHARS = 3
"""The least number of characters that the index finds."""

FEW = 1_000
"""A list is made from what the index finds up to this number of texts; a part that more of them contain is soon met by
reading the list itself."""

MAX_SEQUENCES = 12
"""How many sequences of a part the index is asked for, about; the text itself decides about the rest."""

_FIND = """
SELECT word.rowid FROM word JOIN searchable ON place = word.rowid
WHERE word MATCH $1 AND word.rowid BETWEEN $2 AND $3 AND instr(folded, $4) > 0 ORDER BY word.rowid LIMIT $5
"""
_TEXT_OF_RUN = f"t.place = {RUNS} + run.key"
_TEXTS_OF_SESSION = f"t.place BETWEEN session.key << 24 AND (session.key << 24) + {MAX_SEQ}"
_SESSION_OF_RUN = "session.session_id = run.session_id AND session.run_id = run.run_id"


class TrigramIndex:
    """The index of a SQLite database: an FTS5 table of sequences of three characters."""

    def put(self, tx: Tx, texts: Sequence[tuple[int, str]]) -> None:
        """See `TextIndex`."""
        tx.executemany(sql.PUT_TEXT, texts)
        tx.executemany("INSERT OR REPLACE INTO word (rowid, text) VALUES ($1, $2)", texts)

    def find(self, tx: Tx, needle: str, low: int, high: int, limit: int) -> list[int]:
        """See `TextIndex`."""
        last = len(needle) - INDEXED_CHARS
        starts = range(0, last + 1, max(1, last // MAX_SEQUENCES))
        parts = {needle[start : start + INDEXED_CHARS].replace('"', '""') for start in starts}
        match = " AND ".join(f'"{part}"' for part in parts)
        return [at for (at,) in tx.execute(_FIND, (match, low, high, needle, limit))]

    def drop(self, tx: Tx, low: int, high: int) -> None:
        """See `TextIndex`."""
        tx.execute(sql.DROP_TEXTS, (low, high))
        tx.execute("DELETE FROM word WHERE rowid BETWEEN $1 AND $2", (low, high))


INDEX = TrigramIndex()


def fold(text: str) -> str:
    """Return a text as it is searched."""
    return text.casefold().replace("\x00", "\ufffd")


def put(tx: Tx, texts: Sequence[tuple[int, str]]) -> None:
    """Make texts searchable, each at its place, instead of those that were there."""
    tx.texts.put(tx, [(at, fold(text)) for at, text in texts])


def find(tx: Tx, needle: str, low: int, high: int, limit: int) -> list[int]:
    """Return the first places, from `low` to `high`, of the texts that contain a folded part."""
    if len(needle) >= INDEXED_CHARS:
        return tx.texts.find(tx, needle, low, high, limit)
    return scan(tx, needle, low, high, limit)


def scan(tx: Tx, needle: str, low: int, high: int, limit: int) -> list[int]:
    """Return the same by reading the texts."""
    statement = sql.TEXT_WITH.format(has=tx.dialect.has.format("folded", "$3"))
    return [at for (at,) in tx.execute(statement, (low, high, needle, limit))]


def find_thoughts(tx: Tx, needle: str, low: int, high: int, batch: int) -> Iterator[int]:
    """Yield the places of the thoughts that contain a folded part."""
    while found := find(tx, needle, low, high, batch):
        yield from (at for at in found if sql.seq_of(at))
        if len(found) < batch:
            return
        low = found[-1] + 1


def runs_with(tx: Tx, needle: str, parameter: str) -> tuple[str, bool]:
    """Return the test of a run in a list that contains a folded part, and whether the test takes it as a parameter."""
    few = _find_few(tx, needle)
    if few is None:
        in_text = tx.dialect.has.format("t.folded", parameter)
        return (
            f"AND (EXISTS (SELECT 1 FROM searchable t WHERE {_TEXT_OF_RUN} AND {in_text}) OR EXISTS ("
            f"SELECT 1 FROM session JOIN searchable t ON {_TEXTS_OF_SESSION} WHERE {_SESSION_OF_RUN} AND {in_text}))"
        ), True
    keys = {at - RUNS for at in few if at >= RUNS}
    for session in {at >> sql.PLACE_BITS for at in few if at < RUNS}:
        keys.update(key for (key,) in tx.execute(sql.RUN_OF_SESSION, (session,)))
    return _among(keys), False


def sessions_with(tx: Tx, needle: str, parameter: str) -> tuple[str, bool]:
    """Return the same of a session."""
    few = _find_few(tx, needle)
    if few is None:
        in_text = tx.dialect.has.format("t.folded", parameter)
        return f"AND EXISTS (SELECT 1 FROM searchable t WHERE {_TEXTS_OF_SESSION} AND {in_text})", True
    return _among({at >> sql.PLACE_BITS for at in few if at < RUNS}), False


def _find_few(tx: Tx, needle: str) -> list[int] | None:
    """Return where the index finds a part; None: in too many texts, or it is too short."""
    if len(needle) < INDEXED_CHARS:
        return None
    found = tx.texts.find(tx, needle, 0, RUNS * 2 - 1, FEW + 1)
    return found if len(found) <= FEW else None


def _among(keys: set[int]) -> str:
    return f"AND key IN ({', '.join(map(str, sorted(keys)))})" if keys else "AND FALSE"
