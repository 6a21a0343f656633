"""The SQL statements of a store, in the common subset of SQLite and PostgreSQL, and the transaction that runs them.

In each statement, the parameters `$1`, `$2`, … first occur in this order, so that both databases accept a sequence of
values. The fields of `SqlDialect` are the differences between the databases.

The `place` of a line or thought is the integer key of its run or session times 2^24, plus its `seq`. A line thus needs
few bytes besides its body, the lines of a run are adjacent, and an append touches one page and no index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import StoreError, UsageError
from ..records import RunRow, SessionRow, WholeKind

if TYPE_CHECKING:
    from apsw import Connection as Database  # noqa: F401  # pyright: ignore[reportUnusedImport]

PLACE_BITS = 24
MAX_SEQ = (1 << PLACE_BITS) - 1
"""The most lines of a run, and the most thoughts of a session."""

MAX_INT = (1 << 63) - 1
"""The largest integer that both databases can store."""

INDEXED_CHARS = 3
"""The length of the shortest text that the text index can find, in characters."""

RUNS = 1 << 62
"""The place of a run's searchable text is `RUNS` plus the run's key. The purpose of a session has the seq 0."""


class TextIndex(NamedTuple):
    """The SQL that searches texts for a string, called the part, with a trigram index."""

    tables: str
    """The tables to read, which include `searchable t`."""
    test: str
    """The condition for texts from place $2 to place $3 that contain the part $4. $1 is the result of `pattern_of`."""
    order: str
    """The columns that sort the texts by place."""
    pattern_of: Callable[[str], str]
    """Converts a part to a search pattern for the index."""
    waiting: str = ""
    """The condition for texts that are not in the index yet. Empty if the index always contains all texts."""


class SqlDialect(NamedTuple):
    """The SQL dialect of a database."""

    integer: str
    real: str
    blob: str
    name: str
    """The column type of a text that is compared by its code points."""
    table_end: str
    lock: str
    """A suffix that locks the rows until the end of a write transaction."""
    lock_name: str
    """A statement that locks a name until the transaction ends. Empty if only one transaction can write at a time."""
    next_key: str
    """A query for the next key of a table. `{}` stands for the name of the table."""
    hint: str
    """A hint to use an index. `{}` stands for the name of the index. Empty if the database has no hints."""
    has: str
    """The condition that a text contains a part. The two `{}` stand for the text and the part."""
    text_index: TextIndex | None
    clock: str
    """A query for the time in milliseconds, by a clock that all processes of the store use for their leases."""
    own_steps: str
    """The name of the `Migration` field with statements for this dialect only. Empty if there are none."""


MAX_SEQUENCES = 12
"""About how many trigrams of a part are looked up in the index. The texts found are then checked for the whole part."""


def _sequences_of(part: str) -> str:
    """Return the FTS5 query for texts that contain some trigrams of `part`."""
    last = len(part) - INDEXED_CHARS
    starts = range(0, last + 1, max(1, last // MAX_SEQUENCES))
    sequences = {part[start : start + INDEXED_CHARS].replace('"', '""') for start in starts}
    return " AND ".join(f'"{sequence}"' for sequence in sequences)


SQLITE = SqlDialect(
    integer="INTEGER",
    real="REAL",
    blob="BLOB",
    name="TEXT",
    table_end=" STRICT",
    lock="",
    lock_name="",
    next_key="SELECT coalesce(max(key), 0) + 1 FROM {}",
    hint=" INDEXED BY {}",
    has="instr({}, {}) > 0",
    text_index=TextIndex(
        tables="word JOIN searchable t ON t.place = word.rowid",
        test="word MATCH $1 AND word.rowid BETWEEN $2 AND $3 AND instr(t.folded, $4) > 0 "
        "AND word.rowid NOT IN unindexed",
        order="word.rowid",
        pattern_of=_sequences_of,
        waiting="t.place IN unindexed",
    ),
    clock="SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    own_steps="sqlite",
)


class Tx:
    """A transaction.

    Attributes:
        connection: The database connection, with an `execute` like apsw's.
        owner: The owner whose runs and sessions are visible, or None for the operator, who sees all.
    """

    __slots__ = ("connection", "dialect", "execute", "owner")

    def __init__(self, db: Any, dialect: SqlDialect) -> None:
        self.connection = db
        self.execute = db.execute
        self.dialect = dialect
        self.owner: str | None = None

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a statement and return its rows."""
        return self.execute(statement, values).fetchall()

    def next_key(self, table: str) -> int:
        """Return the key for a new row of a table."""
        return self.rows(self.dialect.next_key.format(table))[0][0]

    def now_ms(self) -> int:
        """Return the time in milliseconds, by the clock that leases use."""
        return self.rows(self.dialect.clock)[0][0]

    def hides(self, owner: str) -> bool:
        """Whether the content of an owner is hidden in this transaction."""
        return self.owner is not None and self.owner != owner


