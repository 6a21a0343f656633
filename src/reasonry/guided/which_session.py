"""Which session a call means: decided from the call, what its caller has in mind, and what the store has.

Rule 1: all of this is pure, but for new ids. `turn` asks `which_session` inside the transaction that writes the
        thought, with the sessions as they stand.
Rule 2: a thought that names no session stays in the current one where that has its number, or the number before. A
        thought that is kept already is where it was. Number 1 begins a session, and so does another strategy.
Rule 3: of several sessions that a thought may continue, the branch, the estimate and the strategy decide, else the
        latest is taken; no session is left or chosen without a notice that names both, once for each two of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from ..errors import ConflictError, NotFoundError, UsageError
from ..ids import LAST
from ..reading.arguments import show_value
from ..records import SessionRow, SessionView
from .lines import Head, decode_head, find_kept
from .thinking_tool import Notice, ThinkingCall

MAX_OPEN = 16
"""Sessions that a call may continue; the one used longest ago is forgotten beyond that."""
_MAX_NAMED = 3
_SURE_CHARS = 18
"""The beginning of an id that is taken for one of a session which the caller knows, whatever others there are."""

Pair = frozenset[str]


# -- what a caller has in mind


class Seen(NamedTuple):
    """A session as its caller last saw it."""

    is_open: bool = True
    is_stray: bool = False
    """Whether an agent began it that had lost the id of the session it meant."""


@dataclass
class Thinker:
    """A caller, such as the connection of an agent: the sessions that thoughts may continue which name none.

    A session becomes the current one when it is begun or resumed here. An existing one that a call names is for
    that call; where no other is open, or the current one is a stray, it becomes the current one.

    Attributes:
        ids: The current session first; empty for a caller that is new.
        seen: The sessions whose thoughts the caller knows; None: nothing is kept in mind between its calls.
        gate: Has its calls reach the store one by one, so that each knows of the session that one before has begun.
        begun_for: The session that was begun for a name of which no session was known.
        pairs: The sessions that a notice has named together.
    """

    ids: list[str] = field(default_factory=list[str])
    seen: dict[str, Seen] | None = field(default_factory=dict[str, Seen])
    begun_for: dict[str, str] = field(default_factory=dict[str, str])
    pairs: set[Pair] = field(default_factory=set[Pair])
    gate: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    @property
    def current(self) -> str | None:
        """The current session; None: the next call begins one."""
        return self.ids[0] if self.ids else None

    def session_of(self, call: ThinkingCall) -> str | None:
        """Return the session that a call names; a name of which none was known means the one begun for it."""
        named = call.session_id
        if named is None:
            return None
        if self.seen and named not in self.seen and len(named) >= _SURE_CHARS:
            named = next((known for known in self.seen if known.startswith(named)), named)
        if call.thought_number == 1 or call.clear_session:
            return named
        return self.begun_for.get(named, named)

    def learn(
        self,
        call: ThinkingCall,
        session_id: str,
        now: Seen,
        *,
        leads: bool = False,
        pairs: Iterable[Pair] = (),
    ) -> None:
        """Keep in mind where a thought went.

        Args:
            leads: Whether the session becomes the current one, even where the call names it.
            pairs: The sessions that its notices named together.
        """
        named, before = call.session_id, self._seen(self.current or "")
        if call.clear_session:
            self.forget(named or self.current)
        elif named is not None and before.is_stray and self.current != session_id:
            self.forget(self.current)
        if named is None or leads or self.current is None or not before.is_open or before.is_stray:
            self.bind(session_id)
        elif session_id not in self.ids:
            self.ids.append(session_id)
        if named not in (None, session_id, LAST) and not call.clear_session:
            self.begun_for[named] = session_id
        self.pairs.update(pairs)
        if self.seen is not None:
            self.seen[session_id] = now

    def bind(self, session_id: str) -> None:
        """Make a session the current one; of the others those stay that have not ended."""
        others = (known for known in self.ids if known != session_id and self._seen(known).is_open)
        self.ids = [session_id, *others][:MAX_OPEN]

    def resume(self, session_id: str) -> None:
        """Make a session that is open the current one."""
        self.bind(session_id)
        if self.seen is not None:
            self.seen[session_id] = Seen()

    def forget(self, session_id: str | None) -> None:
        """Let no later call continue a session."""
        self.ids = [known for known in self.ids if known != session_id]
        if self.seen is not None and session_id is not None:
            self.seen.pop(session_id, None)

    def _seen(self, session_id: str) -> Seen:
        return (self.seen or {}).get(session_id, Seen())


# -- the decision


class SessionRequest(Struct, frozen=True, kw_only=True):
    """A call, and how it names its session.

    Attributes:
        session_id: The session it names; None: one that its caller is bound to, or a new one.
        target: The id under which the store looks first; also that of a new session if none was named.
        new_id: Returns the id of a new session where `target` is taken.
        strategy: The canonical name of the strategy that the call names.
        mark: Tells the call from others; 0: an identical one is a thought of its own.
        exact: Whether a new session gets exactly the id asked for.
        begins: Whether a new session may take the place of one that is named and is not there.
        keeps: Whether a session that is cleared is archived, rather than deleted.
    """

    call: ThinkingCall
    session_id: str | None
    thinker: Thinker | None
    target: str
    new_id: Callable[[], str]
    strategy: str | None = None
    mark: int
    exact: bool = False
    begins: bool = True
    keeps: bool = True


@dataclass
class KnownSession:
    """A session that the store has.

    Attributes:
        is_over: Whether it has expired for good.
    """

    row: SessionRow
    view: SessionView
    is_over: bool = False

    @property
    def id(self) -> str:
        """Its id."""
        return self.row.session_id

    @cached_property
    def head(self) -> Head:
        """Where it stands; raises as `decode_head`."""
        return decode_head(self.row)


class SessionChoice(NamedTuple):
    """The session that a call continues, None for a new one, and what becomes of the one it leaves.

    Attributes:
        pairs: The sessions that the notices name together for the first time.
    """

    session: KnownSession | None
    new_id: str = ""
    notices: Sequence[Notice] = ()
    delete: bool = False
    archive_as: str | None = None
    pairs: Sequence[Pair] = ()


def is_lost(request: SessionRequest) -> bool:
    """Whether a call that names no session continues thoughts of which its caller's new connection knows nothing."""
    is_new = request.thinker is not None and not request.thinker.ids
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
    thinker, call = request.thinker, request.call
    if thinker is None or not thinker.ids:
        return _new(request, there)
    if call.clear_session:
        return _new(request, None) if there is None else _after_clearing(request, there)
    choice = choose(request, known)
    if choice.session is not None:
        return choice
    if known and known[0].id == thinker.ids[0]:
        return _new(request, there, *choice.notices)
    if there is not None:
        return _after_expiry(request, there)
    message = "The session of this connection is not there any more; a new one was begun."
    return _new(request, None, Notice("unknown", message, thinker.ids[0]))


