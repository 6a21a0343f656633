"""Migrations of a store's tables: an ordered list of steps, and a table of those that were applied.

Steps are added at the end and never changed. `user_version` repeats their count in the file's header, where
it can be read without opening the file as a database.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import StoreError
from . import sql, text_index
from .first_checksums import add_checksums

APPLICATION_ID = 0x5265736E
"""The application id of a store's SQLite file: "Resn"."""


class Migration(NamedTuple):
    """One step: its statements and then `then`, which works row by row, run in one transaction."""

    name: str
    statements: tuple[str, ...]
    then: Callable[[sql.Tx], None] | None = None


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "0001_runs_and_sessions",
        (
            """
            CREATE TABLE migration (name TEXT PRIMARY KEY, applied_at_ms INTEGER NOT NULL)
            STRICT, WITHOUT ROWID
            """,
            """
            CREATE TABLE run (
              key INTEGER PRIMARY KEY,
              run_id TEXT NOT NULL UNIQUE,
              session_id TEXT NOT NULL,
              strategy TEXT NOT NULL,
              model TEXT NOT NULL,
              status TEXT NOT NULL,
              created_at_ms INTEGER NOT NULL,
              updated_at_ms INTEGER NOT NULL,
              reason TEXT,
              answer TEXT,
              problem TEXT NOT NULL
            ) STRICT
            """,
            "CREATE TABLE line (place INTEGER PRIMARY KEY, body BLOB NOT NULL, digest BLOB NOT NULL) STRICT",
            """
            CREATE TABLE session (
              key INTEGER PRIMARY KEY,
              session_id TEXT NOT NULL UNIQUE,
              strategy TEXT NOT NULL,
              created_at_ms INTEGER NOT NULL,
              used_at_ms INTEGER NOT NULL,
              status TEXT NOT NULL,
              pinned INTEGER NOT NULL,
              thoughts INTEGER NOT NULL,
              purpose TEXT NOT NULL,
              run_id TEXT,
              head BLOB NOT NULL
            ) STRICT
            """,
            """
            CREATE TABLE thought (
              place INTEGER PRIMARY KEY,
              number INTEGER NOT NULL,
              text TEXT NOT NULL,
              branch TEXT,
              body BLOB NOT NULL
            ) STRICT
            """,
            # Mostly thought 7 is the seventh call; only the others need an index.
            """
            CREATE INDEX thought_odd_number ON thought (place >> 24, number)
            WHERE number <> (place & 16777215)
            """,
        ),
    ),
    Migration(
        "0002_mark",
        (
            """
            CREATE TABLE mark (
              key INTEGER PRIMARY KEY CHECK (key = 1),
              before BLOB NOT NULL,
              own BLOB NOT NULL
            ) STRICT
            """,
            "INSERT INTO mark VALUES (1, randomblob(16), randomblob(16))",
        ),
    ),
    Migration(
        "0003_steady",
        (
            """
            CREATE TABLE steady (
              key INTEGER PRIMARY KEY CHECK (key = 1),
              boot TEXT NOT NULL,
              uptime_ms INTEGER NOT NULL,
              steady_ms INTEGER NOT NULL
            ) STRICT
            """,
            # When it was last used; when a look first found it due for deletion, and after how long unused.
            "ALTER TABLE session ADD COLUMN used_steady_ms INTEGER",
            "ALTER TABLE session ADD COLUMN due_steady_ms INTEGER",
            "ALTER TABLE session ADD COLUMN due_after_ms INTEGER",
        ),
    ),
    Migration(
        "0004_checksums",
        (
            "ALTER TABLE run ADD COLUMN last_line INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE run ADD COLUMN last_digest BLOB NOT NULL DEFAULT x''",
            "ALTER TABLE run ADD COLUMN checksum BLOB NOT NULL DEFAULT x''",
            "ALTER TABLE session ADD COLUMN last_thought INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE session ADD COLUMN last_digest BLOB",
            "ALTER TABLE session ADD COLUMN checksum BLOB NOT NULL DEFAULT x''",
            "ALTER TABLE thought ADD COLUMN digest BLOB",
            "ALTER TABLE steady ADD COLUMN checksum BLOB NOT NULL DEFAULT x''",
        ),
        add_checksums,
    ),
    Migration(
        "0005_checkpoints",
        (
            """
            CREATE TABLE checkpoint (
              key INTEGER PRIMARY KEY,
              line INTEGER NOT NULL,
              digest BLOB NOT NULL,
              body BLOB NOT NULL,
              checksum BLOB NOT NULL
            ) STRICT
            """,
        ),
    ),
    Migration(
        "0006_owners",
        (
            # Checksums leave these out where they have their default, so no row needs a new one.
            "ALTER TABLE run ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
            "ALTER TABLE run ADD COLUMN unattended INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE run ADD COLUMN paused INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE run ADD COLUMN calls INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE run ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0",
            "ALTER TABLE run ADD COLUMN usd REAL",
            "ALTER TABLE session ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
            """
            CREATE TABLE request_key (
              owner TEXT NOT NULL,
              key TEXT NOT NULL,
              digest BLOB NOT NULL,
              run INTEGER NOT NULL,
              at_ms INTEGER NOT NULL,
              checksum BLOB NOT NULL,
              PRIMARY KEY (owner, key)
            ) STRICT, WITHOUT ROWID
            """,
            "CREATE INDEX request_key_run ON request_key (run)",
            "CREATE INDEX request_key_at ON request_key (at_ms)",
        ),
    ),
    Migration(
        "0007_lists_and_texts",
        (
            "CREATE INDEX run_list ON run (owner, status, strategy, model, created_at_ms, unattended, paused)",
            "CREATE INDEX run_usage ON run (updated_at_ms, owner, calls, tokens, usd, strategy, model)",
            "CREATE INDEX session_list ON session (used_at_ms, key, owner, status, strategy, (run_id IS NULL))",
            """
            CREATE VIRTUAL TABLE word USING fts5 (
              text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
            )
            """,
            "CREATE VIRTUAL TABLE word_sequence USING fts5vocab (word, row)",
            # What is written and not in the index yet: positions from the first to the last; see `text_index`.
            "CREATE TABLE unindexed (n INTEGER PRIMARY KEY, first INTEGER NOT NULL, last INTEGER NOT NULL) STRICT",
            # Sessions of runs some of whose thoughts are in the journal alone.
            "CREATE TABLE in_journal (session INTEGER PRIMARY KEY) STRICT",
            """
            INSERT INTO unindexed (first, last) SELECT (key << 24) + 1, (key << 24) + last_thought FROM session
            WHERE run_id IS NULL AND last_thought > 0
            """,
            """
            INSERT INTO unindexed (first, last) SELECT key << 24, key << 24 FROM session
            WHERE run_id IS NOT NULL AND key < (1 << 38)
            """,
            """
            INSERT INTO unindexed (first, last) SELECT (1 << 62) + min(key), (1 << 62) + max(key) FROM run
            HAVING count(*) > 0
            """,
            "INSERT INTO in_journal SELECT key FROM session WHERE run_id IS NOT NULL",
        ),
    ),
    Migration(
        "0008_leases",
        (
            # One that was given back keeps its number, and has no holder.
            """
            CREATE TABLE lease (
              key INTEGER PRIMARY KEY, holder TEXT, number INTEGER NOT NULL, until_ms INTEGER NOT NULL
            ) STRICT
            """,
        ),
    ),
    Migration(
        "0009_owners_of_lists",
        (
            "CREATE INDEX run_key ON run (key)",
            "CREATE INDEX run_owner ON run (owner)",
            "CREATE INDEX session_owner ON session (owner)",
            # What a look for sessions that were not used for long goes by.
            """
            CREATE INDEX session_in_use ON session (used_at_ms, used_steady_ms)
            WHERE pinned = 0 AND status = 'active'
            """,
            """
            CREATE INDEX session_kept ON session (used_at_ms, used_steady_ms, due_steady_ms, due_after_ms)
            WHERE pinned = 0 AND status = 'archived'
            """,
        ),
    ),
    Migration(
        "0010_purposes",
        (
            """
            INSERT INTO unindexed (first, last) SELECT key << 24, key << 24 FROM session
            WHERE run_id IS NULL AND key < (1 << 38)
            """,
        ),
    ),
    Migration(
        "0011_shared",
        ("CREATE TABLE shared (name TEXT PRIMARY KEY, body BLOB NOT NULL) STRICT, WITHOUT ROWID",),
    ),
)


