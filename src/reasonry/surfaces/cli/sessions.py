"""`reasonry sessions` and `reasonry think`: show, manage and record the thoughts of agents and of runs."""

import json as json_
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ...app.app import App
from ...errors import UsageError
from ...records import SessionRow, short_id
from ...text import display_line
from .. import present
from .output import Column, confirm_deletion, local_time, print_document, print_line, print_text
from .parameters import Cursor, Filters, Limit, SessionId, Text, read_text
from .settings import Common

_COLUMNS = (
    Column("ID", "session_id", short_id, narrowest=22),
    Column("USED", "used_at", local_time),
    Column("STATUS", lambda row: _status(row)),
    Column("STRATEGY", "strategy"),
    Column("PURPOSE", "purpose", narrowest=18),
    Column("THOUGHTS", "thought_history_length", align_right=True),
)
_MATCHES = (
    Column("SESSION", "session_id", short_id, narrowest=22),
    Column("THOUGHT", "thought_number", align_right=True),
    Column("TEXT", "excerpt", narrowest=20, wraps=True),
)


def _manage(common: Common, action: str, **arguments: Any) -> dict[str, Any]:
    return common.do(lambda app: app.sessions().manage({"action": action, **arguments}))


def list_(
    *,
    status: str | None = None,
    filters: Filters = Filters(),
    limit: Limit = None,
    cursor: str | None = None,
    common: Common = Common(),
) -> int:
    """List sessions, the most recently used session first.

    Args:
        status: active, archived, unfinished (no thought was marked as the last) or all (the default).
        cursor: Id of the last session on the previous page; the list continues after it.
    """

    async def work(app: App) -> dict[str, Any]:
        sessions = app.sessions()
        last = None if cursor is None else await sessions.stored.find_id(cursor)
        call = {"status": status, "limit": limit, "cursor": last}
        return await sessions.list(call, **filters.read())

    return common.show_page(work, "sessions", _COLUMNS, none="no such sessions")


def _status(row: dict[str, Any]) -> str:
    status = "ended" if row.get("ended") and row["status"] == "active" else row["status"]
    return f"{status}, pinned" if row.get("pinned") else status


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
    """Draw a session: main line, branches, revisions, stages. With --json, print one page of thoughts.

    Args:
        from_: Number of the first thought to show.
        to: Number of the last thought to show.
        branch: Show only this branch; main means the main line.
        limit: Maximum number of thoughts on a page (--json).
        cursor: `next_cursor` of the previous page (--json).
    """
    from .draw import draw_session

    selection = {"session_id": session_id, "from": from_, "to": to, "branch_id": branch}
    if common.as_data:
        return common.show(_manage(common, "get", **selection, limit=limit, cursor=cursor), "")
    draw_session(common.do(lambda app: app.sessions().get({**selection, "cursor": cursor}, whole=True)))
    return 0


def search_(
    query: Text,
    /,
    *,
    session: str | None = None,
    limit: Limit = None,
    cursor: Cursor = None,
    common: Common = Common(),
) -> int:
    """Find thoughts that contain a text; case is ignored.

    Args:
        query: Any text; no character has a special meaning.
        session: Search only this session.
    """
    call = {"query": query, "session_id": session, "limit": limit, "cursor": cursor}
    return common.show_page(
        lambda app: app.sessions().search(call), "matches", _MATCHES, none="nothing found"
    )


def export_(session_id: SessionId, /, *, format: str = "json", common: Common = Common()) -> int:
    """Write a session to standard output.

    Args:
        format: json (can be imported again) or markdown.
    """
    document = _manage(common, "export", session_id=session_id, format=format)
    is_json = format == "json"
    return common.show(
        document, lambda: print_document(document) if is_json else print_text(document["text"].rstrip("\n"))
    )


def import_(file: Path, /, *, common: Common = Common()) -> int:
    """Import a session from its JSON export.

    Args:
        file: The file to read.
    """
    content = read_text(str(file), "file")
    document = common.do(lambda app: app.sessions().import_(content))
    count = present.count_of(document["thought_history_length"], "thought")
    return common.show(document, f"session {document['session_id']}, {count}")


def delete_(session_id: SessionId, /, *, yes: bool = False, common: Common = Common()) -> int:
    """Delete a session permanently. If a run wrote the session, the run is deleted too.

    Args:
        yes: Do not ask for confirmation.
    """

    async def find(app: App) -> SessionRow:
        return await app.store.session(await app.sessions().stored.find_id(session_id))

    if not yes:
        row = common.do(find)
        session_id, run = row.session_id, f" and run {row.run_id}" if row.run_id else ""
        if not confirm_deletion(f"Delete session {session_id} ({display_line(row.purpose, 60)}){run}?"):
            return present.EXIT_CODES["cancelled"]
    document = _manage(common, "delete", session_id=session_id)
    return common.show(document, f"deleted {document['session_id']}")


def pin_(session_id: SessionId, /, *, off: bool = False, common: Common = Common()) -> int:
    """Keep a session from expiring.

    Args:
        off: Let the session expire again.
    """
    document = _manage(common, "pin", session_id=session_id, pinned=not off)
    return common.show(document, f"{'unpinned' if off else 'pinned'} {document['session_id']}")


