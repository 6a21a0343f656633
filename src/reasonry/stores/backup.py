"""Copying a store to a file while it is in use, and putting such a copy in its place, by SQLite's own backup.

A copy is written and verified under a temporary name, and renamed to the requested one when it is whole and on the
disk. A restore first moves the log of the store into its file, so that file and log are replaced together.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TypeVar

from ..errors import ConflictError, StoreError, UsageError
from ..records import Backup, Finding, OnProgress
from . import sql, verification
from .database import Source, connect, find_faults, name_file, read_fault, reserve_checksums
from .files import (
    check_header,
    check_kind,
    check_log,
    draft_of,
    identity,
    in_use,
    log_of,
    publish,
    sync_folder,
    unusable_error,
)
from .readers import Readers

T = TypeVar("T")
Stop = threading.Event

CHUNK_PAGES = 1024
"""4 MB: how much is copied between two reports of progress."""


async def back_up(source: Source, file: Path, force: bool, on_progress: OnProgress | None) -> Backup:
    """Copy a store to a file; see `Store`."""
    await asyncio.to_thread(_check_target, source.path, file, force)
    with draft_of(file) as draft:
        await _in_thread(lambda stop: _copy_store(source, draft, file, on_progress, stop))
        findings = await _findings(draft, str(source.path))
        if damaged := _damage_messages(findings):
            raise StoreError(
                f"no backup was made because the store {source.path} is damaged: {damaged}; "
                "reasonry store verify lists all damage",
                code="store_corrupt",
                path=str(source.path),
            )
        if not await asyncio.to_thread(publish, draft, file, replace=force):
            raise _file_exists_error(file)
        return _describe_backup(file, findings)


async def restore(path: Path, file: Path, on_progress: OnProgress | None) -> Backup:
    """Put a backup in the place of a store; see `Store`."""
    await asyncio.to_thread(_check_backup, path, file)
    with draft_of(path) as draft:
        await _in_thread(lambda stop: _copy_file(file, draft, path, on_progress, stop))
        try:
            findings = await _findings(draft, str(file))
        except StoreError as error:
            message = error.message.replace(str(draft), str(file))
            raise StoreError(message, code=error.code, path=str(file)) from error
        if damaged := _damage_messages(findings):
            message = f"{file} was not restored because it is damaged: {damaged}"
            raise StoreError(message, code="store_corrupt", path=str(file))
        await asyncio.to_thread(_take_place, draft, path)
    return _describe_backup(file, findings)


def _check_target(path: Path, file: Path, force: bool) -> None:
    folder = file.absolute().parent
    if folder.exists() and not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{file} cannot be written: its folder is read-only", path=str(file))
    try:
        found = file.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}", path=str(file)) from error
    if path.exists() and path.samefile(file):
        raise UsageError(f"{file} is the store itself; give another file", path=str(file))
    if not force:
        raise _file_exists_error(file)
    check_kind(file, found.st_mode)
    with _alone(file, "it is a store that is in use"):
        if log_of(file).exists():
            raise UsageError(f"{file} is a store with a log beside it; give another file", path=str(file))


def _file_exists_error(file: Path) -> ConflictError:
    return ConflictError(f"{file} already exists; --force overwrites it", path=str(file))


def _check_backup(path: Path, file: Path) -> None:
    try:
        found = file.lstat()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", path=str(file)) from error
    if path.exists() and path.samefile(file):
        raise UsageError(f"{file} is the store itself; give the backup", path=str(file))
    check_kind(file, found.st_mode)
    if in_use[identity(found)]:
        raise UsageError(f"{file} is a store that this process has open; make a backup of it", path=str(file))
    try:
        check_header(file)
        check_log(file)
    except OSError as error:
        raise unusable_error(file, error.strerror or str(error)) from error


async def _in_thread(work: Callable[[Stop], T]) -> T:
    """Do work in a thread; it is told to stop when the caller no longer waits."""
    stop = Stop()
    try:
        return await asyncio.to_thread(work, stop)
    finally:
        stop.set()


def _copy_store(source: Source, draft: Path, to: Path, on_progress: OnProgress | None, stop: Stop) -> None:
    try:
        db = source.reader()
        try:
            _copy(db, draft, to, on_progress, stop)
        finally:
            source.close(db)
    except Exception as error:
        raise source.read_fault(error) from error


def _copy_file(file: Path, draft: Path, to: Path, on_progress: OnProgress | None, stop: Stop) -> None:
    # Where there is no log nobody writes, and nothing has to be written beside the file to read it.
    how = "mode=ro" if log_of(file).exists() else "immutable=1"
    try:
        with contextlib.closing(connect(file, 1.0, how)) as db:
            _copy(db, draft, to, on_progress, stop)
    except Exception as error:
        if isinstance(error, StoreError):
            raise
        raise read_fault(error, file) from error


def _copy(db: sql.Database, draft: Path, to: Path, on_progress: OnProgress | None, stop: Stop) -> None:
    import apsw

    with contextlib.closing(connect(draft, 1.0)) as copy:
        # Pages in the log have no checksums yet; they get theirs where the first page says that pages have them.
        reserve_checksums(copy)
        copy.execute("CREATE TABLE replaced (by_the_copy)")
        copy.execute("PRAGMA journal_mode = OFF")
        copy.execute("PRAGMA synchronous = OFF")
        # All is copied as it is in one moment, whoever writes meanwhile.
        db.execute(sql.BEGIN_READ)
        db.execute("SELECT 1 FROM sqlite_schema").fetchone()
        try:
            with copy.backup("main", db, "main") as backup:
                while not backup.done and not stop.is_set():
                    backup.step(CHUNK_PAGES)
                    if on_progress is not None:
                        on_progress(backup.page_count - backup.remaining, backup.page_count)
            name_file(copy)
        except apsw.FullError as error:
            message = (
                f"{to} cannot be written: the disk or the quota is full; free some space, then try again"
            )
            raise StoreError(message, code="store_full", path=str(to)) from error
        db.execute(sql.ROLLBACK)


async def _findings(draft: Path, name: str) -> list[Finding]:
    source = Source(draft)

    def settle() -> None:
        _empty_log(source)

    readers = Readers(source)
    try:
        await asyncio.to_thread(settle)
        return [finding async for finding in verification.verify(name, readers.do, find_faults)]
    except Exception as error:
        raise source.read_fault(error) from error
    finally:
        await readers.close()


def _empty_log(source: Source) -> None:
    db = source.writer(verify=False)
    try:
        if not source.empty_log(db):
            raise unusable_error(source.path, "another process has it open", "store_busy")
    finally:
        source.close(db)


def _damage_messages(findings: list[Finding]) -> str:
    return "; ".join(finding.message for finding in findings if finding.state == "damaged")[:500]


def _describe_backup(file: Path, findings: list[Finding]) -> Backup:
    kinds = [finding.kind for finding in findings]
    return Backup(str(file), file.stat().st_size, kinds.count("run"), kinds.count("session"))


@contextlib.contextmanager
def _alone(path: Path, why: str) -> Generator[None]:
    """Keep every database connection away from a file, as SQLite itself does."""
    import apsw

    flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0]
    try:
        file = apsw.VFSFile("", str(path.absolute()), flags)
    except (apsw.Error, UnicodeEncodeError) as error:
        raise unusable_error(path, "it cannot be opened") from error
    try:
        try:
            file.xLock(apsw.SQLITE_LOCK_SHARED)
            file.xLock(apsw.SQLITE_LOCK_EXCLUSIVE)
        except apsw.BusyError:
            message = f"{path} cannot be replaced: {why}"
            raise StoreError(message, code="store_busy", path=str(path)) from None
        yield
    finally:
        file.xClose()


def _take_place(draft: Path, path: Path) -> None:
    try:
        if not path.exists():
            if not publish(draft, path):
                message = f"{path} was created again by another process; try again"
                raise StoreError(message, code="store_busy", path=str(path))
            return
        with contextlib.suppress(StoreError):
            # The log of a store that cannot be opened is damaged with it.
            _empty_log(Source(path, busy_timeout_s=1.0))
        with _alone(path, "the store is in use; end every process that has it open, then try again"):
            for end in ("-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
            sync_folder(path.absolute().parent)
            publish(draft, path, replace=True)
    except OSError as error:
        raise unusable_error(path, error.strerror or str(error)) from error
