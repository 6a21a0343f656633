"""A run continued as a session: a new session that begins with the thoughts of a run that has ended.

Rule 1: what a run wrote stays as it is; its thoughts are copied, by the rules of any session.
Rule 2: a run is continued in one session, whose id follows from that of its own; so whoever continues naming that one
        gets to the same thoughts, and two who begin at once begin the same session.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import uuid
from typing import Any

from msgspec import structs

from ..core.strategy import Strategy
from ..errors import ConflictError, NotFoundError, UsageError
from ..records import SessionRow, Store
from .lines import RowsView
from .search import RunThoughts
from .settings import SessionSettings
from .thinking_tool import Notice
from .transcripts import Transcript, copy_run
from .turn import Find, Taken, ThinkingTurn


def continuation_id(session_id: str) -> str:
    """Return the id of the session in which the run that writes `session_id` is continued: a UUIDv7 of its time."""
    digest = int.from_bytes(hashlib.sha256(f"continues {session_id}".encode()).digest()[:16])
    try:
        at = uuid.UUID(session_id).int >> 80
    except ValueError:
        at = digest >> 80
    low = digest & ((1 << 62) - 1)
    return str(uuid.UUID(int=at << 80 | 0x7 << 76 | ((digest >> 64) & 0xFFF) << 64 | 0b10 << 62 | low))


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
        """Take a thought that names the session of a run, into the session in which that is continued.

        Raises:
            ConflictError: The run has not ended.
            UsageError: The call breaks a rule; nothing has changed.
        """
        if turn.call.clear_session:
            turn.request = structs.replace(
                turn.request, session_id=None, bound=None, target=turn.request.new_id()
            )
            return await self._store.change(turn.request.target, turn.decide)
        copy, notice = await self._copy(own_id, turn.now_ms)
        target = continuation_id(own_id)
        turn.request = structs.replace(turn.request, session_id=target, target=target)
        if copy is not None:
            view = RowsView(copy.row)
            for thought in copy.thoughts:
                view.add(thought)
            change = turn.decide(view)
            assert change.row is not None, "a thought that is taken is written"
            assert change.thought is not None, "a thought that is taken is written"
            # Another call may have begun the session meanwhile.
            with contextlib.suppress(ConflictError):
                await self._store.import_session(change.row, [*copy.thoughts, change.thought])
                change.value.notices.append(notice)
                return change.value
        taken = await self._store.change(target, turn.decide)
        taken.notices.append(notice)
        return taken

    async def begin(self, own_id: str, now_ms: int) -> tuple[str, Notice]:
        """Begin the session in which a run is continued, unless it is there; return its id, and what to say.

        Raises:
            ConflictError: The run has not ended.
        """
        copy, notice = await self._copy(own_id, now_ms)
        if copy is not None:
            with contextlib.suppress(ConflictError):
                await self._store.import_session(copy.row, copy.thoughts)
        return continuation_id(own_id), notice

    async def _copy(self, own_id: str, now_ms: int) -> tuple[Transcript | None, Notice]:
        """Return the session to begin in which a run is continued, None if it is there; and what to say."""
        own, answer = await self._read_ended(own_id)
        assert own.run_id is not None, "only sessions of runs are copied"
        target, copy, left_out = continuation_id(own_id), None, 0
        try:
            await self._store.session(target)
        except NotFoundError:
            thoughts = await self._run_thoughts(own.run_id)
            copy = await asyncio.to_thread(
                copy_run, own, thoughts, answer, self._strategy(own), self._settings, now_ms
            )
            copy = copy._replace(row=structs.replace(copy.row, session_id=target))
            left_out = len(thoughts) + bool(answer) - len(copy.thoughts)
        message = (
            f"That session is the record of run {own.run_id}, which has ended and stays as it is; this session "
            f"continues its thoughts{f' (the first {left_out} left out)' if left_out else ''}."
        )
        return copy, Notice("run_continued", message, own.session_id)

    def _strategy(self, own: SessionRow) -> Strategy[Any, Any]:
        try:
            return self._find(own.strategy)
        except UsageError:
            return self._find(None)

    async def _read_ended(self, session_id: str) -> tuple[SessionRow, str | None]:
        """Return the row of a run's session, and the run's answer."""
        own = await self._store.session(session_id)
        assert own.run_id is not None, "only sessions of runs are continued here"
        run = await self._store.run(own.run_id)
        if run.status == "active":
            raise ConflictError(
                f"session {session_id} is the record of run {own.run_id}, which has not ended: continue the run "
                "(`coach` with `answer` or `resume`) or end it (`coach` with `cancel`) first; or leave sessionId out "
                "to begin a session of your own",
                session_id=session_id,
                run_id=own.run_id,
            )
        return own, run.answer
