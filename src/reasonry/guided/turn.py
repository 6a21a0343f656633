"""One turn of guided thinking: decides, inside a transaction, what a call makes of its session."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ..core.strategy import Strategy
from ..errors import ConflictError, StoreError, TooLargeError, UsageError
from ..records import SessionChange, SessionRow, SessionView, ThoughtRow
from .arguments import show_value
from .call_notices import call_notices
from .history import HistoryBound, read_latest
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

    def numbered(self, number: int) -> Iterable[Place]:
        return self._places(self._view.numbered(number) if self._thoughts else [])

    def places(self) -> Iterable[Place]:
        return self._places(self._view.latest(self._thoughts))

    def _places(self, thoughts: Sequence[ThoughtRow]) -> Iterator[Place]:
        for thought in reversed(thoughts):
            yield Place(thought.number, thought.branch, decode_record(thought).stage, thought.seq)


@dataclass
class ThinkingTurn:
    """One call, and what it needs to be decided.

    Args:
        others: Arguments that the tool does not have; some may be fields of the thought's stage.
        asked: The session the call is for; None: a new one.
        target: The id under which the store looks; also that of a new session if no id was asked for.
        exact: Whether a new session gets exactly the id asked for.
        lapses: Whether an expired session is over, rather than continued.
        history: How many thoughts the reply shows where the call does not say; None: all.
        touched: The sessions the caller has seen a reply of; None: that is not known.
        found: After `decide`: how many thoughts the session to go on with had; 0 for a new one.
    """

    call: ThinkingCall
    others: Mapping[str, Any]
    asked: str | None
    target: str
    exact: bool
    lapses: bool
    now_ms: int
    settings: SessionSettings
    find: Find
    new_id: Callable[[], str]
    history: int | None = 0
    touched: Container[str] | None = None
    found: int = field(default=0, init=False)

    def decide(self, view: SessionView) -> SessionChange:
        """Take the thought, into the session that is there or into a new one.

        Raises:
            UsageError: The call breaks a rule.
        """
        row, notices = self._going_on(view)
        self.found = 0 if row is None else row.thoughts
        delete = row is None and view.row is not None and self._replaces(view.row)
        if row is None:
            strategy = self.find(self.call.strategy or None)
            row, head = self._new_row(strategy, view.row, delete), open_session()
        else:
            strategy, head = self._same_strategy(row), decode_head(row)
        call, unknown = settle_fields(strategy, self.call, self.others, self.settings.max_thought_chars)
        placed = submit(strategy, head, call, _Past(view, row.thoughts), at_ms=self.now_ms)
        self._check_limits(row, head, placed)
        line = head.main if placed.branch is None else head.branches.get(placed.branch, head.main)
        notices += call_notices(call, unknown, line if head.thoughts else None, view.numbered)
        recalls = self.found > 0 and self.touched is not None and row.session_id not in self.touched
        bound = HistoryBound.of(self.call.history, self.history, self.settings, recalls=recalls)
        before = self._before(view, row, bound)
        row, thought = self._rows_after(row, placed)
        taken = Taken(strategy, row, thought, placed, head, before, bound, recalls, notices)
        return SessionChange(row, thought, delete, taken)

    def _rows_after(self, row: SessionRow, placed: Placed) -> tuple[SessionRow, ThoughtRow]:
        call, count = self.call, row.thoughts + 1
        thought = ThoughtRow(count, call.thought_number, call.thought, placed.branch, encode(placed.record))
        after = SessionRow(
            row.session_id,
            row.strategy,
            row.created_at_ms,
            self.now_ms,
            pinned=row.pinned,
            thoughts=count,
            purpose=row.purpose,
            head=encode(placed.head),
        )
        return after, thought

    def _going_on(self, view: SessionView) -> tuple[SessionRow | None, list[Notice]]:
        """Return the session to go on with, if any."""
        row = view.row
        if row is None:
            return None, [] if self.asked is None or self.exact else [self._unknown()]
        if row.run_id is not None:
            raise ConflictError(
                f"session {row.session_id} is the record of run {row.run_id}; begin a session of your own, "
                "or resume the run",
                session_id=row.session_id,
                run_id=row.run_id,
            )
        if self.call.clear_session:
            return None, []
        if self.lapses and is_lapsed(view, self.settings):
            return None, [Notice("expired", "This session has expired; a new one was begun.", row.session_id)]
        return row, []

    def _unknown(self) -> Notice:
        assert self.asked is not None
        if "/" in self.asked or "\\" in self.asked or not self.asked.isprintable():
            raise UsageError(
                f"sessionId {show_value(self.asked)} cannot be the id of a session; leave it out to begin one",
                field="sessionId",
            )
        message = "No session goes by this id (it may have expired or been deleted); a new one was begun."
        return Notice("unknown", message, self.asked)

    def _replaces(self, row: SessionRow) -> bool:
        return self.exact or self.call.clear_session or row.status == "active"

    def _new_row(self, strategy: Strategy[Any, Any], there: SessionRow | None, delete: bool) -> SessionRow:
        """Return the row of a new session; it bears the id asked for only if that is to be, and is free."""
        fits = self.asked is None or (self.exact and (there is None or delete))
        session_id = self.target if fits else self.new_id()
        purpose = " ".join(self.call.thought[: 2 * PURPOSE_CHARS].split())[:PURPOSE_CHARS]
        return SessionRow(session_id, strategy.name, self.now_ms, self.now_ms, purpose=purpose)

    def _same_strategy(self, row: SessionRow) -> Strategy[Any, Any]:
        strategy = self.find(row.strategy)
        wanted = self.call.strategy
        if wanted is not None and wanted != row.strategy and self.find(wanted).name != row.strategy:
            raise UsageError(
                f"session {row.session_id} thinks by {row.strategy}, and a session keeps its strategy; "
                f"for {self.find(wanted).name} begin a new one (without sessionId, or with clearSession)",
                field="strategy",
                choices=[row.strategy],
            )
        return strategy

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


def is_lapsed(view: SessionView, settings: SessionSettings) -> bool:
    """Whether its time to live has run out for certain, whatever became of the clock."""
    return view.row is not None and not view.row.pinned and view.idle_ms > settings.ttl_s * 1_000
