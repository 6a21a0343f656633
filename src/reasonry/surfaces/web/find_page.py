"""Builds the page of the run or session that a user names by an id, the beginning of an id, or `last`."""

import asyncio
import contextlib
from functools import partial

from ...app.app import App
from ...engine.engine import RunView
from ...errors import NotFoundError
from ...records import find_id
from .page import DEFAULT_BOUNDS, PageBounds, PageDocument
from .run_page import run_page
from .session_page import session_page


async def find_page(app: App, text: str, bounds: PageBounds = DEFAULT_BOUNDS) -> PageDocument:
    """Return the page of a run or session. `text` is an id, the start of an id, or `last` for the most recently used.

    If a run wrote the session, the page shows that run. An active run or session is shown in its current state.

    Raises:
        NotFoundError: No run or session has an id that begins with the text.
        UsageError: Several ids begin with the text. The error's `choices` lists the ids.
        StoreError: The record is damaged.
    """

    async def find_ids(prefix: str, limit: int) -> list[str]:
        runs = await app.store.run_ids(prefix, limit)
        # A run and the session that it writes have the same id, unless the user named the session's id.
        return [*dict.fromkeys([*runs, *await app.store.session_ids(prefix, limit)])][:limit]

    found_id = await find_id(text, "run or session", find_ids, partial(_last, app))
    run_id = await _find_run(app, found_id)
    if run_id is not None:
        return await page_of_view(app, await app.engine.view(run_id), bounds)
    session = await app.sessions().export({"session_id": found_id, "format": "json"})
    strategy = app.strategies.get(str(session.get("strategy") or ""))
    return await asyncio.to_thread(session_page, session, strategy, bounds)


async def page_of_view(app: App, view: RunView, bounds: PageBounds = DEFAULT_BOUNDS) -> PageDocument:
    """Return the page of a run in its current state. The page covers the journal up to the page's `position`."""
    row, record = view.row, view.record
    ended = None if record.result.status == "active" else row.updated_at_ms
    strategy = app.strategies.get(row.strategy)
    page = await asyncio.to_thread(run_page, record, strategy, ended, bounds)
    page.position, page.paused = view.last.seq, row.paused
    return page


async def _last(app: App) -> str | None:
    used = [(row.updated_at_ms, row.run_id) for row in await app.store.runs(limit=1)]
    used += [(row.used_at_ms, row.session_id) for row in await app.store.sessions(limit=1)]
    return max(used)[1] if used else None


async def _find_run(app: App, found_id: str) -> str | None:
    """Convert the id of a run or session to the id of the run. If no run wrote the session, return None."""
    with contextlib.suppress(NotFoundError):
        return (await app.store.run(found_id)).run_id
    try:
        return (await app.store.session(found_id)).run_id
    except NotFoundError:
        shown = found_id[:200]
        message = f"there is no run and no session {shown!r}; `runs list` and `sessions list` show them"
        raise NotFoundError(message, id=shown) from None
