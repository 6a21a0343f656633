"""Choose the session to which a call belongs.

Rule 1: everything here is pure, except that new ids are random. A turn chooses in the transaction of the thought.
Rule 2: a repeated call belongs to the session of the earlier call. Any other thought without a session id continues the
        current session if this session has the thought's number or the previous number. A thought with the number 1 or
        with a different strategy starts a session.
Rule 3: if several sessions fit a call, the branch decides, then the estimate, then the strategy, and then the session
        that was current last. A notice then names the sessions by their first words.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from ..errors import ConflictError, UsageError
from ..records import LAST, SessionRow, SessionView, missing_error, new_id
from ..text import shorten, show_value
from .lines import Head, decode_head, find_repeated
from .thinking_tool import Notice, ThinkingCall

MAX_OPEN = 16
"""The most sessions that a caller remembers. To add another, forget the session that was current longest ago."""
_MAX_NAMED = 3


# -- the memory of a caller


class Seen(NamedTuple):
    """The state of a session when its caller last saw the session."""

    is_open: bool = True
    is_stray: bool = False
    """Whether the session's only thought has a number above 1, so the agent may have lost an earlier session's id."""


@dataclass
class Thinker:
    """A caller (for example an MCP connection), and the sessions that it may continue without an id.

    A session becomes current when this caller starts or resumes it. A session that a call names becomes current only if
    there is no current session, or if the current session has ended or is a stray (see `Seen`).

    Attributes:
        ids: The ids of the caller's sessions, the current session first. Empty for a new caller.
        seen: The sessions whose thoughts the caller has seen, by id. None if nothing is remembered between calls.
        gate: A lock for parallel calls, so that each call knows the sessions that earlier calls started.
        begun_for: For each unknown session name in a call, the id of the session that was started instead.
    """

    ids: list[str] = field(default_factory=list[str])
    seen: dict[str, Seen] | None = field(default_factory=dict[str, Seen])
    begun_for: dict[str, str] = field(default_factory=dict[str, str])
    gate: AbstractAsyncContextManager[object] = field(default_factory=nullcontext, repr=False)

    @property
    def current(self) -> str | None:
        """The id of the current session, or None if the next call starts a new session."""
        return self.ids[0] if self.ids else None

    def session_of(self, call: ThinkingCall) -> str | None:
        """Return the session id that a call names, or None. After thought 1, `begun_for` may replace the id."""
        named = call.session_id
        if named is None:
            return None
        if call.thought_number == 1 or call.clear_session:
            return named
        return self.begun_for.get(named, named)

    def learn(self, call: ThinkingCall, session_id: str, head: Head, choice: SessionChoice) -> None:
        """Remember the session of a thought, and make the session current if the rules of this class say so."""
        named, before = call.session_id, self._seen(self.current or "")
        if call.clear_session:
            self.forget(named or self.current)
        elif named is not None and before.is_stray and self.current != session_id:
            self.forget(self.current)
        is_lone = self.current is None or not before.is_open or before.is_stray
        if named is None or choice.session is None or is_lone:
            self.resume(session_id)
        elif session_id not in self.ids:
            self.ids.append(session_id)
        if named not in (None, session_id, LAST) and not call.clear_session:
            self.begun_for[named] = session_id
        if self.seen is not None:
            self.seen[session_id] = Seen(not head.ended, head.thoughts == 1 < call.thought_number)

    def resume(self, session_id: str) -> None:
        """Make a session the current session. Forget the other sessions that have ended."""
        others = (known for known in self.ids if known != session_id and self._seen(known).is_open)
        self.ids = [session_id, *others][:MAX_OPEN]
        if self.seen is not None:
            self.seen[session_id] = Seen()

    def forget(self, session_id: str | None) -> None:
        """Forget a session."""
        self.ids = [known for known in self.ids if known != session_id]
        if self.seen is not None and session_id is not None:
            self.seen.pop(session_id, None)

    def _seen(self, session_id: str) -> Seen:
        return (self.seen or {}).get(session_id, Seen())


# -- the decision


def run_record_error(row: SessionRow) -> ConflictError:
    """Return the error for an agent that tries to continue the session of a run."""
    name, run_id = row.session_id, row.run_id
    message = (
        f"session {name} is the record of run {run_id}: leave the session id out to begin a session of your own, or "
        "continue the run (`coach` with `answer` or `resume`)"
    )
    return ConflictError(message, session_id=name, run_id=run_id)


@dataclass
class KnownSession:
    """A session in the store, or a new session."""

    row: SessionRow
    view: SessionView
    has_expired: bool = False
    """Whether the session has expired and will be deleted."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.row.session_id

    @cached_property
    def head(self) -> Head:
        """The state of the session. The errors are as in `decode_head`."""
        return decode_head(self.row)

    @property
    def total(self) -> int:
        """The total number of thoughts, as the session's latest thought estimates it."""
        return self.head.line(self.head.latest).total


