"""Which session a thought goes to: decided from the call, what its caller is bound to, and what the store has.

Rule 1: all of this is pure, but for new ids. `turn` asks `which_session` inside the transaction that writes the
        thought, with the sessions as they stand.
Rule 2: where a new session begins though there is another, or where several could be meant, a notice says which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec import Struct

from ..errors import ConflictError, NotFoundError, UsageError
from ..reading.arguments import show_value
from ..records import SessionRow, SessionView
from .lines import Head
from .thinker import Bound
from .thinking_tool import Notice, ThinkingCall

_MAX_NAMED = 3


# -- the decision


class SessionRequest(Struct, frozen=True, kw_only=True):
    """A call, and how it names its session.

    Attributes:
        session_id: The session it names; None: one that its caller is bound to, or a new one.
        target: The id under which the store looks first; also that of a new session if none was named.
        new_id: Returns the id of a new session where `target` is taken.
        strategy: The canonical name of the strategy that the call names.
        exact: Whether a new session gets exactly the id asked for.
        begins: Whether a new session may take the place of one that is named and is not there.
        keeps: Whether a session that is cleared is archived, rather than deleted.
    """

    call: ThinkingCall
    session_id: str | None
    bound: Bound | None
    target: str
    new_id: Callable[[], str]
    strategy: str | None = None
    exact: bool = False
    begins: bool = True
    keeps: bool = True


class KnownSession(NamedTuple):
    """A session that the store has.

    Attributes:
        head: Where it stands; None where that does not matter: nothing is added to it.
        is_over: Whether it has expired for good.
    """

    row: SessionRow
    head: Head | None
    view: SessionView
    is_over: bool = False


class SessionChoice(NamedTuple):
    """The session that a call continues, None for a new one, and what becomes of the one it leaves."""

    session: KnownSession | None
    new_id: str
    notices: list[Notice]
    delete: bool = False
    archive_as: str | None = None


def is_lost(request: SessionRequest) -> bool:
    """Whether a call that names no session continues thoughts of which its caller's new connection knows nothing."""
    is_new = request.bound is not None and not request.bound.ids
    call = request.call
    return is_new and request.session_id is None and call.thought_number > 1 and not call.clear_session


def which_session(
    request: SessionRequest, there: KnownSession | None, known: Sequence[KnownSession]
) -> SessionChoice:
    """Return the session that a call means.

    Args:
        there: What the store has under the target id.
        known: The sessions to which the caller is bound and which it can continue, the current one first.

    Raises:
        ConflictError: The call names the record of a run; `run_id` is that run.
        NotFoundError: It names a session that is not there, and may not begin one.
        UsageError: It names what cannot be the id of a session.
    """
    if request.session_id is not None:
        return _by_name(request, there)
    ids = request.bound.ids if request.bound is not None else ()
    if not ids:
        return _new(request, there)
    if request.call.clear_session:
        return _new(request, None) if there is None else _after_clearing(request, there)
    session, notices = choose(request.call, known, request.strategy)
    if session is not None:
        return SessionChoice(session, "", notices)
    if known and known[0].row.session_id == ids[0]:
        return _new(request, there, *notices)
    if there is not None:
        return _after_expiry(request, there)
    message = "The session of this connection is not there any more; a new one was begun."
    return _new(request, None, Notice("unknown", message, ids[0]))


def _by_name(request: SessionRequest, there: KnownSession | None) -> SessionChoice:
    if not request.begins and (there is None or there.is_over):
        raise no_session(request.target)
    if there is None:
        return _new(request, None, *([] if request.exact else [_unknown(request.target)]))
    if there.row.run_id is not None:
        raise ConflictError(
            f"session {there.row.session_id} is the record of run {there.row.run_id}; begin a session of your "
            "own, or resume the run",
            session_id=there.row.session_id,
            run_id=there.row.run_id,
        )
    if request.call.clear_session:
        return _after_clearing(request, there)
    return _after_expiry(request, there) if there.is_over else SessionChoice(there, "", [])


def _new(
    request: SessionRequest,
    there: KnownSession | None,
    *notices: Notice,
    delete: bool = False,
    archive_as: str | None = None,
) -> SessionChoice:
    """Return that a new session begins; it bears the id asked for only if that is to be, and is free."""
    is_free = there is None or delete or archive_as not in (None, request.target)
    takes_target = is_free and (request.exact or (request.session_id is None and there is None))
    new_id = request.target if takes_target else request.new_id()
    return SessionChoice(None, new_id, [*notices], delete, archive_as)


