"""What a command means that names neither a session nor the number of its thought.

A directory is to commands what a connection is to MCP: a thought goes on with the session last used there, unless that
has ended, was not used for as long as it stays active, or thinks by another strategy than the one named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..errors import StoreError
from ..records import SessionRow
from .lines import MAIN, Head
from .sessions import Sessions
from .turn import decode_head, is_over
from .unfinished import begun_here


class FollowingThought(Struct, frozen=True):
    """The numbers that a call leaves out, and the sessions that it may go on with.

    Attributes:
        session_ids: The latest first; none where the call names its session or begins one.
        purpose: How the first of them began; empty where there is none.
    """

    number: int = 1
    total: int = 1
    session_ids: tuple[str, ...] = ()
    purpose: str = ""


async def next_thought(
    sessions: Sessions, call: Mapping[str, Any], *, begins: bool = False
) -> FollowingThought:
    """Return what a call goes on with where it leaves that out.

    Args:
        call: The arguments of the thinking tool as they came, without those that are left out.
        begins: Whether a new session is wanted.
    """
    if begins:
        return _after(None, call)
    if "sessionId" in call:
        return _after(await sessions.session_to_think_in(call["sessionId"]), call)
    found = [
        (row, head)
        for row, head in await begun_here(sessions.store, sessions.directory, but=None)
        if row.status == "active" and not is_over(row, sessions.settings, sessions.now_ms())
    ]
    if not found or not _fits(sessions, *found[0], call):
        return _after(None, call)
    ids = tuple(row.session_id for row, _ in found)
    latest = found[0][0]
    # Without a number there is nothing to tell the sessions apart by.
    return replace(
        _after(latest, call),
        session_ids=ids if "thoughtNumber" in call else ids[:1],
        purpose=latest.purpose,
    )


def _fits(sessions: Sessions, row: SessionRow, head: Head, call: Mapping[str, Any]) -> bool:
    """Whether a session thinks by the strategy that a call names, or can take it up."""
    strategy = call.get("strategy")
    return strategy is None or not head.has_stage or sessions.strategy(strategy).name == row.strategy


def _after(row: SessionRow | None, call: Mapping[str, Any]) -> FollowingThought:
    head = None
    if row is not None and row.run_id is None:
        try:
            head = decode_head(row)
        except StoreError:
            # The call itself says what is wrong with it.
            head = None
    number = 1 if head is None else _number(head, call)
    follows = call.get("nextThoughtNeeded", True)
    total = max(0 if head is None else head.line(head.latest).total, number + bool(follows))
    return FollowingThought(number, total if follows else number)


def _number(head: Head, call: Mapping[str, Any]) -> int:
    branch, left = call.get("branchId"), str(call.get("branchFromThought", ""))
    if branch and branch in head.branches:
        return head.branches[branch].number + 1
    if left.isdecimal():
        return int(left) + 1
    if branch and branch != MAIN:
        return head.line(head.latest).number + 1
    return head.main.number + 1
