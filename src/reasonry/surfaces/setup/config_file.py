"""Reading, writing and removing files that belong to other programs: whole or not at all, and never a stale copy."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from msgspec import Struct

from ...errors import ConflictError, UsageError, WorldError
from ...regular_files import read_regular_file

MAX_CONFIG_BYTES = 64 << 20


class FileChange(Struct, frozen=True):
    """What is to become of one file.

    Args:
        before: What it holds now; None: it is not there.
        after: What it is to hold; None: it is to go.
        folders: Folders that come with it, or, where they are empty then, go with it; outermost first.
    """

    path: Path
    before: str | None
    after: str | None
    folders: tuple[Path, ...] = ()


def real_path(path: Path) -> Path:
    """Return the file that a path leads to, links followed."""
    return Path(os.path.realpath(path))


def read_config(path: Path) -> str | None:
    """Return the text of a file, byte order mark and line ends as they are; None if there is none.

    Raises:
        UsageError: It cannot be read, or is no UTF-8 text.
    """
    if not path.exists() and not path.is_symlink():
        return None
    data = read_regular_file(path, MAX_CONFIG_BYTES, label="file", option="agent")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; nothing was changed", file=str(path)) from None


def missing_folders(path: Path) -> tuple[Path, ...]:
    """Return the folders that have to be made for a file, outermost first."""
    missing = list[Path]()
    for folder in path.parents:
        if folder.exists():
            break
        missing.append(folder)
    return tuple(reversed(missing))


def make_change(change: FileChange, *, is_private: bool = False) -> None:
    """Write a file in one go, or remove it.

    Args:
        is_private: Nobody else may read it.

    Raises:
        ConflictError: It is no longer what it was when the change was thought out.
        WorldError: The system does not allow it.
    """
    path = change.path
    try:
        _check_unchanged(change)
        if change.after is None:
            _remove(change)
        else:
            _write(change, change.after, 0o600 if is_private else 0o666 & ~_umask())
    except OSError as error:
        why = error.strerror or str(error)
        raise WorldError(
            f"{path} cannot be written: {why}", code="config_unwritable", file=str(path)
        ) from None


def _write(change: FileChange, text: str, mode: int) -> None:
    path = change.path
    path.parent.mkdir(parents=True, exist_ok=True)
    if change.before is not None:
        mode = stat.S_IMODE(path.stat().st_mode)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".new", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        if change.before is not None:
            _keep_owner(path, name)
        # Syncing may have taken long.
        _check_unchanged(change)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _check_unchanged(change: FileChange) -> None:
    path = change.path
    if read_config(path) != change.before:
        raise ConflictError(f"{path} was changed by another program meanwhile; try again", file=str(path))


def _keep_owner(path: Path, name: str) -> None:
    """Leave the file to whom it belongs, where root writes it."""
    owner = path.stat()
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):
            os.chown(name, owner.st_uid, owner.st_gid)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _remove(change: FileChange) -> None:
    with contextlib.suppress(FileNotFoundError):
        change.path.unlink()
    for folder in reversed(change.folders):
        try:
            folder.rmdir()
        except OSError:
            break