def damage_error(kind: WholeKind, id: str, at: str, **place: int) -> StoreError:
    """Return the error for a damaged run or session."""
    message = (
        f"{kind} {id[:100]} is damaged at {at}; other {kind}s are not affected. Restore it from a backup"
    )
    details: dict[str, Any] = {f"{kind}_id": id, **place}
    return StoreError(message, code="store_corrupt", **details)


def place(key: int, seq: int) -> int:
    """Return the place of a line or thought: the `key` of its run or session, combined with its `seq`."""
    return key << PLACE_BITS | seq


def seq_of(place: int) -> int:
    """Return the `seq` that a place contains."""
    return place & MAX_SEQ


def new_place(key: int, seq: int) -> int:
    """Return the place for a new line or thought, or raise UsageError if `seq` is out of range."""
    if not 1 <= seq <= MAX_SEQ:
        raise UsageError(f"the seq of a line or thought goes from 1 to {MAX_SEQ}", max=MAX_SEQ)
    return place(key, seq)


def page_size(limit: int) -> int:
    """Return how many rows to read for a page: `limit`, but at most `MAX_INT`.

    Raises:
        UsageError: `limit` is not positive.
    """
    if limit < 1:
        raise UsageError("limit must be 1 or more", option="limit")
    return min(limit, MAX_INT)


def places(key: int) -> tuple[int, int]:
    """Return the first and the last place of the run or session `key`."""
    return place(key, 0), place(key, MAX_SEQ)


def values(count: int, first: int = 1) -> str:
    """Return SQL parameters for `count` values: `$1, $2, …`, starting from `first`."""
    return ", ".join(f"${number}" for number in range(first, first + count))


def ids_from(tx: Tx, prefix: str, limit: int = 10, *, table: str) -> list[str]:
    """Return the first ids that begin with `prefix`, sorted."""
    tests, values = tests_of(tx, {}, {}, 3)
    statement = IDS_FROM.format(id=f"{table}_id", table=table, tests=tests, limit=page_size(limit))
    return [name for (name,) in tx.execute(statement, (prefix, prefix + "\U0010ffff", *values))]


def tests_of(
    tx: Tx, filters: Mapping[str, str], which: Mapping[str, Any], first: int
) -> tuple[str, list[Any]]:
    """Return the SQL conditions for the filters that are set, and the values of their parameters.

    The parameters are numbered from `first`. The conditions also exclude the content of other owners.
    """
    wanted = [(test, which[name]) for name, test in filters.items() if which.get(name) is not None]
    wanted += [] if tx.owner is None else [(OWNER_FILTER["owner"], tx.owner)]
    tests = [f"AND {test.format(f'${number}')} " for number, (test, _) in enumerate(wanted, first)]
    return "".join(tests), column_values(value for _, value in wanted)


def column_values(values: Iterable[Any]) -> list[Any]:
    """Convert values for the databases, which store booleans as integers."""
    return [int(value) if isinstance(value, bool) else value for value in values]


def _equal(*columns: str) -> dict[str, str]:
    return {column: f"{column} = {{}}" for column in columns}


OWNER_FILTER = _equal("owner")

MIGRATIONS = "SELECT name FROM migration"
APPLIED = "INSERT INTO migration (name, applied_at_ms) VALUES ($1, $2)"

