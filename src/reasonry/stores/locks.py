"""The right to drive a run: a lock file that the system itself frees when its holder dies."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from ..errors import ConflictError, StoreError
from .files import make_folder

_TRIES = 100


def driven(run_id: str, pid: int | None) -> ConflictError:
    """Return the error of a run that someone drives already."""
    mine = pid == os.getpid()
    who = "another task of this process" if mine else f"process {pid}" if pid else "another process"
    return ConflictError(
        f"run {run_id} is being driven by {who}; wait until it is done, or end it", run_id=run_id, pid=pid
    )


class Right:
    """The right to drive one run, as an async context manager.

    Args:
        take: Takes the right and returns what gives it back.
    """

    def __init__(self, take: Callable[[], Callable[[], None]]) -> None:
        self._take = take
        self._give_back: Callable[[], None] | None = None

    async def __aenter__(self) -> None:
        if self._give_back is not None:
            raise ConflictError("this right is held already; ask the store for another")
        self._give_back = self._take()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


class LockFolder:
    """Lock files, one for each run being driven, in a folder beside the store."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def take(self, run_id: str) -> Callable[[], None]:
        """Lock a run; return what unlocks it.

        Raises:
            ConflictError: It is locked.
            StoreError: The folder cannot be written to.
        """
        # A run id is any text, and never a path.
        path = self._folder / f"{hashlib.sha256(run_id.encode()).hexdigest()[:32]}.lock"
        try:
            for _ in range(_TRIES):
                make_folder(self._folder)
                release = _try_lock(path, run_id)
                if release is not None:
                    return release
        except OSError as error:
            raise StoreError(
                f"run {run_id} cannot be locked: {error.strerror or error} ({path})", path=str(path)
            ) from error
        raise driven(run_id, None)


def _try_lock(path: Path, run_id: str) -> Callable[[], None] | None:
    """Return None where the file went away while it was being locked."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(path, flags, 0o600)
    try:
        if not _lock(handle):
            raise driven(run_id, _holder(handle))
        if not _names(path, handle):
            os.close(handle)
            return None
        os.fchmod(handle, 0o600)
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
    except BaseException:
        os.close(handle)
        raise

    def release() -> None:
        # Unlinked while still locked: whoever opened it meanwhile finds the name gone, and tries again.
        path.unlink(missing_ok=True)
        os.close(handle)

    return release


def _lock(handle: int) -> bool:
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _names(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _holder(handle: int) -> int | None:
    text = os.pread(handle, 20, 0)
    return int(text) if text.isdigit() else None
