"""A run gone on with as a session: a new session that begins with the thoughts of a run that has ended.

Rule 1: what a run wrote stays as it is; its thoughts are copied, by the rules of any session.
Rule 2: a run is gone on with in one session, whose id follows from that of its own; so whoever goes on naming that one
        gets to the same thoughts, and two who begin at once begin the same session.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from ..core.strategy import Strategy
from ..errors import ConflictError, IllegalTransitionError, NotFoundError, UsageError
from ..records import SessionRow, SessionView, Store, ThoughtRow
from .lines import Head
from .search import RunThoughts
from .settings import SessionSettings
from .taking import TakenRows
from .thinking_tool import Notice, ThinkingCall
from .thought import open_session
from .turn import Find, Taken, ThinkingTurn, decode_record, encode


def continuation_id(session_id: str) -> str:
    """Return the id of the session in which the run that writes `session_id` is gone on with: a UUIDv7 of its time."""
    digest = int.from_bytes(hashlib.sha256(f"continues {session_id}".encode()).digest()[:16])
    try:
        at = uuid.UUID(session_id).int >> 80
    except ValueError:
        at = digest >> 80
    low = digest & ((1 << 62) - 1)
    return str(uuid.UUID(int=at << 80 | 0x7 << 76 | ((digest >> 64) & 0xFFF) << 64 | 0b10 << 62 | low))


@dataclass
class Continuation:
    """A session that begins with the thoughts of a run, not yet written; the view of it that a turn decides by."""

    row: SessionRow | None
    thoughts: list[ThoughtRow]
    left_out: int
    """Thoughts at the beginning that were too many."""
    has_answer: bool = False
    """Whether the last of the thoughts is the run's answer."""

    def with_number(self, number: int) -> list[ThoughtRow]:
        """See `SessionView`."""
        return [thought for thought in self.thoughts if thought.number == number]

    def latest(self, count: int) -> list[ThoughtRow]:
        """See `SessionView`."""
        return self.thoughts[-count:] if count > 0 else []

    def other(self, session_id: str) -> SessionView:
        """See `SessionView`: nothing else is seen from here."""
        return replace(self, row=None, thoughts=[])


class RunContinuations:
    """Goes on with runs of a store as sessions.

    Args:
        run_thoughts: Reads the thoughts of a session that a run writes, by run id.
        find: Returns a strategy by name; for None the one of sessions that name none.
    """

    def __init__(
        self, store: Store, run_thoughts: RunThoughts, find: Find, settings: SessionSettings
    ) -> None:
        self._store, self._run_thoughts = store, run_thoughts
        self._find, self._settings = find, settings

    async def think(self, own_id: str, turn: ThinkingTurn) -> Taken:
        """Take a thought that names the session of a run, into the session in which that is gone on with.

        Raises:
            ConflictError: The run has not ended.
            UsageError: The call breaks a rule; nothing has changed.
        """
        if turn.call.clear_session:
            turn.request = structs.replace(
                turn.request, session_id=None, bound=None, target=turn.request.spare_id
            )
            return await self._store.change(turn.request.target, turn.decide)
        own, answer = await self._read_ended(own_id)
        target = continuation_id(own_id)
        turn.request = structs.replace(turn.request, session_id=target, target=target)
        copy = await self._copy(own, answer, turn.now_ms) if not await self._is_there(target) else None
        if copy is not None:
            change = turn.decide(copy)
            assert change.row is not None, "a thought that is taken is written"
            assert change.thought is not None, "a thought that is taken is written"
            # Another call may have begun the session meanwhile.
            with contextlib.suppress(ConflictError):
                await self._store.import_session(change.row, [*copy.thoughts, change.thought])
                change.value.notices.append(_notice(own, copy))
                return change.value
        taken = await self._store.change(target, turn.decide)
        taken.notices.append(_notice(own))
        return taken

    async def begin(self, own_id: str, now_ms: int) -> tuple[str, Notice]:
        """Begin the session in which a run is gone on with, unless it is there; return its id, and what to say.

        Raises:
            ConflictError: The run has not ended.
        """
        own, answer = await self._read_ended(own_id)
        target = continuation_id(own_id)
        if not await self._is_there(target):
            copy = await self._copy(own, answer, now_ms)
            assert copy.row is not None, "it is to be written"
            with contextlib.suppress(ConflictError):
                await self._store.import_session(copy.row, copy.thoughts)
                return target, _notice(own, copy)
        return target, _notice(own)

    async def _read_ended(self, session_id: str) -> tuple[SessionRow, str | None]:
        """Return the row of a run's session, and the run's answer."""
        own = await self._store.session(session_id)
        assert own.run_id is not None, "only sessions of runs are gone on with here"
        run = await self._store.run(own.run_id)
        if run.status == "active":
            raise ConflictError(
                f"session {session_id} is the record of run {own.run_id}, which has not ended: go on with the run "
                "(`coach` with `answer` or `resume`) or end it (`coach` with `cancel`) first; or leave sessionId out "
                "to begin a session of your own",
                session_id=session_id,
                run_id=own.run_id,
            )
        return own, run.answer

    async def _is_there(self, session_id: str) -> bool:
        try:
            await self._store.session(session_id)
        except NotFoundError:
            return False
        return True

    async def _copy(self, own: SessionRow, answer: str | None, now_ms: int) -> Continuation:
        assert own.run_id is not None, "only sessions of runs are copied"
        thoughts = await self._run_thoughts(own.run_id)
        try:
            strategy = self._find(own.strategy)
        except UsageError:
            strategy = self._find(None)
        return await asyncio.to_thread(copy_run, own, thoughts, answer, strategy, self._settings, now_ms)


