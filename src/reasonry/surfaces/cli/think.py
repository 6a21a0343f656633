"""`reasonry think`: one thought a call, for agents that have only a shell."""

from __future__ import annotations

import json as json_
import os
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ...app.wiring import App
from ...core.text import clip
from ...errors import UsageError
from ...guided.directory import Following
from ...guided.thinker import Thinker
from ...guided.thinking_tool import ThinkingCall, tool_schema
from ...guided.which_session import Bound
from .arguments import Text, list_sessions, list_strategies
from .output import print_line, print_note
from .settings import Common, SessionRules, overlay

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
_HELP = {
    "number": "Number of this thought; none: the next one of its line",
    "total": "Present estimate of the thoughts needed; none: the one before, at least one more than the number",
    "branch": "Branch it is on; main: the main line",
    "branch_from": "Number of the thought it branches from",
    "revises": "Number of the thought it revises",
    "more": "It was the last one, but more are needed",
    "history": "How many of the latest thoughts to show",
    "session": "Session to continue: its id, the beginning of it, or last; none: the one in use in this directory",
}
"""What is said of an option beyond what the tool's schema says."""
_CANDIDATES = {"session": list_sessions, "strategy": list_strategies}
_LINES = {
    "guidance": "here",
    "scores": "scores",
    "beforeYouEnd": "before you end",
    "leftOpen": "left open",
}
"""What is shown of a reply besides its numbers, and under which word."""


def _option(name: str, argument: str) -> tuple[str, Any, Any]:
    """Return a command line option as a dataclass field: text, which the tool reads, or a flag."""
    schema = tool_schema(ThinkingCall)
    member = schema["properties"][argument]
    kind = member.get("type", "list")
    form = {"object": ", as a JSON object", "list": ", with commas between"}.get(kind, "")
    described = Parameter(
        help=f"{_HELP.get(name) or member['description']}{form}.", completer=_CANDIDATES.get(name)
    )
    if kind == "boolean":
        return name, Annotated[bool, described], field(default=False)
    return name, Annotated[str | None, described], field(default=None)


if TYPE_CHECKING:
    ThinkingOptions = Any
else:
    _FIELDS = [_option(name, argument) for name, argument in OPTIONS.items()]
    ThinkingOptions = Parameter(name="*")(
        make_dataclass(
            "ThinkingOptions", _FIELDS, kw_only=True, frozen=True, namespace={"__module__": __name__}
        )
    )
_NONE: ThinkingOptions = ThinkingOptions()  # pyright: ignore[reportCallIssue]


def think(
    thought: Text,
    /,
    *,
    options: ThinkingOptions = _NONE,
    next: bool = False,
    done: bool = False,
    new: bool = False,
    rules: SessionRules = SessionRules(),
    common: Common = Common(),
) -> int:
    """Record a thought and say where the session stands.

    Without --session it continues the session that was last used in this directory, if that session has not ended and
    is still active, and says so; otherwise it starts one.

    Parameters
    ----------
    thought
        The text of the thought; `-` has no special meaning.
    next
        Another thought follows; this is the default.
    done
        This is the last thought.
    new
        Start a session.
    """
    if next and done:
        raise UsageError("--next and --done exclude each other: use one of them", option="next")
    if new and options.session is not None:
        raise UsageError("--new starts a session, --session continues one: use one of them", option="new")
    arguments = {OPTIONS[name]: value for name, value in vars(options).items() if value not in (None, False)}
    if "data" in arguments:
        try:
            arguments["data"] = json_.loads(arguments["data"])
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--data is not JSON: {error}", option="data") from None
    if "," in arguments.get("stage", ""):
        arguments["stage"] = [name.strip() for name in arguments["stage"].split(",")]
    arguments |= {"thought": thought, "nextThoughtNeeded": not done}

    async def work(app: App) -> tuple[dict[str, Any], Following]:
        sessions = app.sessions()
        after = await sessions.following(arguments, begins=new)
        numbers = {"thoughtNumber": after.number, "totalThoughts": after.total}
        caller = Thinker(Bound([*after.session_ids]))
        return await sessions.think({**numbers, **arguments}, thinker=caller), after

    document, after = common.do(work, environ=overlay(os.environ, vars(rules)))

    def draw() -> None:
        _show(document)
        if document["sessionId"] in after.session_ids:
            print_note(f"continues {clip(after.purpose, 50)!r}; --new begins another session")

    return common.show(document, draw)


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