def _after_clearing(request: SessionRequest, there: KnownSession) -> SessionChoice:
    if not request.keeps:
        return _new(request, there, delete=True)
    kept_as = request.new_id() if request.exact else there.row.session_id
    message = f'The earlier session was archived; to continue it, pass sessionId "{kept_as}".'
    return _new(request, there, Notice("archived", message), archive_as=kept_as)


def _after_expiry(request: SessionRequest, there: KnownSession) -> SessionChoice:
    notice = Notice("expired", "This session has expired; a new one was begun.", there.row.session_id)
    return _new(request, there, notice, delete=request.exact or there.row.status == "active")


def _unknown(session_id: str) -> Notice:
    if "/" in session_id or "\\" in session_id or not session_id.isprintable():
        raise UsageError(
            f"sessionId {show_value(session_id)} cannot be the id of a session; leave it out to begin one",
            field="sessionId",
        )
    message = "No session goes by this id (it may have expired or been deleted); a new one was begun."
    return Notice("unknown", message, session_id)


def no_session(session_id: str) -> NotFoundError:
    """Return the error of a call that names a session that is not there."""
    return NotFoundError(
        f"No session {show_value(session_id)}; list the sessions to see which there are",
        session_id=session_id,
    )


# -- which of several


def choose(
    call: ThinkingCall, known: Sequence[KnownSession], strategy: str | None
) -> tuple[KnownSession | None, list[Notice]]:
    """Return the session that a call which names none continues, None for a new one, and what to say about it.

    It is the open session whose next number the thought has; where several have, or none, the latest one. A new session
    begins where the latest one has ended, where another strategy is named than its own, and where numbers begin at 1
    again.

    Args:
        known: The sessions of the caller, the latest first.
        strategy: The canonical name of the strategy that the call names.
    """
    if not known:
        return None, []
    latest = known[0]
    if _begins_anew(call):
        return None, [_begun_notice("thoughtNumber is 1", latest)]
    fitting = [found for found in known if _thinks_by(found, strategy)]
    open_ones = [
        found
        for found in fitting
        if not _head(found).ended or (found is latest and _refers_back(call, _head(found)))
    ]
    expecting = [found for found in open_ones if _expects(found, call)]
    if call.branch_id:
        expecting = [found for found in expecting if call.branch_id in _head(found).branches] or expecting
    if expecting:
        return expecting[0], [_ambiguous(call, expecting)] if len(expecting) > 1 else []
    if latest in open_ones:
        return latest, []
    why = "the earlier one has ended" if latest in fitting else f"the strategy is {strategy}"
    return None, [_begun_notice(why, latest)]


def _head(found: KnownSession) -> Head:
    assert found.head is not None, "a session that may be continued is read"
    return found.head


def _refers_back(call: ThinkingCall, head: Head) -> bool:
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


def _thinks_by(found: KnownSession, strategy: str | None) -> bool:
    """Whether a session thinks by a strategy, or can take it up because none was named in it."""
    return strategy in (None, found.row.strategy) or not _head(found).has_stage


def _expects(found: KnownSession, call: ThinkingCall) -> bool:
    """Whether a thought has the next number, on its line or after the latest thought, and refers to what is there."""
    head = _head(found)
    line = head.branches.get(call.branch_id) if call.branch_id else head.main
    lines = [head.line(head.latest), *([] if line is None else [line])]
    references = (call.revises_thought, call.branch_from_thought)
    return any(call.thought_number == line.number + 1 for line in lines) and all(
        number is None or bool(found.view.with_number(number)) for number in references
    )


def _begun_notice(why: str, earlier: KnownSession) -> Notice:
    session_id, thoughts = earlier.row.session_id, earlier.row.thoughts
    message = (
        f"A new session was begun: {why}. To continue the earlier one "
        f'({thoughts} thought{"" if thoughts == 1 else "s"}), pass sessionId "{session_id}".'
    )
    return Notice("session_begun", message)


def _ambiguous(call: ThinkingCall, expecting: Sequence[KnownSession]) -> Notice:
    taken, *others = (found.row.session_id for found in expecting)
    named = ", ".join(f'"{session_id}"' for session_id in others[:_MAX_NAMED])
    message = (
        f'Thought {call.thought_number} is the next one of several sessions; it was added to "{taken}", the current '
        f"one. Pass sessionId to choose; also open: {named}."
    )
    return Notice("ambiguous_session", message)
