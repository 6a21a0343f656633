"""Searching the texts of a store: problems, answers, purposes and thoughts, whatever their case.

Each text is kept a second time with its case folded, in the transaction that writes it. From three characters on an
index of its sequences of three characters finds it; a shorter part, and a database without such an index, read the
folded texts themselves. Both find the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import sql
from .sql import INDEXED_CHARS, MAX_SEQ, RUNS, Tx

FEW = 1_000
"""A list is made from what the index finds up to this number of texts; a part that more of them contain is soon met by
reading the list itself."""

_TEXT_OF_RUN = f"t.place = {RUNS} + run.key"
_TEXTS_OF_SESSION = f"t.place BETWEEN session.key << 24 AND (session.key << 24) + {MAX_SEQ}"
_SESSION_OF_RUN = "session.session_id = run.session_id AND session.run_id = run.run_id"


def fold(text: str) -> str:
    """Return a text as it is searched."""
    return text.casefold().replace("\x00", "\ufffd")


def put(tx: Tx, texts: Sequence[tuple[int, str]]) -> None:
    """Make texts searchable, each at its place, instead of those that were there."""
    tx.executemany(sql.PUT_TEXT, [(at, fold(text)) for at, text in texts])


def drop(tx: Tx, low: int, high: int) -> None:
    """Remove the texts from `low` to `high`."""
    tx.execute(sql.DROP_TEXTS, (low, high))


def _find(tx: Tx, needle: str, low: int, high: int, limit: int) -> list[int]:
    """Return the first places, from `low` to `high`, of the texts that contain a folded part."""
    if len(needle) >= INDEXED_CHARS and tx.dialect.find_text:
        values = tx.dialect.pattern_of(needle), low, high, needle, limit
        return [at for (at,) in tx.execute(tx.dialect.find_text, values)]
    statement = sql.TEXT_WITH.format(has=tx.dialect.has.format("folded", "$3"))
    return [at for (at,) in tx.execute(statement, (low, high, needle, limit))]


def find_thoughts(tx: Tx, needle: str, low: int, high: int, batch: int) -> Iterator[int]:
    """Yield the places of the thoughts that contain a folded part."""
    while found := _find(tx, needle, low, high, batch):
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
    found = _find(tx, needle, 0, RUNS * 2 - 1, FEW + 1)
    return found if len(found) <= FEW else None


def _among(keys: set[int]) -> str:
    return f"AND key IN ({', '.join(map(str, sorted(keys)))})" if keys else "AND FALSE"
