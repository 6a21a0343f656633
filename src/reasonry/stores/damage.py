"""Tells which database errors mean that the file is damaged."""

from __future__ import annotations

from ..errors import ReasonryError

_DAMAGE = {"CorruptError", "NotADBError", "UnicodeDecodeError"}
"""Classes of what `apsw` raises; a damaged file may also hold what is no text, even in what SQLite says about it."""

_UNREADABLE = ("no such table", "no such column", "no such index", "unsupported file format")


def is_damage(error: BaseException) -> bool:
    """Whether a database error means that the content of the file is not what was written."""
    if isinstance(error, ReasonryError):
        return False
    return type(error).__name__ in _DAMAGE or str(error).startswith(_UNREADABLE)
