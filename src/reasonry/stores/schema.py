"""The tables of a store, and the list of steps that create them.

Steps are added at the end of the list and never changed. SQLite and PostgreSQL have the same tables in their dialects.
"""

import time
import zlib
from typing import Any, NamedTuple

from ..errors import StoreError
from . import sql
from .sql import SqlDialect

APPLICATION_ID = 0x5265736E
"""The application id of a store's SQLite file: "Resn"."""


class Migration(NamedTuple):
    """A step that creates or alters tables. `sqlite` and `postgres` are statements for one database only."""

    title: str
    statements: tuple[str, ...]
    sqlite: tuple[str, ...] = ()
    postgres: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The title with a checksum of the statements, so that a change of the step is noticed."""
        words = " ".join(self.statements + self.sqlite + self.postgres).split()
        return f"{self.title}_{zlib.crc32(' '.join(words).encode()):08x}"


MIGRATIONS: tuple[Migration, ...] = (
    Migration(
        "0001_runs_and_sessions",
        (
            """
            CREATE TABLE run (
              key {integer} PRIMARY KEY,
              run_id {name} NOT NULL UNIQUE,
              session_id {name} NOT NULL,
              strategy {name} NOT NULL,
              model {name} NOT NULL,
              problem TEXT NOT NULL,
              status {name} NOT NULL,
              created_at_ms {integer} NOT NULL,
              updated_at_ms {integer} NOT NULL,
              outcome {name},
              reason TEXT,
              detail TEXT NOT NULL,
              answer TEXT,
              owner {name} NOT NULL,
              unattended {integer} NOT NULL,
              paused {integer} NOT NULL,
              calls {integer} NOT NULL,
              samples {integer} NOT NULL,
              tokens {integer} NOT NULL,
              usd {real},
              last_line {integer} NOT NULL,
              last_digest {blob} NOT NULL,
              request {name},
              request_digest {blob},
              requested_at_ms {integer}
            ){table_end}
            """,
            "CREATE INDEX run_owner ON run (owner, key)",
            "CREATE UNIQUE INDEX run_request ON run (owner, request) WHERE request IS NOT NULL",
            "CREATE INDEX run_job ON run (owner, key) WHERE status = 'active' AND unattended = 1 AND paused = 0",
            "CREATE TABLE line (place {integer} PRIMARY KEY, body {blob} NOT NULL, digest {blob} NOT NULL){table_end}",
            """
            CREATE TABLE checkpoint (
              key {integer} PRIMARY KEY,
              line {integer} NOT NULL,
              digest {blob} NOT NULL,
              body {blob} NOT NULL
            ){table_end}
            """,
            # A lease that was given back keeps its number, and has no holder.
            """
            CREATE TABLE lease (
              key {integer} PRIMARY KEY,
              holder TEXT,
              number {integer} NOT NULL,
              until_ms {integer} NOT NULL,
              deaths {integer} NOT NULL,
              place {integer} NOT NULL
            ){table_end}
            """,
            """
            CREATE TABLE session (
              key {integer} PRIMARY KEY,
              session_id {name} NOT NULL UNIQUE,
              strategy {name} NOT NULL,
              created_at_ms {integer} NOT NULL,
              used_at_ms {integer} NOT NULL,
              status {name} NOT NULL,
              pinned {integer} NOT NULL,
              thoughts {integer} NOT NULL,
              purpose TEXT NOT NULL,
              run_id {name},
              head {blob} NOT NULL,
              owner {name} NOT NULL,
              last_thought {integer} NOT NULL,
              last_digest {blob} NOT NULL,
              ttl_ms {integer}
            ){table_end}
            """,
            "CREATE INDEX session_owner ON session (owner, key)",
            "CREATE INDEX session_active ON session (used_at_ms) WHERE pinned = 0 AND status = 'active'",
            """
            CREATE TABLE thought (
              place {integer} PRIMARY KEY,
              number {integer} NOT NULL,
              text TEXT NOT NULL,
              branch TEXT,
              body {blob} NOT NULL,
              digest {blob} NOT NULL
            ){table_end}
            """,
            # The number of a thought usually equals its seq. Only thoughts with another number need an index.
            """
            CREATE INDEX thought_odd_number ON thought ((place >> 24), number)
            WHERE number <> (place & 16777215)
            """,
            "CREATE TABLE searchable (place {integer} PRIMARY KEY, folded TEXT NOT NULL){table_end}",
        ),
        sqlite=(
            """
            CREATE INDEX run_list ON run (
              owner, status, outcome, reason, strategy, model, created_at_ms, usd, unattended, paused
            )
            """,
            "CREATE INDEX run_usage ON run (updated_at_ms, owner, calls, samples, tokens, usd, strategy, model)",
            "CREATE INDEX session_list ON session (used_at_ms, key, owner, status, strategy, (run_id IS NULL))",
            """
            CREATE VIRTUAL TABLE word USING fts5 (
              text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
            )
            """,
            # Each transaction that writes to `word` adds a segment, so short texts wait here until there are many.
            "CREATE TABLE unindexed (place INTEGER PRIMARY KEY) STRICT",
            *(
                f"CREATE TRIGGER text_{event} AFTER {event} ON searchable WHEN new.place NOT IN unindexed BEGIN "
                "INSERT INTO unindexed VALUES (new.place); END"
                for event in ("insert", "update")
            ),
            """
            CREATE TRIGGER text_index AFTER INSERT ON unindexed WHEN
              (SELECT count(*) FROM unindexed) >= 64 OR
              (SELECT length(folded) FROM searchable WHERE place = new.place) > 16384
            BEGIN
              REPLACE INTO word (rowid, text)
              SELECT place, folded FROM unindexed CROSS JOIN searchable USING (place);
              DELETE FROM unindexed;
            END
            """,
            """
            CREATE TRIGGER text_delete AFTER DELETE ON searchable BEGIN
              DELETE FROM unindexed WHERE place = old.place;
              DELETE FROM word WHERE rowid = old.place;
            END
            """,
        ),
        postgres=(
            "CREATE SEQUENCE run_key",
            "CREATE SEQUENCE session_key",
            "CREATE INDEX run_status ON run (status, key)",
            "CREATE INDEX run_outcome ON run (outcome, key)",
            "CREATE INDEX run_reason ON run (reason, key)",
            "CREATE INDEX run_strategy ON run (strategy, key)",
            "CREATE INDEX run_model ON run (model, key)",
            "CREATE INDEX run_unattended ON run (key) WHERE unattended <> 0",
            "CREATE INDEX run_paused ON run (key) WHERE paused <> 0",
            "CREATE INDEX run_created ON run (created_at_ms)",
            """
            CREATE INDEX run_usage ON run (updated_at_ms)
            INCLUDE (owner, calls, samples, tokens, usd, strategy, model)
            """,
            "CREATE INDEX session_used ON session (used_at_ms, key)",
            "CREATE INDEX session_owner_used ON session (owner, used_at_ms, key)",
            "CREATE INDEX session_status ON session (status, used_at_ms, key)",
            "CREATE INDEX session_strategy ON session (strategy, used_at_ms, key)",
            "CREATE INDEX session_guided ON session ((run_id IS NULL), used_at_ms, key)",
            """
            CREATE TABLE provider_limit (
              provider TEXT PRIMARY KEY, requests INTEGER NOT NULL, at_once INTEGER, set_at_ms BIGINT NOT NULL
            )
            """,
            """
            CREATE TABLE provider_call (
              id BIGSERIAL PRIMARY KEY, provider TEXT NOT NULL, sent_at_ms BIGINT NOT NULL, until_ms BIGINT NOT NULL
            )
            """,
            "CREATE INDEX provider_call_sent ON provider_call (provider, sent_at_ms)",
        ),
    ),
)


def pending(applied: list[str], store: str) -> tuple[Migration, ...]:
    """Return the steps that have not been applied to a store.

    Raises:
        StoreError: `store_newer`: the store has steps that this version does not know.
    """
    known = [step.name for step in MIGRATIONS]
    if applied != known[: len(applied)]:
        raise StoreError(
            f"the store {store} was written by another version of reasonry ({applied[-1][:60]}); use that version, "
            "or another store",
            code="store_newer",
            path=store,
        )
    return MIGRATIONS[len(applied) :]


def apply(db: Any, dialect: SqlDialect, steps: tuple[Migration, ...]) -> None:
    """Apply steps inside the caller's transaction."""
    for step in steps:
        for statement in (*step.statements, *getattr(step, dialect.own_steps, ())):
            db.execute(statement.format(**dialect._asdict()))
        db.execute(sql.APPLIED, (step.name, time.time_ns() // 1_000_000))
