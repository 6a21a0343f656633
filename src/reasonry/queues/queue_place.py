"""Where the queue of a store is kept: a file of its own beside a SQLite store, a schema of its own in PostgreSQL."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..records import Store

if TYPE_CHECKING:
    import sqlalchemy

_BUSY_MS = 10_000
_CONNECTIONS = 8
_CONNECT_S = 3
_STATEMENT_MS = 5_000


class QueuePlace:
    """Where a queue is kept.

    Args:
        url: As the library under the queue takes it; it may have a password.
        schema: Of the tables, where they share the database with others.
        file: None: it is a schema of a PostgreSQL database.
    """

    def __init__(self, url: str, schema: str, file: Path | None = None) -> None:
        self.url, self.schema, self._file = url, schema, file

    def connect(self) -> sqlalchemy.Engine:
        """Return an engine over the place; a file is made where it does not exist."""
        if self._file is None:
            return _connect_postgres(self.url, self.schema)
        from ..stores.files import make_folder, touch

        make_folder(self._file.parent)
        # Others may make it at the same time.
        with contextlib.suppress(FileExistsError):
            touch(self._file)
        return _connect_sqlite(self._file)


def place_of(store: Store) -> QueuePlace | None:
    """Return where the queue of a store is kept; None: it has none, as others cannot reach the store."""
    from ..stores.sqlite import SqliteStore

    if isinstance(store, SqliteStore) and str(store.path) != ":memory:":
        file = store.path.with_name(store.path.name + ".queue")
        return QueuePlace(f"sqlite:///{file}", "", file)
    address = getattr(store, "address", None)
    return None if address is None else QueuePlace(address.url, f"{address.schema}_queue")


def _connect_sqlite(file: Path) -> sqlalchemy.Engine:
    import sqlalchemy
    from sqlalchemy import event

    engine = sqlalchemy.create_engine(
        sqlalchemy.URL.create("sqlite", database=str(file)),
        pool_size=_CONNECTIONS,
        max_overflow=0,
        pool_timeout=_BUSY_MS / 1000,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:  # pyright: ignore[reportUnusedFunction]
        connection.isolation_level = "IMMEDIATE"
        connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
        connection.execute("PRAGMA foreign_keys = ON")
        # The interpreter's SQLite may be older than 3.51.3, whose write-ahead log can be damaged by several processes.
        connection.execute("PRAGMA journal_mode = TRUNCATE")
        # What a power failure takes from the queue is found again in the store.
        connection.execute("PRAGMA synchronous = NORMAL")

    return engine


def _connect_postgres(url: str, schema: str) -> sqlalchemy.Engine:
    import psycopg
    import sqlalchemy

    def connect() -> psycopg.Connection[Any]:
        # What a process that is frozen in a transaction has locked, others would wait for as long as it is.
        options = (
            f"-c search_path={schema} -c statement_timeout={_STATEMENT_MS} "
            f"-c idle_in_transaction_session_timeout={_STATEMENT_MS}"
        )
        return psycopg.connect(
            url, options=options, connect_timeout=_CONNECT_S, application_name="reasonry-queue"
        )

    return sqlalchemy.create_engine(
        "postgresql+psycopg://",
        creator=connect,
        pool_size=_CONNECTIONS,
        max_overflow=0,
        pool_timeout=_BUSY_MS / 1000,
        pool_pre_ping=True,
    )
