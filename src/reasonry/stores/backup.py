"""Back up a store that is in use, and restore a backup, with SQLite's own backup function.

Each copy is first written to a temporary file and verified there. The temporary file is renamed once the copy is
complete and on the disk. A restore first moves the log of the old store into the old file, and then replaces the file.
"""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import NoReturn

from ..errors import ConflictError, StoreError, UsageError
from ..records import Backup, Finding, OnProgress
from . import sql
from .database import (
    Source,
    check_kind,
    connect,
    draft_of,
    faults_of,
    log_of,
    name_file,
    open_file,
    publish,
    read_fault,
    reserve_checksums,
    sync_folder,
    unusable_error,
)

Opener = Callable[[], "sql.Database"]
Verify = Callable[[Path, str], Awaitable[list[Finding]]]
"""Verifies a file and returns the findings. The second argument is the name that the findings show for the file."""

CHUNK_PAGES = 1024
"""How many pages (4 MB) are copied between two progress reports."""


async def back_up(
    source: Source, file: Path, force: bool, on_progress: OnProgress | None, verify: Verify
) -> Backup:
    """Copy a store to a file; see `Database.back_up`."""
    await asyncio.to_thread(_check_target, source.path, file, force)
    async with _copy_to_draft(source.path, source.reader, file, on_progress, verify) as (draft, findings):
        if not await asyncio.to_thread(publish, draft, file, replace=force):
            _refuse_existing(file)
    return _describe_backup(file, findings)


async def restore(path: Path, file: Path, on_progress: OnProgress | None, verify: Verify) -> Backup:
    """Replace a store with a backup; see `Database.restore`."""
    await asyncio.to_thread(_check_other, path, file)

    def open_source() -> "sql.Database":
        # If there is no log, nobody writes, so SQLite can read the file without creating other files beside it.
        return open_file(file, 1.0, "mode=ro" if log_of(file).exists() else "immutable=1")

    async with _copy_to_draft(file, open_source, path, on_progress, verify) as (draft, findings):
        await asyncio.to_thread(_take_place, draft, path)
    return _describe_backup(file, findings)


@contextlib.asynccontextmanager
async def _copy_to_draft(
    file: Path, open_file: Opener, to: Path, on_progress: OnProgress | None, verify: Verify
) -> AsyncGenerator[tuple[Path, list[Finding]]]:
    """Copy a store to a draft file. Yield the file's path and the findings. If there is damage, raise StoreError."""
    with draft_of(to) as draft:
        stop = threading.Event()
        try:
            await asyncio.to_thread(_copy, file, open_file, draft, to, on_progress, stop)
        finally:
            stop.set()
        try:
            findings = await verify(draft, str(file))
        except StoreError as error:
            message = error.message.replace(str(draft), str(file))
            raise StoreError(message, code=error.code, path=str(file)) from error
        if damaged := [finding.message for finding in findings if finding.state == "damaged"]:
            raise StoreError(
                f"{file} was not copied because it is damaged: {'; '.join(damaged)[:500]}; `reasonry store verify` "
                "lists all damage",
                code="store_corrupt",
                path=str(file),
            )
        yield draft, findings


def _check_target(path: Path, file: Path, force: bool) -> None:
    if not os.path.lexists(file):
        return
    _check_other(path, file)
    if not force:
        _refuse_existing(file)
    if log_of(file).exists():
        raise UsageError(
            f"{file} is a store that is in use, or was left with its log; give another file", path=str(file)
        )


def _refuse_existing(file: Path) -> NoReturn:
    raise ConflictError(f"{file} already exists; --force overwrites it", path=str(file))


def _check_other(path: Path, file: Path) -> None:
    """Check that `file` can be a store and is not the store at `path`."""
    try:
        found = file.lstat()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", path=str(file)) from error
    if path.exists() and path.samefile(file):
        raise UsageError(f"{file} is the store itself; give another file", path=str(file))
    check_kind(file, found)


def _copy(
    file: Path,
    open_file: Opener,
    draft: Path,
    to: Path,
    on_progress: OnProgress | None,
    stop: threading.Event,
) -> None:
    import apsw

    with (
        faults_of(file),
        contextlib.closing(open_file()) as db,
        contextlib.closing(connect(draft, 1.0)) as copy,
    ):
        # Pages in the log have no checksums. The copied pages get checksums if the first page reserves bytes for them.
        reserve_checksums(copy)
        copy.execute("CREATE TABLE replaced (by_the_copy)")
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        # This transaction makes the copy a snapshot of one moment. Later writes do not change the copy.
        db.execute("BEGIN")
        db.execute("SELECT 1 FROM sqlite_schema").fetchone()
        try:
            with copy.backup("main", db, "main") as backup:
                while not backup.done and not stop.is_set():
                    backup.step(CHUNK_PAGES)
                    if on_progress is not None:
                        on_progress(backup.page_count - backup.remaining, backup.page_count)
            name_file(copy)
        except apsw.FullError as error:
            raise read_fault(error, to) from error


def _describe_backup(file: Path, findings: list[Finding]) -> Backup:
    kinds = [finding.kind for finding in findings]
    return Backup(str(file), file.stat().st_size, kinds.count("run"), kinds.count("session"))


def _take_place(draft: Path, path: Path) -> None:
    """Replace the store at `path` with the file `draft`. No process may have the store open."""
    try:
        if is_there := path.exists():
            try:
                with faults_of(path), contextlib.closing(connect(path, 1.0)) as db:
                    # The log can be moved into the file and removed only if no other connection is open.
                    db.execute("PRAGMA journal_mode = DELETE")
                    db.execute("BEGIN EXCLUSIVE")
                    publish(draft, path, replace=True)
                return
            except StoreError as error:
                if error.code == "store_busy":
                    why = "it is in use; end every process that has it open, then try again"
                    message = f"{path} cannot be replaced: {why}"
                    raise StoreError(message, code="store_busy", path=str(path)) from None
                if error.code != "store_corrupt":
                    raise
        # A log that still exists belongs to a store that is gone or damaged.
        for end in ("-wal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        sync_folder(path.absolute().parent)
        if not publish(draft, path, replace=is_there):
            message = f"{path} was created again by another process; try again"
            raise StoreError(message, code="store_busy", path=str(path))
    except OSError as error:
        raise unusable_error(path, error.strerror or str(error)) from error
