"""`reasonry sessions`: what was thought, by agents and by runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...app.wiring import App
from ...errors import ConflictError, UsageError
from ...ids import shorten_ids
from .. import present
from .arguments import Cursor, Filters, Limit, SessionId, Text, list_sessions
from .draw import draw_session
from .output import print_document, print_line, print_note, print_text, write_text
from .settings import Common
from .tables import Column

_CHARS_BEFORE_MATCH = 12
_COLUMNS = (
    Column("ID", "session_id", kind="id", narrowest=36),
    Column("USED", "used_at", kind="instant", rank=2),
    Column("STATUS", lambda row: _status(row), rank=1),
    Column("THOUGHTS", "thought_history_length", rank=4, align_right=True),
    Column("STRATEGY", "strategy", rank=3),
    Column("PURPOSE", "purpose", narrowest=20),
)
_MATCHES = (
    Column("SESSION", "session_id", kind="id", narrowest=36),
    Column("THOUGHT", "thought_number", rank=1, align_right=True),
    Column("TEXT", "shown", narrowest=20),
)


def _manage(common: Common, action: str, **arguments: Any) -> dict[str, Any]:
    return common.do(lambda app: app.sessions().manage(_call(action, **arguments)))


def _call(action: str, **arguments: Any) -> dict[str, Any]:
    return {"action": action, **{name: value for name, value in arguments.items() if value is not None}}


def list_(
    *,
    status: str | None = None,
    unfinished: bool = False,
    filters: Filters = Filters(),
    limit: Limit = None,
    cursor: str | None = None,
    common: Common = Common(),
) -> int:
    """List sessions, last used first.

    Parameters
    ----------
    status
        active, archived, unfinished or all (the default).
    unfinished
        Only those whose last thought was not said to be the last: what `think` may continue. The same as --status
        unfinished.
    cursor
        Continue after this session, the last of the page before.
    """
    if unfinished and status not in (None, "unfinished"):
        raise UsageError(f"--unfinished is --status unfinished, not {status}", option="status")
    wanted = {"status": "unfinished" if unfinished else status, "limit": limit}

    async def work(app: App) -> tuple[dict[str, Any], dict[str, str]]:
        sessions = app.sessions()
        last = None if cursor is None else await sessions.session_id(cursor)
        document = await sessions.list(_call("list", **wanted, cursor=last), **filters.read(app))
        return document, await _shorten(app, document["sessions"])

    document, short = common.do(work)
    more = document["next_cursor"]
    return common.show_rows(
        document,
        _COLUMNS,
        document["sessions"],
        short,
        none="no such sessions" if wanted["status"] or filters.are_any else "no sessions yet",
        more=f"--cursor {short[more]}" if more else "",
    )


def _status(row: dict[str, Any]) -> str:
    status = "ended" if row.get("ended") and row["status"] == "active" else row["status"]
    return f"{status}, pinned" if row.get("pinned") else status


async def _shorten(app: App, rows: list[dict[str, Any]]) -> dict[str, str]:
    ids = dict.fromkeys(row["session_id"] for row in rows)
    return await shorten_ids([*ids], app.store.session_ids)


def show_(
    session_id: SessionId,
    /,
    *,
    from_: Annotated[str | None, Parameter(name="--from")] = None,
    to: str | None = None,
    branch: str | None = None,
    limit: str | None = None,
    cursor: str | None = None,
    common: Common = Common(),
) -> int:
    """Draw a session: main line, branches, revisions, stages. With --json one page of it, as the tool gives it.

    Parameters
    ----------
    from_
        First thought number.
    to
        Last thought number.
    branch
        Only this branch; an empty name is the main line.
    limit
        How many thoughts at most (--json).
    cursor
        `next_cursor` of the page before (--json).
    """
    selection = {"session_id": session_id, "from": from_, "to": to, "branch_id": branch}
    if common.as_data:
        return common.show(_manage(common, "get", **selection, limit=limit, cursor=cursor), "")
    chosen = {name: value for name, value in {**selection, "cursor": cursor}.items() if value is not None}
    draw_session(*common.do(lambda app: app.sessions().get_all(chosen)))
    return 0


def search_(
    query: Text,
    /,
    *,
    session: Annotated[str | None, Parameter(completer=list_sessions)] = None,
    limit: Limit = None,
    cursor: Cursor = None,
    common: Common = Common(),
) -> int:
    """Find thoughts that contain a text, whatever its case.

    Parameters
    ----------
    query
        Any text; no character has a special meaning.
    session
        Only in this session.
    """
    wanted = {"query": query, "session_id": session, "limit": limit}

    async def work(app: App) -> tuple[dict[str, Any], dict[str, str]]:
        document = await app.sessions().manage(_call("search", **wanted, cursor=cursor))
        return document, await _shorten(app, document["matches"])

    document, short = common.do(work)
    for match in document["matches"] if not common.as_data else ():
        text = match.get("excerpt") or match.get("thought", "")
        match["shown"] = _from_match(text, query) if sys.stdout.isatty() else text
    more = document["next_cursor"]
    common.show_rows(
        document,
        _MATCHES,
        document["matches"],
        short,
        none="nothing found",
        more=f"--cursor {more}" if more else "",
    )
    for notice in document["notices"] if not common.as_data else ():
        about = f"session {notice['requested_session_id']}: " if "requested_session_id" in notice else ""
        print_note(f"{about}{notice['message']}")
    return 0


def _from_match(text: str, query: str) -> str:
    """Return a text from a few words before a match on, so that the match is seen where the text is cut."""
    place = text.lower().find(query.lower())
    start = text.rfind(" ", 0, max(place - _CHARS_BEFORE_MATCH, 0)) + 1
    return "…" + text[start:] if start > 1 else text


def export_(
    session_id: SessionId,
    /,
    *,
    format: str = "json",
    output: Path | None = None,
    force: bool = False,
    common: Common = Common(),
) -> int:
    """Write a session out.

    Parameters
    ----------
    format
        json (can be imported again), markdown or mermaid.
    output
        The file to write; without it, standard output.
    force
        Write over a file that is there.
    """
    document = _manage(common, "export", session_id=session_id, format=format)
    if output is None and format == "json":
        return common.show(document, lambda: print_document(document))
    if output is None:
        return common.show(document, lambda: print_text(document["text"].rstrip("\n")))
    if output.exists() and not force:
        raise ConflictError(f"{output} is there already; --force writes over it", path=str(output))
    write_text(output, document if format == "json" else document["text"])
    written = {"session_id": session_id, "format": format, "output": str(output)}
    return common.show(written, lambda: print_note(f"written to {output}"))


def import_(file: Path, /, *, common: Common = Common()) -> int:
    """Take a session in: our own JSON export, or a session file of think-strategies.

    Parameters
    ----------
    file
        The file to read.
    """
    try:
        content = file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}", path=str(file)) from None
    document = common.do(lambda app: app.sessions().import_(content))

    def draw() -> None:
        count = present.count_of(document["thought_history_length"], "thought")
        print_line(f"session {document['session_id']}, {count}")
        for notice in document["notices"]:
            print_note(f"note: {notice['message']}")

    return common.show(document, draw)


def delete_(session_id: SessionId, /, *, common: Common = Common()) -> int:
    """Forget a session for good."""
    document = _manage(common, "delete", session_id=session_id)
    return common.show(document, f"deleted {document['session_id']}")


def pin_(session_id: SessionId, /, *, off: bool = False, common: Common = Common()) -> int:
    """Keep a session from expiring.

    Parameters
    ----------
    off
        Let it expire again.
    """
    document = _manage(common, "pin", session_id=session_id, pinned=not off)
    return common.show(document, f"{'unpinned' if off else 'pinned'} {document['session_id']}")
