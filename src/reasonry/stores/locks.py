"""Locks that show which holders of leases live: lock files that the system itself frees when their process dies."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from ..errors import StoreError
from .files import make_folder, touch
from .leases import Living
from .raw import RawFile

_SLEEP_S = 0.001


def name_in_0_1(run_id: str) -> str:
    """Return the name of the lock that version 0.1 takes on a run that it drives."""
    return hashlib.sha256(run_id.encode()).hexdigest()[:32]


class LockFolder:
    """Lock files in a folder beside the store.

    Args:
        make_room: Called when the disk is full; returns whether it freed any space.
    """

    def __init__(self, folder: Path, make_room: Callable[[], bool]) -> None:
        self._folder = folder.absolute()
        self._make_room = make_room

    def take(self, name: str) -> Callable[[], None]:
        """Make and lock a file, and remove those nobody has locked; return the function that unlocks and removes it.

        Raises:
            StoreError: The folder cannot be written to.
        """
        path = self._path(name)
        with self._naming_faults():
            while (file := self._try_lock(path)) is None:
                # Somebody looked whether its holder lives just when it did not yet.
                time.sleep(_SLEEP_S)
        for other in self._folder.glob("*.lock"):
            with contextlib.suppress(StoreError):
                self.find_living(other.stem)
        return lambda: _remove(path, file)

    def find_living(self, name: str) -> Living | None:
        """Return who has locked a file; if nobody has, it is removed."""
        # Python interns each part of a `Path`: with one for each run its table of such strings would double in time.
        if not os.path.exists(f"{self._folder}{os.sep}{name}.lock"):
            return None
        path = self._path(name)
        with self._naming_faults():
            try:
                file = RawFile(path)
            except FileNotFoundError:
                return None
            if file.lock():
                return _remove(path, file)
            with contextlib.closing(file):
                return Living(_pid_in(file))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.lock"

    @contextmanager
    def _naming_faults(self) -> Generator[None]:
        import apsw

        try:
            yield
        except (OSError, apsw.Error) as error:
            reason = getattr(error, "strerror", None) or error
            message = f"no run can be locked: {reason} ({self._folder})"
            raise StoreError(message, path=str(self._folder)) from error

    def _try_lock(self, path: Path) -> RawFile | None:
        import apsw

        try:
            make_folder(self._folder)
            with contextlib.suppress(FileExistsError):
                touch(path)
            file = RawFile(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno != errno.ENOSPC or not self._make_room():
                raise
            return None
        if not file.lock() or file.has_moved():
            file.close()
            return None
        # Who has the lock is only for people to know; it holds on a full disk, too.
        with contextlib.suppress(apsw.FullError, apsw.IOError):
            file.replace(str(os.getpid()).encode())
        return file


def _remove(path: Path, file: RawFile) -> None:
    """Remove a file and close it."""
    # Removed while still locked: whoever opened it meanwhile finds the name gone, and tries again. Windows removes no
    # file that is open.
    removed = _unlink(path)
    file.close()
    if not removed:
        _unlink(path)


def _pid_in(file: RawFile) -> int | None:
    text = file.read(0, min(file.size(), 20))
    return int(text) if text.isdigit() else None


def _unlink(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        return False
    return True