class SessionChoice(NamedTuple):
    """The session that a call continues. If `session` is None, the call begins the session `new_id`."""

    session: KnownSession | None
    new_id: str = ""
    notices: Sequence[Notice] = ()
    delete: bool = False
    archive_as: str | None = None


class SessionRequest(Struct, frozen=True, kw_only=True):
    """A call and the session to which it refers. The call has the canonical name of its strategy.

    Attributes:
        session_id: The session that the call names. If None, a remembered session or a new session is chosen.
        target: The session id to look up first. If the call names no session, a new session gets this id.
        mark: A checksum that identifies a repetition of the call. If it is 0, every call adds a thought.
        exact: Whether a new session gets exactly the requested id.
        begins: Whether the call may start a new session if the named session does not exist.
        archives: Whether a cleared session is archived rather than deleted.
    """

    call: ThinkingCall
    session_id: str | None
    thinker: Thinker
    target: str
    mark: int
    exact: bool = False
    begins: bool = True
    archives: bool = True

    @property
    def is_lost(self) -> bool:
        """Whether the call continues earlier thoughts, but names no session, and its caller remembers no session."""
        knows = self.session_id is not None or self.thinker.ids
        return not knows and self.call.thought_number > 1 and not self.call.clear_session

    def choose_session(self, there: KnownSession | None, known: Sequence[KnownSession]) -> SessionChoice:
        """Choose the session of the call.

        Args:
            there: The stored session with the target id, if any.
            known: The sessions that the caller remembers. The current session comes first.

        Raises:
            ConflictError: The named session is the record of a run; `run_id` is the id of this run.
            NotFoundError: The named session does not exist, and the call may not start a session.
            UsageError: The name cannot be the id of a session.
        """
        is_named, clears = self.session_id is not None, self.call.clear_session
        if is_named:
            self._check_name(there)
        elif not self.thinker.ids:
            return self._begin(there)
        elif not clears:
            choice = self.choose_among(known)
            if choice.session is not None:
                return choice
            if known and known[0].id == self.thinker.ids[0]:
                return self._begin(there, *choice.notices)
        if there is None:
            message = "The session of this connection is not there any more; a new session was started."
            if is_named:
                message = "Session not found; started a new one."
            is_wanted = self.exact or (clears and not is_named)
            return self._begin(None, *([] if is_wanted else [Notice("unknown", message, self.target)]))
        if clears:
            return self._clear(there)
        if is_named and not there.has_expired:
            return SessionChoice(there)
        notice = Notice("expired", "This session has expired; a new session was started.", there.id)
        return self._begin(there, notice, delete=self.exact or there.row.status == "active")

    def _check_name(self, there: KnownSession | None) -> None:
        name = self.target
        if not self.begins and (there is None or there.has_expired):
            raise missing_error("session", name)
        if there is None and not self.exact and ("/" in name or "\\" in name or not name.isprintable()):
            raise UsageError(
                f"{show_value(name)} cannot be the id of a session; leave the session id out to begin one",
                field="session_id",
            )
        if there is not None and there.row.run_id is not None:
            raise run_record_error(there.row)

    def _clear(self, there: KnownSession) -> SessionChoice:
        if not self.archives:
            return self._begin(there, delete=True)
        kept_as = new_id() if self.exact else there.id
        message = f'The earlier session was archived; to continue it, pass the session id "{kept_as}".'
        return self._begin(there, Notice("archived", message), archive_as=kept_as)

    def _begin(
        self,
        there: KnownSession | None,
        *notices: Notice,
        delete: bool = False,
        archive_as: str | None = None,
    ) -> SessionChoice:
        """Choose a new session. The session gets the requested id only if this id is permitted and free."""
        is_free = there is None or delete or archive_as not in (None, self.target)
        takes_target = is_free and (self.exact or (self.session_id is None and there is None))
        begun = self.target if takes_target else new_id()
        return SessionChoice(None, begun, notices, delete, archive_as)

    # -- one of several sessions

    def choose_among(self, known: Sequence[KnownSession]) -> SessionChoice:
        """Choose the session for a call without a session id. `known` begins with the caller's current session."""
        if not known:
            return SessionChoice(None)
        call, number, current = self.call, self.call.thought_number, known[0]
        for each in known:
            if find_repeated(each.view, each.head, number, call.thought, self.mark):
                return SessionChoice(each)
        if number == 1 and not _refers_to_thoughts(call) and not call.branch_id:
            return _begin_beside(current, "it is thought number 1")
        able = [
            each for each in known if call.strategy in (None, each.row.strategy) or not each.head.has_stage
        ]
        if fitting := self._find_fitting(able, current):
            return self._choose_best(fitting, current)
        why = "the earlier one has ended" if current in able else f"the strategy is {call.strategy}"
        return _begin_beside(current, why)

    def _find_fitting(self, able: Sequence[KnownSession], current: KnownSession) -> Sequence[KnownSession]:
        call = self.call
        fitting = [found for found in able if _fits(call, found, is_current=found is current)]
        if fitting or current not in able or current.head.ended:
            return fitting
        # The number fits no session, so the estimate decides. If no estimate fits, the current session continues.
        estimate = max(call.total_thoughts, call.thought_number)
        others = [] if _refers_to_thoughts(call) else able
        return [found for found in others if found.total == estimate and not found.head.ended] or [current]

    def _choose_best(self, found: Sequence[KnownSession], current: KnownSession) -> SessionChoice:
        """Choose the session that fits the call best. Compare branches, then totals of thoughts, then strategies."""
        call = self.call
        best = max(
            found,
            key=lambda known: (
                call.branch_id in known.head.branches,
                known.total == call.total_thoughts,
                known.head.has_stage and known.row.strategy == call.strategy,
            ),
        )
        others = [*{known.id: known for known in (current, *found) if known is not best}.values()]
        notices = [_chosen(call.thought_number, best, others, is_current=best is current)] if others else []
        return SessionChoice(best, notices=notices)


