"""A run continued as a session: a new session that begins with the thoughts of a run that has ended.

Rule 1: what a run wrote stays as it is; its thoughts are copied, by the rules of any session.
Rule 2: a run is continued in one session, whose id follows from that of its own; so whoever continues naming that one
        gets to the same thoughts, and two who begin at once begin the same session.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from ..errors import ConflictError, NotFoundError, UsageError
from ..records import SessionView, Store, ThoughtRow
from .lines import RowsView
from .settings import SessionSettings
from .thinking_tool import Notice
from .transcripts import copy_run
from .turn import Find, Taken, ThinkingTurn


def continuation_id(session_id: str) -> str:
    """Return the id of the session in which the run that writes `session_id` is continued: a UUIDv7 of its time.

    It differs in the highest bit of the count within a millisecond, so that the beginning of either names it.
    """
    return str(uuid.UUID(int=uuid.UUID(session_id).int ^ 1 << 75))


class RunContinuations(NamedTuple):
    """Goes on with runs of a store as sessions."""

    store: Store
    read_thoughts: Callable[[str], Awaitable[Sequence[ThoughtRow]]]
    find: Find
    settings: SessionSettings

    async def think(self, own_id: str, turn: ThinkingTurn) -> Taken:
        """Take a thought that names the session of a run, into the session in which that is continued.

        Raises:
            ConflictError: The run has not ended.
            UsageError: The call breaks a rule; nothing has changed.
        """
        if turn.call.clear_session:
            turn = replace(turn, session_id=None, thinker=None, target=turn.new_id())
            return await self.store.change(turn.target, turn.decide)
        target = continuation_id(own_id)
        turn = replace(turn, session_id=target, target=target)
        _, notice = await self.begin(own_id, turn.now_ms, turn.decide)
        taken = await self.store.change(target, turn.decide)
        taken.notices.append(notice)
        if turn.thinker is not None and target not in turn.thinker.ids:
            taken.choice = taken.choice._replace(session=None)
        return taken

    async def begin(
        self, own_id: str, now_ms: int, check: Callable[[SessionView], object] = id
    ) -> tuple[str, Notice]:
        """Begin the session in which a run is continued, unless it is there; return its id, and what to say.

        Args:
            check: Raises where the session, as it is going to be, is not to be begun.

        Raises:
            ConflictError: The run has not ended.
        """
        own = await self.store.session(own_id)
        assert own.run_id is not None, "only sessions of runs are continued here"
        run = await self.store.run(own.run_id)
        if run.status == "active":
            raise ConflictError(
                f"session {own_id} is the record of run {own.run_id}, which has not ended: continue the run "
                "(`coach` with `answer` or `resume`) or end it (`coach` with `cancel`) first; or leave the "
                "session id out to begin a session of your own",
                session_id=own_id,
                run_id=own.run_id,
            )
        target, left_out = continuation_id(own_id), 0
        try:
            await self.store.session(target)
        except NotFoundError:
            thoughts = await self.read_thoughts(own_id)
            try:
                strategy = self.find(own.strategy)
            except UsageError:
                strategy = self.find(None)
            copy = await asyncio.to_thread(
                copy_run, own, thoughts, run.answer, strategy, self.settings, now_ms
            )
            left_out = len(thoughts) + bool(run.answer) - len(copy.thoughts)
            row = replace(copy.row, session_id=target)
            check(RowsView(row, copy.thoughts))
            # Another call may have begun the session meanwhile.
            with contextlib.suppress(ConflictError):
                await self.store.import_session(row, copy.thoughts)
        message = (
            f"That session is the record of run {run.run_id}, which has ended and stays as it is; this session "
            f"continues its thoughts{f' (the first {left_out} left out)' if left_out else ''}."
        )
        return target, Notice("run_continued", message, own.session_id)
