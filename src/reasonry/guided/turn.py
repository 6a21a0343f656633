"""One turn of guided thinking: decides, inside a transaction, what a call makes of its session."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ..core.strategy import Strategy
from ..core.text import first_words
from ..errors import StoreError, TooLargeError, UsageError
from ..records import SessionChange, SessionRow, SessionView, ThoughtRow
from .call_notices import call_notices
from .guidance import with_guidance_given
from .history import HistoryBound, read_latest
from .lines import Head, Place
from .settings import SessionSettings
from .stage_fields import settle_fields
from .thinking_tool import Notice, ThinkingCall
from .thought import Placed, ThoughtRecord, open_session, submit
from .which_session import KnownSession, SessionRequest, which_session

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


@dataclass
class ThinkingTurn:
    """One call, and what it needs to be decided.

    Args:
        request: The call, and how it names its session.
        others: Arguments that the tool does not have; some may be fields of the thought's stage.
        lapses: Whether an expired session is over, rather than continued.
        directory: The working directory, in which a new session is begun.
        history: How many thoughts the reply shows where the call does not say; None: all.
        found: After `decide`: the session to go on with, as it stood; None for a new one.
    """

    request: SessionRequest
    others: Mapping[str, Any]
    lapses: bool
    directory: str
    now_ms: int
    settings: SessionSettings
    find: Find
    history: int | None = 0
    found: SessionRow | None = field(default=None, init=False)

    @property
    def call(self) -> ThinkingCall:
        """The call."""
        return self.request.call

    def decide(self, view: SessionView) -> SessionChange:
        """Take the thought, into the session that is there or into a new one.

        Raises:
            UsageError: The call breaks a rule.
        """
        choice = which_session(self.request, self._look(view), list(self._candidates(view)))
        if choice.session is None:
            strategy = self.find(self.call.strategy)
            row = self._new_row(strategy, choice.new_id)
            head = replace(open_session(), directory=self.directory)
        else:
            row, head, view, _ = choice.session
            assert head is not None, "a session that is gone on with is read"
            self.found = row
            strategy = self._strategy_of(row, head)
        call, unknown = settle_fields(strategy, self.call, self.others, self.settings.max_thought_chars)
        placed = submit(strategy, head, call, _Past(view, row.thoughts), at_ms=self.now_ms)
        placed = replace(placed, head=with_guidance_given(strategy, placed.head))
        self._check_limits(row, head, placed)
        line = head.main if placed.branch is None else head.branches.get(placed.branch, head.main)
        notices = [
            *choice.notices,
            *call_notices(call, unknown, line if head.thoughts else None, view.with_number),
        ]
        seen = None if self.request.bound is None else self.request.bound.seen
        recalls = self.found is not None and seen is not None and row.session_id not in seen
        bound = HistoryBound.of(self.call.history, self.history, self.settings, recalls=recalls)
        before = self._before(view, row, bound)
        row, thought = self._rows_after(replace(row, strategy=strategy.name), placed)
        elsewhere = self.found is not None and row.session_id != self.request.target
        return SessionChange(
            row,
            thought,
            choice.delete,
            Taken(strategy, row, thought, placed, head, before, bound, recalls, notices),
            archive_as=choice.archive_as,
            instead=row.session_id if elsewhere else None,
        )

    def _look(self, view: SessionView) -> KnownSession | None:
        """Return what the store has under the target id; where it stands is read only if a thought may be added."""
        row = view.row
        if row is None:
            return None
        lapsed = self.lapses and is_over(row, self.settings, self.now_ms)
        is_read = not (lapsed or row.run_id or self.call.clear_session or self.request.session_id is None)
        return KnownSession(row, decode_head(row) if is_read else None, view, lapsed)

    def _candidates(self, view: SessionView) -> Iterator[KnownSession]:
        """Return the sessions that a call which names none may go on with."""
        bound, target = self.request.bound, self.request.target
        for session_id in bound.ids if bound is not None and self.request.session_id is None else ():
            # One that is damaged must not stand in the way of the others.
            with contextlib.suppress(StoreError):
                seen = view if session_id == target else view.other(session_id)
                row = seen.row
                if row is None or row.run_id is not None:
                    continue
                if not (self.lapses and is_over(row, self.settings, self.now_ms)):
                    yield KnownSession(row, decode_head(row), seen)

    def _rows_after(self, row: SessionRow, placed: Placed) -> tuple[SessionRow, ThoughtRow]:
        call, count = self.call, row.thoughts + 1
        thought = ThoughtRow(count, call.thought_number, call.thought, placed.branch, encode(placed.record))
        after = replace(
            row, used_at_ms=self.now_ms, status="active", thoughts=count, head=encode(placed.head)
        )
        return after, thought

    def _new_row(self, strategy: Strategy[Any, Any], session_id: str) -> SessionRow:
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
