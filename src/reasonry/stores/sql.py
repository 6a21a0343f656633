"""All SQL statements of a store.

A line's or thought's `place` is its owner's integer key times 2^24 plus its `seq`. So a line costs a few
bytes besides its body, those of one run lie side by side, and appending touches one page and no index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from apsw import Connection as Database  # noqa: F401  # pyright: ignore[reportUnusedImport]

T = TypeVar("T")
Prefetch = Callable[[str, Sequence[tuple[Any, ...]]], None]

TOGETHER = 100
"""How many are prefetched at once."""

PLACE_BITS = 24
MAX_SEQ = (1 << PLACE_BITS) - 1
"""Most lines of a run, and thoughts of a session."""


class Cursor(Protocol):
    """What a statement finds."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchone(self) -> Any:
        """Return the next row; None if there is none."""
        ...

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""
        ...


class Executes(Protocol):
    """A connection to a database, as far as a transaction needs it."""

    def execute(self, statements: str, bindings: Any = ..., /) -> Cursor:
        """Run a statement."""
        ...

    def executemany(self, statements: str, sequenceofbindings: Any, /) -> Any:
        """Run a statement once for each of the bindings."""
        ...

    def changes(self) -> int:
        """Return how many rows the last statement added, changed or removed."""
        ...


class TextIndex(Protocol):
    """Which texts may contain what is searched for; see `text_index`."""

    def queue(self, tx: Tx, first: int, last: int) -> None:
        """Note that texts were written which have to be put into the index."""
        ...

    def drop(self, tx: Tx, first: int, last: int) -> None:
        """Remove what was written between two positions."""
        ...

    def candidates(
        self, tx: Tx, needle: str, low: int, high: int, *, backwards: bool = False
    ) -> Iterator[int]:
        """Yield the positions of texts that may contain a text whose case is folded."""
        ...

    def indexed_places(
        self, tx: Tx, needle: str, low: int, high: int, backwards: bool = False
    ) -> Iterator[int]:
        """Yield the positions that the index names; see `candidates`."""
        ...

    def queued_ranges(self, tx: Tx, low: int, high: int) -> list[tuple[int, int]]:
        """Return the first and last positions of what is not in the index yet, between two positions."""
        ...

    def describe_damage(self, tx: Tx) -> list[str]:
        """Return what is to be said where the index lacks thoughts."""
        ...


