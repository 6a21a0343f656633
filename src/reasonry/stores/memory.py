"""Runs and sessions in memory: for tests, and for data that need not outlive the process.

The tables of the SQLite store, in a database that has no file, on the caller's own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from ..errors import StoreError
from . import database, sql
from .row_store import Database, RowStore

T = TypeVar("T")

MEMORY = sql.SQLITE._replace(has_own_steps=False, hint="", text_index=None)
"""Lists and searches read the rows: their indexes take longer, at each thought, than the lists and searches do."""


class MemoryStore(RowStore):
    """A store whose content is lost when the process ends."""

    def __init__(self) -> None:
        super().__init__(MemoryDatabase())


class MemoryDatabase(Database):
    """Transactions on a database that has no file; see `Database`."""

    name = "memory"
    durable = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._db: sql.Database | None = None
        self._closed = False

    async def write(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`; work that reads is done in the same way."""
        with self._lock:
            if self._closed:
                raise StoreError("the store memory is closed")
            db = self._db = self._db or _connect()
            with db:
                return work(sql.Tx(db, MEMORY))
        raise AssertionError("unreachable")

    read = write

    async def close(self) -> None:
        """See `Store`."""
        with self._lock:
            self._closed = True
            if self._db is not None:
                self._db.close()
                self._db = None


def _connect() -> sql.Database:
    import apsw

    db = apsw.Connection(":memory:")
    database.migrate(db, "memory", MEMORY)
    return db
