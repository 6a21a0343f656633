"""The file a store is kept in: what may be there, and how a new one comes to be.

A store appears under its name whole or not at all. So whatever else is found there is not a store that was
never filled, but one that was damaged, or something else; it is refused and left as it is.
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
from .migrations import APPLICATION_ID, MIGRATIONS, newer

_MAGIC = b"SQLite format 3\x00"
_STALE_S = 60.0

Identity = tuple[int, int]
"""What tells one file from all others, whatever it is called."""

in_use: Counter[Identity] = Counter()
"""Files that this process has open as databases, and how often.

Closing a file that was opened in another way would drop the locks SQLite holds on it for the whole process.
"""


def identity(found: os.stat_result) -> Identity:
    """Return which file it is."""
    return found.st_dev, found.st_ino


def refused(path: Path, why: str, code: str = "store_unavailable") -> StoreError:
    """Return the refusal of a path as a store."""
    return StoreError(f"{path} cannot be the store: {why}", code=code, path=str(path))


def look(path: Path) -> os.stat_result | None:
    """Return what is known of the store's file; None if there is none.

    Raises:
        StoreError: Something is there that is not a store which this version can use.
    """
    if kept_of(path).exists():
        why = "a backup is being restored to it, or that was interrupted; wait, or restore it again"
        raise refused(path, f"{why} (reasonry store restore)")
    try:
        found = path.lstat()
    except FileNotFoundError:
        _look_beside(path)
        return None
    except (OSError, ValueError) as error:
        raise refused(path, _reason(error)) from error
    check_kind(path, found.st_mode)
    try:
        if not in_use[identity(found)]:
            check_header(path)
    except OSError as error:
        raise refused(path, _reason(error)) from error
    _look_at_rights(path, found.st_mode)
    return found


def check_kind(path: Path, mode: int) -> None:
    """Raise StoreError unless it is a file."""
    if stat.S_ISLNK(mode):
        raise refused(path, "it is a symbolic link; give the path of the file itself")
    if stat.S_ISDIR(mode):
        raise refused(path, f"it is a folder; give a file in it, such as {path / 'reasonry.db'}")
    if not stat.S_ISREG(mode):
        raise refused(path, "it is a pipe, socket or device, not a file")


def _look_at_rights(path: Path, mode: int) -> None:
    # The owner of all files may write to any; whoever took the right away meant it all the same.
    if not mode & 0o222 or not os.access(path, os.R_OK | os.W_OK):
        raise refused(path, "it is read-only; make it writable, or use another store")
    _look_at_folder(path)


def _look_at_folder(path: Path) -> None:
    if not path.absolute().parent.stat().st_mode & 0o222:
        raise refused(path, "its folder is read-only; make it writable, or use another store")


def check_header(path: Path) -> None:
    """Raise StoreError if a file is not a store that this version can use; no database may have it open."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        why = "the file is empty, and a store never is; restore it from a backup, or delete it to begin anew"
        raise refused(path, why, "store_corrupt")
    if not header.startswith(_MAGIC) or len(header) < 100:
        raise refused(path, "it is not a SQLite file", "store_corrupt")
    application = int.from_bytes(header[68:72], "big")
    if application != APPLICATION_ID:
        raise refused(path, "it is a SQLite file of another application", "store_corrupt")
    version = int.from_bytes(header[60:64], "big")
    if version > len(MIGRATIONS):
        raise newer(path, f"schema {version}")


def kept_of(path: Path) -> Path:
    """Return where a store is kept while a backup takes its place."""
    return path.with_name(path.name + ".replaced")


def _look_beside(path: Path) -> None:
    journal = path.with_name(path.name + "-wal")
    try:
        orphaned = journal.lstat().st_size > 0
    except (OSError, ValueError):
        orphaned = False
    if orphaned:
        why = f"a store was there, of which {journal.name} is left; restore the file, or delete what is left"
        raise refused(path, why, "store_corrupt")


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def create(path: Path, fill: Callable[[Path], None]) -> None:
    """Make a new store, readable by its owner alone; another process may be quicker, and its store stays.

    Args:
        path: Where it shall appear.
        fill: Makes the empty file at the path it is given a store, and closes it.
    """
    with draft_of(path) as draft:
        fill(draft)
        publish(draft, path)


@contextlib.contextmanager
def draft_of(path: Path) -> Generator[Path]:
    """Make an empty file to be filled, beside where it shall appear; what is left of it in the end is removed.

    Raises:
        StoreError: It cannot be made.
    """
    try:
        make_folder(path.absolute().parent)
        _look_at_folder(path)
        _sweep(path)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}.new")
        touch(draft)
    except OSError as error:
        raise refused(path, f"it cannot be created: {_reason(error)}") from error
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
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):
            one.mkdir(0o700)
            one.chmod(0o700)


def touch(path: Path) -> None:
    """Make a new empty file, readable by its owner alone whatever the umask."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        path.chmod(0o600)
    finally:
        os.close(handle)


def publish(draft: Path, path: Path, *, replace: bool = False) -> bool:
    """Let a finished file appear under its name, whole or not at all.

    Args:
        replace: Take the place of what is there.

    Returns:
        Whether it does; False if something is there already.
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
    """Remove drafts that a crash has left."""
    for draft in path.absolute().parent.glob(f".{_literal(path.name)}.*.new*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _STALE_S:
                draft.unlink()


def _literal(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)
