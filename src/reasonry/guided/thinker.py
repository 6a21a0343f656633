"""A caller whose thoughts continue its own sessions where they name none, such as the connection of an agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..ids import LAST
from .thinking_tool import ThinkingCall

MAX_OPEN = 16
"""Sessions that a call may continue; the one used longest ago is forgotten beyond that."""
MAX_SEEN = 1_000
_SETTLED_S = 1.0
"""After a pause this long the next call goes alone: its session may have expired; then it begins another."""

Document = dict[str, Any]


class Seen(NamedTuple):
    """A session as its caller last saw it."""

    thoughts: int = 0
    is_open: bool = True


@dataclass
class Bound:
    """The sessions that a caller's thoughts may continue when they name none.

    A session becomes the current one when it is begun or resumed here. An existing one that a call names is for
    that call, and afterwards for thoughts whose number only it expects; where none is open, it is the current one. So
    it is where the current one was begun only because an agent, started again, had not said which session it meant.

    Attributes:
        ids: The current session first; empty for a caller that is new.
        seen: The sessions whose thoughts the caller knows; None: nothing is kept in mind between its calls.
        begun_for: The session that was begun for a name of which no session was known.
        stray: The session begun by an agent that had lost the id of the one it meant.
    """

    ids: list[str] = field(default_factory=list[str])
    seen: dict[str, Seen] | None = None
    begun_for: dict[str, str] = field(default_factory=dict[str, str])
    stray: str | None = None

    @property
    def current(self) -> str | None:
        """The current session; None: the next call begins one."""
        return self.ids[0] if self.ids else None

    def session_of(self, call: ThinkingCall) -> str | None:
        """Return the session that a call names; a name of which none was known means the one begun for it."""
        named = call.session_id
        if named is None or call.thought_number == 1 or call.clear_session:
            return named
        return self.begun_for.get(named, named)

    def may_change(self, call: ThinkingCall) -> bool:
        """Whether a call may change what the caller is bound to."""
        if call.clear_session:
            return True
        if call.session_id is not None:
            return self.session_of(call) not in (self.seen or {})
        return not self.ids or call.strategy is not None or call.thought_number == 1

    def learn(self, call: ThinkingCall, reply: Document) -> None:
        """Keep in mind where a thought went."""
        named, session_id, length = call.session_id, reply["sessionId"], reply["thoughtHistoryLength"]
        reasons = {notice["reason"] for notice in reply.get("notices", ())}
        has_open = self.current is not None and self._seen(self.current).is_open
        if named and self.stray not in (None, session_id):
            self.forget(self.stray)
            has_open = False
        if "unfinished_sessions" in reasons:
            self.stray = session_id
        elif named or session_id == self.stray:
            self.stray = None
        continues_run = "run_continued" in reasons and session_id not in self.ids
        if named is None or length == 1 or not has_open or continues_run:
            self.bind(session_id)
        elif session_id not in self.ids:
            self.ids.append(session_id)
        if named not in (None, session_id, LAST):
            self.begun_for[named] = session_id
            _forget_oldest(self.begun_for)
        self.see(session_id, length, is_open=reply["nextThoughtNeeded"])

    def bind(self, session_id: str) -> None:
        """Make a session the current one; of the others those stay that have not ended."""
        others = (known for known in self.ids if known != session_id and self._seen(known).is_open)
        self.ids = [session_id, *others][:MAX_OPEN]

    def see(self, session_id: str, thoughts: int, *, is_open: bool = True) -> None:
        """Note how a session stands; replies to calls side by side may come in any order."""
        if self.seen is not None and thoughts >= self._seen(session_id).thoughts:
            self.seen[session_id] = Seen(thoughts, is_open)
            _forget_oldest(self.seen)

    def forget(self, session_id: str | None) -> None:
        """Let no later call continue a session."""
        self.ids = [known for known in self.ids if known != session_id]
        if self.seen is not None and session_id is not None:
            self.seen.pop(session_id, None)

    def _seen(self, session_id: str) -> Seen:
        return (self.seen or {}).get(session_id, Seen())


def _forget_oldest(kept: dict[str, Any]) -> None:
    if len(kept) > MAX_SEEN:
        del kept[next(iter(kept))]


class Thinker:
    """Has the calls of a caller reach the store in the order they came, and keeps in mind where they went.

    Calls run side by side. One that may begin a session, or comes after one that may have ended its session, goes
    alone, so that those behind it know of it.

    Args:
        bound: None: nothing yet, as of a new connection.
    """

    def __init__(self, bound: Bound | None = None) -> None:
        self.bound = Bound(seen={}) if bound is None else bound
        self._gate = asyncio.Lock()
        self._is_settled = False
        self._used_at = float("-inf")

    async def think(self, call: ThinkingCall, think: Callable[[], Awaitable[Document]]) -> Document:
        """Hand in a thought by way of `think`."""
        async with self._gate:
            is_pause = time.monotonic() - self._used_at > _SETTLED_S
            goes_alone = is_pause or not self._is_settled or self.bound.may_change(call)
            self._is_settled = call.next_thought_needed
            if goes_alone:
                return self._learn(call, await think())
        return self._learn(call, await think())

    async def resume(self, resume: Callable[[], Awaitable[Document]]) -> Document:
        """Take an earlier session up as the current one."""
        async with self._gate:
            document = await resume()
            self.bound.bind(document["session_id"])
            self.bound.see(document["session_id"], document["thought_history_length"])
            return document

    def forget(self, session_id: str) -> None:
        """Let no later call continue a session."""
        self.bound.forget(session_id)
        self._is_settled = False

    def _learn(self, call: ThinkingCall, reply: Document) -> Document:
        self.bound.learn(call, reply)
        self._used_at = time.monotonic()
        return reply
