"""Locks on runs that are driven: lock files that the system itself frees when their holder dies."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ..errors import ConflictError, StoreError
from .files import make_folder, touch
from .raw import RawFile

_TRIES = 100


def already_driven_error(run_id: str, pid: int | None) -> ConflictError:
    """Return the error for a run that is already being driven."""
    mine = pid == os.getpid()
    holder = "another task of this process" if mine else f"process {pid}" if pid else "another process"
    return ConflictError(
        f"run {run_id} is being driven by {holder}; wait until it is done, or end it", run_id=run_id, pid=pid
    )


class RunLock:
    """The lock on one run, as an async context manager.

    Args:
        take: Takes the lock and returns a function that releases it.
    """

    def __init__(self, take: Callable[[], Callable[[], None]]) -> None:
        self._take = take
        self._give_back: Callable[[], None] | None = None

    async def __aenter__(self) -> None:
        if self._give_back is not None:
            raise ConflictError("this lock is already held; get another from the store")
        self._give_back = self._take()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


class LockFolder:
    """Lock files, one for each run being driven, in a folder beside the store.

    Args:
        make_room: Called when the disk is full; returns whether it freed any space.
    """

    def __init__(self, folder: Path, make_room: Callable[[], bool]) -> None:
        self._folder = folder.absolute()
        self._make_room = make_room

    def take(self, run_id: str) -> Callable[[], None]:
        """Lock a run; return the function that unlocks it.

        Raises:
            ConflictError: It is locked.
            StoreError: The folder cannot be written to.
        """
        import apsw

        # A run id is any text, and never a path.
        path = self._folder / f"{hashlib.sha256(run_id.encode()).hexdigest()[:32]}.lock"
        try:
            for _ in range(_TRIES):
                release = self._try(path, run_id)
                if release is not None:
                    return release
        except (OSError, apsw.Error) as error:
            reason = getattr(error, "strerror", None) or error
            raise StoreError(f"run {run_id} cannot be locked: {reason} ({path})", path=str(path)) from error
        raise already_driven_error(run_id, None)

    def _try(self, path: Path, run_id: str) -> Callable[[], None] | None:
        try:
            with contextlib.suppress(FileNotFoundError):
                return _try_lock(path, run_id)
            make_folder(self._folder)
        except OSError as error:
            if error.errno != errno.ENOSPC or not self._make_room():
                raise
        return None


_taking = threading.Lock()
"""Held while a file is made: closing it then would drop the lock that another thread has just taken on it."""


def _try_lock(path: Path, run_id: str) -> Callable[[], None] | None:
    """Lock a file; return the function that unlocks it, None if the file was removed while it was being locked."""
    import apsw

    with _taking:
        with contextlib.suppress(FileExistsError):
            touch(path)
        try:
            file = RawFile(path)
        except FileNotFoundError:
            return None
    try:
        if not file.lock():
            raise already_driven_error(run_id, _holder(file))
        if file.has_moved():
            file.close()
            return None
        # Who has the lock is only for people to know; it holds on a full disk, too.
        with contextlib.suppress(apsw.FullError, apsw.IOError):
            file.replace(str(os.getpid()).encode())
    except BaseException:
        file.close()
        raise

    def release() -> None:
        # Removed while still locked: whoever opened it meanwhile finds the name gone, and tries again. Windows
        # removes no file that is open.
        removed = _remove(path)
        file.close()
        if not removed:
            _remove(path)

    return release


def _holder(file: RawFile) -> int | None:
    text = file.read(0, min(file.size(), 20))
    return int(text) if text.isdigit() else None


def _remove(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except PermissionError:
        return False
    return True
