"""Read the arguments of the session tools into Structs. Each action of the tool `sessions` has its own Struct.

The schemas and the readers of the tools are built from these Structs. A member's name means the same in every Struct.
"""

import zlib
from collections.abc import Mapping
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct, field

from ..errors import UsageError
from ..system.masking import SECRETS
from .export import Format
from .lines import MAIN, Head
from .session_settings import SessionSettings
from .thinking_tool import ThinkingCall, ThoughtNumber, tool_schema
from .tool_arguments import MAX_NAME_CHARS, Arguments, name_arguments, read_argument, read_arguments

T = TypeVar("T", bound=Struct)

_NOT_COMPARED = frozenset({"thought", "session_id", "clear_session", "history"})
_compared = attrgetter(*(name for name in ThinkingCall.__struct_fields__ if name not in _NOT_COMPARED))
_encode = msgspec.json.Encoder().encode
PAGE = 50
MAX_PAGE = 500
MAX_QUERY_CHARS = 1_000

_PLACING = {"thought_number", "branch_id", "branch_from_thought", "revises_thought", "stage"}
"""Arguments with which a command places its thought on a line."""

Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE)]


class OneSession(Struct, frozen=True, kw_only=True):
    """Arguments that every action on one session has."""

    session_id: str


class ListSessions(Struct, frozen=True, kw_only=True):
    """Arguments of the action `list` of the tool `sessions`."""

    status: Annotated[
        Literal["active", "archived", "unfinished", "all"], Meta(description="list: default all")
    ] = "all"
    limit: Limit = PAGE
    cursor: str | None = None


class GetSession(OneSession, frozen=True, kw_only=True):
    """Arguments of the action `get` of the tool `sessions`."""

    first: Annotated[ThoughtNumber | None, Meta(description="get: thought number")] = field(
        default=None, name="from"
    )
    last: Annotated[ThoughtNumber | None, Meta(description="get")] = field(default=None, name="to")
    branch_id: Annotated[str | None, Meta(description="get; main: main line")] = None
    limit: Limit = PAGE
    cursor: str | None = None


class SearchThoughts(Struct, frozen=True, kw_only=True):
    """Arguments of the action `search` of the tool `sessions`."""

    query: Annotated[str, Meta(max_length=MAX_QUERY_CHARS, description="search: literal text")]
    session_id: str | None = None
    limit: Limit = PAGE
    cursor: str | None = None


class ResumeSession(Struct, frozen=True, kw_only=True):
    """Arguments of the action `resume` of the tool `sessions`."""

    session_id: str | None = None
    history: Annotated[Annotated[int, Meta(ge=0)] | None, Meta(description="resume: thoughts to show")] = None


class ExportSession(OneSession, frozen=True, kw_only=True):
    """Arguments of the action `export` of the tool `sessions`."""

    format: Format = "json"


class PinSession(OneSession, frozen=True, kw_only=True):
    """Arguments of the action `pin` of the tool `sessions`."""

    pinned: Annotated[bool, Meta(description="pin")] = True


ACTIONS: Mapping[str, type[Struct]] = {
    "list": ListSessions,
    "get": GetSession,
    "search": SearchThoughts,
    "resume": ResumeSession,
    "export": ExportSession,
    "delete": OneSession,
    "pin": PinSession,
}


# -- reading


def read_thought(arguments: Arguments, settings: SessionSettings) -> tuple[ThinkingCall, dict[str, Any]]:
    """Read the arguments of the thinking tool, and mask secrets in them (such as API keys).

    Returns:
        The call, and the unknown arguments, which may be fields of the thought's stage.

    Raises:
        UsageError: An argument is missing or has the wrong type; `field` names it.
        TooLargeError: An argument is too long.
    """
    schema = tool_schema(ThinkingCall)
    try:
        named = name_arguments(schema, SECRETS.mask_data(arguments))
    except RecursionError:
        raise UsageError("the arguments are nested too deeply") from None
    others = {name: value for name, value in named.items() if name not in schema["properties"]}
    limits = dict.fromkeys(schema["properties"], MAX_NAME_CHARS)
    limits |= dict.fromkeys(("thought", "data"), settings.max_thought_chars)
    return read_form(ThinkingCall, named, limits), others


