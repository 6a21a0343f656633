"""A caller whose thoughts continue its own sessions where they name none, such as the connection of an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from .which_session import Bound

Document = dict[str, Any]


class Thinker:
    """Has the calls of a caller reach the store one by one, in the order they came.

    So each knows of the session that one before it has begun or ended.

    Args:
        bound: The sessions that it may continue; None: none yet, as of a new connection.
    """

    def __init__(self, bound: Bound | None = None) -> None:
        self.bound = Bound(seen={}) if bound is None else bound
        self._gate = asyncio.Lock()

    async def think(self, think: Callable[[], Awaitable[Document]]) -> Document:
        """Hand in a thought by way of `think`."""
        async with self._gate:
            return await think()

    async def resume(self, resume: Callable[[], Awaitable[Document]]) -> Document:
        """Take an earlier session up as the current one."""
        async with self._gate:
            document = await resume()
            self.bound.resume(document["session_id"])
            return document
