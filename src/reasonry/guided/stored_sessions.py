"""Find and read the sessions of a store. Archive or delete expired sessions.

An MCP client has a connection, but a command has only its working directory. So a command's thought continues the
session last used in this directory, unless the session has ended, has expired, or uses a different strategy.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from ..core.registry import resolve
from ..core.strategy import Strategy
from ..errors import NotFoundError, StoreError
from ..records import (
    DAY_MS,
    RunRow,
    SessionChange,
    SessionRow,
    SessionView,
    Store,
    Sweep,
    ThoughtRow,
    find_id,
    missing_error,
    now_ms,
)
from ..text import shorten
from .lines import Head, decode_head, encode
from .session_calls import MAX_PAGE
from .session_documents import Document, instant, session_document
from .session_review import with_verdicts
from .session_settings import SessionSettings

SWEEP_EVERY_MS = 60_000
_LOOKED_AT = 200
_SHOWN = 3
_PURPOSE_CHARS = 50

Unfinished = tuple[SessionRow, Head]


class StoredSessions:
    """The rows and the thoughts of a store's sessions.

    Args:
        strategies: The registry of strategies, by canonical name.
        clock: A function that returns the time (UTC, milliseconds since 1970).

    Attributes:
        deletes_expired: Whether expired sessions are deleted. Otherwise they are archived, and calls may continue them.
    """

    def __init__(
        self,
        store: Store,
        strategies: Mapping[str, Strategy[Any, Any]],
        settings: SessionSettings,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        self.store = store
        self.settings = settings
        self.clock = clock
        self.deletes_expired = (settings.on_expiry or ("archive" if store.durable else "delete")) == "delete"
        self._strategies = strategies
        self._swept_at_ms = 0

    def strategy(self, name: str | None) -> Strategy[Any, Any]:
        """Find a strategy by its name in any spelling. None means the first strategy.

        Raises:
            UsageError: The strategy is unknown; `choices` has the names.
        """
        if name is None:
            return next(iter(self._strategies.values()))
        return resolve(name, self._strategies, field="strategy")

    async def sweep(self, *, now: bool = False) -> None:
        """Archive or delete expired sessions, and delete archived sessions past their retention.

        Args:
            now: Whether to sweep even if the last sweep was less than a minute ago.
        """
        at = self.clock()
        if not now and 0 <= at - self._swept_at_ms < SWEEP_EVERY_MS:
            return
        self._swept_at_ms = at
        days = self.settings.retention_days
        retention_ms = None if days is None else int(days * DAY_MS)
        sweep = Sweep(at, int(self.settings.ttl_s * 1_000), retention_ms, self.deletes_expired)
        await self.store.sweep_sessions(sweep)

    # -- rows

    async def find_id(self, text: str, *, guided: bool | None = None) -> str:
        """Find the id of a session. `text` is the id, its beginning, or `last` for the session used last.

        Args:
            guided: Whether `last` means an agent's session (True) or a run's session (False). None means any session.

        Raises:
            UsageError: Several ids begin with the text; `choices` has these ids.
            NotFoundError: The text is `last`, and there is no session.
        """

        async def last() -> str | None:
            rows = await self.store.sessions(limit=1, guided=guided)
            return rows[0].session_id if rows else None

        return await find_id(text, "session", self.store.session_ids, last)

    async def find_guided_id(self, text: str) -> str:
        """Return the session id that an agent means by `text`, see `find_id`. If there is no session, return `text`."""
        with contextlib.suppress(NotFoundError):
            return await self.find_id(text, guided=True)
        return text

    async def row(self, text: str) -> SessionRow:
        """Return the session that `find_id` finds, or raise NotFoundError. This is not a use of the session."""
        if self.deletes_expired:
            await self.sweep(now=True)
        return await self.store.session(await self.find_id(text))

    def present(self, view: SessionView, session_id: str) -> SessionRow:
        """Return the row of the session.

        Raises:
            NotFoundError: The session does not exist, or has expired and will be deleted by the next sweep.
        """
        row = view.row
        if row is None or (self.deletes_expired and self.settings.has_expired(row, self.clock())):
            raise missing_error("session", session_id)
        return row

    def is_archived(self, row: SessionRow) -> bool:
        """Whether a session is archived, or the next sweep will archive it."""
        return row.status == "archived" or self.settings.has_expired(row, self.clock())

    async def document(self, row: SessionRow) -> Document:
        """Return the document of one session, see `documents`."""
        return (await self.documents([row]))[0]

    async def documents(self, rows: Sequence[SessionRow]) -> list[Document]:
        """Return a list entry per session. If a session's run has ended, the status is the outcome of the run."""
        runs = dict[str, RunRow]()
        if run_ids := [row.run_id for row in rows if row.run_id is not None]:
            with contextlib.suppress(StoreError):
                runs = {run.run_id: run for run in await self.store.rows(run_ids)}
        shown = list[Document]()
        for row in rows:
            status, run = "archived" if self.is_archived(row) else row.status, runs.get(row.run_id or "")
            if run is not None and run.status != "active":
                status = run.outcome or run.status
            shown.append(session_document(row, status))
        return shown

    async def thoughts(
        self, session_id: str, after: int = 0, count: int | None = None, **which: Any
    ) -> Sequence[ThoughtRow]:
        """Return at most `count` thoughts whose `seq` is above `after`. This is not a use of the session."""
        if count is not None:
            return await self.store.thoughts(session_id, after_seq=after, limit=count, **which)
        rows = list[ThoughtRow]()
        while page := await self.store.thoughts(session_id, after_seq=after, limit=MAX_PAGE, **which):
            rows += page
            after = page[-1].seq
        return rows

    async def take_verdicts(self, session_id: str, claims: Sequence[Mapping[str, Any]]) -> None:
        """Record verdicts on claims, for the session's next reply. This is not a use of the session.

        Raises:
            NotFoundError: The session does not exist.
        """

        def decide(view: SessionView) -> SessionChange:
            row = self.present(view, session_id)
            if row.run_id is not None:
                return SessionChange()
            return SessionChange(replace(row, head=encode(with_verdicts(decode_head(row), claims))))

        await self.store.change(session_id, decide)


