"""The file of a store: checking an existing one, and creating a new one.

A store appears under its name whole or not at all. So a file there that is not a valid store was damaged or is
something else; it is refused and left unchanged.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import stat
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from ..errors import StoreError
from .schema import APPLICATION_ID

_HEADER_BYTES = 100
_NUMBER = slice(60, 64)
"""Where the header of a file has its `user_version`."""
_LOG_HEADER_BYTES, _FRAME_BYTES = 32, 24
_FIRST_PAGE = b"\x00\x00\x00\x01"
_MAGIC = b"SQLite format 3\x00"
_STALE_S = 60.0

Identity = tuple[int, int]
"""Identifies a file, whatever its name: device and inode."""


def identity(found: os.stat_result) -> Identity:
    """Return the identity of a file."""
    return found.st_dev, found.st_ino


def unusable_error(path: Path, why: str, code: str = "store_unavailable") -> StoreError:
    """Return the error for a path that cannot be used as a store."""
    return StoreError(f"{path} cannot be the store: {why}", code=code, path=str(path))


def inspect_file(path: Path) -> os.stat_result | None:
    """Check the store's file and return its status; None if there is no file.

    Raises:
        StoreError: There is a file, but not a store that this version can use.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        _check_no_orphaned_log(path)
        return None
    except (OSError, ValueError) as error:
        raise unusable_error(path, _reason(error)) from error
    check_kind(path, found.st_mode)
    try:
        check_header(path)
    except OSError as error:
        raise unusable_error(path, _reason(error)) from error
    _check_rights(path, found.st_mode)
    return found


def check_kind(path: Path, mode: int) -> None:
    """Raise StoreError unless it is a regular file."""
    if stat.S_ISLNK(mode):
        raise unusable_error(path, "it is a symbolic link; give the path of the file itself")
    if stat.S_ISDIR(mode):
        raise unusable_error(path, f"it is a folder; give a file in it, such as {path / 'reasonry.db'}")
    if not stat.S_ISREG(mode):
        raise unusable_error(path, "it is a pipe, socket or device, not a file")


def _check_rights(path: Path, mode: int) -> None:
    # The owner of all files may write to any; whoever took the right away meant it all the same.
    if not mode & 0o222 or not os.access(path, os.R_OK | os.W_OK):
        raise unusable_error(path, "it is read-only; make it writable, or use another store")
    _check_folder(path)


def _check_folder(path: Path) -> None:
    if not path.absolute().parent.stat().st_mode & 0o222:
        raise unusable_error(path, "its folder is read-only; make it writable, or use another store")


@contextlib.contextmanager
def file_of(path: Path, mode: int = 0) -> Generator[Any]:
    """Open a file as SQLite does: closing one in another way drops the locks that this process has on it.

    Args:
        mode: `SQLITE_OPEN_READWRITE`, or only read it.
    """
    import apsw

    flags = [apsw.SQLITE_OPEN_MAIN_DB | (mode or apsw.SQLITE_OPEN_READONLY), 0]
    try:
        file = apsw.VFSFile("", str(path.absolute()), flags)
    except (apsw.Error, UnicodeEncodeError) as error:
        raise unusable_error(path, "it cannot be opened; check its permissions") from error
    try:
        yield file
    finally:
        file.xClose()


def _read_header(path: Path) -> bytes:
    with file_of(path) as file:
        return file.xRead(_HEADER_BYTES, 0)


def check_header(path: Path) -> None:
    """Raise StoreError if a file is not a store that this version can use."""
    header = _read_header(path)
    if not header:
        why = "the file is empty, and a store never is; restore it from a backup, or delete it to get a new store"
        raise unusable_error(path, why, "store_corrupt")
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise unusable_error(path, "it is not a SQLite file", "store_corrupt")
    application = int.from_bytes(header[68:72], "big")
    if application != APPLICATION_ID:
        raise unusable_error(path, "it is a SQLite file of another application", "store_corrupt")


def check_log(path: Path) -> None:
    """Raise StoreError if the log beside a file is that of another file, such as one that was copied over it.

    The header of each file has a number of its own, and the log repeats the header with most of its commits.
    """
    try:
        with log_of(path).open("rb") as log:
            number, start = _read_header(path)[_NUMBER], log.read(_LOG_HEADER_BYTES)
            size = _FRAME_BYTES + int.from_bytes(start[8:12], "big")
            while len(frame := log.read(size)) == size and frame[8:16] == start[16:24]:
                page = frame[_FRAME_BYTES:]
                if frame[:4] == _FIRST_PAGE and page[_NUMBER] != number:
                    why = f"its log {log_of(path).name} is that of another file; use `reasonry store restore`"
                    raise unusable_error(path, why, "store_corrupt")
    except FileNotFoundError:
        return


def log_of(path: Path) -> Path:
    """Return the path of a store's write-ahead log."""
    return path.with_name(path.name + "-wal")


def _check_no_orphaned_log(path: Path) -> None:
    journal = log_of(path)
    try:
        orphaned = journal.lstat().st_size > 0
    except (OSError, ValueError):
        orphaned = False
    if orphaned:
        why = f"the store is missing, but its log {journal.name} is still there; restore the store, or delete the log"
        raise unusable_error(path, why, "store_corrupt")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def create(path: Path, fill: Callable[[Path], None]) -> None:
    """Create a store, readable by its owner alone; one that another process created first is kept.

    Args:
        path: Where to create it.
        fill: Turns the empty file at the path it is called with into a store, and closes it.
    """
    with draft_of(path) as draft:
        fill(draft)
        publish(draft, path)


@contextlib.contextmanager
def draft_of(path: Path) -> Generator[Path]:
    """Create an empty temporary file beside `path`, and remove it at the end if it is still there.

    Raises:
        StoreError: It cannot be made.
    """
    try:
        make_folder(path.absolute().parent)
        _check_folder(path)
        _sweep(path)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise unusable_error(path, f"it cannot be created: {_reason(error)}") from error
    try:
        yield draft
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, open to their owner alone."""
    if not folder.exists():
        make_folder(folder.parent)
        folder.mkdir(0o700, exist_ok=True)


def publish(draft: Path, path: Path, *, replace: bool = False) -> bool:
    """Move a finished file to its path, whole or not at all.

    Args:
        replace: Overwrite an existing file.

    Returns:
        Whether it was moved; False if there is a file already.
    """
    handle = os.open(draft, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    if replace:
        draft.replace(path)
    elif not _link(draft, path):
        return False
    sync_folder(path.absolute().parent)
    return True


def _link(draft: Path, path: Path) -> bool:
    try:
        # A link, unlike a rename, never replaces a store that another process has just begun to fill.
        path.hardlink_to(draft)
    except FileExistsError:
        return False
    except OSError:
        if path.exists():
            return False
        draft.rename(path)
    return True


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the system needs that."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(path: Path) -> None:
    """Remove temporary files that a crash has left."""
    for draft in path.absolute().parent.glob(f".{glob.escape(path.name)}.*.new*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _STALE_S:
                draft.unlink()