class Tx:
    """A transaction as one job sees it.

    Args:
        texts: The index of the texts of its database.

    Attributes:
        has_deleted: Set by a job that deleted something whose bytes must be erased as well.
        has_unindexed: Set by a job that removed something from the index of texts.
        checked: The tables whose index was compared with them since the connection was opened; None: the database
            itself sees to its indexes.
        prefetch: Runs a statement for each of several values at once, so that running it with one of them costs
            nothing more; None: it costs little anyway.
    """

    __slots__ = (
        "_changes", "checked", "execute", "executemany", "has_deleted", "has_unindexed", "prefetch", "texts",
    )  # fmt: skip

    def __init__(
        self,
        db: Executes,
        texts: TextIndex,
        checked: set[str] | None = None,
        prefetch: Prefetch | None = None,
    ) -> None:
        self.execute = db.execute
        self.executemany = db.executemany
        self.has_deleted = self.has_unindexed = False
        self.texts = texts
        self.checked = checked
        self.prefetch = prefetch
        self._changes = db.changes

    def rows(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Run a statement; return the rows it finds."""
        return self.execute(statement, values).fetchall()

    def each(self, items: Iterable[T], prepare: Callable[[Prefetch, list[T]], None]) -> Iterator[T]:
        """Yield the items, some together after `prepare` has prefetched what will be read of them."""
        left = iter(items)
        if self.prefetch is None:
            yield from left
            return
        while some := list(islice(left, TOGETHER)):
            prepare(self.prefetch, some)
            yield from some

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return how many rows it added, changed or removed."""
        self.execute(statement, values)
        return self._changes()


def place(key: int, seq: int) -> int:
    """Return the position of line or thought `seq` of the owner `key`."""
    return key << PLACE_BITS | seq


def seq_of(place: int) -> int:
    """Return the `seq` within a place."""
    return place & MAX_SEQ


def ids_from(tx: Tx, statement: str, prefix: str, limit: int, owner: str | None) -> list[str]:
    """Return the ids that begin with a prefix; no character of an id comes after the last one of Unicode."""
    bounds = {"from": prefix, "to": prefix + "\U0010ffff", "limit": limit, "owner": owner}
    return [name for (name,) in tx.execute(statement.format("" if owner is None else OF_OWNER), bounds)]


def name_of(tx: Tx, statement: str, key: int) -> str:
    """Return a run's or session's id as far as it can be read, for what may be damaged."""
    found = tx.execute(statement, (key,)).fetchone()
    name = found[0] if found else ""
    return name.decode(errors="replace") if isinstance(name, bytes) else str(name)


BEGIN_WRITE = "BEGIN IMMEDIATE"
BEGIN_READ = "BEGIN"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
SAVEPOINT = "SAVEPOINT job"
RELEASE = "RELEASE job"
ROLLBACK_JOB = "ROLLBACK TO job"

HAS_MIGRATIONS = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration'"
MIGRATIONS = "SELECT name FROM migration ORDER BY name"
APPLIED = "INSERT INTO migration (name, applied_at_ms) VALUES (?, ?)"

SET_MARK = "UPDATE mark SET before = own, own = randomblob(16)"
"""Part of each commit; see `wal`."""

RUN_KEY = "SELECT key FROM run WHERE run_id = ?"
RUN_ID = "SELECT CAST(run_id AS BLOB) FROM run WHERE key = ?"
NEXT_RUN_KEY = "SELECT ifnull(max(key), 0) + 1 FROM run"
RUN_COLUMNS = """key, run_id, session_id, strategy, model, problem, status, created_at_ms, updated_at_ms, reason,
  answer, last_line, last_digest, owner, unattended, paused, calls, tokens, usd, checksum"""
RUN = f"SELECT {RUN_COLUMNS} FROM run WHERE key = ?"
OF_OWNER = "AND owner = :owner"
RUN_IDS = """
SELECT run_id FROM run INDEXED BY sqlite_autoindex_run_1 WHERE run_id >= :from AND run_id < :to {}
ORDER BY run_id LIMIT :limit
"""
RUN_KEYS = "SELECT key FROM run INDEXED BY {} WHERE key < :before {} ORDER BY key DESC LIMIT :limit"
RUN_OF_SESSION = """
SELECT run.key FROM session JOIN run ON run.run_id = session.run_id WHERE session.key = ?
"""
RUN_FILTERS = {
    "status": "status = :status",
    "strategy": "strategy = :strategy",
    "model": "model = :model",
    "owner": "owner = :owner",
    "unattended": "unattended = :unattended",
    "paused": "paused = :paused",
    "since_ms": "created_at_ms >= :since_ms",
    "until_ms": "created_at_ms < :until_ms",
}
RUN_TEXTS = "SELECT session_id, problem, answer, run_id FROM run WHERE key = ?"
SESSION_OF_RUN = "SELECT key FROM session WHERE session_id = ? AND run_id = ?"
NEXT_RUN = "SELECT min(key) FROM run WHERE key > ?"
NEXT_RUN_OF = "SELECT min(key) FROM run INDEXED BY run_owner WHERE key > ? AND owner = ?"
TALLY_RUNS = """
SELECT owner, status, count(*), CAST(sum(last_line) AS BIGINT) FROM run GROUP BY 1, 2 ORDER BY 1, 2
"""
COUNT_RUNS = "SELECT count(*) FROM run"
ADD_RUN = (
    f"INSERT INTO run ({RUN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
SET_RUN = """
UPDATE run SET session_id = ?, strategy = ?, model = ?, problem = ?, status = ?, created_at_ms = ?,
  updated_at_ms = ?, reason = ?, answer = ?, last_line = ?, last_digest = ?, owner = ?, unattended = ?, paused = ?,
  calls = ?, tokens = ?, usd = ?, checksum = ?
WHERE key = ?
"""
SET_TAIL = "UPDATE run SET last_line = ?, last_digest = ?, checksum = ? WHERE key = ?"
DROP_RUN = "DELETE FROM run WHERE key = ?"
USAGE = """
SELECT {}, count(*), sum(calls), sum(tokens), total(usd) FROM run INDEXED BY run_usage
WHERE updated_at_ms >= :since {} GROUP BY 1 ORDER BY 1
"""
DAY_MS = 86_400_000
USAGE_GROUPS = {
    None: "''",
    "day": f"updated_at_ms / {DAY_MS}",
    "strategy": "strategy",
    "model": "model",
    "owner": "owner",
}
ADD_LINE = "INSERT INTO line (place, body, digest) VALUES (?, ?, ?) ON CONFLICT (place) DO NOTHING"
LINES = "SELECT place, body, digest FROM line WHERE place BETWEEN ? AND ? ORDER BY place"
LAST_LINE = "SELECT place, digest FROM line WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1"
STRAY_LINE = "SELECT place FROM line WHERE place > ? AND place < ? LIMIT 1"
DROP_LINES = "DELETE FROM line WHERE place BETWEEN ? AND ?"

SESSION_KEY = "SELECT key FROM session WHERE session_id = ?"
SESSION_ID = "SELECT CAST(session_id AS BLOB) FROM session WHERE key = ?"
SESSION_IDS = """
SELECT session_id FROM session INDEXED BY sqlite_autoindex_session_1 WHERE session_id >= :from AND session_id < :to {}
ORDER BY session_id LIMIT :limit
"""
NEXT_SESSION_KEY = "SELECT ifnull(max(key), 0) + 1 FROM session"
SESSION_COLUMNS = """key, session_id, strategy, created_at_ms, used_at_ms, status, pinned, thoughts, purpose, run_id,
  head, used_steady_ms, due_steady_ms, due_after_ms, last_thought, last_digest, owner, checksum"""
SESSION = f"SELECT {SESSION_COLUMNS} FROM session WHERE session_id = ?"
SESSION_AT = f"SELECT {SESSION_COLUMNS} FROM session WHERE key = ?"
SESSION_USE = "SELECT key, used_at_ms FROM session WHERE session_id = ?"
SESSION_KEYS = """
SELECT key, used_at_ms FROM session INDEXED BY session_list WHERE (used_at_ms, key) < (:used, :before) {}
ORDER BY used_at_ms DESC, key DESC LIMIT :limit
"""
SESSIONS_IF = """
SELECT used_at_ms, key FROM session WHERE key IN (SELECT value FROM json_each(:keys))
AND (used_at_ms, key) < (:used, :before) {}
"""
SESSION_FILTERS = {
    "status": "status = :status",
    "strategy": "strategy = :strategy",
    "owner": "owner = :owner",
    "since_ms": "used_at_ms >= :since_ms",
    "until_ms": "used_at_ms < :until_ms",
    "guided": "(run_id IS NULL) = :guided",
}
IN_JOURNAL = "SELECT session FROM in_journal WHERE session >= ? ORDER BY session"
IS_IN_JOURNAL = "SELECT 1 FROM in_journal WHERE session = ?"
SET_IN_JOURNAL = "INSERT OR IGNORE INTO in_journal VALUES (?)"
DROP_IN_JOURNAL = "DELETE FROM in_journal WHERE session = ?"
NEXT_SESSION = "SELECT min(key) FROM session WHERE key > ?"
NEXT_SESSION_OF = "SELECT min(key) FROM session INDEXED BY session_owner WHERE key > ? AND owner = ?"
SESSION_KEYS_FROM = "SELECT key FROM session WHERE key >= ? ORDER BY key"
SESSIONS_OF = """
SELECT key FROM session INDEXED BY session_owner WHERE owner = ? AND key BETWEEN ? AND ? ORDER BY key LIMIT ?
"""
LAST_SESSIONS_OF = """
SELECT key FROM session INDEXED BY session_owner WHERE owner = ? AND key BETWEEN ? AND ? ORDER BY key DESC LIMIT ?
"""
TALLY_SESSIONS = """
SELECT owner, status, count(*), CAST(sum(last_thought) AS BIGINT) FROM session GROUP BY 1, 2 ORDER BY 1, 2
"""
COUNT_SESSIONS = "SELECT count(*) FROM session"
ADD_SESSION = f"""
INSERT INTO session ({SESSION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
SET_SESSION = """
UPDATE session SET strategy = ?, created_at_ms = ?, used_at_ms = ?, status = ?, pinned = ?, thoughts = ?,
  purpose = ?, run_id = ?, head = ?, used_steady_ms = ?, due_steady_ms = ?, due_after_ms = ?, last_thought = ?,
  last_digest = ?, owner = ?, checksum = ?
WHERE key = ?
"""
DROP_SESSION = "DELETE FROM session WHERE key = ?"
SESSIONS_TO_LOOK_AT = """
SELECT key FROM session INDEXED BY session_in_use
WHERE pinned = 0 AND status = 'active' AND (used_at_ms < :now - :ttl OR used_steady_ms < :steady - :ttl)
UNION ALL
SELECT key FROM session INDEXED BY session_kept
WHERE pinned = 0 AND status = 'archived' AND (
  (due_steady_ms IS NULL AND used_at_ms < :now - :retention) OR used_steady_ms < :steady - :retention
  OR used_steady_ms < :steady - due_after_ms OR due_steady_ms <= :steady - :second_look
  OR used_at_ms >= :now - due_after_ms)
"""
"""Parameters: `now`, the clock's time; `steady`, the store's monotonic time; and the limits for both."""
STEADY = "SELECT boot, uptime_ms, steady_ms, checksum FROM steady"
KEEP_STEADY = "REPLACE INTO steady (key, boot, uptime_ms, steady_ms, checksum) VALUES (1, ?, ?, ?, ?)"

TEXTS_OF = """
SELECT purpose FROM session WHERE key = ?
UNION ALL SELECT text FROM thought WHERE place BETWEEN ? AND ? LIMIT ?
"""
TEXTS_FROM = "SELECT place, text FROM thought WHERE place > ? AND place <= ? ORDER BY place LIMIT ?"
TEXT_AT = "SELECT text FROM thought WHERE place = ?"
PURPOSE_OF = "SELECT purpose FROM session WHERE key = ?"
THOUGHT_COLUMNS = "place, number, text, branch, body, digest"
ADD_THOUGHT = f"""
INSERT INTO thought ({THOUGHT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (place) DO NOTHING
"""
SET_DIGEST = "UPDATE thought SET digest = ? WHERE place = ?"
DIGEST_AT = "SELECT digest FROM thought WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT 1"
ODD_NUMBER = """
SELECT place FROM thought WHERE place >> 24 = ? AND number = ? AND number <> (place & 16777215)
"""
LATEST_THOUGHTS = f"""
SELECT {THOUGHT_COLUMNS} FROM thought WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT ?
"""
THOUGHTS = f"SELECT {THOUGHT_COLUMNS} FROM thought WHERE place > ? AND place <= ? ORDER BY place LIMIT ?"
STRAY_THOUGHT = "SELECT place FROM thought WHERE place > ? AND place < ? LIMIT 1"
DROP_THOUGHTS = "DELETE FROM thought WHERE place BETWEEN ? AND ?"
