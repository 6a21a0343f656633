"""`reasonry sessions`: what was thought, by agents and by runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...app.wiring import App
from ...errors import ConflictError, UsageError
from ...ids import shorten_ids
from .. import present
from .candidates import SessionId
from .draw_session import draw
from .filters import Filters
from .instants import local_time
from .output import print_document, print_line, print_note, print_text, write_text
from .settings import Common, run_async, with_app
from .tables import Column, print_table

_CHARS_BEFORE_MATCH = 12


def _manage(common: Common, action: str, **arguments: Any) -> dict[str, Any]:
    async def work(app: App) -> dict[str, Any]:
        return await app.sessions().manage(_call(action, **arguments))

    return run_async(with_app(common.app(), work))


def _call(action: str, **arguments: Any) -> dict[str, Any]:
    return {"action": action, **{name: value for name, value in arguments.items() if value is not None}}


def list_(
    *,
    status: str | None = None,
    unfinished: Annotated[bool, Parameter(negative=())] = False,
    filters: Filters = Filters(),
    limit: str | None = None,
    cursor: str | None = None,
    common: Common = Common(),
) -> int:
    """List sessions, last used first.

    Parameters
    ----------
    status
        active, archived, unfinished or all (the default).
    unfinished
        Only those whose last thought was not said to be the last: what `think` may go on with. The same as --status
        unfinished.
    limit
        How many at most.
    cursor
        Go on after this session, the last of the page before.
    """
    if unfinished and status not in (None, "unfinished"):
        raise UsageError(f"--unfinished is --status unfinished, not {status}", option="status")
    wanted = {"status": "unfinished" if unfinished else status, "limit": limit}

    async def work(app: App) -> tuple[dict[str, Any], dict[str, str]]:
        sessions = app.sessions()
        last = None if cursor is None else await sessions.session_id(cursor)
        document = await sessions.list(_call("list", **wanted, cursor=last), **filters.read(app))
        return document, await shorten_ids(_ids(document["sessions"]), app.store.session_ids)

    document, short = run_async(with_app(common.app(), work))
    if common.json:
        print_document(document)
        return 0
    rows = document["sessions"]
    print_table(
        _COLUMNS,
        [_row(row, short[row["session_id"]], local_time(row.get("used_at", ""))) for row in rows],
        [_row(row, row["session_id"], row.get("used_at", "")) for row in rows],
    )
    if not rows:
        print_note("no such sessions" if wanted["status"] or filters.are_any else "no sessions yet")
    elif document["next_cursor"]:
        print_note(f"go on with: --cursor {short[document['next_cursor']]}")
    return 0


_COLUMNS = (
    Column("ID", narrowest=36),
    Column("USED", rank=2),
    Column("STATUS", rank=1),
    Column("THOUGHTS", rank=4, align_right=True),
    Column("STRATEGY", rank=3),
    Column("PURPOSE", narrowest=20),
)


def _row(row: dict[str, Any], name: str, used: str) -> tuple[str, ...]:
    status = "ended" if row.get("ended") and row["status"] == "active" else row["status"]
    marks = ", pinned" if row.get("pinned") else ""
    count = str(row["thought_history_length"])
    return name, used, status + marks, count, row.get("strategy", ""), row["purpose"]


def _ids(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(row["session_id"] for row in rows))


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
    session_id
        As `sessions list` shows it, how that begins, or `last`.
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
    if common.json:
        print_document(_manage(common, "get", **selection, limit=limit, cursor=cursor))
        return 0
    chosen = {name: value for name, value in {**selection, "cursor": cursor}.items() if value is not None}
    draw(*run_async(with_app(common.app(), lambda app: app.sessions().get_all(chosen))))
    return 0


def search_(
    query: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    session: SessionId | None = None,
    limit: str | None = None,
    cursor: str | None = None,
    common: Common = Common(),
) -> int:
    """Find thoughts that contain a text, whatever its case.

    Parameters
    ----------
    query
        Any text; no character has a special meaning.
    session
        Only in this session.
    limit
        How many at most.
    cursor
        `next_cursor` of the page before.
    """
    wanted = {"query": query, "session_id": session, "limit": limit}

    async def work(app: App) -> tuple[dict[str, Any], dict[str, str]]:
        document = await app.sessions().manage(_call("search", **wanted, cursor=cursor))
        # Reading the records of many runs takes time; a page in which nothing was found is none to look at.
        while not (common.json or document["matches"]) and document["next_cursor"]:
            notices, after = document["notices"], document["next_cursor"]
            document = await app.sessions().manage(_call("search", **wanted, cursor=after))
            document["notices"] = notices + document["notices"]
        return document, await shorten_ids(_ids(document["matches"]), app.store.session_ids)

    document, short = run_async(with_app(common.app(), work))
    if common.json:
        print_document(document)
        return 0
    found = [
        (match, str(match["thought_number"]), match.get("excerpt") or match.get("thought", ""))
        for match in document["matches"]
    ]
    print_table(
        (
            Column("SESSION", narrowest=36),
            Column("THOUGHT", rank=1, align_right=True),
            Column("TEXT", narrowest=20),
        ),
        [(short[match["session_id"]], number, _from_match(text, query)) for match, number, text in found],
        [(match["session_id"], number, text) for match, number, text in found],
    )
    for notice in document["notices"]:
        about = f"session {notice['requested_session_id']}: " if "requested_session_id" in notice else ""
        print_note(f"{about}{notice['message']}")
    if document["next_cursor"]:
        print_note(f"go on with: --cursor {document['next_cursor']}")
    elif not found:
        print_note("nothing found")
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
    force: Annotated[bool, Parameter(negative=())] = False,
    common: Common = Common(),
) -> int:
    """Write a session out.

    Parameters
    ----------
    session_id
        As `sessions list` shows it, how that begins, or `last`.
    format
        json (can be imported again), markdown or mermaid.
    output
        The file to write; without it, standard output.
    force
        Write over a file that is there.
    """
    document = _manage(common, "export", session_id=session_id, format=format)
    if output is None:
        if common.json or format == "json":
            print_document(document)
        else:
            print_text(document["text"].rstrip("\n"))
        return 0
    if output.exists() and not force:
        raise ConflictError(f"{output} is there already; --force writes over it", path=str(output))
    write_text(output, document if format == "json" else document["text"])
    if common.json:
        print_document({"session_id": session_id, "format": format, "output": str(output)})
    else:
        print_note(f"written to {output}")
    return 0


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

    async def work(app: App) -> dict[str, Any]:
        return await app.sessions().import_(content)

    document = run_async(with_app(common.app(), work))
    if common.json:
        print_document(document)
        return 0
    print_line(
        f"session {document['session_id']}, {present.count_of(document['thought_history_length'], 'thought')}"
    )
    for notice in document["notices"]:
        print_note(f"note: {notice['message']}")
    return 0


def delete_(session_id: SessionId, /, *, common: Common = Common()) -> int:
    """Forget a session for good.

    Parameters
    ----------
    session_id
        As `sessions list` shows it, how that begins, or `last`.
    """
    document = _manage(common, "delete", session_id=session_id)
    print_document(document) if common.json else print_line(f"deleted {document['session_id']}")
    return 0


def pin_(
    session_id: SessionId,
    /,
    *,
    off: Annotated[bool, Parameter(negative=())] = False,
    common: Common = Common(),
) -> int:
    """Keep a session from expiring.

    Parameters
    ----------
    session_id
        As `sessions list` shows it, how that begins, or `last`.
    off
        Let it expire again.
    """
    document = _manage(common, "pin", session_id=session_id, pinned=not off)
    done = f"{'unpinned' if off else 'pinned'} {document['session_id']}"
    print_document(document) if common.json else print_line(done)
    return 0
