"""Every statement of a store, once, in plain SQL.

A line's or thought's `place` is its owner's integer key times 2^24 plus its `seq`. So a line costs a few
bytes besides its body, those of one run lie side by side, and appending touches one page and no index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from apsw import Connection as Database

PLACE_BITS = 24
MAX_SEQ = (1 << PLACE_BITS) - 1
"""Most lines of a run, and thoughts of a session."""


class Tx:
    """One job's hold on the transaction it runs in.

    Attributes:
        forgot: Set by a job that deleted something whose bytes have to go as well.
    """

    __slots__ = ("_changes", "execute", "executemany", "forgot")

    def __init__(self, db: Database) -> None:
        self.execute = db.execute
        self.executemany = db.executemany
        self.forgot = False
        self._changes = db.changes

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Run a statement; return how many rows it added, changed or removed."""
        self.execute(statement, values)
        return self._changes()


def place(key: int, seq: int) -> int:
    """Return where line or thought `seq` of the owner `key` lies."""
    return key << PLACE_BITS | seq


def seq_of(place: int) -> int:
    """Return the `seq` within a place."""
    return place & MAX_SEQ


BEGIN_WRITE = "BEGIN IMMEDIATE"
BEGIN_READ = "BEGIN"
COMMIT = "COMMIT"
ROLLBACK = "ROLLBACK"
SAVEPOINT = "SAVEPOINT job"
RELEASE = "RELEASE job"
ROLLBACK_JOB = "ROLLBACK TO job"

MIGRATIONS = "SELECT name FROM migration ORDER BY name"
APPLIED = "INSERT INTO migration (name, applied_at_ms) VALUES (?, ?)"

SET_MARK = "UPDATE mark SET before = own, own = randomblob(16)"
"""Part of each commit; see `wal`."""

RUN_KEY = "SELECT key FROM run WHERE run_id = ?"
RUN_COLUMNS = (
    "run_id, session_id, strategy, model, problem, status, created_at_ms, updated_at_ms, reason, answer"
)
RUN = f"SELECT {RUN_COLUMNS} FROM run WHERE run_id = ?"
RUNS = f"""
SELECT {RUN_COLUMNS} FROM run
WHERE key < ? AND (? IS NULL OR status = ?)
ORDER BY key DESC LIMIT ?
"""
RUN_NAMES = "SELECT key, run_id FROM run WHERE key > ? ORDER BY key LIMIT ?"
COUNT_RUNS = "SELECT count(*) FROM run"
ADD_RUN = f"""
INSERT INTO run ({RUN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id) DO NOTHING
"""
SET_RUN = """
UPDATE run SET run_id = ?, session_id = ?, strategy = ?, model = ?, problem = ?, status = ?,
  created_at_ms = ?, updated_at_ms = ?, reason = ?, answer = ?
WHERE key = ?
"""
DROP_RUN = "DELETE FROM run WHERE key = ?"
ADD_LINE = "INSERT INTO line (place, body, digest) VALUES (?, ?, ?) ON CONFLICT (place) DO NOTHING"
LINES = "SELECT place, body, digest FROM line WHERE place BETWEEN ? AND ? ORDER BY place"
DROP_LINES = "DELETE FROM line WHERE place BETWEEN ? AND ?"

