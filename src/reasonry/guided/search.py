"""Searches through the thoughts of sessions, once the store has those that are in the journals of runs alone.

A journal that cannot be read hides nothing but itself, and the page says so.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ..errors import NotFoundError, ReasonryError
from ..records import Found, Store, ThoughtRow
from .thinking_tool import Notice

RunThoughts = Callable[[str], Awaitable[Sequence[ThoughtRow]]]


@dataclass
class Page:
    """What a search has found.

    Attributes:
        next: The position to continue after; None: there is no more.
        notices: Sessions that could not be read.
    """

    matches: list[Found]
    next: int | None
    notices: list[Notice]


async def search(
    store: Store, read: RunThoughts, query: str, session_id: str | None, after: int, limit: int
) -> Page:
    """Return a page of the thoughts that contain `query`, whatever its case, in all sessions or one.

    Raises:
        StoreError: The one session, or its journal, cannot be read.
    """
    notices = list[Notice]()
    for behind, run_id in await store.sessions_behind(session_id):
        try:
            # Either may be deleted meanwhile.
            with contextlib.suppress(NotFoundError):
                await store.keep_thoughts(behind, await read(run_id))
        except ReasonryError as error:
            if session_id is not None:
                raise
            notices.append(Notice("unreadable", error.message, behind))
    found = await store.search_thoughts(query, session_id=session_id, after=after, limit=limit + 1)
    matches = found[:limit]
    return Page(matches, matches[-1][0] if len(found) > limit else None, notices)
