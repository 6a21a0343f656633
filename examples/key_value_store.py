"""A store of your own for the thinking tool: each session is one JSON document in a key-value service.

The service is a dictionary here. With Redis, `change` would be WATCH, MULTI, EXEC. `reasonry.ext.SessionStore` is
the protocol. The main rule: `change` calls `decide` with the current session, writes the returned change, and allows no
other write in between; if `decide` raises, nothing is written. `head` and `body` are opaque bytes.

    python examples/key_value_store.py
"""
# ruff: noqa: D101, D102, D103 - `reasonry.ext.SessionStore` documents the methods.

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Unpack

import msgspec

import reasonry
from reasonry.ext import (
    ConflictError,
    Found,
    NotFoundError,
    SessionChange,
    SessionFilters,
    SessionRow,
    SessionView,
    Sweep,
    ThoughtRow,
)


class Kept(msgspec.Struct):
    """A session as one document."""

    row: SessionRow
    thoughts: list[ThoughtRow] = []


class View:
    """A session, as a change inside a transaction sees it."""

    def __init__(self, store: KeyValueSessions, session_id: str) -> None:
        self._store = store
        self._kept = store.read(session_id)
        self.row = self._kept.row if self._kept else None

    def with_number(self, number: int) -> list[ThoughtRow]:
        return [thought for thought in self.latest(10**9) if thought.number == number]

    def latest(self, count: int) -> list[ThoughtRow]:
        return self._kept.thoughts[-count:] if self._kept and count > 0 else []

    def find_text(self, text: str, count: int) -> int | None:
        return next((thought.number for thought in self.latest(count) if thought.text == text), None)

    def other(self, session_id: str) -> View:
        return View(self._store, session_id)


class KeyValueSessions:
    name, durable = "key-value", True

    def __init__(self) -> None:
        self.service: dict[str, bytes] = {}
        self.lock = asyncio.Lock()

    def read(self, session_id: str) -> Kept | None:
        document = self.service.get(session_id)
        return None if document is None else msgspec.json.decode(document, type=Kept)

    def write(self, kept: Kept) -> None:
        self.service[kept.row.session_id] = msgspec.json.encode(kept)

    def all(self) -> list[Kept]:
        return [self.existing(session_id) for session_id in self.service]

    def existing(self, session_id: str) -> Kept:
        kept = self.read(session_id)
        if kept is None:
            raise NotFoundError(f"no session {session_id!r}")
        return kept

    async def change(self, session_id: str, decide: Callable[[SessionView], SessionChange]) -> Any:
        async with self.lock:
            wanted = decide(View(self, session_id))
            kept = self.read(session_id)
            if wanted.archive_as is not None and kept is not None:
                old = msgspec.structs.replace(kept.row, session_id=wanted.archive_as, status="archived")
                self.write(Kept(old, kept.thoughts))
            if wanted.delete:
                self.service.pop(session_id, None)
            if wanted.row is not None:
                there = self.read(wanted.row.session_id)
                thoughts = [] if there is None else there.thoughts
                new = [] if wanted.thought is None else [wanted.thought]
                self.write(Kept(wanted.row, [*thoughts, *new]))
            return wanted.value

    async def session(self, session_id: str) -> SessionRow:
        return self.existing(session_id).row

    async def sessions(
        self, *, limit: int = 50, before: str | None = None, **which: Unpack[SessionFilters]
    ) -> list[SessionRow]:
        rows = [kept.row for kept in self.all() if which.get("status") in (None, kept.row.status)]
        rows.sort(key=lambda row: (row.used_at_ms, row.session_id), reverse=True)
        ids = [row.session_id for row in rows]
        start = 0 if before is None else ids.index(self.existing(before).row.session_id) + 1
        return rows[start : start + limit]

    async def session_ids(self, prefix: str, limit: int = 10, owner: str | None = None) -> list[str]:
        return sorted(session_id for session_id in self.service if session_id.startswith(prefix))[:limit]

    async def thoughts(
        self,
        session_id: str,
        *,
        first: int | None = None,
        last: int | None = None,
        branch: str | None = None,
        after_seq: int = 0,
        limit: int = 50,
    ) -> list[ThoughtRow]:
        found = [
            thought
            for thought in self.existing(session_id).thoughts
            if thought.seq > after_seq
            and (first is None or thought.number >= first)
            and (last is None or thought.number <= last)
            and (branch is None or (thought.branch or "") == branch)
        ]
        return found[:limit]

    async def search_thoughts(
        self,
        query: str,
        *,
        session_id: str | None = None,
        owner: str | None = None,
        after: int = 0,
        limit: int = 50,
    ) -> list[Found]:
        kept = self.all() if session_id is None else [self.existing(session_id)]
        places = [(each.row.session_id, thought) for each in kept for thought in each.thoughts]
        found = [
            (place, found_in, thought)
            for place, (found_in, thought) in enumerate(places, 1)
            if place > after and query.lower() in thought.text.lower()
        ]
        return found[:limit]

    async def import_session(self, row: SessionRow, thoughts: Sequence[ThoughtRow]) -> None:
        async with self.lock:
            if row.session_id in self.service:
                raise ConflictError(f"session {row.session_id!r} is there already")
            self.write(Kept(row, list(thoughts)))

    async def sweep_sessions(self, sweep: Sweep) -> None:
        async with self.lock:
            for kept in self.all():
                unused_ms = sweep.now_ms - kept.row.used_at_ms
                if kept.row.pinned or unused_ms <= sweep.ttl_ms:
                    continue
                if sweep.delete or (sweep.retention_ms is not None and unused_ms > sweep.retention_ms):
                    del self.service[kept.row.session_id]
                else:
                    self.write(Kept(msgspec.structs.replace(kept.row, status="archived"), kept.thoughts))

    async def delete_session(self, session_id: str) -> None:
        self.existing(session_id)
        del self.service[session_id]


async def main() -> None:
    store = KeyValueSessions()
    tool = reasonry.thinking_tool(store=store)
    call = {"totalThoughts": 2, "nextThoughtNeeded": True}
    first = await tool(thought="Kept in a service.", thoughtNumber=1, **call)
    await tool(thought="Both of them.", thoughtNumber=2, **call, sessionId=first["sessionId"])
    session = await reasonry.get_session(first["sessionId"], store=store)
    assert session is not None
    assert [thought["thought_number"] for thought in session["thoughts"]] == [1, 2]
    assert [row["session_id"] for row in await reasonry.list_sessions(store=store)] == list(store.service)
    print(len(store.service), "document,", len(session["thoughts"]), "thoughts")


asyncio.run(main())
