"""The contract of the thinking tool: its calls and its replies.

Schemas, parsers, the command line and replies are built from these Structs. The descriptions are short, since an agent
pays for them in every request.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from ..core.budget import MAX_INT
from ..core.type_schema import inlined_schema

EVIDENCE = ("ran", "read", "reasoned", "assumed")
"""The kinds of evidence of a thought."""
ThoughtNumber = Annotated[int, Meta(ge=1, le=MAX_INT)]


class NewThought(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A thought submitted by an agent."""

    thought: Annotated[str, Meta(description="The step itself")]
    next_thought_needed: Annotated[bool, Meta(description="Another thought follows")]
    thought_number: Annotated[ThoughtNumber, Meta(description="Its number")]
    total_thoughts: Annotated[ThoughtNumber, Meta(description="Estimate")]
    is_revision: Annotated[bool, Meta(description="It revises an earlier thought")] = False
    revises_thought: Annotated[ThoughtNumber | None, Meta(description="Thought that it revises")] = None
    branch_from_thought: Annotated[
        ThoughtNumber | None, Meta(description="Thought that it branches from")
    ] = None
    branch_id: Annotated[str | None, Meta(description='"main": main line')] = None
    """None means the line that fits the call. An empty text means None in a call, and the main line in an export."""
    needs_more_thoughts: Annotated[bool, Meta(description="The estimate is too low")] = False
    strategy: Annotated[str | None, Meta(description="Strategy of a new session")] = None
    stage: Annotated[str | list[str] | None, Meta(description="Stage, or a path")] = None
    data: Annotated[dict[str, Any] | None, Meta(description="The stage's fields")] = None
    merge_branch: Annotated[str | None, Meta(description="Branch to merge")] = None
    history: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_INT)] | None, Meta(description="Thoughts to show")
    ] = None


class ThinkingCall(NewThought, frozen=True, kw_only=True):
    """A thought, and the session that it continues or clears."""

    session_id: Annotated[
        str | None, Meta(description="Session to continue; none: this connection's, else a new one")
    ] = None
    clear_session: Annotated[bool, Meta(description="Archive the session, start over")] = False


class NextStage(Struct, frozen=True, omit_defaults=True):
    """A legal next stage.

    Attributes:
        guidance: Instructions for the stage, in the reply that first offers this stage in the session.
        requires: The form of each required field, by name, in the reply to a thought that enters the stage before.
    """

    name: str
    guidance: str = ""
    requires: dict[str, str] = {}


class ShownThought(Struct, frozen=True, omit_defaults=True):
    """A thought in a reply's history."""

    thought_number: int
    thought: str
    branch_id: str | None = None
    is_revision: bool = False
    revises_thought: int | None = None
    branch_from_thought: int | None = None
    merge_branch: str | None = None


class Notice(Struct, frozen=True, omit_defaults=True):
    """A notice to the caller. `reason` is one of the codes in docs/mcp.md."""

    reason: str
    message: str
    requested_session_id: str | None = None
    """The session id that the notice is about."""


class ThinkingReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a session after a thought. Empty members are omitted.

    Attributes:
        stage: The thought's stage. This member and `next_stages` need a strategy or a stage that a call has named.
        branch_id: The branch of the thought, which the next stages continue. Empty for the main line.
        guidance: Instructions for the stage, if no earlier reply gave them.
        strategy: The strategy's name, when the session gets the strategy or a new connection continues the session.
        scores: The lines with scores, best first, at a stage that compares branches.
        thought_history: The latest thoughts, if requested or new to the connection.
        before_you_end: Open points and a question about mistakes, once, in a reply shortly before the end.
        left_open: The points that are still open when the session ends.
    """

    thought_number: int
    total_thoughts: int
    next_thought_needed: bool
    branches: list[str]
    thought_history_length: int
    session_id: str
    strategy: str = ""
    stage: str = ""
    branch_id: str = ""
    next_stages: list[NextStage] | UnsetType = UNSET
    guidance: str = ""
    scores: str = ""
    thought_history: list[ShownThought] | UnsetType = UNSET
    history_truncated: bool | UnsetType = UNSET
    before_you_end: str = ""
    left_open: str = ""
    summary: str = ""
    notices: list[Notice] = []


@cache
def tool_schema(form: type[Struct]) -> dict[str, Any]:
    """Return a compact JSON schema of a tool's arguments or reply.

    The schema gives an optional member no `default` and does not permit null. A caller omits an unset member.
    """
    return _compact(inlined_schema(form))


def actions_schema(forms: Mapping[str, type[Struct]]) -> dict[str, Any]:
    """Return one JSON schema for all actions of a tool. `forms` has the arguments of each action.

    Only `action` is required, since the actions have different arguments.
    """
    properties: dict[str, Any] = {"action": {"type": "string", "enum": list(forms)}}
    for form in forms.values():
        properties |= tool_schema(form)["properties"]
    return {"type": "object", "properties": properties, "required": ["action"]}


def _compact(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" in schema:
        inner, *others = [form for form in schema["anyOf"] if form != {"type": "null"}]
        if others:
            forms = [_compact(form) for form in (inner, *others)]
            return {"anyOf": forms, "description": schema["description"]}
        kept = {} if "default" in schema else {"type": [inner["type"], "null"]}
        described = {"description": schema["description"]} if "description" in schema else {}
        return _compact({**inner, **kept, **described})
    if "properties" in schema:
        members = {name: _compact(part) for name, part in schema["properties"].items()}
        return {"type": "object", "properties": members, "required": schema.get("required", [])}
    if "items" in schema:
        schema = {**schema, "items": _compact(schema["items"])}
    if "enum" in schema:
        schema = {"type": "string", **schema}
    return {key: value for key, value in schema.items() if key != "default" and value != MAX_INT}
