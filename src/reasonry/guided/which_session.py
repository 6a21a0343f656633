"""The session that a call means: decided from the call, its caller's memory and the store.

Rule 1: all of this is pure, but for new ids. A turn is such a request, and asks inside the transaction that writes the
        thought, with the sessions as they stand.
Rule 2: a thought that names no session stays in the current one where that has its number, or the number before. A
        thought that is kept already is where it was. Number 1 begins a session, and so does another strategy.
Rule 3: of several sessions that a thought may continue, the branch, the estimate and the strategy decide, else the
        latest is taken; no session is left or chosen without a notice that names both, once for each two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from ..errors import ConflictError, UsageError
from ..ids import LAST, no_session
from ..records import SessionRow, SessionView
from ..text import show_value
from .lines import Head, decode_head, find_kept
from .thinking_tool import Notice, ThinkingCall

MAX_OPEN = 16
"""Sessions that a call may continue; the one used longest ago is forgotten beyond that."""
_MAX_NAMED = 3

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
        gate: A lock where its calls come side by side: each is to know of the session that one before has begun.
        begun_for: The session that was begun for a name of which no session was known.
        pairs: The sessions that a notice has named together.
    """

    ids: list[str] = field(default_factory=list[str])
    seen: dict[str, Seen] | None = field(default_factory=dict[str, Seen])
    begun_for: dict[str, str] = field(default_factory=dict[str, str])
    pairs: set[Pair] = field(default_factory=set[Pair])
    gate: AbstractAsyncContextManager[object] = field(default_factory=nullcontext, repr=False)

    @property
    def current(self) -> str | None:
        """The current session; None: the next call begins one."""
        return self.ids[0] if self.ids else None

    def session_of(self, call: ThinkingCall) -> str | None:
        """Return the session that a call names; a name of which none was known means the one begun for it."""
        named = call.session_id
        if named is None:
            return None
        if call.thought_number == 1 or call.clear_session:
            return named
        return self.begun_for.get(named, named)

    def learn(self, call: ThinkingCall, session_id: str, head: Head, choice: SessionChoice) -> None:
        """Keep in mind where a thought went: a session that stands at `head`, and was chosen so."""
        named, before = call.session_id, self._seen(self.current or "")
        if call.clear_session:
            self.forget(named or self.current)
        elif named is not None and before.is_stray and self.current != session_id:
            self.forget(self.current)
        is_lone = self.current is None or not before.is_open or before.is_stray
        if named is None or choice.session is None or is_lone:
            self.bind(session_id)
        elif session_id not in self.ids:
            self.ids.append(session_id)
        if named not in (None, session_id, LAST) and not call.clear_session:
            self.begun_for[named] = session_id
        self.pairs.update(choice.pairs)
        if self.seen is not None:
            self.seen[session_id] = Seen(not head.ended, head.thoughts == 1 < call.thought_number)

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

    @property
    def total(self) -> int:
        """Thoughts expected, as of its latest thought."""
        return self.head.line(self.head.latest).total


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

    @property
    def is_lost(self) -> bool:
        """Whether it names no session and continues thoughts, and no session is known that it may mean."""
        knows = self.session_id is not None or (self.thinker is not None and self.thinker.ids)
        return not knows and self.call.thought_number > 1 and not self.call.clear_session

    def which_session(self, there: KnownSession | None, known: Sequence[KnownSession]) -> SessionChoice:
        """Return the session that the call means.

        Args:
            there: What the store has under the target id.
            known: The sessions to which the caller is bound and which it can continue, the current one first.

        Raises:
            ConflictError: The call names the record of a run; `run_id` is that run.
            NotFoundError: It names a session that is not there, and may not begin one.
            UsageError: It names what cannot be the id of a session.
        """
        is_named, clears = self.session_id is not None, self.call.clear_session
        if is_named:
            self._check_name(there)
        elif self.thinker is None or not self.thinker.ids:
            return self._begin(there)
        elif not clears:
            choice = self.choose(known)
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
        if is_named and not there.is_over:
            return SessionChoice(there)
        notice = Notice("expired", "This session has expired; a new session was started.", there.id)
        return self._begin(there, notice, delete=self.exact or there.row.status == "active")

    def _check_name(self, there: KnownSession | None) -> None:
        """Refuse a call that names what cannot be a session of its own."""
        name = self.target
        if not self.begins and (there is None or there.is_over):
            raise no_session(name)
        if there is None and not self.exact and ("/" in name or "\\" in name or not name.isprintable()):
            raise UsageError(
                f"{show_value(name)} cannot be the id of a session; leave the session id out to begin one",
                field="session_id",
            )
        if there is not None and (run_id := there.row.run_id) is not None:
            raise ConflictError(
                f"session {name} is the record of run {run_id}; begin a session of your own, or resume the run",
                session_id=name,
                run_id=run_id,
            )

    def _clear(self, there: KnownSession) -> SessionChoice:
        if not self.keeps:
            return self._begin(there, delete=True)
        kept_as = self.new_id() if self.exact else there.id
        message = f'The earlier session was archived; to continue it, pass the session id "{kept_as}".'
        return self._begin(there, Notice("archived", message), archive_as=kept_as)

    def _begin(
        self,
        there: KnownSession | None,
        *notices: Notice,
        delete: bool = False,
        archive_as: str | None = None,
    ) -> SessionChoice:
        """Return that a new session begins; it bears the id asked for only if that is to be, and is free."""
        is_free = there is None or delete or archive_as not in (None, self.target)
        takes_target = is_free and (self.exact or (self.session_id is None and there is None))
        new_id = self.target if takes_target else self.new_id()
        return SessionChoice(None, new_id, notices, delete, archive_as)

    # -- which of several

    def choose(self, known: Sequence[KnownSession]) -> SessionChoice:
        """Return the session that a call which names none continues; None for a new one.

        Args:
            known: The sessions of the caller, the current one first.
        """
        if not known:
            return SessionChoice(None)
        call, strategy, current, number = self.call, self.strategy, known[0], self.call.thought_number
        for found in known:
            if find_kept(found.view, found.head, number, call.thought, self.mark):
                return SessionChoice(found)
        if number == 1 and not _refers(call) and not call.branch_id:
            return SessionChoice(None, notices=[_begun("it is thought number 1", current)])
        able = [
            found for found in known if strategy in (None, found.row.strategy) or not found.head.has_stage
        ]
        fitting = [found for found in able if self._fits(found, is_current=found is current)]
        if not fitting and current in able and not current.head.ended:
            # Its number fits nowhere, so the estimate decides; else it stays.
            estimate = max(call.total_thoughts, number)
            others = [] if _refers(call) else [found for found in able if not found.head.ended]
            fitting = [found for found in others if found.total == estimate] or [current]
        if not fitting:
            why = "the earlier one has ended" if current in able else f"the strategy is {strategy}"
            return SessionChoice(None, notices=[_begun(why, current)])
        # Branch, estimate and strategy decide where they can, else the first.
        taken = max(
            fitting,
            key=lambda found: (
                call.branch_id in found.head.branches,
                found.total == call.total_thoughts,
                found.head.has_stage and found.row.strategy == strategy,
            ),
        )
        ids = dict.fromkeys([current.id, *(found.id for found in fitting)])
        named = self.thinker.pairs if self.thinker else ()
        new = [other for other in ids if other != taken.id and Pair((taken.id, other)) not in named]
        notices = [_chosen(number, taken.id, current.id, new)] if new else []
        return SessionChoice(taken, notices=notices, pairs=[Pair((taken.id, other)) for other in new])

    def _fits(self, found: KnownSession, *, is_current: bool) -> bool:
        """Whether a session has all that a thought refers to, and the thought's number or the one before.

        One that is not the current one must be open, and have the thought as its next, or the same estimate.
        """
        call, head, has = self.call, found.head, found.view.with_number
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
        is_own = _refers(call) or call.needs_more_thoughts or call.branch_id in head.branches
        return is_own or bool(has(call.thought_number))


def _refers(call: ThinkingCall) -> bool:
    """Whether a thought says that it builds on others of its session."""
    return bool(call.is_revision or call.revises_thought or call.branch_from_thought or call.merge_branch)


def _begun(why: str, earlier: KnownSession) -> Notice:
    thoughts = earlier.row.thoughts
    message = (
        f"A new session was started: {why}. To continue the earlier one "
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