def read_session_only(arguments: Arguments, fault: UsageError, bound_to: str | None) -> ThinkingCall:
    """Return a call with only a session id: `bound_to`, or else the session id in the arguments.

    Raises:
        UsageError: The error `fault`, if the session id itself is faulty or missing.
    """
    try:
        named = bound_to or read_call(OneSession, arguments).session_id
    except UsageError:
        raise fault from None
    if "session_id" in (fault.details.get("field"), *fault.details.get("fields", ())):
        raise fault
    return ThinkingCall(
        thought="", next_thought_needed=True, thought_number=2, total_thoughts=2, session_id=named
    )


def call_mark(call: ThinkingCall, others: Arguments) -> int:
    """Return a checksum of a call's arguments. Equal arguments have equal checksums.

    The thought's text, the session and the history do not count. The checksum is 0 if JSON cannot represent a value.
    """
    try:
        return zlib.crc32(_encode((*_compared(call), others))) or 1
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return 0


def read_action(forms: Mapping[str, type[Struct]], named: Arguments) -> str:
    """Return the value of `action` in arguments that `name_arguments` has renamed.

    Raises:
        UsageError: The action is missing or unknown; `choices` has the actions.
    """
    choices = list(forms)
    if "action" not in named:
        raise UsageError(
            f"action is missing; it is one of: {', '.join(choices)}", field="action", choices=choices
        )
    return read_argument("action", named["action"], {"type": "string", "enum": choices})


def read_call(form: type[T], arguments: Arguments | T) -> T:
    """Convert arguments to a Struct. Unknown arguments are ignored.

    Args:
        arguments: The raw arguments, or the finished Struct if the arguments were read before.

    Raises:
        UsageError: An argument is missing or has the wrong type; `field` names it.
        TooLargeError: An argument is too long.
    """
    if isinstance(arguments, form):
        return arguments
    assert isinstance(arguments, Mapping), "arguments of one action are not those of another"
    return read_form(form, name_arguments(tool_schema(form), arguments))


def read_form(form: type[T], named: Arguments, max_chars: Mapping[str, int] | None = None) -> T:
    """Convert arguments to a Struct, after `name_arguments` has renamed them. The errors are as in `read_call`."""
    # The action has already chosen the Struct, and the Struct has no member `action`.
    arguments = {name: value for name, value in named.items() if name != "action"}
    values = read_arguments(tool_schema(form), arguments, max_chars)
    if values.get("session_id") == "":
        message = "session id is empty; leave it out, or give the id of a session"
        raise UsageError(message, field="session_id")
    return msgspec.convert(values, form)


# -- arguments that a command leaves out


def complete_call(call: Mapping[str, Any], head: Head | None) -> dict[str, Any]:
    """Complete a command's call: add the thought number, the estimate and the line if they are missing.

    Args:
        head: The state of the session to continue, or None for a new session.
    """
    number, total, line = 1, 2, {}
    if head is not None:
        latest, branch = head.line(head.latest), call.get("branch_id")
        before, parent = head.main.number, str(call.get("branch_from_thought", ""))
        if branch and branch in head.branches:
            before = head.branches[branch].number
        elif parent.isdecimal():
            before = int(parent)
        elif branch and branch != MAIN:
            before = latest.number
        number, total = before + 1, max(latest.total, before + 2)
        if head.branches and not call.keys() & _PLACING:
            # The number is the next number of the main line, so the thought belongs to the main line.
            line = {"branch_id": head.main_name}
    follows = call.get("next_thought_needed", True)
    return {"thought_number": number, "total_thoughts": total if follows else number, **call, **line}
