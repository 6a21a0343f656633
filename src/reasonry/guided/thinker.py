"""A caller whose thoughts continue its own sessions where they name none, such as the connection of an agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from .thinking_tool import ThinkingCall
from .which_session import Bound, Seen

_SETTLED_S = 1.0
"""After a pause this long the next call goes alone: its session may have expired; then it begins another."""

Document = dict[str, Any]


class Thinker:
    """Has the calls of a caller reach the store in the order they came.

    Calls run side by side. One that may begin a session, or comes after one that may have ended its session, goes
    alone, so that those behind it know of it.

    Args:
        bound: The sessions that it may continue; None: none yet, as of a new connection.
    """

    def __init__(self, bound: Bound | None = None) -> None:
        self.bound = Bound(seen={}) if bound is None else bound
        self._gate = asyncio.Lock()
        self._is_settled = False
        self._used_at = float("-inf")

    async def think(self, call: ThinkingCall, think: Callable[[], Awaitable[Document]]) -> Document:
        """Hand in a thought by way of `think`."""
        async with self._gate:
            at = time.monotonic()
            goes_alone = (
                at - self._used_at > _SETTLED_S or not self._is_settled or self.bound.may_change(call)
            )
            self._is_settled, self._used_at = call.next_thought_needed, at
            if goes_alone:
                return await think()
        return await think()

    async def resume(self, resume: Callable[[], Awaitable[Document]]) -> Document:
        """Take an earlier session up as the current one."""
        async with self._gate:
            document = await resume()
            self.bound.bind(document["session_id"])
            self.bound.see(document["session_id"], Seen(document["thought_history_length"]))
            return document

    def forget(self, session_id: str) -> None:
        """Let no later call continue a session."""
        self.bound.forget(session_id)
        self._is_settled = False