# Runs: the columns of `RunRow`, then the end of the journal.
RUN_ROW = ", ".join(RunRow.__struct_fields__)
RUN = f"SELECT {RUN_ROW} FROM run WHERE run_id = $1"
RUN_END = "SELECT key, run_id, owner, session_id, last_line, last_digest FROM run WHERE run_id = $1"
RUN_LIST = f"""
SELECT {RUN_ROW} FROM run WHERE key IN (
  SELECT key FROM run{{hint}} WHERE key < $1 {{tests}} ORDER BY key DESC LIMIT {{limit}}
) ORDER BY key DESC
"""
RUN_FILTERS = {
    **_equal("status", "outcome", "reason", "strategy", "model", "unattended", "paused"),
    "since_ms": "created_at_ms >= {}",
    "until_ms": "created_at_ms < {}",
    "min_usd": "usd >= {}",
}
RUN_OF_SESSION = "SELECT run.key FROM session JOIN run ON run.run_id = session.run_id WHERE session.key = $1"
ADD_RUN = f"INSERT INTO run (key, {RUN_ROW}, last_line, last_digest) VALUES ({values(22)})"
_RUN_CONSTANTS = ("run_id", "session_id", "strategy", "problem", "created_at_ms", "owner")
RUN_CHANGES = tuple(name for name in RunRow.__struct_fields__ if name not in _RUN_CONSTANTS)
"""The columns that an update sets. Setting the other columns, which never change, would rewrite their indexes."""
SET_RUN = f"""
UPDATE run SET ({", ".join(RUN_CHANGES)}, last_line, last_digest) = ({values(len(RUN_CHANGES) + 2)})
WHERE key = ${len(RUN_CHANGES) + 3}
"""
SET_TAIL = "UPDATE run SET last_line = $1, last_digest = $2 WHERE key = $3"
DROP_RUN = "DELETE FROM run WHERE key = $1"
IDS_FROM = "SELECT {id} FROM {table} WHERE {id} >= $1 AND {id} < $2 {tests} ORDER BY {id} LIMIT {limit}"
USAGE = """
SELECT {group}, count(*), CAST(sum(calls) AS BIGINT), CAST(sum(samples) AS BIGINT), CAST(sum(tokens) AS BIGINT),
  coalesce(sum(usd), 0.0)
FROM run WHERE updated_at_ms >= $1 {tests} GROUP BY 1 ORDER BY 1
"""
USAGE_GROUPS = {
    None: "''",
    "strategy": "strategy",
    "model": "model",
    "outcome": "coalesce(outcome, status)",
}
_IF_NEW = "ON CONFLICT (place) DO NOTHING RETURNING place"
ADD_LINE = f"INSERT INTO line (place, body, digest) VALUES ($1, $2, $3) {_IF_NEW}"
LINES = "SELECT place, body, digest FROM line WHERE place BETWEEN $1 AND $2 ORDER BY place"
DROP_LINES = "DELETE FROM line WHERE place BETWEEN $1 AND $2"
SET_CHECKPOINT = """
INSERT INTO checkpoint (key, line, digest, body) VALUES ($1, $2, $3, $4)
ON CONFLICT (key) DO UPDATE SET line = excluded.line, digest = excluded.digest, body = excluded.body
"""
CHECKPOINT = "SELECT line, digest, body FROM checkpoint WHERE key = $1"
DROP_CHECKPOINT = "DELETE FROM checkpoint WHERE key = $1"
REQUEST = "SELECT request_digest, run_id, requested_at_ms FROM run WHERE owner = $1 AND request = $2"
REQUEST_OF_RUN = """
SELECT request, request_digest, requested_at_ms FROM run WHERE key = $1 AND request IS NOT NULL
"""
SET_REQUEST = "UPDATE run SET request = $1, request_digest = $2, requested_at_ms = $3 WHERE key = $4"
FORGET_REQUEST = "UPDATE run SET request = NULL WHERE owner = $1 AND request = $2 AND requested_at_ms < $3"

