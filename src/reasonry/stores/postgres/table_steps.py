"""The tables of a PostgreSQL store: an ordered list of steps, and a table of those that were applied.

Steps are added at the end and never changed. Columns have the names, the order and the meaning of those of the SQLite
store, so that a row has the same checksum in both.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from ...errors import StoreError

LOCK = 0x5265736E
"""The number of the lock under which one process at a time takes the steps."""


class TableStep(NamedTuple):
    """One step, and its statements."""

    name: str
    statements: tuple[str, ...]


STEPS: tuple[TableStep, ...] = (
    TableStep(
        "0001_runs_and_sessions",
        (
            "CREATE SEQUENCE run_key",
            "CREATE SEQUENCE session_key",
            """
            CREATE TABLE run (
              key BIGINT PRIMARY KEY,
              run_id TEXT COLLATE "C" NOT NULL UNIQUE,
              session_id TEXT COLLATE "C" NOT NULL,
              strategy TEXT COLLATE "C" NOT NULL,
              model TEXT COLLATE "C" NOT NULL,
              problem TEXT NOT NULL,
              status TEXT COLLATE "C" NOT NULL,
              created_at_ms BIGINT NOT NULL,
              updated_at_ms BIGINT NOT NULL,
              reason TEXT,
              answer TEXT,
              last_line BIGINT NOT NULL,
              last_digest BYTEA NOT NULL,
              owner TEXT COLLATE "C" NOT NULL,
              unattended BIGINT NOT NULL,
              paused BIGINT NOT NULL,
              calls BIGINT NOT NULL,
              tokens BIGINT NOT NULL,
              usd DOUBLE PRECISION,
              checksum BYTEA NOT NULL
            )
            """,
            "CREATE INDEX run_owner ON run (owner, key)",
            "CREATE INDEX run_status ON run (status, key)",
            "CREATE INDEX run_strategy ON run (strategy, key)",
            "CREATE INDEX run_model ON run (model, key)",
            "CREATE INDEX run_unattended ON run (key) WHERE unattended <> 0",
            "CREATE INDEX run_paused ON run (key) WHERE paused <> 0",
            "CREATE INDEX run_created ON run (created_at_ms)",
            "CREATE INDEX run_usage ON run (updated_at_ms) INCLUDE (owner, calls, tokens, usd, strategy, model)",
            "CREATE TABLE line (place BIGINT PRIMARY KEY, body BYTEA NOT NULL, digest BYTEA NOT NULL)",
            """
            CREATE TABLE checkpoint (
              key BIGINT PRIMARY KEY,
              line BIGINT NOT NULL,
              digest BYTEA NOT NULL,
              body BYTEA NOT NULL,
              checksum BYTEA NOT NULL
            )
            """,
            """
            CREATE TABLE lease (
              key BIGINT PRIMARY KEY,
              holder TEXT,
              number BIGINT NOT NULL,
              until_ms BIGINT NOT NULL
            )
            """,
            """
            CREATE TABLE request_key (
              owner TEXT COLLATE "C" NOT NULL,
              key TEXT COLLATE "C" NOT NULL,
              digest BYTEA NOT NULL,
              run BIGINT NOT NULL,
              at_ms BIGINT NOT NULL,
              checksum BYTEA NOT NULL,
              PRIMARY KEY (owner, key)
            )
            """,
            "CREATE INDEX request_key_run ON request_key (run)",
            "CREATE INDEX request_key_at ON request_key (at_ms)",
            """
            CREATE TABLE session (
              key BIGINT PRIMARY KEY,
              session_id TEXT COLLATE "C" NOT NULL UNIQUE,
              strategy TEXT COLLATE "C" NOT NULL,
              created_at_ms BIGINT NOT NULL,
              used_at_ms BIGINT NOT NULL,
              status TEXT COLLATE "C" NOT NULL,
              pinned BIGINT NOT NULL,
              thoughts BIGINT NOT NULL,
              purpose TEXT NOT NULL,
              run_id TEXT COLLATE "C",
              head BYTEA NOT NULL,
              used_steady_ms BIGINT,
              due_steady_ms BIGINT,
              due_after_ms BIGINT,
              last_thought BIGINT NOT NULL,
              last_digest BYTEA,
              owner TEXT COLLATE "C" NOT NULL,
              checksum BYTEA NOT NULL
            )
            """,
            "CREATE INDEX session_used ON session (used_at_ms, key)",
            "CREATE INDEX session_owner ON session (owner, used_at_ms, key)",
            "CREATE INDEX session_status ON session (status, used_at_ms, key)",
            "CREATE INDEX session_strategy ON session (strategy, used_at_ms, key)",
            "CREATE INDEX session_guided ON session ((run_id IS NULL), used_at_ms, key)",
            """
            CREATE TABLE thought (
              place BIGINT PRIMARY KEY,
              number BIGINT NOT NULL,
              text TEXT NOT NULL,
              branch TEXT,
              body BYTEA NOT NULL,
              digest BYTEA
            )
            """,
            """
            CREATE INDEX thought_odd_number ON thought ((place >> 24), number)
            WHERE number <> (place & 16777215)
            """,
            "CREATE TABLE in_journal (session BIGINT PRIMARY KEY)",
            """
            CREATE TABLE steady (
              key BIGINT PRIMARY KEY CHECK (key = 1),
              boot TEXT NOT NULL,
              uptime_ms BIGINT NOT NULL,
              steady_ms BIGINT NOT NULL,
              checksum BYTEA NOT NULL
            )
            """,
            # The sequences of characters of a text; none: there are too many, and a search reads the text itself.
            "CREATE TABLE word (place BIGINT PRIMARY KEY, sequences TSVECTOR)",
            "CREATE INDEX word_sequences ON word USING GIN (sequences) WITH (gin_pending_list_limit = 256)",
            "CREATE INDEX word_without ON word (place) WHERE sequences IS NULL",
        ),
    ),
    TableStep(
        "0002_shared",
        (
            'CREATE TABLE shared (name TEXT COLLATE "C" PRIMARY KEY, body BYTEA NOT NULL) WITH (fillfactor = 50)',
        ),
    ),
)

TABLES = (
    "run", "line", "checkpoint", "lease", "request_key", "session", "thought", "in_journal", "steady", "word",
    "shared",
)  # fmt: skip


def migrate(db: Any, schema: str, name: str) -> None:
    """Apply all pending steps, or none.

    Args:
        db: A connection to the database, outside a transaction.
        name: What the store is called.

    Raises:
        StoreError: `store_newer`: steps were applied that this version does not know; `store_corrupt`: its list of
            steps is damaged.
    """
    if _pending(db, schema, name) == ():
        return
    db.execute("BEGIN")
    try:
        # Another process may have been quicker, or is at it.
        db.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (LOCK, schema))
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        db.execute(
            "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY, applied_at_ms BIGINT NOT NULL)"
        )
        for step in _pending(db, schema, name):
            for statement in step.statements:
                db.execute(statement)
            now = time.time_ns() // 1_000_000
            db.execute("INSERT INTO migration (name, applied_at_ms) VALUES (%s, %s)", (step.name, now))
        db.execute("COMMIT")
    except BaseException:
        if not db.closed:
            db.execute("ROLLBACK")
        raise


def _pending(db: Any, schema: str, name: str) -> tuple[TableStep, ...]:
    (there,) = db.execute("SELECT to_regclass(%s)", (f"{schema}.migration",)).fetchone()
    if there is None:
        return STEPS
    applied = [step for (step,) in db.execute('SELECT name FROM migration ORDER BY name COLLATE "C"')]
    known = [step.name for step in STEPS]
    if applied == known[: len(applied)]:
        return STEPS[len(applied) :]
    if applied[: len(known)] == known:
        raise StoreError(
            f"the store {name} was written by a newer version of reasonry ({applied[-1][:60]}); upgrade reasonry, "
            "or use another store",
            code="store_newer",
        )
    raise StoreError(
        f"the list of migrations of the store {name} is damaged; restore it from a backup",
        code="store_corrupt",
    )
