"""The threads of a process that read from a store, side by side."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ..errors import StoreError
from . import sql
from .database import Source, is_fault
from .searchable import INDEX

T = TypeVar("T")
Read = Callable[[sql.Tx], T]

READERS = 4
"""Most reads at once."""


class Readers:
    """Connections that read, each used by one thread at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._idle: list[sql.Database] = []
        self._pool: ThreadPoolExecutor | None = None
        self._start = threading.Lock()
        self._closed = False

    async def do(self, work: Read[T]) -> T:
        """Run `work` in a transaction that sees one state of the store."""
        with self._start:
            if self._closed:
                raise StoreError(f"the store {self._source.path} is closed")
            if self._pool is None:
                self._pool = ThreadPoolExecutor(READERS, "reasonry-read")
            pool = self._pool
        return await asyncio.get_running_loop().run_in_executor(pool, self._read, work)

    async def close(self) -> None:
        """Finish what was begun, then close the connections."""
        with self._start:
            self._closed = True
        if self._pool is not None:
            await asyncio.to_thread(self._pool.shutdown)
        while self._idle:
            self._source.close(self._idle.pop())

    def _read(self, work: Read[T]) -> T:
        try:
            db = self._take()
            try:
                db.execute(sql.BEGIN_READ)
                value = work(sql.Tx(db, sql.SQLITE, INDEX))
            finally:
                self._give_back(db)
        except Exception as error:
            meant = self._source.read_fault(error)
            if meant is error:
                raise
            raise meant from error
        return value

    def _take(self) -> sql.Database:
        with contextlib.suppress(IndexError):
            db = self._idle.pop()
            try:
                self._source.check_in_place(db)
            except StoreError:
                self._source.close(db)
                raise
            return db
        return self._source.reader()

    def _give_back(self, db: sql.Database) -> None:
        try:
            if db.in_transaction:
                db.execute(sql.ROLLBACK)
            self._idle.append(db)
        except Exception as error:
            self._source.close(db)
            if not is_fault(error):
                raise