# -- unfinished sessions


async def find_unfinished(store: Store, directory: str) -> list[Unfinished]:
    """Return the latest unfinished sessions of agents: first the sessions of this directory, then the others.

    In both groups, the sessions used last come first. But a session whose only thought has a number above 1 comes last:
    an agent seems to have started this session after it had lost the id of an earlier session.
    """
    found = list[Unfinished]()
    for row in await store.sessions(limit=_LOOKED_AT, guided=True):
        with contextlib.suppress(StoreError):
            if row.thoughts and not (head := decode_head(row)).ended:
                found.append((row, head))

    def rank(session: Unfinished) -> tuple[bool, bool]:
        row, head = session
        is_stray = row.thoughts == 1 and head.line(head.latest).number > 1
        return not directory or head.directory != directory, is_stray

    return sorted(found, key=rank)


async def begun_here(store: Store, directory: str) -> list[Unfinished]:
    """Return the latest unfinished sessions of this directory."""
    found = await find_unfinished(store, directory) if directory else []
    return [session for session in found if session[1].directory == directory][:_SHOWN]


def list_unfinished(found: Sequence[Unfinished]) -> str:
    """Return a sentence that lists unfinished sessions with their ids."""
    listed: list[str] = []
    for row, head in found:
        line, words = head.line(head.latest), shorten(row.purpose, _PURPOSE_CHARS, one_line=True)
        place = f"thought {line.number} of {line.total}, {instant(row.used_at_ms)}"
        listed.append(f'"{row.session_id}" ({place}: {words!r})')
    how = "To continue one, send the thought again with its session id."
    return f"Unfinished sessions begun here: {'; '.join(listed)}. {how}"