def _by_name(request: SessionRequest, there: KnownSession | None) -> SessionChoice:
    if not request.begins and (there is None or there.is_over):
        raise no_session(request.target)
    if there is None:
        name = request.target
        if not request.exact and ("/" in name or "\\" in name or not name.isprintable()):
            raise UsageError(
                f"{show_value(name)} cannot be the id of a session; leave the session id out to begin one",
                field="session_id",
            )
        message = "No session goes by this id (it may have expired or been deleted); a new one was begun."
        return _new(request, None, *([] if request.exact else [Notice("unknown", message, name)]))
    if there.row.run_id is not None:
        raise ConflictError(
            f"session {there.id} is the record of run {there.row.run_id}; begin a session of your own, or resume the "
            "run",
            session_id=there.id,
            run_id=there.row.run_id,
        )
    if request.call.clear_session:
        return _after_clearing(request, there)
    return _after_expiry(request, there) if there.is_over else SessionChoice(there)


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
    return SessionChoice(None, new_id, notices, delete, archive_as)


def _after_clearing(request: SessionRequest, there: KnownSession) -> SessionChoice:
    if not request.keeps:
        return _new(request, there, delete=True)
    kept_as = request.new_id() if request.exact else there.id
    message = f'The earlier session was archived; to continue it, pass the session id "{kept_as}".'
    return _new(request, there, Notice("archived", message), archive_as=kept_as)


def _after_expiry(request: SessionRequest, there: KnownSession) -> SessionChoice:
    notice = Notice("expired", "This session has expired; a new one was begun.", there.id)
    return _new(request, there, notice, delete=request.exact or there.row.status == "active")


def no_session(session_id: str) -> NotFoundError:
    """Return the error of a call that names a session that is not there."""
    return NotFoundError(
        f"No session {show_value(session_id)}; list the sessions to see which there are",
        session_id=session_id,
    )