def _notice(own: SessionRow, begun: Continuation | None = None) -> Notice:
    """Return what is said when thinking goes on elsewhere than in the session of a run that was named."""
    message = (
        f"That session is the record of run {own.run_id}, which has ended and stays as it is; this session "
    )
    if begun is None:
        message += "goes on with it."
    else:
        left_out = f" (the first {begun.left_out} left out)" if begun.left_out else ""
        answer = " and its answer" if begun.has_answer else ""
        message += f"begins with its {len(begun.thoughts) - begun.has_answer} thoughts{left_out}{answer}."
    return Notice("run_continued", message, own.session_id)


def copy_run(
    own: SessionRow,
    thoughts: Sequence[ThoughtRow],
    answer: str | None,
    strategy: Strategy[Any, Any],
    settings: SessionSettings,
    now_ms: int,
) -> Continuation:
    """Return the session in which a run is gone on with.

    Numbers, branches, revisions, scores and data are kept, and so is each stage that the table leads to, but for the
    last, in which the run's answer follows as a thought. Of a long run the latest thoughts are copied, half of what a
    session may hold.
    """
    copied = _latest_that_fit(thoughts, settings)
    head, rows = open_session(), TakenRows()
    for thought in copied:
        head = _copy(strategy, head, thought, rows, now_ms)
    if answer:
        number = copied[-1].number + 1 if copied else 1
        last = strategy.stages[-1].name
        head = _take(strategy, head, _plain_call(answer, number, last), rows, now_ms)
    head = structs.replace(head, from_run=len(rows.rows))
    row = SessionRow(
        continuation_id(own.session_id),
        strategy.name,
        now_ms,
        now_ms,
        thoughts=len(rows.rows),
        purpose=own.purpose,
        head=encode(head),
    )
    return Continuation(row, rows.rows, len(thoughts) - len(copied), bool(answer))


def _latest_that_fit(thoughts: Sequence[ThoughtRow], settings: SessionSettings) -> Sequence[ThoughtRow]:
    branches, count = set[str](), 0
    for thought in reversed(thoughts[-max(1, settings.max_thoughts // 2) :]):
        branches |= {thought.branch} if thought.branch else set()
        if len(branches) > max(1, settings.max_branches // 2):
            break
        count += 1
    return thoughts[len(thoughts) - count :]


def _copy(
    strategy: Strategy[Any, Any], head: Head, thought: ThoughtRow, rows: TakenRows, now_ms: int
) -> Head:
    return _take(strategy, head, _call_of(thought, strategy, head, rows), rows, now_ms)


def _take(strategy: Strategy[Any, Any], head: Head, call: ThinkingCall, rows: TakenRows, now_ms: int) -> Head:
    """Take a thought in its stage, by the stages that lead there if there are any between, else in no other stage."""
    stage = call.stage
    for _ in range(2):
        if stage is None:
            break
        try:
            return rows.take(strategy, head, structs.replace(call, stage=stage), now_ms)
        except IllegalTransitionError as error:
            instead = error.details.get("instead", {})
            stage = instead["stage"] if instead.keys() == {"stage"} else None
        except UsageError:
            break
    return rows.take(strategy, head, structs.replace(call, stage=None), now_ms)


def _plain_call(text: str, number: int, stage: str) -> ThinkingCall:
    return ThinkingCall(
        thought=text,
        thought_number=number,
        total_thoughts=number,
        next_thought_needed=True,
        branch_id="",
        stage=stage,
    )


def _call_of(thought: ThoughtRow, strategy: Strategy[Any, Any], head: Head, rows: TakenRows) -> ThinkingCall:
    record = decode_record(thought)
    data = dict(record.data or {}) if record.score is None else {"score": record.score, **(record.data or {})}
    begins = bool(thought.branch) and thought.branch not in head.branches
    is_known = record.stage in strategy.by_name and bool(strategy.by_name[record.stage].to)
    return ThinkingCall(
        thought=thought.text,
        thought_number=thought.number,
        total_thoughts=thought.number,
        next_thought_needed=True,
        is_revision=record.is_revision,
        revises_thought=_known_number(record.revises, rows),
        branch_from_thought=_known_number(record.branch_from, rows) if begins else None,
        branch_id=thought.branch or "",
        stage=record.stage if is_known else None,
        data=data or None,
    )


def _known_number(number: int | None, rows: TakenRows) -> int | None:
    return number if number is not None and any(rows.with_number(number)) else None
