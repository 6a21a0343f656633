"""The sessions of a working directory, for restarted agents and for commands.

A directory is to commands what a connection is to MCP: a thought continues the session last used there, unless that
session has ended, has expired, or uses another strategy than the named one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import StoreError
from ..records import SessionRow, Store
from ..text import first_words
from .lines import MAIN, Head, decode_head
from .session_documents import instant

_LOOKED_AT = 200
_SHOWN = 3
_WORDS_CHARS = 50
_PLACING = {"thought_number", "branch_id", "branch_from_thought", "revises_thought", "stage"}
"""Arguments of a command that name the line of its thought."""

Unfinished = tuple[SessionRow, Head]


# -- which there are


async def find_unfinished(store: Store, directory: str) -> list[Unfinished]:
    """Return the latest unfinished sessions of agents, sessions of this directory first.

    The last used sessions come first. Sessions with a single thought numbered above 1 come last: an agent started them
    after it had lost the id of its session.
    """
    found = list[Unfinished]()
    for row in await store.sessions(limit=_LOOKED_AT, guided=True):
        with contextlib.suppress(StoreError):
            if row.thoughts and not (head := decode_head(row)).ended:
                found.append((row, head))

    def rank(session: Unfinished) -> tuple[bool, bool]:
        row, head = session
        is_stray = row.thoughts == 1 and head.line(head.latest).number > 1
        return not directory or head.directory != directory, is_stray

    return sorted(found, key=rank)


async def begun_here(store: Store, directory: str) -> list[Unfinished]:
    """Return the latest unfinished sessions of this directory."""
    found = await find_unfinished(store, directory) if directory else []
    return [session for session in found if session[1].directory == directory][:_SHOWN]


# -- as text


def list_unfinished(found: Sequence[Unfinished]) -> str:
    """List the sessions in a sentence, each with its id."""
    listed: list[str] = []
    for row, head in found:
        line, words = head.line(head.latest), first_words(row.purpose, _WORDS_CHARS)
        place = f"thought {line.number} of {line.total}, {instant(row.used_at_ms)}"
        listed.append(f'"{row.session_id}" ({place}: {words!r})')
    how = "To continue one, send the thought again with its session id."
    return f"Unfinished sessions begun here: {'; '.join(listed)}. {how}"


# -- what a command leaves out


def complete_call(call: Mapping[str, Any], head: Head | None) -> dict[str, Any]:
    """Add the numbers and the line that a command left out.

    Args:
        head: The state of the session to continue, or None for a new session.
    """
    number = 1 if head is None else _next_number(head, call)
    total = max(0 if head is None else head.line(head.latest).total, number + 1)
    if not call.get("next_thought_needed", True):
        total = number
    completed = {"thought_number": number, "total_thoughts": total, **call}
    if head is not None and head.branches and not call.keys() & _PLACING:
        # The number is the main line's next, whatever comes next on a branch.
        completed["branch_id"] = head.main_name
    return completed


def _next_number(head: Head, call: Mapping[str, Any]) -> int:
    branch, parent = call.get("branch_id"), str(call.get("branch_from_thought", ""))
    if branch and branch in head.branches:
        return head.branches[branch].number + 1
    if parent.isdecimal():
        return int(parent) + 1
    if branch and branch != MAIN:
        return head.line(head.latest).number + 1
    return head.main.number + 1
