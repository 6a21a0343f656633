"""Checks of input that all stores share, so that each refuses the same input with the same error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import astuple

from ..errors import UsageError
from ..records import Line, RequestKey, RunFilters, SessionChange, SessionFilters, ThoughtRow
from .sql import MAX_SEQ

MAX_INT = (1 << 63) - 1
"""Largest integer every kind of store can hold."""


def check_text(text: str) -> None:
    """Raise UsageError if `text` has a lone surrogate, which no encoding can hold."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"a text has a lone surrogate at character {error.start}; it is not valid Unicode",
            position=error.start,
        ) from None


def check_texts(*texts: str | None) -> None:
    """Check each text that is not None."""
    for text in texts:
        if text is not None:
            check_text(text)


def check_filters(which: RunFilters | SessionFilters) -> None:
    """Check each text of the filters of a list."""
    check_texts(*(value for value in which.values() if isinstance(value, str)))


def check_row(row: Struct) -> None:
    """Check each text and number of a row."""
    for value in astuple(row):
        if isinstance(value, str):
            check_text(value)
        elif isinstance(value, int) and not -MAX_INT <= value <= MAX_INT:
            raise UsageError(f"the number {value:.3e} is too large to be stored")


def check_seqs(rows: Iterable[Line | ThoughtRow]) -> None:
    """Check that each `seq` is in range and none occurs twice."""
    seqs = [row.seq for row in rows]
    if any(not 1 <= seq <= MAX_SEQ for seq in seqs):
        raise UsageError(f"the seq of a line or thought goes from 1 to {MAX_SEQ}", max=MAX_SEQ)
    if len(set(seqs)) != len(seqs):
        raise UsageError("two lines or thoughts have the same seq")


def check_thoughts(thoughts: Sequence[ThoughtRow]) -> None:
    """Check the thoughts of one session."""
    check_seqs(thoughts)
    for thought in thoughts:
        check_row(thought)


MAX_KEY_CHARS = 255
"""Longest key of a request."""


def check_key(key: RequestKey | None) -> None:
    """Check the key of a request, if there is one."""
    if key is None:
        return
    check_row(key)
    if not 1 <= len(key.key) <= MAX_KEY_CHARS:
        raise UsageError(
            f"the key of a request has 1 to {MAX_KEY_CHARS} characters, not {len(key.key)}",
            max=MAX_KEY_CHARS,
        )


def check_limit(limit: int) -> int:
    """Return a page's size, within what can be asked for."""
    if limit < 1:
        raise UsageError("limit must be 1 or more", option="limit")
    return min(limit, MAX_INT)


def check_change(change: SessionChange, exists: bool) -> None:
    """Check the change that a decision asks for."""
    check_texts(change.archive_as, change.instead)
    if change.row is not None:
        check_row(change.row)
    if change.thought is not None:
        check_thoughts([change.thought])
        if change.row is None and (change.delete or not exists):
            raise UsageError("a thought needs a session to be written to")
