"""Which session a thought without `sessionId` goes to, of those that its connection knows.

Rule 1: `choose` is pure; it is asked inside the transaction that writes the thought, with the sessions as they stand.
Rule 2: where a new session begins though there is another, or where several could be meant, a notice says which.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from msgspec import Struct

from ..records import SessionRow, SessionView
from .lines import Head
from .thinking_tool import Notice, ThinkingCall

_MAX_NAMED = 3


class KnownSessions(Struct, frozen=True):
    """The sessions that a call without `sessionId` may go on with.

    Args:
        ids: The latest first; none on a connection that is new, and for commands, which share no connection.
        seen: Those whose thoughts the caller knows; None: nothing is kept in mind between calls.
    """

    ids: Sequence[str] = ()
    seen: Collection[str] | None = None


class FoundSession(NamedTuple):
    """A session that a call may go on with, as it stands."""

    row: SessionRow
    head: Head
    view: SessionView


class Choice(NamedTuple):
    """The session to go on with, None for a new one, and what to say about it."""

    candidate: FoundSession | None
    notices: list[Notice]


def choose(call: ThinkingCall, candidates: Sequence[FoundSession], strategy: str | None) -> Choice:
    """Return the session that a call without `sessionId` goes on with.

    It is the open session whose next number the thought has; where several have, or none, the latest one. A new session
    begins where the latest one has ended, where another strategy is named than its own, and where numbers begin at 1
    again.

    Args:
        candidates: The sessions of the connection, the latest first.
        strategy: The canonical name of the strategy that the call names.
    """
    if not candidates:
        return Choice(None, [])
    latest = candidates[0]
    if _begins_anew(call):
        return Choice(None, [_begun_notice("thoughtNumber is 1", latest)])
    fitting = [candidate for candidate in candidates if _thinks_by(candidate, strategy)]
    open_ones = [
        candidate
        for candidate in fitting
        if not candidate.head.ended or (candidate is latest and refers_back(call, candidate.head))
    ]
    expecting = [candidate for candidate in open_ones if _expects(candidate, call)]
    if call.branch_id:
        on_branch = [candidate for candidate in expecting if call.branch_id in candidate.head.branches]
        expecting = on_branch or expecting
    if len(expecting) > 1:
        return Choice(expecting[0], [_ambiguous(call, expecting)])
    if expecting:
        return Choice(expecting[0], [])
    if latest in open_ones:
        return Choice(latest, [])
    if latest not in fitting:
        return Choice(None, [_begun_notice(f"the strategy is {strategy}", latest)])
    return Choice(None, [_begun_notice("the earlier one has ended", latest)])


def refers_back(call: ThinkingCall, head: Head) -> bool:
    """Whether a call refers to earlier thoughts of a session, so that it is meant even after its end."""
    return (
        _is_revision(call)
        or call.needs_more_thoughts
        or call.branch_from_thought is not None
        or call.branch_id in head.branches
        or call.merge_branch in head.branches
    )


def _is_revision(call: ThinkingCall) -> bool:
    return call.is_revision or call.revises_thought is not None


def _begins_anew(call: ThinkingCall) -> bool:
    is_branch = call.branch_from_thought is not None or bool(call.branch_id) or bool(call.merge_branch)
    return call.thought_number == 1 and not _is_revision(call) and not is_branch


def _thinks_by(candidate: FoundSession, strategy: str | None) -> bool:
    """Whether a session thinks by a strategy, or can take it up because none was named in it."""
    return strategy in (None, candidate.row.strategy) or not candidate.head.has_stage


def _expects(candidate: FoundSession, call: ThinkingCall) -> bool:
    """Whether a thought has the next number, on its line or after the latest thought, and refers to what is there."""
    head = candidate.head
    line = head.branches.get(call.branch_id) if call.branch_id else head.main
    lines = [head.line(head.latest), *([] if line is None else [line])]
    references = (call.revises_thought, call.branch_from_thought)
    return any(call.thought_number == line.number + 1 for line in lines) and all(
        number is None or bool(candidate.view.with_number(number)) for number in references
    )


def _begun_notice(why: str, earlier: FoundSession) -> Notice:
    session_id, thoughts = earlier.row.session_id, earlier.row.thoughts
    message = (
        f"A new session was begun: {why}. To go on with the earlier one "
        f'({thoughts} thought{"" if thoughts == 1 else "s"}), pass sessionId "{session_id}".'
    )
    return Notice("session_begun", message)


def _ambiguous(call: ThinkingCall, expecting: Sequence[FoundSession]) -> Notice:
    taken, *others = (candidate.row.session_id for candidate in expecting)
    named = ", ".join(f'"{session_id}"' for session_id in others[:_MAX_NAMED])
    message = (
        f'Thought {call.thought_number} is the next one of several sessions; it was added to "{taken}", the current '
        f"one. Pass sessionId to choose; also open: {named}."
    )
    return Notice("ambiguous_session", message)
