"""Searches through the thoughts of sessions: the store has those of agents, and journals have those of runs.

Rule 1: one journal is read at a time, and a page that has been at it for long hands over to the next one.
Rule 2: a journal that cannot be read hides nothing but itself, and the page says so.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from ..errors import NotFoundError, ReasonryError, StoreError
from ..records import InJournal, Store, ThoughtRow
from .thinking_tool import Notice

BATCH = 50
PATIENCE_S = 1.5
"""How long a page goes on to read journals."""

Match = tuple[int, str, ThoughtRow]
"""Position, session id, thought."""
RunThoughts = Callable[[str], Awaitable[Sequence[ThoughtRow]]]


@dataclass
class Page:
    """What a search has found.

    Attributes:
        next: The position to go on after; None: there is no more.
        notices: Sessions that could not be read.
    """

    matches: list[Match] = field(default_factory=list[Match])
    next: int | None = None
    notices: list[Notice] = field(default_factory=list[Notice])


async def search(
    store: Store, read: RunThoughts, query: str, session_id: str | None, after: int, limit: int
) -> Page:
    """Return a page of the thoughts that contain `query`, whatever its case, in all sessions or one.

    Raises:
        StoreError: The one session, or its journal, cannot be read.
    """
    page, at, begun, has_read = Page(), after, time.monotonic(), False
    while True:
        batch = await store.search_thoughts(query, session_id=session_id, after=at, limit=BATCH)
        for position, owner, found in batch:
            if isinstance(found, ThoughtRow):
                page.matches.append((position, owner, found))
            elif has_read and time.monotonic() - begun > PATIENCE_S:
                page.next = at
                return page
            else:
                has_read = True
                try:
                    page.matches += await _in_journal(store, read, query, owner, found, after)
                except ReasonryError as error:
                    if session_id is not None:
                        raise
                    page.notices.append(Notice("unreadable", error.message, owner))
            if len(page.matches) > limit:
                del page.matches[limit:]
                page.next = page.matches[-1][0]
                return page
            at = position
        if len(batch) < BATCH:
            return page


async def _in_journal(
    store: Store, read: RunThoughts, query: str, owner: str, there: InJournal, after: int
) -> list[Match]:
    try:
        thoughts = await read(there.run_id)
    except NotFoundError:
        # It was deleted meanwhile.
        return []
    # From now on the store finds them.
    with contextlib.suppress(NotFoundError, StoreError):
        await store.keep_thoughts(owner, thoughts)
    needle = query.casefold()
    rows = [
        thought
        for thought in thoughts
        if there.before + thought.seq > after and needle in thought.text.casefold()
    ]
    return [(there.before + thought.seq, owner, thought) for thought in rows]
