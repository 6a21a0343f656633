"""The sessions of a connection, which its calls go on with when they name none."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ...guided.known_sessions import KnownSessions
from ...ids import LAST

Document = dict[str, Any]
Think = Callable[[Document, KnownSessions], Awaitable[Document]]
"""Takes the arguments of a thought and the sessions that it may go on with; returns the reply."""

MAX_OPEN = 16
"""Sessions that a call may go on with; the one used longest ago is forgotten beyond that."""
MAX_SEEN = 1_000
_SETTLED_S = 1.0
"""After a pause this long the next call goes alone: its session may have expired; then it begins another."""


class CurrentSession:
    """What a connection knows of its sessions. Which one a thought goes to is decided where it is written.

    Calls run side by side and reach the store in the order they came. One that may begin a session, or comes
    after one that may have ended its session, goes alone, so that those behind it know of it.

    A session becomes the current one when it is begun or resumed here. An existing one that a call names is for
    that call, and afterwards for thoughts whose number only it expects; where none is open, it is the current one. So
    it is where the current one was begun only because an agent, started anew, had not said which session it meant.
    """

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._lengths: dict[str, tuple[int, bool]] = {}
        self._meant: dict[str, str] = {}
        self._stray: str | None = None
        self._gate = asyncio.Lock()
        self._is_settled = False
        self._used_at = float("-inf")

    @property
    def session_id(self) -> str | None:
        """The current session; None: the next call begins one."""
        return self._ids[0] if self._ids else None

    async def think(self, arguments: Document, think: Think) -> Document:
        """Hand in a thought, and keep in mind where it went."""
        arguments, named = self._with_known_id(arguments)
        async with self._gate:
            is_pause = time.monotonic() - self._used_at > _SETTLED_S
            goes_alone = is_pause or not self._is_settled or self._may_begin(arguments, named)
            self._is_settled = arguments.get("nextThoughtNeeded") is True
            if goes_alone:
                document = await think(arguments, self._known_sessions())
                self._learn(named, document)
                return document
        document = await think(arguments, self._known_sessions())
        self._learn(named, document)
        return document

    async def resume(self, act: Callable[[], Awaitable[Document]]) -> Document:
        """Take an earlier session up as the current one."""
        async with self._gate:
            document = await act()
            self._bind(document["sessionId"])
            self._set_length(document["sessionId"], document["thoughtHistoryLength"], is_open=True)
            return document

    def forget(self, session_id: str) -> None:
        """Let no later call go on with a session."""
        self._ids = [known for known in self._ids if known != session_id]
        self._lengths.pop(session_id, None)
        self._is_settled = False

    def _with_known_id(self, arguments: Document) -> tuple[Document, str | None]:
        """Return the arguments with the id that was meant, and that id as it was named.

        A name of which no session was known goes on with the session that was begun for it.
        """
        named = arguments.get("sessionId")
        if not isinstance(named, str) or not named:
            return arguments, None if not named else ""
        meant = self._meant.get(named)
        if meant is None or _is_first(arguments) or arguments.get("clearSession"):
            return arguments, named
        return {**arguments, "sessionId": meant}, named

    def _may_begin(self, arguments: Mapping[str, Any], named: str | None) -> bool:
        if arguments.get("clearSession"):
            return True
        if named is not None:
            return not named or arguments["sessionId"] not in self._lengths
        return not self._ids or bool(arguments.get("strategy")) or _is_first(arguments)

    def _known_sessions(self) -> KnownSessions:
        ids = [known for known in self._ids if known == self.session_id or self._is_open(known)]
        return KnownSessions(ids, frozenset(self._lengths))

    def _is_open(self, session_id: str) -> bool:
        return self._lengths.get(session_id, (0, True))[1]

    def _learn(self, named: str | None, document: Document) -> None:
        session_id, length = document["sessionId"], document["thoughtHistoryLength"]
        has_open = bool(self._ids) and self._is_open(self._ids[0])
        if named and self._stray is not None and self._stray != session_id:
            self.forget(self._stray)
            has_open = False
        if _has_notice(document, "unfinished_sessions"):
            self._stray = session_id
        elif session_id == self._stray or named:
            self._stray = None
        if named is None or length == 1 or not has_open or self._continues_run(document):
            self._bind(session_id)
        elif session_id not in self._ids:
            self._ids.append(session_id)
        if named and named != session_id and named != LAST:
            self._meant[named] = session_id
            _forget_oldest(self._meant)
        self._set_length(session_id, length, is_open=document["nextThoughtNeeded"])

    def _continues_run(self, document: Document) -> bool:
        """Whether a session was begun, as far as is known here, to go on with a run."""
        return _has_notice(document, "run_continued") and document["sessionId"] not in self._ids

    def _bind(self, session_id: str) -> None:
        self._ids = [session_id, *(known for known in self._ids if known != session_id)][:MAX_OPEN]
        self._used_at = time.monotonic()

    def _set_length(self, session_id: str, length: int, *, is_open: bool) -> None:
        # Replies to calls side by side may come in any order.
        if length >= self._lengths.get(session_id, (0, True))[0]:
            self._lengths[session_id] = (length, is_open)
            _forget_oldest(self._lengths)


def _has_notice(document: Document, reason: str) -> bool:
    return any(notice["reason"] == reason for notice in document.get("notices", ()))


def _is_first(arguments: Mapping[str, Any]) -> bool:
    number = arguments.get("thoughtNumber")
    return not isinstance(number, int) or number <= 1


def _forget_oldest(kept: dict[str, Any]) -> None:
    if len(kept) > MAX_SEEN:
        del kept[next(iter(kept))]