# -- one thought per command, for agents that have only a shell


_LINES = {
    "guidance": "here",
    "scores": "scores",
    "before_you_end": "before you end",
    "left_open": "left open",
}
"""Maps each member of a reply that is shown on a line of its own to the label of this line."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ThinkingOptions:
    """The arguments of the thinking tool, except for the thought itself.

    Args:
        thought_number: Number of this thought. Default: the next number in its branch or in the main line.
        total_thoughts: Estimate of how many thoughts are needed. Default: the last estimate, raised once it is reached.
        session_id: Session to continue: its id, the start of its id, or last. Default: the session used in this folder.
        strategy: Strategy of a new session.
        stage: Stage, or a path of stages with commas between.
        data: The stage's fields, as a JSON object.
        branch_id: Branch of the thought; main means the main line.
        branch_from_thought: Number of the thought that the branch starts from.
        merge_branch: Branch to merge.
        revises_thought: Number of the thought that this thought revises.
        needs_more_thoughts: The estimate is reached, but more thoughts are needed.
        clear_session: Archive the session, start over.
        history: How many of the latest thoughts to show.
    """

    thought_number: Annotated[str | None, Parameter(name="--number")] = None
    total_thoughts: Annotated[str | None, Parameter(name="--total")] = None
    session_id: Annotated[str | None, Parameter(name="--session")] = None
    strategy: str | None = None
    stage: str | None = None
    data: str | None = None
    branch_id: Annotated[str | None, Parameter(name="--branch")] = None
    branch_from_thought: Annotated[str | None, Parameter(name="--branch-from")] = None
    merge_branch: str | None = None
    revises_thought: Annotated[str | None, Parameter(name="--revises")] = None
    needs_more_thoughts: Annotated[bool, Parameter(name="--more")] = False
    clear_session: Annotated[bool, Parameter(name="--clear")] = False
    history: str | None = None


def think(
    thought: Text,
    /,
    *,
    options: ThinkingOptions = ThinkingOptions(),
    next: bool = False,
    done: bool = False,
    new: bool = False,
    common: Common = Common(),
) -> int:
    """Record a thought and show the state of the session.

    Without --session, the command continues the session that was last used in this folder, and says so. If that session
    has ended or is no longer active, the command starts a new session.

    Args:
        thought: The thought.
        next: Another thought follows; this is the default.
        done: This is the last thought.
        new: Start a new session.
    """
    if next and done:
        raise UsageError("--next and --done exclude each other: use one of them", option="next")
    if new and options.session_id is not None:
        raise UsageError("--new starts a session, --session continues one: use one of them", option="new")
    arguments = {name: value for name, value in vars(options).items() if value not in (None, False)}
    if "data" in arguments:
        try:
            arguments["data"] = json_.loads(arguments["data"])
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--data is not JSON: {error}", option="data") from None
    if "," in arguments.get("stage", ""):
        arguments["stage"] = [name.strip() for name in arguments["stage"].split(",")]
    arguments |= {"thought": thought, "next_thought_needed": not done}

    refuter = "`reasonry coach refute --session last`"
    try:
        document, purpose = common.do(
            lambda app: app.sessions().think_here(arguments, begins=new, refuter=refuter)
        )
    except UsageError as error:
        if instead := error.details.get("instead"):
            error.message += f" This would be accepted: {', '.join(_as_options(instead))}."
        raise
    continues = f"continues {display_line(purpose or '', 50)!r}; --new begins another session"
    return common.show(document, lambda: _show_thought(document), "" if purpose is None else continues)


def _as_options(arguments: dict[str, Any]) -> Iterator[str]:
    """Yield each argument as an option, such as `--stage plan`. If the value is None, yield `no --stage` instead."""
    for name, value in arguments.items():
        option = f"--{name.removesuffix('_id').removesuffix('_thought').replace('_', '-')}"
        text = ",".join(value) if isinstance(value, list) else str(value)
        yield f"no {option}" if value is None else f"{option} {shlex.quote(text)}"


def _show_thought(document: dict[str, Any]) -> None:
    number = f"thought {document['thought_number']}/{document['total_thoughts']}"
    stage = f"stage {document['stage']}" if "stage" in document else None
    branch = f"branch {display_line(document['branch_id'], 50)}" if "branch_id" in document else None
    print_line(" · ".join(filter(None, (number, document.get("strategy"), stage, branch))))
    print_line(f"session {document['session_id']}")
    print_line(*(f"  {label}: {document[name]}" for name, label in _LINES.items() if name in document))
    for stage in document.get("next_stages", ()):
        required = "; ".join(f"{name}: {takes}" for name, takes in stage.get("requires", {}).items())
        print_line(f"  next: {stage['name']}{f' (--data {required})' if required else ''}")
        if "guidance" in stage:
            print_line(f"    {stage['guidance']}")
    history = document.get("thought_history", ())
    print_line(*(f"  {shown['thought_number']}: {shown['thought']}" for shown in history))
    if "summary" in document:
        thoughts = present.count_of(document["thought_history_length"], "thought")
        branches = present.count_of(len(document["branches"]), "branch", "es")
        print_line(f"Sequential thinking complete: {thoughts} processed across {branches}.")