def pending(db: sql.Database, path: Path) -> list[Migration]:
    """Return the steps that have not been applied to a store.

    Raises:
        StoreError: `store_newer`: steps were applied that this version does not know; `store_corrupt`: its list of
            steps is damaged.
    """
    names, version = _applied_steps(db)
    if version > len(MIGRATIONS):
        raise newer_version_error(path, f"schema {version}")
    if names != [step.name for step in MIGRATIONS[:version]]:
        raise StoreError(
            f"the list of migrations of the store {path} is damaged; restore it from a backup",
            code="store_corrupt",
            path=str(path),
        )
    return list(MIGRATIONS[version:])


def _applied_steps(db: sql.Database) -> tuple[list[Any], int]:
    """Return the names of the steps applied to a store, and their count according to its header."""
    alone = not db.in_transaction
    if alone:
        # Another process may be taking a step.
        db.execute(sql.BEGIN_READ)
    try:
        table = db.execute(sql.HAS_MIGRATIONS).fetchone()
        names = [name for (name,) in db.execute(sql.MIGRATIONS)] if table else []
        return names, db.pragma("user_version")
    finally:
        if alone:
            db.execute(sql.ROLLBACK)


def migrate(db: sql.Database, path: Path) -> None:
    """Apply all pending steps, or none."""
    if not pending(db, path):
        return
    db.execute(sql.BEGIN_WRITE)
    try:
        # Another process may have been quicker.
        for step in pending(db, path):
            for statement in step.statements:
                db.execute(statement)
            if step.then is not None:
                step.then(sql.Tx(db, text_index, set()))
            db.execute(sql.APPLIED, (step.name, time.time_ns() // 1_000_000))
        db.execute(sql.SET_MARK)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        db.execute(sql.COMMIT)
    except BaseException:
        if db.in_transaction:
            db.execute(sql.ROLLBACK)
        raise


def newer_version_error(path: Path, version: str) -> StoreError:
    """Return the error for a store that a later version of this package has written."""
    return StoreError(
        f"the store {path} was written by a newer version of reasonry ({version}); upgrade reasonry, "
        "or use another store",
        code="store_newer",
        path=str(path),
    )