SESSION_COLUMNS = (
    "session_id, strategy, created_at_ms, used_at_ms, status, pinned, thoughts, purpose, run_id, head"
)
SESSION = f"SELECT key, {SESSION_COLUMNS} FROM session WHERE session_id = ?"
SESSION_USED = "SELECT used_steady_ms FROM session WHERE key = ?"
SESSION_NAMES = "SELECT key, session_id FROM session WHERE key > ? ORDER BY key LIMIT ?"
COUNT_SESSIONS = "SELECT count(*) FROM session"
SESSION_IDS = "SELECT session_id, run_id FROM session WHERE key = ?"
SESSIONS_OF_RUNS = f"""
SELECT key << {PLACE_BITS} | {MAX_SEQ}, NULL FROM session
WHERE key BETWEEN ? >> {PLACE_BITS} AND ? >> {PLACE_BITS} AND run_id IS NOT NULL ORDER BY key
"""
SESSIONS = f"""
SELECT {SESSION_COLUMNS} FROM session
WHERE (? IS NULL OR used_at_ms < ? OR (used_at_ms = ? AND key < ?)) AND (? IS NULL OR status = ?)
ORDER BY used_at_ms DESC, key DESC LIMIT ?
"""
ADD_SESSION = f"""
INSERT INTO session ({SESSION_COLUMNS}, used_steady_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (session_id) DO NOTHING
"""
SET_SESSION = """
UPDATE session SET session_id = ?, strategy = ?, created_at_ms = ?, used_at_ms = ?, status = ?, pinned = ?,
  thoughts = ?, purpose = ?, run_id = ?, head = ?,
  used_steady_ms = coalesce(?, used_steady_ms), due_steady_ms = NULL, due_after_ms = NULL
WHERE key = ?
"""
USE_SESSION = """
UPDATE session SET thoughts = ?, used_at_ms = ?, status = 'active', used_steady_ms = ?, due_steady_ms = NULL,
  due_after_ms = NULL
WHERE session_id = (SELECT session_id FROM run WHERE key = ?) AND run_id = ?
"""
DROP_SESSION = "DELETE FROM session WHERE key = ?"
# What follows takes, by name: `now`, the clock's time; `steady`, the store's own count; `limit`, after how long unused.
_BY_CLOCK = "used_at_ms < :now - :limit"
_BY_COUNT = "used_steady_ms < :steady - :limit"
ARCHIVE_SESSIONS = f"""
UPDATE session SET status = 'archived'
WHERE status = 'active' AND pinned = 0 AND ({_BY_CLOCK} OR {_BY_COUNT})
"""
LAPSED_SESSIONS = f"SELECT key FROM session WHERE status = 'active' AND pinned = 0 AND {_BY_COUNT}"
ARCHIVE_LAPSING_SESSIONS = f"""
UPDATE session SET status = 'archived', due_steady_ms = :steady, due_after_ms = :limit
WHERE status = 'active' AND pinned = 0 AND {_BY_CLOCK}
"""
NO_LONGER_DUE = """
UPDATE session SET due_steady_ms = NULL, due_after_ms = NULL
WHERE due_steady_ms IS NOT NULL AND NOT (status = 'archived' AND pinned = 0 AND used_at_ms < :now - due_after_ms)
"""
SESSIONS_TO_DELETE = f"""
SELECT key FROM session
WHERE status = 'archived' AND pinned = 0
  AND ({_BY_COUNT} OR used_steady_ms < :steady - due_after_ms OR due_steady_ms <= :steady - :second_look)
"""
NOW_DUE = f"""
UPDATE session SET due_steady_ms = :steady, due_after_ms = :limit
WHERE due_steady_ms IS NULL AND status = 'archived' AND pinned = 0 AND {_BY_CLOCK}
"""
STEADY = "SELECT boot, uptime_ms, steady_ms FROM steady"
KEEP_STEADY = "REPLACE INTO steady (key, boot, uptime_ms, steady_ms) VALUES (1, ?, ?, ?)"

THOUGHT_COLUMNS = "place, number, text, branch, body"
ADD_THOUGHT = """
INSERT INTO thought (place, number, text, branch, body) VALUES (?, ?, ?, ?, ?) ON CONFLICT (place) DO NOTHING
"""
THOUGHT = f"SELECT {THOUGHT_COLUMNS} FROM thought WHERE place = ?"
THOUGHT_NUMBER = "SELECT number FROM thought WHERE place = ?"
ODD_NUMBER = """
SELECT 1 FROM thought WHERE place >> 24 = ? AND number = ? AND number <> (place & 16777215) LIMIT 1
"""
LATEST_THOUGHTS = f"""
SELECT {THOUGHT_COLUMNS} FROM thought WHERE place BETWEEN ? AND ? ORDER BY place DESC LIMIT ?
"""
THOUGHTS = f"""
SELECT {THOUGHT_COLUMNS} FROM thought
WHERE place BETWEEN ? AND ? AND number BETWEEN ? AND ?
  AND (? IS NULL OR (? = '' AND branch IS NULL) OR branch = ?)
ORDER BY place LIMIT ?
"""
TEXTS = "SELECT place, text FROM thought WHERE place > ? AND place <= ? ORDER BY place"
DROP_THOUGHTS = "DELETE FROM thought WHERE place BETWEEN ? AND ?"
