"""`reasonry think`: one thought a call, for agents that have only a shell."""

from __future__ import annotations

import json as json_
from typing import Annotated, Any

from cyclopts import Parameter

from ...app import App
from ...errors import UsageError
from .output import print_document, print_line, print_note
from .settings import Common, SessionRules, run_async, with_app

Flag = Annotated[bool, Parameter(negative=())]


def think(
    thought: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    number: Annotated[str, Parameter(name="--number")],
    total: Annotated[str, Parameter(name="--total")],
    next: Flag = False,
    done: Flag = False,
    session: str | None = None,
    strategy: str | None = None,
    stage: str | None = None,
    data: str | None = None,
    branch: str | None = None,
    branch_from: str | None = None,
    merge_branch: str | None = None,
    revises: str | None = None,
    more: Flag = False,
    clear: Flag = False,
    history: str | None = None,
    rules: SessionRules = SessionRules(),
    common: Common = Common(),
) -> int:
    """Record a thought and say where the session stands.

    Parameters
    ----------
    thought
        What was thought; `-` is taken literally.
    number
        The thought's number.
    total
        How many thoughts are expected by now.
    next
        Another thought follows.
    done
        This is the last thought.
    session
        The session to go on with; without it a new one is begun.
    strategy
        The strategy of a new session.
    stage
        The stage the thought belongs to: the one the line stands in, or a legal next one.
    data
        The stage's fields, as a JSON object.
    branch
        The branch the thought is on.
    branch_from
        The thought a branch leaves from.
    merge_branch
        A branch that this thought takes back in.
    revises
        The thought that this one revises.
    more
        More thoughts are needed than expected.
    clear
        Forget the session and begin a new one.
    history
        How many of the latest thoughts to show.
    """
    if next == done:
        raise UsageError("say --next if another thought follows, or --done if this is the last one")
    given = {
        "thought": thought,
        "thoughtNumber": number,
        "totalThoughts": total,
        "nextThoughtNeeded": next,
        "sessionId": session,
        "strategy": strategy,
        "stage": stage,
        "data": _read_data(data),
        "branchId": branch,
        "branchFromThought": branch_from,
        "mergeBranch": merge_branch,
        "isRevision": True if revises is not None else None,
        "revisesThought": revises,
        "needsMoreThoughts": more or None,
        "clearSession": clear or None,
        "history": history,
    }
    arguments = {name: value for name, value in given.items() if value is not None}
    document = run_async(with_app(common.app(environ=rules.environ()), lambda app: _think(app, arguments)))
    if common.json:
        print_document(document)
    else:
        _show(document)
    return 0


async def _think(app: App, arguments: dict[str, Any]) -> dict[str, Any]:
    return await app.sessions().think(arguments)


def _read_data(data: str | None) -> Any:
    if data is None:
        return None
    try:
        return json_.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--data is not JSON: {error}", option="data") from None


def _show(document: dict[str, Any]) -> None:
    number, total = document["thoughtNumber"], document["totalThoughts"]
    print_line(f"thought {number}/{total} · {document['strategy']} · stage {document['stage']}")
    print_line(f"session {document['sessionId']}")
    for stage in document["nextStages"]:
        print_line(f"  next: {stage['name']}: {stage['description']}")
    if document.get("summary"):
        print_line(document["summary"])
    for notice in document.get("notices", []):
        print_note(f"note: {notice['message']}")
