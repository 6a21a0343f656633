"""The file of a store: checking an existing one, and creating a new one.

A store appears under its name whole or not at all. So a file there that is not a valid store was damaged or is
something else; it is refused and left unchanged.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path

from ..errors import StoreError
from .migrations import APPLICATION_ID, MIGRATIONS, newer_version_error

_MAGIC = b"SQLite format 3\x00"
_STALE_S = 60.0

Identity = tuple[int, int]
"""Identifies a file, whatever its name: device and inode."""

in_use: Counter[Identity] = Counter()
"""Files that this process has open as databases, and how often.

Closing a file that was opened in another way would drop the locks SQLite holds on it for the whole process.
"""


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
    if replaced_path(path).exists():
        why = "a backup is being restored to it, or that was interrupted; wait, or restore it again"
        raise unusable_error(path, f"{why} (reasonry store restore)")
    try:
        found = path.lstat()
    except FileNotFoundError:
        _check_no_orphaned_log(path)
        return None
    except (OSError, ValueError) as error:
        raise unusable_error(path, _reason(error)) from error
    check_kind(path, found.st_mode)
    try:
        if not in_use[identity(found)]:
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


def check_header(path: Path) -> None:
    """Raise StoreError if a file is not a store that this version can use; no database may have it open."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        why = "the file is empty, and a store never is; restore it from a backup, or delete it to get a new store"
        raise unusable_error(path, why, "store_corrupt")
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise unusable_error(path, "it is not a SQLite file", "store_corrupt")
    application = int.from_bytes(header[68:72], "big")
    if application != APPLICATION_ID:
        raise unusable_error(path, "it is a SQLite file of another application", "store_corrupt")
    version = int.from_bytes(header[60:64], "big")
    if version > len(MIGRATIONS):
        raise newer_version_error(path, f"schema {version}")


def replaced_path(path: Path) -> Path:
    """Return the path of a store while a backup takes its place."""
    return path.with_name(path.name + ".replaced")


def _check_no_orphaned_log(path: Path) -> None:
    journal = path.with_name(path.name + "-wal")
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
        touch(draft)
    except OSError as error:
        raise unusable_error(path, f"it cannot be created: {_reason(error)}") from error
    try:
        yield draft
    finally:
        for end in ("", "-journal", "-wal", "-shm"):
            draft.with_name(draft.name + end).unlink(missing_ok=True)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, open to their owner alone whatever the umask."""
    missing = list[Path]()
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for folder in reversed(missing):
        with contextlib.suppress(FileExistsError):
            folder.mkdir(0o700)
            folder.chmod(0o700)


def touch(path: Path) -> None:
    """Make a new empty file, readable by its owner alone whatever the umask."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        path.chmod(0o600)
    finally:
        os.close(handle)


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
    for draft in path.absolute().parent.glob(f".{_literal(path.name)}.*.new*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _STALE_S:
                draft.unlink()


def _literal(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
