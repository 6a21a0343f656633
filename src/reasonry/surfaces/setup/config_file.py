"""Files that belong to other programs: read, written whole or not at all, with the earlier text kept beside them.

A new text is written under the name of the backup, takes the place of the old one, and then the old one becomes the
backup. So a setup that is killed at any instant leaves a whole file, and no other copy than the backup.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...errors import ConflictError, UsageError, WorldError
from ...regular_files import read_regular_file
from .agents import Agent
from .formats import find_entry, read_data

MAX_CONFIG_BYTES = 64 << 20
BACKUP_SUFFIX = ".reasonry.bak"


class FileChange(Struct, frozen=True):
    """What is to become of a file.

    Args:
        path: Of the file itself, links followed.
        before: Its text now; None: there is no such file.
        after: Its text then; None: it goes, and its folder too if that is empty then.
    """

    path: Path
    before: str | None
    after: str | None

    @property
    def does_something(self) -> bool:
        """Whether the file would change."""
        return self.before != self.after


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


def read_servers(agent: Agent, path: Path) -> Mapping[str, Any]:
    """Return the entries of the servers in an agent's file, by name.

    Raises:
        ValueError: It is not valid in the agent's format.
        UsageError: It cannot be read.
    """
    found = find_entry(read_data(agent.format, read_config(path) or ""), agent.keys)
    return found if isinstance(found, Mapping) else {}


def make_change(change: FileChange) -> None:
    """Make a change; the earlier text of a file that was there is in the backup then.

    Raises:
        ConflictError: Another program has changed the file since the change was planned.
        WorldError: The system does not allow it.
    """
    path = change.path
    if not change.does_something:
        return
    _check(path, change.before)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if change.after is not None:
            _replace(path, change.before, change.after)
            return
        path.unlink()
        with contextlib.suppress(OSError):
            path.parent.rmdir()
    except OSError as error:
        why = error.strerror or str(error)
        raise WorldError(
            f"{path} cannot be written: {why}", code="config_unwritable", file=str(path)
        ) from None


def _replace(path: Path, before: str | None, after: str) -> None:
    backup = path.with_name(path.name + BACKUP_SUFFIX)
    old = path.stat() if before is not None else None
    try:
        _write(backup, after, old)
        if old is not None:
            backup.chmod(stat.S_IMODE(old.st_mode))
        # Syncing may have taken long, and another setup may be at work.
        _check(path, before)
        _check(backup, after)
        os.replace(backup, path)
    except BaseException:
        with contextlib.suppress(OSError):
            backup.unlink()
        raise
    if before is not None:
        _write(backup, before, old)


def _write(path: Path, text: str, like: os.stat_result | None) -> None:
    """Write a file anew that only its user may read, whatever stood in its place."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    if like is not None and hasattr(os, "chown"):
        # Where root writes it, the file stays its user's.
        with contextlib.suppress(OSError):
            os.chown(path, like.st_uid, like.st_gid)


def _check(path: Path, text: str | None) -> None:
    if read_config(path) != text:
        raise ConflictError(f"{path} was changed by another program meanwhile; try again", file=str(path))
