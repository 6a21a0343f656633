"""Where the queue of a store is kept: a file of its own beside a SQLite store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from ..records import Store

if TYPE_CHECKING:
    import sqlalchemy

SCHEMA = "reasonry_queue"
"""Of the tables, where the database is shared with other things."""

_BUSY_MS = 10_000
_CONNECTIONS = 8


class QueuePlace(Struct, frozen=True):
    """Where a queue is kept."""

    file: Path

    @property
    def url(self) -> str:
        """The address, as DBOS takes it."""
        return f"sqlite:///{self.file}"

    def connect(self) -> sqlalchemy.Engine:
        """Return an engine over the place, which is made where it does not exist."""
        from ..stores.files import make_folder, touch

        make_folder(self.file.parent)
        if not self.file.exists():
            touch(self.file)
        return _connect_sqlite(self.file)


def place_of(store: Store) -> QueuePlace | None:
    """Return where the queue of a store is kept; None: it has none, as others cannot reach the store."""
    from ..stores.sqlite import SqliteStore

    if isinstance(store, SqliteStore) and str(store.path) != ":memory:":
        return QueuePlace(store.path.with_name(store.path.name + ".queue"))
    return None


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
