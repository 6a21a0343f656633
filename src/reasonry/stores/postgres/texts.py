"""The index of texts of a PostgreSQL store; see `text_index`.

It has each text's sequences of three characters as words of a text search vector, which every server has; a shorter
query is the beginning of such words. They are written in the transaction that writes the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from .. import text_index
from ..sql import MAX_SEQ, Tx
from ..text_index import CHUNK, SEQUENCE_CHARS

MAX_SEQUENCES = 20_000
"""A text of more sequences is not indexed: each search reads it."""

AT_ONCE = 500
"""How many texts are held in memory to be put into the index."""

PUT = """
INSERT INTO word (place, sequences) VALUES (?, array_to_tsvector(?)) ON CONFLICT (place) DO UPDATE
SET sequences = excluded.sequences
"""
DROP = "DELETE FROM word WHERE place BETWEEN ? AND ?"
FIND = """
SELECT place FROM word WHERE place BETWEEN ? AND ? AND (sequences @@ ?::tsquery OR sequences IS NULL)
ORDER BY place {} LIMIT ?
"""
MISSING = (
    "SELECT count(*) FROM thought WHERE NOT EXISTS (SELECT 1 FROM word WHERE word.place = thought.place)"
)


class Texts:
    """The index within one transaction."""

    def __init__(self) -> None:
        self._queued: list[tuple[int, int]] = []

    def queue(self, tx: Tx, first: int, last: int) -> None:
        """Note that texts were written, to be put into the index at the end of the transaction."""
        self._queued.append((first, last))

    def put(self, tx: Tx) -> None:
        """Put what was noted into the index."""
        texts = dict[int, str]()
        for first, last in self._queued:
            texts.update(text_index.texts_between(tx, first, last, MAX_SEQ))
            if len(texts) >= AT_ONCE:
                _write(tx, texts)
                texts.clear()
        _write(tx, texts)
        self._queued.clear()

    def drop(self, tx: Tx, first: int, last: int) -> None:
        """See `TextIndex`."""
        self._queued = [(low, high) for low, high in self._queued if not (first <= low and high <= last)]
        tx.execute(DROP, (first, last))

    def candidates(
        self, tx: Tx, needle: str, low: int, high: int, *, backwards: bool = False
    ) -> Iterator[int]:
        """See `TextIndex`."""
        return self.indexed_places(tx, needle, low, high, backwards)

    def indexed_places(
        self, tx: Tx, needle: str, low: int, high: int, backwards: bool = False
    ) -> Iterator[int]:
        """See `TextIndex`."""
        statement, query, size = FIND.format("DESC" if backwards else "ASC"), _query(needle), CHUNK
        while low <= high:
            found = [at for (at,) in tx.execute(statement, (low, high, query, size))]
            yield from found
            if len(found) < size:
                return
            # The server finds them all each time.
            size *= 8
            if backwards:
                high = found[-1] - 1
            else:
                low = found[-1] + 1

    def queued_ranges(self, tx: Tx, low: int, high: int) -> list[tuple[int, int]]:
        """See `TextIndex`; nothing waits here."""
        return []

    def describe_damage(self, tx: Tx) -> list[str]:
        """See `TextIndex`."""
        (count,) = tx.rows(MISSING)[0]
        return (
            [f"the index of texts lacks {count} thoughts, so that searches may not find them"]
            if count
            else []
        )


def _write(tx: Tx, texts: Mapping[int, str]) -> None:
    if texts:
        tx.executemany(PUT, [(at, sequences(text)) for at, text in texts.items()])


def sequences(text: str) -> list[str] | None:
    """Return what the index has of a text; None: nothing, because it is too much."""
    whole = _fold(text) + text_index.END
    found = {whole[start : start + SEQUENCE_CHARS] for start in range(len(whole) - SEQUENCE_CHARS + 1)}
    return sorted(found) if len(found) <= MAX_SEQUENCES else None


def _fold(text: str) -> str:
    # The second is spelled otherwise; see `words`.
    return text_index.fold(text).replace("\x01", "\ufffd")


@lru_cache(maxsize=64)
def _query(needle: str) -> str:
    """Return the expression that matches each text which contains another one."""
    wanted = _fold(needle)
    if len(wanted) < SEQUENCE_CHARS:
        return f"{_quote(wanted)}:*"
    return " & ".join(
        _quote(wanted[start : start + SEQUENCE_CHARS]) for start in text_index.starts(len(wanted))
    )


def _quote(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
