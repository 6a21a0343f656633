"""A file opened and locked as SQLite opens and locks its own, which it can on every system."""

from __future__ import annotations

import errno
from array import array
from pathlib import Path


class RawFile:
    """A file outside any database connection.

    Opening and closing a database in another way would drop the locks that SQLite holds on it for the whole process.

    Args:
        path: An existing file.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        import apsw

        try:
            flags = [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE, 0]
            self._file = apsw.VFSFile("", str(path.absolute()), flags)
        except apsw.CantOpenError as error:
            if not path.exists():
                raise FileNotFoundError(errno.ENOENT, "it is not there", str(path)) from error
            raise OSError(errno.EACCES, "it cannot be opened", str(path)) from error
        except UnicodeEncodeError as error:
            raise OSError(errno.EINVAL, "its path is not UTF-8", str(path)) from error

    def lock(self) -> bool:
        """Take a lock that excludes other writers but not readers; False if someone holds it."""
        import apsw

        return self._lock(apsw.SQLITE_LOCK_RESERVED)

    def lock_alone(self) -> bool:
        """Take an exclusive lock, which also excludes database connections; False if someone holds a lock."""
        import apsw

        return self._lock(apsw.SQLITE_LOCK_EXCLUSIVE)

    def unlock(self) -> None:
        """Release the lock."""
        import apsw

        self._file.xUnlock(apsw.SQLITE_LOCK_NONE)

    def has_moved(self) -> bool:
        """Whether the file is no longer at the path it was opened at; always False on Windows."""
        import apsw

        answer = array("i", [0])
        known = self._file.xFileControl(apsw.SQLITE_FCNTL_HAS_MOVED, answer.buffer_info()[0])
        return known and bool(answer[0])

    def read(self, offset: int, size: int) -> bytes:
        """Return the bytes there; none if the file ends before `offset + size`."""
        return self._file.xRead(size, offset) if offset + size <= self.size() else b""

    def size(self) -> int:
        """Return the size of the file."""
        return self._file.xFileSize()

    def replace(self, content: bytes) -> None:
        """Replace the content of the file."""
        # A file that was ever cut to nothing is written to disk by some file systems (ext4) when it is closed.
        self._file.xWrite(content, 0)
        if self.size() > len(content):
            self._file.xTruncate(len(content))

    def close(self) -> None:
        """Close the file, which releases its lock."""
        self._file.xClose()

    def _lock(self, level: int) -> bool:
        import apsw

        try:
            self._file.xLock(apsw.SQLITE_LOCK_SHARED)
            self._file.xLock(level)
        except apsw.BusyError:
            self.unlock()
            return False
        return True
