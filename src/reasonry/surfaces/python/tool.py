"""The thinking tool for Python programs: one object for any agent loop, and the sessions it leaves behind.

    tool = reasonry.thinking_tool()
    reply = await tool(thought="…", thoughtNumber=1, totalThoughts=2, nextThoughtNeeded=True)
    await tool(
        thought="…", thoughtNumber=2, totalThoughts=2, nextThoughtNeeded=False, sessionId=reply["sessionId"]
    )

The agent owns the session: it passes the id on. Tools over the same store share it, and a store is opened
once in a process, so a tool made anew for each call goes on where the last one was.
"""

from __future__ import annotations

import os
from typing import Any
from weakref import WeakKeyDictionary

from ...errors import NotFoundError
from ...guided.arguments import id_of
from ...guided.sessions import Sessions
from ...guided.thinking_tool import ThinkingCall, tool_schema
from ...records import Store
from ...stores import open_store
from ...strategies import STRATEGIES
from ..thinking import THINKING, THINKING_DESCRIPTION, open_sessions, thinking_input

Document = dict[str, Any]
Where = str | Store | None

_opened: dict[str | None, Store] = {}
_sessions: WeakKeyDictionary[Store, Sessions] = WeakKeyDictionary()
_REQUIRED = frozenset(tool_schema(ThinkingCall)["required"])


class ThinkingTool:
    """A tool as agent loops want it: named, described, with a schema; awaited with its arguments as keywords.

    Attributes:
        name: `sequentialthinking`.
        description: For the model.
        input_schema: JSON schema of the arguments.
        session_id: The one session the tool thinks in; None: the one each call names, or a new one.
    """

    def __init__(self, sessions: Sessions, session_id: str | None = None) -> None:
        self.name = THINKING
        self.description = THINKING_DESCRIPTION
        self.input_schema = thinking_input(STRATEGIES)
        self.session_id = session_id
        self._sessions = sessions

    async def __call__(self, **arguments: Any) -> Document:
        """Take one thought and return where the session stands.

        An optional argument that is None counts as left out.

        Raises:
            UsageError: The call breaks a rule; nothing has changed.
            StoreError: The store cannot be used.
        """
        call = {name: value for name, value in arguments.items() if value is not None or name in _REQUIRED}
        return await self._sessions.think(call, exact_id=self.session_id, history=None)


def thinking_tool(session_id: str | None = None, *, store: Where = None) -> ThinkingTool:
    """Return the thinking tool.

    Args:
        session_id: Binds the tool to one session, which is begun under exactly this id if need be.
        store: What `--store` takes, or a store; None: `REASONRY_STORE`, else the user's data folder.
    """
    if session_id is not None:
        id_of({"session_id": session_id}, "session_id")
    return ThinkingTool(sessions_of(store), session_id)


async def get_session(session_id: str, *, store: Where = None) -> Document | None:
    """Return a session with all its thoughts; None if there is none of that id."""
    try:
        return await sessions_of(store).export({"sessionId": session_id})
    except NotFoundError:
        return None


async def list_sessions(*, status: str = "active", store: Where = None) -> list[Document]:
    """Return sessions, last used first.

    Args:
        status: `active`, `archived` or `all`.
    """
    sessions, found = sessions_of(store), list[Document]()
    cursor: str | None = None
    while True:
        more = {} if cursor is None else {"cursor": cursor}
        page = await sessions.list({"status": status, "limit": 500, **more})
        found += page["sessions"]
        cursor = page["nextCursor"]
        if cursor is None:
            return found


async def clear_session(session_id: str, *, store: Where = None) -> bool:
    """Forget a session; return whether there was one."""
    try:
        await sessions_of(store).delete({"sessionId": session_id})
    except NotFoundError:
        return False
    return True


async def clear_all_sessions(*, store: Where = None) -> int:
    """Forget all sessions of the store but those that runs wrote; return how many."""
    return await sessions_of(store).clear()


def sessions_of(where: Where) -> Sessions:
    """Return the sessions of a store; what is named by text is opened once in a process."""
    if where is None or isinstance(where, str):
        spec = where or os.environ.get("REASONRY_STORE") or None
        if spec not in _opened:
            _opened[spec] = open_store(spec)
        where = _opened[spec]
    if where not in _sessions:
        _sessions[where] = open_sessions(where, os.environ)
    return _sessions[where]


async def close_stores() -> None:
    """Close the stores that were opened by name; the next use opens them again."""
    while _opened:
        _, store = _opened.popitem()
        _sessions.pop(store, None)
        await store.close()