# -- which of several


def choose(request: SessionRequest, known: Sequence[KnownSession]) -> SessionChoice:
    """Return the session that a call which names none continues; None for a new one.

    Args:
        known: The sessions of the caller, the current one first.
    """
    if not known:
        return SessionChoice(None)
    call, strategy, current, number = request.call, request.strategy, known[0], request.call.thought_number
    for found in known:
        if find_kept(found.view, found.head, number, call.thought, request.mark):
            return SessionChoice(found)
    if number == 1 and not _refers(call) and not call.branch_id:
        return SessionChoice(None, notices=[_begun("it is thought number 1", current)])
    able = [found for found in known if strategy in (None, found.row.strategy) or not found.head.has_stage]
    fitting = [found for found in able if _fits(call, found, is_current=found is current)]
    if not fitting and current in able and not current.head.ended:
        # Its number fits nowhere, so the estimate decides; else it stays.
        estimate = max(call.total_thoughts, number)
        others = [] if _refers(call) else [found for found in able if not found.head.ended]
        fitting = [found for found in others if _total(found.head) == estimate] or [current]
    if not fitting:
        why = "the earlier one has ended" if current in able else f"the strategy is {strategy}"
        return SessionChoice(None, notices=[_begun(why, current)])
    taken = _narrow(call, fitting, strategy)
    rivals = [] if taken is current else [current]
    rivals += [found for found in fitting if found is not taken and found is not current]
    named = request.thinker.pairs if request.thinker else ()
    new = [found.id for found in rivals if Pair((taken.id, found.id)) not in named]
    notices = [_chosen(number, taken.id, current.id, new)] if new else []
    return SessionChoice(taken, notices=notices, pairs=[Pair((taken.id, other)) for other in new])


def _fits(call: ThinkingCall, found: KnownSession, *, is_current: bool) -> bool:
    """Whether a session has all that a thought refers to, and the thought's number or the one before.

    One that is not the current one must be open, and have the thought as its next, or the same estimate.
    """
    head, number, view = found.head, call.thought_number, found.view
    if head.ended and not is_current:
        return False
    references = [number for number in (call.revises_thought, call.branch_from_thought) if number is not None]
    if not all(map(view.with_number, references)) or (call.merge_branch or None) not in (
        None,
        *head.branches,
    ):
        return False
    line = head.branches.get(call.branch_id) if call.branch_id else head.main
    if number in {found.number + 1 for found in (line, head.line(head.latest)) if found is not None}:
        return True
    if not is_current:
        return _total(head) == call.total_thoughts and bool(view.with_number(number))
    return (
        _refers(call)
        or call.needs_more_thoughts
        or call.branch_id in head.branches
        or bool(view.with_number(number))
    )


def _narrow(call: ThinkingCall, fitting: Sequence[KnownSession], strategy: str | None) -> KnownSession:
    """Return the session that a thought is added to: branch, estimate and strategy decide where they can."""
    return max(
        fitting,
        key=lambda found: (
            call.branch_id in found.head.branches,
            _total(found.head) == call.total_thoughts,
            found.head.has_stage and found.row.strategy == strategy,
        ),
    )


def _total(head: Head) -> int:
    return head.line(head.latest).total


def _refers(call: ThinkingCall) -> bool:
    """Whether a thought says that it builds on others of its session."""
    return bool(call.is_revision or call.revises_thought or call.branch_from_thought or call.merge_branch)


def _begun(why: str, earlier: KnownSession) -> Notice:
    thoughts = earlier.row.thoughts
    message = (
        f"A new session was begun: {why}. To continue the earlier one "
        f'({thoughts} thought{"" if thoughts == 1 else "s"}), pass the session id "{earlier.id}".'
    )
    return Notice("session_begun", message)


def _chosen(number: int, taken: str, current: str, others: Sequence[str]) -> Notice:
    listed = ", ".join(f'"{session_id}"' for session_id in others[:_MAX_NAMED])
    if taken == current:
        message = (
            f'Thought {number} fits several sessions; it was added to "{taken}", the current one. '
            f"Pass a session id to choose; also open: {listed}."
        )
        return Notice("ambiguous_session", message)
    return Notice(
        "session_changed",
        f'Thought {number} was added to "{taken}", which it fits better than {listed}. Pass a session id to choose.',
    )
