"""A place to think in: sessions over a real store, with a clock that is set by hand."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from reasonry.guided.session_settings import SessionSettings
from reasonry.guided.sessions import Sessions
from reasonry.stores.sqlite import MemoryStore, SqliteStore
from reasonry.strategies import STRATEGIES

MINUTE_MS = 60_000


class Clock:
    """Milliseconds, moved on by hand."""

    def __init__(self) -> None:
        self.at_ms = 1_790_000_000_000

    def __call__(self) -> int:
        return self.at_ms

    def pass_minutes(self, minutes: float) -> None:
        """Let time pass."""
        self.at_ms += int(minutes * MINUTE_MS)


class Desk:
    """Sessions and their clock."""

    def __init__(self, store: Any, settings: SessionSettings | None = None, directory: str = "") -> None:
        self.clock = Clock()
        self.store = store
        self.sessions = Sessions(store, STRATEGIES, settings, self.clock, directory=directory)

    async def think(self, number: Any = 1, thought: Any = ..., **more: Any) -> dict[str, Any]:
        """Hand in a thought.

        Args:
            more: `thinker` and `exact_id` go to the method; `whole` has it show the whole history; the rest goes to the
                tool.
        """
        ways = {name: more.pop(name) for name in ("thinker", "exact_id") if name in more}
        if more.pop("whole", False):
            ways["history"] = None
        given = {
            "thought": f"Thought {number}." if thought is ... else thought,
            "thought_number": number,
            "total_thoughts": 3,
            "next_thought_needed": True,
        }
        return await self.sessions.think({**given, **more}, **ways)

    async def everything(self) -> list[dict[str, Any]]:
        """Return all sessions whole, for comparing before and after."""
        rows = await self.store.sessions(limit=1_000)
        return [await self.sessions.export({"session_id": row.session_id}) for row in rows]


@asynccontextmanager
async def desk(kind: str, folder: Path, **settings: Any) -> AsyncIterator[Desk]:
    """Open a store of a kind and close it again."""
    store = MemoryStore() if kind == "memory" else SqliteStore(folder / "store.db")
    try:
        yield Desk(store, SessionSettings(**settings))
    finally:
        await store.close()
