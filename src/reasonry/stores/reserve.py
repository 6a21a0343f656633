"""Disk space reserved beside a store and released when the disk is full, so that deleting still works."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from pathlib import Path

from .files import touch

RESERVE_BYTES = 1 << 22
_LEAST_BYTES = 1 << 16
_PIECE = 1 << 16


def reserve_of(path: Path) -> Path:
    """Return the file that reserves space for a store."""
    return path.with_name(path.name + ".reserve")


def free_bytes(path: Path) -> int:
    """Return the free space on the disk of a file; `sys.maxsize` where the system does not tell."""
    if hasattr(shutil, "disk_usage"):
        with contextlib.suppress(OSError):
            return shutil.disk_usage(path.absolute().parent).free
    return sys.maxsize


def keep_reserve(path: Path, share: int = 8) -> None:
    """Reserve the space if it is not reserved yet: at most one `share`-th of what is free."""
    file = reserve_of(path)
    if file.exists():
        return
    size = min(RESERVE_BYTES, free_bytes(path) // share)
    if size < _LEAST_BYTES:
        return
    try:
        touch(file)
        # What can be compressed would keep no room on some file systems.
        with file.open("wb") as opened:
            for _ in range(size // _PIECE):
                opened.write(os.urandom(_PIECE))
    except FileExistsError:
        return
    except OSError:
        give_up_reserve(path)


def reserved_bytes(path: Path) -> int:
    """Return how much space is reserved."""
    try:
        return reserve_of(path).stat().st_size
    except OSError:
        return 0


def give_up_reserve(path: Path) -> bool:
    """Release the reserved space; return whether there was any."""
    with contextlib.suppress(OSError):
        reserve_of(path).unlink()
        return True
    return False
