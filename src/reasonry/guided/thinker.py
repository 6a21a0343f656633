"""A caller whose thoughts go on with its own sessions where they name none, such as the connection of an agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from .thinking_tool import ThinkingCall
from .which_session import Bound, Document

_SETTLED_S = 1.0
"""After a pause this long the next call goes alone: its session may have expired; then it begins another."""


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
        """Let no later call go on with a session."""
        self.bound.forget(session_id)
        self._is_settled = False

    def _learn(self, call: ThinkingCall, reply: Document) -> Document:
        self.bound.learn(call, reply)
        self._used_at = time.monotonic()
        return reply
