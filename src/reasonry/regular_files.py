"""Reading files that a user named: regular ones, up to a size, and never one that could keep the reader waiting."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import TooLargeError, UsageError

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read_regular_file(path: str | Path, limit: int, *, label: str, option: str) -> bytes:
    """Return the content of a file.

    A named pipe or a device is refused, not waited for, even if it takes the file's place at the last moment.

    Args:
        limit: Maximum size in bytes.
        label: The kind of file, for errors: `script`, `schema`.
        option: The option that named it.

    Raises:
        UsageError: It is no regular file or cannot be read; `file` in the details names it.
        TooLargeError: It is larger; likewise.
    """
    try:
        # Opening a device can trigger it, so a file that looks like one is not opened.
        _check_kind(os.stat(path).st_mode)
        descriptor = os.open(path, _FLAGS)
        with os.fdopen(descriptor, "rb") as file:
            _check_kind(os.fstat(descriptor).st_mode)
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        why = (isinstance(error, OSError) and error.strerror) or error
        message = f"the {label} {str(path)!r} cannot be read: {why}"
        raise UsageError(message, option=option, file=str(path)) from None
    if len(data) > limit:
        message = f"the {label} {str(path)!r} is over {limit:,} bytes"
        raise TooLargeError(message, limit=limit, option=option, file=str(path))
    return data


def _check_kind(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "something else")
        raise ValueError(f"it is {kind}, not a regular file")