def _fits(call: ThinkingCall, found: KnownSession, *, is_current: bool) -> bool:
    """Whether a call may continue a session. The session must have the thoughts and branches that the call needs.

    The thought's number must be the next number or an existing number. In the current session, a reference to a thought
    or a branch is enough. Any other session must not have ended. An existing number there requires an equal estimate.
    """
    head, has = found.head, found.view.with_number
    if head.ended and not is_current:
        return False
    references = call.revises_thought, call.branch_from_thought
    merges_other = bool(call.merge_branch) and call.merge_branch not in head.branches
    if merges_other or not all(number is None or has(number) for number in references):
        return False
    line = head.branches.get(call.branch_id) if call.branch_id else head.main
    if call.thought_number in {there.number + 1 for there in (line, head.line(head.latest)) if there}:
        return True
    if not is_current:
        return found.total == call.total_thoughts and bool(has(call.thought_number))
    is_own = _refers_to_thoughts(call) or call.needs_more_thoughts or call.branch_id in head.branches
    return is_own or bool(has(call.thought_number))


def _refers_to_thoughts(call: ThinkingCall) -> bool:
    return bool(call.is_revision or call.revises_thought or call.branch_from_thought or call.merge_branch)


def _begin_beside(earlier: KnownSession, why: str) -> SessionChoice:
    thoughts = earlier.row.thoughts
    message = (
        f"A new session was started: {why}. To continue the earlier one "
        f'({thoughts} thought{"" if thoughts == 1 else "s"}), pass the session id "{earlier.id}".'
    )
    return SessionChoice(None, notices=[Notice("session_begun", message)])


def _chosen(number: int, taken: KnownSession, others: Sequence[KnownSession], *, is_current: bool) -> Notice:
    name, *names = (
        f'"{each.id}" ({shorten(each.row.purpose, 60, one_line=True)})' for each in (taken, *others)
    )
    listed = ", ".join(names[:_MAX_NAMED])
    if is_current:
        message = (
            f"Thought {number} fits several sessions; it was added to {name}, the current one. "
            f"Pass a session id to choose; also open: {listed}."
        )
        return Notice("ambiguous_session", message)
    return Notice(
        "session_changed",
        f"Thought {number} was added to {name}, which it fits better than {listed}. Pass a session id to choose.",
    )
