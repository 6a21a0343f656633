"""`reasonry sessions`: what was thought, by agents and by runs."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...app import App
from ...errors import ConflictError, UsageError
from .. import present
from .draw_session import draw
from .output import print_document, print_line, print_note, write_text
from .settings import Common, run_async, with_app


def _manage(common: Common, action: str, **arguments: Any) -> dict[str, Any]:
    supplied = {name: value for name, value in arguments.items() if value is not None}

    async def work(app: App) -> dict[str, Any]:
        return await app.sessions().manage({"action": action, **supplied})

    return run_async(with_app(common.app(), work))


def list_(
    *,
    status: str | None = None,
    limit: str | None = None,
    cursor: str | None = None,
    common: Common = Common(),
) -> int:
    """List sessions, last used first.

    Parameters
    ----------
    status
        active, archived or all (the default).
    limit
        How many at most.
    cursor
        `nextCursor` of the page before.
    """
    document = _manage(common, "list", status=status, limit=limit, cursor=cursor)
    if common.json:
        print_document(document)
        return 0
    for row in document["sessions"]:
        if row["status"] == "damaged":
            print_line(f"{row['sessionId']}  DAMAGED: what is stored of this session is not what was written")
            continue
        print_line(_row_line(row))
    if not document["sessions"]:
        print_note("no sessions")
    return 0


def _row_line(row: dict[str, Any]) -> str:
    used = datetime.datetime.fromisoformat(row["usedAt"]).astimezone()
    status = "ended" if row.get("ended") and row["status"] == "active" else row["status"]
    marks = "pinned " if row.get("pinned") else ""
    strategy = f"{row['strategy']}  " if "strategy" in row else ""
    about = f"{strategy}{marks}{present.clip(row['purpose'], 50)}"
    return f"{row['sessionId']}  {used:%Y-%m-%d %H:%M}  {status:<9} {row['thoughtHistoryLength']:>4} thoughts  {about}"


def show_(
    session_id: str,
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
        `nextCursor` of the page before (--json).
    """
    selection = {"sessionId": session_id, "from": from_, "to": to, "branchId": branch}
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
    session: str | None = None,
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
        `nextCursor` of the page before.
    """
    wanted = {"query": query, "sessionId": session, "limit": limit}
    document = _manage(common, "search", **wanted, cursor=cursor)
    if common.json:
        print_document(document)
        return 0
    _print_matches(document)
    while not document["matches"] and document["nextCursor"]:
        document = _manage(common, "search", **wanted, cursor=document["nextCursor"])
        _print_matches(document)
    if document["nextCursor"]:
        print_note(f"more with --cursor {document['nextCursor']}")
    elif not document["matches"]:
        print_note("nothing found")
    return 0


def _print_matches(document: dict[str, Any]) -> None:
    for match in document["matches"]:
        text = present.clip(match.get("excerpt") or match.get("thought", ""), 100)
        print_line(f"{match['sessionId']}  thought {match['thoughtNumber']}: {text}")
    for notice in document["notices"]:
        print_note(f"session {notice['requestedSessionId']}: {notice['message']}")


def export_(
    session_id: str,
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
    document = _manage(common, "export", sessionId=session_id, format=format)
    if output is None:
        if common.json or format == "json":
            print_document(document)
        else:
            print_line(document["text"].rstrip("\n"))
        return 0
    if output.exists() and not force:
        raise ConflictError(f"{output} is there already; --force writes over it", path=str(output))
    write_text(output, document if format == "json" else document["text"])
    if common.json:
        print_document({"sessionId": session_id, "format": format, "output": str(output)})
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
    print_line(f"session {document['sessionId']}, {document['thoughtHistoryLength']} thoughts")
    for notice in document["notices"]:
        print_note(f"note: {notice['message']}")
    return 0


def delete_(session_id: str, /, *, common: Common = Common()) -> int:
    """Forget a session for good.

    Parameters
    ----------
    session_id
        As `sessions list` shows it, how that begins, or `last`.
    """
    document = _manage(common, "delete", sessionId=session_id)
    print_document(document) if common.json else print_line(f"deleted {document['sessionId']}")
    return 0


def pin_(
    session_id: str,
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
    document = _manage(common, "pin", sessionId=session_id, pinned=not off)
    done = f"{'unpinned' if off else 'pinned'} {document['sessionId']}"
    print_document(document) if common.json else print_line(done)
    return 0
