"""Ids: UUIDv7, so that they sort by time (RFC 9562, section 5.7)."""

from __future__ import annotations

import os
import re
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Collection

from .errors import NotFoundError, UsageError

LAST = "last"
"""Stands for the last used or started object."""
MIN_PREFIX_CHARS = 4
_WHOLE_CHARS = 36
_SHORT_CHARS = (8, 13, 18, 23)
"""The ends of a UUID's groups. In a UUIDv7 the first group fixes the minute, the second the millisecond."""
_SHOWN = 5
COMPARISON = "comparison-"
"""The prefix of a comparison's id. Hexadecimal digits follow."""
_PREFIX = re.compile(f"(?:{COMPARISON})?[0-9a-f-]{{{MIN_PREFIX_CHARS},{_WHOLE_CHARS - 1}}}")

_lock = threading.Lock()
_last = 0


def now_ms() -> int:
    """Return the time, UTC, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def new_id() -> str:
    """Return a UUIDv7 that sorts after every earlier one of this process."""
    global _last
    with _lock:
        # Milliseconds, then 12 bits that count on within one: `rand_a` as a counter (method 1 of section 6.2).
        now = max(now_ms() << 12, _last + 1)
        _last = now
    random = int.from_bytes(os.urandom(8)) & ((1 << 62) - 1)
    value = (now >> 12) << 80 | 0x7 << 76 | (now & 0xFFF) << 64 | 0b10 << 62 | random
    return str(uuid.UUID(int=value))


def may_be_short(text: str) -> bool:
    """Whether a text can stand for an id: `last`, or the beginning of a UUID or of a comparison's id."""
    return text == LAST or _PREFIX.fullmatch(text.lower()) is not None


def no_session(session_id: str) -> NotFoundError:
    """Return the error for a session that does not exist."""
    shown = session_id[:100]
    message = f"there is no session {shown!r}; list the sessions to see which there are"
    return NotFoundError(message, session_id=shown)


async def find_id(
    text: str,
    kind: str,
    begins_with: Callable[[str, int], Awaitable[list[str]]],
    last: Callable[[], Awaitable[str | None]],
) -> str:
    """Find the id that a text stands for. Other texts are returned unchanged.

    Args:
        kind: The kind of object, for messages.
        begins_with: Returns the first ids with a prefix, up to a number.
        last: Returns the id of the last used object.

    Raises:
        UsageError: Several ids begin with the text; `choices` has the first ones.
        NotFoundError: The text is `last`, and no object exists.
    """
    if not may_be_short(text):
        return text
    found = await begins_with(text if text == LAST else text.lower(), _SHOWN + 1)
    if text in found:
        return text
    if text == LAST:
        latest = await last()
        if latest is None:
            raise NotFoundError(f"there is no {kind} yet, so none is the last")
        return latest
    if len(found) > 1:
        more = ", …" if len(found) > _SHOWN else ""
        raise UsageError(
            f"several {kind}s have ids that begin with {text}: {', '.join(found[:_SHOWN])}{more}. Give more of the id.",
            choices=found[:_SHOWN],
        )
    return found[0] if found else text


async def shorten_ids(
    ids: Collection[str], begins_with: Callable[[str, int], Awaitable[list[str]]]
) -> dict[str, str]:
    """Return a prefix of each id that is enough for `find_id`, with the same length for all UUIDs.

    Args:
        begins_with: See `find_id`.
    """
    uuids = [whole for whole in ids if len(whole) == _WHOLE_CHARS and may_be_short(whole[: _SHORT_CHARS[0]])]
    shown = {whole: whole for whole in ids}
    for chars in _SHORT_CHARS:
        short = {whole: whole[:chars] for whole in uuids}
        if len(set(short.values())) < len(short):
            continue
        found = [await begins_with(beginning, 2) for beginning in short.values()]
        if all(len(same) == 1 for same in found):
            return shown | short
    return shown
