"""The sessions that are not finished, for an agent that was started anew and has lost its ids."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.text import first_words
from ..errors import StoreError
from ..records import SessionRow, Store
from .lines import Head
from .thinking_tool import Notice
from .turn import decode_head

_LOOKED_AT = 200
_SHOWN = 3
_WORDS_CHARS = 50
_UNITS = ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"))

Unfinished = tuple[SessionRow, Head]


async def find_unfinished(store: Store, *, but: str | None = None) -> list[Unfinished]:
    """Return the latest sessions of agents that have not ended, the one used last first.

    Last come those that have a single thought which is not their first: they were begun by an agent that had lost
    the id of the session it meant.
    """
    found = list[Unfinished]()
    for row in await store.sessions(limit=_LOOKED_AT):
        if row.run_id is None and row.session_id != but and row.thoughts:
            try:
                head = decode_head(row)
            except StoreError:
                continue
            if not head.ended:
                found.append((row, head))
    return sorted(found, key=lambda session: session[0].thoughts == 1 and _latest_number(session[1]) > 1)


async def latest_unfinished(store: Store, directory: str) -> str | None:
    """Return the id of the latest session that has not ended; one begun in this directory goes before others."""
    found = await find_unfinished(store)
    here = [row for row, head in found if directory and head.directory == directory]
    return next((row.session_id for row in (*here, *(row for row, _ in found))), None)


async def begun_here(store: Store, directory: str, *, but: str | None) -> list[Unfinished]:
    """Return the latest unfinished sessions that were begun in this directory."""
    if not directory:
        return []
    return [found for found in await find_unfinished(store, but=but) if found[1].directory == directory][
        :_SHOWN
    ]


def unfinished_notice(number: int, found: Sequence[Unfinished], now_ms: int) -> Notice:
    """Return what to say where a new session begins with a later thought than the first."""
    return Notice(
        "unfinished_sessions", f"Thought {number} began a new session. {list_unfinished(found, now_ms)}"
    )


def list_unfinished(found: Sequence[Unfinished], now_ms: int) -> str:
    """Return the sessions in a sentence, each with the argument that goes on with it."""
    listed = "; ".join(_line(row, head, now_ms) for row, head in found)
    how = "To go on with one, send the thought again with its sessionId."
    return f"Unfinished sessions begun in this directory: {listed}. {how}"


def _latest_number(head: Head) -> int:
    return head.line(head.latest).number


def _line(row: SessionRow, head: Head, now_ms: int) -> str:
    line = head.line(head.latest)
    words = first_words(row.purpose, _WORDS_CHARS)
    age = _age(now_ms - row.used_at_ms)
    return f'sessionId "{row.session_id}" (thought {line.number} of {line.total}, {age}: {words!r})'


def _age(passed_ms: int) -> str:
    for unit_ms, name in _UNITS:
        if passed_ms >= unit_ms:
            count = passed_ms // unit_ms
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return "just now"
