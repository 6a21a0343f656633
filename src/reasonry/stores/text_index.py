"""The index of texts: which thoughts, problems and answers may contain what is searched for.

A text is kept as the set of its sequences of three characters, case folded, so that any part of it is found. What the
index names is a candidate: whoever searches reads the text itself.

Rule 1: what is written is put in a queue in the same transaction, and from there into the index a few hundred at a
time, because that takes a third of the work. A search reads what is still in the queue.
Rule 2: nothing of a text stands in the index but those sequences, and they go when it is deleted: see `erase`.
Rule 3: damage to the index hides a text from searches and changes none; verifying the store tells of it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from .sql import MAX_SEQ, Tx, place

RUNS = 1 << 62
"""In the index a run is this plus its key; a thought is its place, and seq 0 the purpose of the session."""

SEQUENCE_CHARS = 3

PIECE = 256
"""How many texts go into the index at once, which takes some 15 ms, and how many entries the queue may have."""

PIECE_CHARS = 1 << 18
CHUNK = 500
"""Candidates looked up at once."""

MAX_SEQUENCES = 12
"""How many sequences of a query are looked up; the text itself decides about the rest."""

END = "\x02\x02"
"""Stands behind each text, so that its last characters begin a sequence too."""

QUEUE = "INSERT INTO unindexed (first, last) VALUES (?, ?)"
QUEUEENDS = "SELECT min(n), max(n) FROM unindexed"
QUEUE_SIZE = "SELECT total(last - first + 1) FROM unindexed"
QUEUED = "SELECT n, first, last FROM unindexed ORDER BY n LIMIT ?"
QUEUED_WITHIN = "SELECT first, last FROM unindexed WHERE last >= ? AND first <= ?"
SET_QUEUED = "UPDATE unindexed SET first = ? WHERE n = ?"
DROP_QUEUED = "DELETE FROM unindexed WHERE n = ?"
DROP_QUEUED_WITHIN = "DELETE FROM unindexed WHERE first >= ? AND last <= ?"
MISSING = """
SELECT count(*) FROM thought WHERE place NOT IN (SELECT id FROM word_docsize)
AND NOT EXISTS (SELECT 1 FROM unindexed WHERE place BETWEEN first AND last)
"""
THOUGHTS = "SELECT place, text FROM thought WHERE place BETWEEN ? AND ? ORDER BY place LIMIT ?"
PURPOSE = "SELECT purpose FROM session WHERE key = ?"
RUN_TEXTS = "SELECT key, problem, answer FROM run WHERE key BETWEEN ? AND ? ORDER BY key LIMIT ?"
ADD = "INSERT OR REPLACE INTO word (rowid, text) VALUES (?, ?)"
DROP = "DELETE FROM word WHERE rowid BETWEEN ? AND ?"
ERASE = "INSERT INTO word (word) VALUES ('optimize')"
FIND = "SELECT rowid FROM word WHERE word MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rowid {} LIMIT ?"
SEQUENCES = "SELECT term FROM word_sequence WHERE term >= ? AND term < ?"


def fold(text: str) -> str:
    """Return a text as the index has it."""
    return text.casefold().replace("\x00", "\ufffd")


def queue(tx: Tx, first: int, last: int) -> None:
    """Note that texts were written which have to be put into the index."""
    tx.execute(QUEUE, (first, last))


def catch_up(tx: Tx) -> None:
    """Put a piece of the queue into the index, if the queue is long."""
    lowest, highest = tx.rows(QUEUEENDS)[0]
    if lowest is not None and highest - lowest >= PIECE:
        put_piece(tx)


def queue_size(tx: Tx) -> int:
    """Return how many texts are not in the index yet, at most."""
    return int(tx.rows(QUEUE_SIZE)[0][0])


def put_piece(tx: Tx) -> None:
    """Put texts from the queue into the index, about as many as are put there at once."""
    texts, chars = dict[int, str](), 0
    for entry, first, last in tx.rows(QUEUED, (PIECE,)):
        room = PIECE - len(texts)
        found = texts_between(tx, first, last, room)
        texts.update(found)
        chars += sum(len(text) for _, text in found)
        if len(found) >= room and found[-1][0] < last:
            tx.execute(SET_QUEUED, (found[-1][0] + 1, entry))
        else:
            tx.execute(DROP_QUEUED, (entry,))
        if len(texts) >= PIECE or chars >= PIECE_CHARS:
            break
    tx.executemany(ADD, [(at, fold(text) + END) for at, text in sorted(texts.items())])


def texts_between(tx: Tx, first: int, last: int, limit: int) -> list[tuple[int, str]]:
    """Return the first few of the texts between two positions, with their positions."""
    if first >= RUNS:
        runs = tx.rows(RUN_TEXTS, (first - RUNS, last - RUNS, limit))
        return [(RUNS + key, f"{problem}\n{answer or ''}") for key, problem, answer in runs]
    texts: list[Any] = []
    if first & MAX_SEQ == 0:
        texts += [(first, purpose) for (purpose,) in tx.rows(PURPOSE, (first >> 24,))]
    if len(texts) < limit:
        texts += tx.rows(THOUGHTS, (max(first, place(first >> 24, 1)), last, limit - len(texts)))
    return texts


def drop(tx: Tx, first: int, last: int) -> None:
    """Remove what was written between two positions; `erase` removes the bytes."""
    tx.execute(DROP_QUEUED_WITHIN, (first, last))
    if tx.change(DROP, (first, last)):
        tx.has_unindexed = True


def describe_damage(tx: Tx) -> list[str]:
    """Return what is to be said where thoughts are neither in the index nor in the queue."""
    (count,) = tx.rows(MISSING)[0]
    return [f"the index of texts lacks {count} thoughts, so that searches may not find them"] if count else []


def erase(tx: Tx) -> None:
    """Write the index anew without what was dropped."""
    tx.execute(ERASE)


def candidates(tx: Tx, needle: str, low: int, high: int, *, backwards: bool = False) -> Iterator[int]:
    """Yield the positions, from `low` to `high`, of texts that may contain a text whose case is folded."""
    wanted = fold(needle)
    unindexed = sorted(
        {
            at
            for first, last in queued_ranges(tx, low, high)
            for at, text in texts_between(tx, first, last, MAX_SEQ)
            if low <= at <= high and wanted in fold(text)
        },
        reverse=backwards,
    )
    before = None
    for at in heapq.merge(indexed_places(tx, needle, low, high, backwards), unindexed, reverse=backwards):
        if at != before:
            yield at
        before = at


def queued_ranges(tx: Tx, low: int, high: int) -> list[tuple[int, int]]:
    """Return the first and last positions of what is not in the index yet, between two positions."""
    return tx.rows(QUEUED_WITHIN, (low, high))


def indexed_places(tx: Tx, needle: str, low: int, high: int, backwards: bool = False) -> Iterator[int]:
    """Yield the positions that the index names; see `candidates`."""
    match, statement = _match(tx, fold(needle)), FIND.format("DESC" if backwards else "ASC")
    while match and low <= high:
        chunk = [at for (at,) in tx.execute(statement, (match, low, high, CHUNK))]
        yield from chunk
        if len(chunk) < CHUNK:
            return
        if backwards:
            high = chunk[-1] - 1
        else:
            low = chunk[-1] + 1


def _match(tx: Tx, wanted: str) -> str:
    """Return an expression that matches each text that contains another one; empty: there is none."""
    last = len(wanted) - SEQUENCE_CHARS
    if last >= 0:
        return " AND ".join(_quote(wanted[start : start + SEQUENCE_CHARS]) for start in starts(len(wanted)))
    sequences = tx.execute(SEQUENCES, (wanted, wanted + SEQUENCE_CHARS * "\U0010ffff"))
    return " OR ".join(_quote(sequence) for (sequence,) in sequences)


def starts(chars: int) -> list[int]:
    """Return where the sequences begin that are looked up for a text of so many characters."""
    last = chars - SEQUENCE_CHARS
    count = min(last + 1, MAX_SEQUENCES)
    return sorted({round(number * last / max(count - 1, 1)) for number in range(count)})


def _quote(sequence: str) -> str:
    return '"' + sequence.replace('"', '""') + '"'
