"""Backups of a PostgreSQL store: SQLite stores with the same content, which either kind of store is restored from."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ...errors import StoreError
from ...records import Backup, Damaged, OnProgress, Whole, WholeKind
from .. import sql, whole_rows
from ..sqlite import SqliteStore
from ..steady import Uptime
from .connections import LONG_S, Connections
from .table_steps import TABLES

BATCH = 50
KINDS: tuple[WholeKind, ...] = ("run", "session")

LOCK = f"LOCK TABLE {', '.join(TABLES)} IN ACCESS EXCLUSIVE MODE NOWAIT"
HELD = "SELECT count(*) FROM lease WHERE holder IS NOT NULL AND until_ms > ?"


async def back_up(
    connections: Connections, file: Path, force: bool, on_progress: OnProgress | None
) -> Backup:
    """Copy a store to a file; see `Store`."""
    with tempfile.TemporaryDirectory(prefix="reasonry-") as folder:
        copy = SqliteStore(Path(folder) / "copy.db")
        try:
            await connections.read(lambda tx: asyncio.run(_copy_out(tx, copy, on_progress)), LONG_S)
            return await copy.back_up(file, force=force)
        finally:
            await copy.close()


async def _copy_out(tx: sql.Tx, copy: SqliteStore, on_progress: OnProgress | None) -> None:
    total = sum(tx.rows(count)[0][0] for count in (sql.COUNT_RUNS, sql.COUNT_SESSIONS))
    done = 0
    for kind in KINDS:
        for batch in _batches(tx, kind):
            await copy.write_whole(batch)
            done += len(batch)
            if on_progress is not None:
                on_progress(done, total)


def _batches(tx: sql.Tx, kind: WholeKind) -> Iterator[list[Whole]]:
    after = 0
    while page := whole_rows.read(tx, kind, after, BATCH):
        batch, after = list[Whole](), page[-1][0]
        for _, whole in page:
            if isinstance(whole, Damaged):
                raise StoreError(f"no backup was made: {whole.message}", code="store_corrupt")
            batch.append(whole)
        yield batch


async def restore(
    name: str, connections: Connections, file: Path, up: Uptime, now_ms: int, on_progress: OnProgress | None
) -> Backup:
    """Replace all that is kept by what is in a file; see `Store`."""

    def work(tx: sql.Tx) -> None:
        if tx.rows(HELD, (now_ms,))[0][0]:
            raise StoreError(
                f"the store {name} is in use: its runs are being driven; end what drives them",
                code="store_busy",
            )
        tx.execute(LOCK)
        for table in TABLES:
            tx.execute(f"DELETE FROM {table}")
        asyncio.run(_copy_in(tx, copy, up))

    with tempfile.TemporaryDirectory(prefix="reasonry-") as folder:
        copy = SqliteStore(Path(folder) / "copy.db")
        try:
            backup = await copy.restore(file, on_progress=on_progress)
            await connections.write(work, LONG_S)
            return backup
        finally:
            await copy.close()


async def _copy_in(tx: sql.Tx, copy: SqliteStore, up: Uptime) -> None:
    for kind in KINDS:
        after = 0
        while page := await copy.read_whole(kind, after, BATCH):
            after = page[-1][0]
            for _, whole in page:
                if isinstance(whole, Damaged):
                    raise StoreError(f"nothing was restored: {whole.message}", code="store_corrupt")
                whole_rows.write(tx, whole, up)
