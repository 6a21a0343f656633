"""One turn of guided thinking: decides, inside a transaction, what a call makes of its session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.strategy import Strategy
from ..core.text import first_words
from ..errors import ConflictError, NotFoundError, StoreError, TooLargeError, UsageError
from ..records import SessionChange, SessionRow, SessionView, ThoughtRow
from .arguments import show_value
from .call_notices import call_notices
from .guidance import with_guidance_given
from .history import HistoryBound, read_latest
from .known_sessions import FoundSession, KnownSessions, choose
from .lines import Head, Place
from .settings import SessionSettings
from .stage_fields import settle_fields
from .thinking_tool import Notice, ThinkingCall
from .thought import Placed, ThoughtRecord, open_session, submit

PURPOSE_CHARS = 100

T = TypeVar("T")

encode = msgspec.json.Encoder().encode
_heads = msgspec.json.Decoder(Head)
_records = msgspec.json.Decoder(ThoughtRecord)

Find = Callable[[str | None], Strategy[Any, Any]]
"""Returns a strategy by name or alias; for None the one that sessions think by where none is named."""


def decode_head(row: SessionRow) -> Head:
    """Return where the lines of a session stand.

    Raises:
        StoreError: `store_corrupt`: it cannot be read.
    """
    return decode_stored(_heads, row.head, f"session {row.session_id}")


def decode_record(thought: ThoughtRow) -> ThoughtRecord:
    """Return what is kept of a thought besides its text, number and branch; raises as `decode_head`."""
    return decode_stored(_records, thought.body, f"thought {thought.seq}")


def decode_stored(decoder: msgspec.json.Decoder[T], body: bytes, subject: str) -> T:
    """Return what a store keeps as JSON; raises as `decode_head`."""
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        message = f"{subject} is damaged: {error}. Restore it from a backup"
        raise StoreError(message, code="store_corrupt") from error


class Taken(Struct, frozen=True):
    """What came of a turn: the session and the thought as written.

    Attributes:
        earlier: Where the session stood before.
        before: The latest thoughts before, as many as the reply needs; at the end all.
        recalls: Whether the connection sees an earlier session for the first time.
    """

    strategy: Strategy[Any, Any]
    row: SessionRow
    thought: ThoughtRow
    placed: Placed
    earlier: Head
    before: list[ThoughtRow]
    bound: HistoryBound
    recalls: bool
    notices: list[Notice]


class _Past:
    """The thoughts of a session as the rules see them; read only where a rule asks."""

    def __init__(self, view: SessionView, thoughts: int) -> None:
        self._view = view
        self._thoughts = thoughts

    def with_number(self, number: int) -> Iterable[Place]:
        return self._places(self._view.with_number(number) if self._thoughts else [])

    def places(self) -> Iterable[Place]:
        return self._places(self._view.latest(self._thoughts))

    def _places(self, thoughts: Sequence[ThoughtRow]) -> Iterator[Place]:
        for thought in reversed(thoughts):
            yield Place(thought.number, thought.branch, decode_record(thought).stage, thought.seq)


class _Going(NamedTuple):
    """The session that a call goes on with, if any, and what becomes of one that it leaves."""

    candidate: FoundSession | None
    notices: list[Notice]
    delete: bool = False
    archive_as: str | None = None


@dataclass
class ThinkingTurn:
    """One call, and what it needs to be decided.

    Args:
        others: Arguments that the tool does not have; some may be fields of the thought's stage.
        asked: The session that the call names; None: one of those known, or a new one.
        known: The sessions of the connection.
        target: The id under which the store looks; also that of a new session if no id was asked for.
        exact: Whether a new session gets exactly the id asked for.
        begins: Whether a new session may take the place of one that is asked for and is not there.
        lapses: Whether an expired session is over, rather than continued.
        keeps: Whether a session that is cleared is archived, rather than deleted.
        directory: The working directory, in which a new session is begun.
        history: How many thoughts the reply shows where the call does not say; None: all.
        found: After `decide`: the session to go on with, as it stood; None for a new one.
    """

    call: ThinkingCall
    others: Mapping[str, Any]
    asked: str | None
    known: KnownSessions
    target: str
    exact: bool
    lapses: bool
    keeps: bool
    directory: str
    now_ms: int
    settings: SessionSettings
    find: Find
    new_id: Callable[[], str]
    history: int | None = 0
    begins: bool = True
    found: SessionRow | None = field(default=None, init=False)

    def decide(self, view: SessionView) -> SessionChange:
        """Take the thought, into the session that is there or into a new one.

        Raises:
            UsageError: The call breaks a rule.
        """
        going = self._of_connection(view) if self.asked is None else self._by_id(view)
        if going.candidate is None:
            strategy = self.find(self.call.strategy)
            row = self._new_row(strategy, view.row, going)
            head = replace(open_session(), directory=self.directory)
        else:
            row, head, view = going.candidate
            self.found = row
            strategy = self._strategy_of(row, head)
        call, unknown = settle_fields(strategy, self.call, self.others, self.settings.max_thought_chars)
        placed = submit(strategy, head, call, _Past(view, row.thoughts), at_ms=self.now_ms)
        placed = replace(placed, head=with_guidance_given(strategy, placed.head))
        self._check_limits(row, head, placed)
        line = head.main if placed.branch is None else head.branches.get(placed.branch, head.main)
        going.notices.extend(call_notices(call, unknown, line if head.thoughts else None, view.with_number))
        seen = self.known.seen
        recalls = self.found is not None and seen is not None and row.session_id not in seen
        bound = HistoryBound.of(self.call.history, self.history, self.settings, recalls=recalls)
        before = self._before(view, row, bound)
        row, thought = self._rows_after(replace(row, strategy=strategy.name), placed)
        taken = Taken(strategy, row, thought, placed, head, before, bound, recalls, going.notices)
        elsewhere = self.found is not None and row.session_id != self.target
        return SessionChange(
            row,
            thought,
            going.delete,
            taken,
            archive_as=going.archive_as,
            instead=row.session_id if elsewhere else None,
        )

    def _rows_after(self, row: SessionRow, placed: Placed) -> tuple[SessionRow, ThoughtRow]:
        call, count = self.call, row.thoughts + 1
        thought = ThoughtRow(count, call.thought_number, call.thought, placed.branch, encode(placed.record))
        after = replace(
            row, used_at_ms=self.now_ms, status="active", thoughts=count, head=encode(placed.head)
        )
        return after, thought

    def _by_id(self, view: SessionView) -> _Going:
        """Return how the session that the call names goes on."""
        if not self.begins and (view.row is None or self._is_over(view)):
            raise no_session(self.target)
        if view.row is None:
            return _Going(None, [] if self.exact else [self._unknown()])
        if view.row.run_id is not None:
            raise ConflictError(
                f"session {view.row.session_id} is the record of run {view.row.run_id}; begin a session of your "
                "own, or resume the run",
                session_id=view.row.session_id,
                run_id=view.row.run_id,
            )
        if self.call.clear_session:
            return self._after_clearing(view.row)
        if self._is_over(view):
            return self._after_expiry(view.row)
        return _Going(FoundSession(view.row, decode_head(view.row), view), [])

    def _of_connection(self, view: SessionView) -> _Going:
        """Return how a call that names no session goes on."""
        ids = self.known.ids
        if not ids:
            return _Going(None, [])
        if self.call.clear_session:
            return _Going(None, []) if view.row is None else self._after_clearing(view.row)
        candidates = list(self._candidates(view))
        wanted = None if self.call.strategy is None else self.find(self.call.strategy).name
        choice = choose(self.call, candidates, wanted)
        if choice.candidate is not None or (candidates and candidates[0].row.session_id == ids[0]):
            return _Going(*choice)
        if view.row is not None:
            return self._after_expiry(view.row)
        message = "The session of this connection is not there any more; a new one was begun."
        return _Going(None, [Notice("unknown", message, ids[0])])

    def _candidates(self, view: SessionView) -> Iterator[FoundSession]:
        for session_id in self.known.ids:
            # One that is damaged must not stand in the way of the others.
            with contextlib.suppress(StoreError):
                seen = view if session_id == self.target else view.other(session_id)
                if seen.row is not None and seen.row.run_id is None and not self._is_over(seen):
                    yield FoundSession(seen.row, decode_head(seen.row), seen)

    def _is_over(self, view: SessionView) -> bool:
        return self.lapses and view.row is not None and is_over(view.row, self.settings, self.now_ms)

    def _after_clearing(self, row: SessionRow) -> _Going:
        """Return how a new session takes the place of one that is not wanted any more."""
        if not self.keeps:
            return _Going(None, [], delete=True)
        kept_as = self.new_id() if self.exact else row.session_id
        message = f'The earlier session was archived; to go on with it, pass sessionId "{kept_as}".'
        return _Going(None, [Notice("archived", message)], archive_as=kept_as)

    def _after_expiry(self, row: SessionRow) -> _Going:
        notice = Notice("expired", "This session has expired; a new one was begun.", row.session_id)
        return _Going(None, [notice], delete=self.exact or row.status == "active")

    def _unknown(self) -> Notice:
        assert self.asked is not None
        if "/" in self.asked or "\\" in self.asked or not self.asked.isprintable():
            raise UsageError(
                f"sessionId {show_value(self.asked)} cannot be the id of a session; leave it out to begin one",
                field="sessionId",
            )
        message = "No session goes by this id (it may have expired or been deleted); a new one was begun."
        return Notice("unknown", message, self.asked)

    def _new_row(self, strategy: Strategy[Any, Any], there: SessionRow | None, going: _Going) -> SessionRow:
        """Return the row of a new session; it bears the id asked for only if that is to be, and is free."""
        is_free = there is None or going.delete or going.archive_as not in (None, self.target)
        takes_target = is_free and (self.exact or (self.asked is None and there is None))
        session_id = self.target if takes_target else self.new_id()
        purpose = first_words(self.call.thought, PURPOSE_CHARS)
        return SessionRow(session_id, strategy.name, self.now_ms, self.now_ms, purpose=purpose)

    def _strategy_of(self, row: SessionRow, head: Head) -> Strategy[Any, Any]:
        """Return the strategy of a session; the first one named in a session without one is taken up."""
        strategy = self.find(row.strategy)
        if self.call.strategy is None:
            return strategy
        wanted = self.find(self.call.strategy)
        if wanted.name == row.strategy or not head.has_stage:
            return wanted
        raise UsageError(
            f"session {row.session_id} thinks by {row.strategy}, and a session keeps its strategy; for {wanted.name} "
            "begin a new one: leave sessionId out, with thoughtNumber 1",
            field="strategy",
            choices=[row.strategy],
        )

    def _check_limits(self, row: SessionRow, head: Head, placed: Placed) -> None:
        limit = self.settings.max_thoughts
        if row.thoughts >= limit:
            raise TooLargeError(
                f"session {row.session_id} has {row.thoughts:,} thoughts; the limit is {limit:,}. "
                "Begin a new session.",
                limit=limit,
            )
        limit = self.settings.max_branches
        if len(placed.head.branches) > max(limit, len(head.branches)):
            raise TooLargeError(
                f"session {row.session_id} has {len(head.branches):,} branches; the limit is {limit:,}. "
                "Go on with one of them, or begin a new session.",
                field="branchId",
                limit=limit,
            )

    def _before(self, view: SessionView, row: SessionRow, bound: HistoryBound) -> list[ThoughtRow]:
        if row.thoughts == 0:
            return []
        if not self.call.next_thought_needed:
            return view.latest(row.thoughts)
        return read_latest(view, bound, row.thoughts)


def is_over(row: SessionRow, settings: SessionSettings, now_ms: int) -> bool:
    """Whether a session's time to live has run out."""
    return not row.pinned and row.used_at_ms + settings.ttl_s * 1_000 < now_ms


def no_session(session_id: str) -> NotFoundError:
    """Return the error of a call that names a session that is not there."""
    return NotFoundError(
        f"No session {show_value(session_id)}; `list` shows which there are", sessionId=session_id
    )
