"""Runs and sessions in memory: for tests, and for data that need not outlive the process.

The tables of the SQLite store, in a database that has no file, on the caller's own thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from ..errors import StoreError
from . import database, searchable, sql
from .row_store import Database, RowStore

T = TypeVar("T")

_COPYING = threading.Lock()
MEMORY = sql.SQLITE._replace(text_index=None, hint="", copies_texts=False)
"""Lists and searches read all there is: what would shorten them takes longer, at each thought, than they do."""
_UNINDEXED = """
DROP TABLE word;
DROP TABLE searchable;
CREATE VIEW searchable AS
  SELECT place, fold(text) AS folded FROM thought
  UNION ALL SELECT key << 24, fold(purpose) FROM session
  UNION ALL SELECT (1 << 62) + key, fold(concat_ws(char(31), problem, answer, detail)) FROM run;
DROP INDEX session_owner;
DROP INDEX session_active;
DROP INDEX session_in_journal;
DROP INDEX session_list;
"""


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

    async def read(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`."""
        return self._transact(work)

    async def write(self, work: Callable[[sql.Tx], T]) -> T:
        """See `Database`."""
        return self._transact(work)

    def _transact(self, work: Callable[[sql.Tx], T]) -> T:
        with self._lock:
            if self._closed:
                raise StoreError("the store memory is closed")
            db = self._db = self._db or _connect()
            with db:
                return work(sql.Tx(db, MEMORY))
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """See `Store`."""
        with self._lock:
            self._closed = True
            if self._db is not None:
                self._db.close()
                self._db = None


def _connect() -> sql.Database:
    """Return a copy of an empty store, which takes a tenth of the time of making its tables."""
    db = _open()
    with _COPYING, db.backup("main", _empty(), "main") as copy:
        copy.step()
    return db


@cache
def _empty() -> sql.Database:
    db = _open()
    database.migrate(db, "memory")
    db.execute(_UNINDEXED)
    return db


def _open() -> sql.Database:
    import apsw

    db = apsw.Connection(":memory:")
    db.create_scalar_function("fold", _fold, 1, deterministic=True)
    return db


def _fold(*texts: Any) -> str:
    return searchable.fold(texts[0])