# Sessions: the columns of `SessionRow`, then the end of the thoughts.
_SESSION_REST = ", ".join(SessionRow.__struct_fields__[1:-1])
SESSION_COLUMNS = f"key, session_id, {_SESSION_REST}, owner, last_thought, last_digest"
SESSION = f"SELECT {SESSION_COLUMNS} FROM session WHERE session_id = $1"
SESSION_LIST = f"""
SELECT {SESSION_COLUMNS} FROM session WHERE key IN (
  SELECT key FROM session{{hint}} WHERE (used_at_ms, key) < ($1, $2) {{tests}}
  ORDER BY used_at_ms DESC, key DESC LIMIT {{limit}}
) ORDER BY used_at_ms DESC, key DESC
"""
SESSION_FILTERS = {
    **_equal("status", "strategy"),
    "since_ms": "used_at_ms >= {}",
    "until_ms": "used_at_ms < {}",
}
GUIDED = {True: "AND run_id IS NULL", False: "AND run_id IS NOT NULL", None: ""}
ADD_SESSION = f"INSERT INTO session ({SESSION_COLUMNS}) VALUES ({values(15)})"
SET_SESSION = (
    f"UPDATE session SET ({_SESSION_REST}, last_thought, last_digest) = ({values(12)}) WHERE key = $13"
)
NAME_SESSION = "UPDATE session SET session_id = $1 WHERE key = $2"
DROP_SESSION = "DELETE FROM session WHERE key = $1"
_IF_EXPIRED = "WHERE pinned = 0 AND status = 'active' AND used_at_ms < $1 - COALESCE(ttl_ms, $2)"
ARCHIVE_OLD = f"UPDATE session SET status = 'archived' {_IF_EXPIRED}"
EXPIRED_SESSIONS = f"SELECT key FROM session {_IF_EXPIRED}"
OLD_SESSIONS = "SELECT key FROM session WHERE pinned = 0 AND status = 'archived' AND used_at_ms < $1"
THOUGHT_COLUMNS = "place, number, text, branch, body, digest"
ADD_THOUGHT = f"INSERT INTO thought ({THOUGHT_COLUMNS}) VALUES ({values(6)}) {_IF_NEW}"
ODD_NUMBER = (
    "SELECT place FROM thought WHERE place >> 24 = $1 AND number = $2 AND number <> (place & 16777215)"
)
LATEST_THOUGHTS = f"""
SELECT {THOUGHT_COLUMNS} FROM thought WHERE place BETWEEN $1 AND $2 ORDER BY place DESC LIMIT $3
"""
THOUGHTS = f"SELECT {THOUGHT_COLUMNS} FROM thought WHERE place > $1 AND place <= $2 ORDER BY place LIMIT $3"
SAME_TEXT = "SELECT number FROM thought WHERE place BETWEEN $1 AND $2 AND text = $3 ORDER BY place LIMIT 1"
DROP_THOUGHTS = "DELETE FROM thought WHERE place BETWEEN $1 AND $2"

# Whole runs and sessions.
NEXT_KEY = "SELECT key, {kind}_id FROM {kind} WHERE key > $1 {tests} ORDER BY key LIMIT 1"
COUNT = "SELECT count(*) FROM {kind}"
TALLY = """
SELECT owner, status, count(*), CAST(sum(last_{part}) AS BIGINT) FROM {kind} GROUP BY 1, 2 ORDER BY 1, 2
"""
STRAY = """
SELECT 1 FROM {part} WHERE NOT EXISTS (SELECT 1 FROM {kind} WHERE key = place >> 24) LIMIT 1
"""
"""Finds a line or thought whose run or session does not exist."""


# Texts with folded case.
PUT_TEXT = """
INSERT INTO searchable AS t (place, folded) VALUES ($1, $2)
ON CONFLICT (place) DO UPDATE SET folded = excluded.folded WHERE t.folded <> excluded.folded
"""
TEXTS_WITH = "SELECT t.place FROM {tables} WHERE {test} ORDER BY {order} LIMIT {limit}"
FOUND = """
SELECT thought.place, session_id, number, thought.text, branch, body FROM {tables} CROSS JOIN thought
WHERE {test} AND session.key = t.place >> 24 AND thought.place = t.place {tests}
ORDER BY {order} LIMIT {limit}
"""
DROP_TEXTS = "DELETE FROM searchable WHERE place BETWEEN $1 AND $2"
