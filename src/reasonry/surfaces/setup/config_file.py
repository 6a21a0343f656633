"""Files that belong to other programs: read, written whole or not at all, with the earlier text kept beside them.

A new text is written to a file of its own in the same folder, which then takes the place of the old one. If setup is
killed in between, that file stays behind; only its user may read it, and the next change removes it.
"""

from __future__ import annotations

import contextlib
import glob
import os
import stat
import tempfile
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
_NEW_SUFFIX = ".reasonry-new"


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
    """Make a change, and remove what an earlier one left behind when it was killed.

    Raises:
        ConflictError: Another program has changed the file since the change was planned.
        WorldError: The system does not allow it.
    """
    path = change.path
    try:
        for stray in path.parent.glob(f".{glob.escape(path.name)}.*{_NEW_SUFFIX}"):
            stray.unlink(missing_ok=True)
        if not change.does_something:
            return
        _check_unchanged(change)
        path.parent.mkdir(parents=True, exist_ok=True)
        if change.after is None:
            path.unlink()
            with contextlib.suppress(OSError):
                path.parent.rmdir()
            return
        if change.before is not None:
            backup = path.with_name(path.name + BACKUP_SUFFIX)
            _replace(FileChange(backup, read_config(backup), change.before), 0o600, owned_as=path)
            _replace(change, stat.S_IMODE(path.stat().st_mode), owned_as=path)
        else:
            _replace(change, 0o600)
    except OSError as error:
        why = error.strerror or str(error)
        raise WorldError(
            f"{path} cannot be written: {why}", code="config_unwritable", file=str(path)
        ) from None


def _replace(change: FileChange, mode: int, *, owned_as: Path | None = None) -> None:
    path, text = change.path, change.after or ""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=_NEW_SUFFIX, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        if owned_as is not None and hasattr(os, "chown"):
            # Where root writes it, the file stays its user's.
            owner = owned_as.stat()
            with contextlib.suppress(OSError):
                os.chown(name, owner.st_uid, owner.st_gid)
        # Syncing may have taken long.
        _check_unchanged(change)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _check_unchanged(change: FileChange) -> None:
    if read_config(change.path) != change.before:
        raise ConflictError(
            f"{change.path} was changed by another program meanwhile; try again", file=str(change.path)
        )
