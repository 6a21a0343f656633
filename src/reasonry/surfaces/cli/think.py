"""`reasonry think`: one thought a call, for agents that have only a shell."""

from __future__ import annotations

import json as json_
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ...app import App
from ...errors import UsageError
from ...guided.known_sessions import KnownSessions
from ...guided.thinking_tool import ThinkingCall, tool_schema
from .output import print_document, print_line, print_note
from .settings import Common, SessionRules, run_async, with_app

Flag = Annotated[bool, Parameter(negative=())]

OPTIONS = {
    "number": "thoughtNumber",
    "total": "totalThoughts",
    "session": "sessionId",
    "strategy": "strategy",
    "stage": "stage",
    "data": "data",
    "branch": "branchId",
    "branch_from": "branchFromThought",
    "merge_branch": "mergeBranch",
    "revises": "revisesThought",
    "more": "needsMoreThoughts",
    "clear": "clearSession",
    "history": "history",
}
"""The argument of the thinking tool that each option stands for."""
_LINES = {"guidance": "here", "scores": "scores", "leftOpen": "left open"}
"""What is shown of a reply besides its numbers, and under which word."""


def _option(name: str, argument: str) -> tuple[str, Any, Any]:
    """Return a command line option as a dataclass field: text, which the tool reads, or a flag."""
    schema = tool_schema(ThinkingCall)
    member = schema["properties"][argument]
    kind = member.get("type", "list")
    form = {"object": ", as a JSON object", "list": ", with commas between"}.get(kind, "")
    described = Parameter(help=f"{member['description']}{form}.")
    if kind == "boolean":
        return name, Annotated[Flag, described], field(default=False)
    if argument in schema["required"]:
        return name, Annotated[str, described], field()
    return name, Annotated[str | None, described], field(default=None)


if TYPE_CHECKING:
    ThinkingOptions = Any
else:
    _FIELDS = [_option(name, argument) for name, argument in OPTIONS.items()]
    ThinkingOptions = Parameter(name="*")(
        make_dataclass("ThinkingOptions", _FIELDS, kw_only=True, namespace={"__module__": __name__})
    )


def think(
    thought: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    options: ThinkingOptions,
    next: Flag = False,
    done: Flag = False,
    rules: SessionRules = SessionRules(),
    common: Common = Common(),
) -> int:
    """Record a thought and say where the session stands.

    Parameters
    ----------
    thought
        What was thought; `-` is taken literally.
    next
        Another thought follows.
    done
        This is the last thought.
    """
    if next == done:
        raise UsageError("say --next if another thought follows, or --done if this is the last one")
    arguments = {OPTIONS[name]: value for name, value in vars(options).items() if value not in (None, False)}
    if "data" in arguments:
        arguments["data"] = _read_data(arguments["data"])
    if "," in arguments.get("stage", ""):
        arguments["stage"] = [name.strip() for name in arguments["stage"].split(",")]
    arguments |= {"thought": thought, "nextThoughtNeeded": next}
    document = run_async(with_app(common.app(environ=rules.environ()), lambda app: _think(app, arguments)))
    if common.json:
        print_document(document)
    else:
        _show(document)
    return 0


async def _think(app: App, arguments: dict[str, Any]) -> dict[str, Any]:
    return await app.sessions().think(arguments, known=KnownSessions())


def _read_data(data: str) -> Any:
    try:
        return json_.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--data is not JSON: {error}", option="data") from None


def _show(document: dict[str, Any]) -> None:
    place = [f"thought {document['thoughtNumber']}/{document['totalThoughts']}"]
    place += [document["strategy"]] if "strategy" in document else []
    place += [f"stage {document['stage']}"] if "stage" in document else []
    print_line(" · ".join(place))
    print_line(f"session {document['sessionId']}")
    for name, label in _LINES.items():
        if name in document:
            print_line(f"  {label}: {document[name]}")
    for stage in document.get("nextStages", ()):
        required = "; ".join(f"{name}: {takes}" for name, takes in stage.get("requires", {}).items())
        print_line(f"  next: {stage['name']}{f' (--data {required})' if required else ''}")
        if "guidance" in stage:
            print_line(f"    {stage['guidance']}")
    for shown in document.get("thoughtHistory", ()):
        print_line(f"  {shown['thoughtNumber']}: {shown['thought']}")
    if "summary" in document:
        print_line(document["summary"])
    for notice in document.get("notices", ()):
        print_note(f"note: {notice['message']}")
