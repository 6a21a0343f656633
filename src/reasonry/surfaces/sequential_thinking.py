"""The descriptions and schemas of the tools `sequentialthinking` and `sessions`, for every surface.

An agent pays for tool descriptions in every request to its model, so the descriptions are short.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import UsageError
from ..guided.sessions import Sessions
from ..guided.thinking_tool import EVIDENCE, Notice, ShownThought, ThinkingCall, ThinkingReply, tool_schema
from ..guided.tool_arguments import not_a_choice

Schema = dict[str, Any]

THINKING = "sequentialthinking"
THINKING_TITLE = "Sequential Thinking"
THINKING_DESCRIPTION = """\
A detailed tool for dynamic and reflective problem-solving through thoughts, which are kept. Send one thought a call; \
each can build on, question, or revise previous insights as understanding deepens.

When to use it:
- Breaking down complex problems into steps; planning and design with room for revision
- Analysis that might need course correction; debugging
- Problems whose full scope is not clear initially, or that need a multi-step solution
- Tasks that need to maintain context over multiple steps, or to filter out irrelevant information

Key features:
- Adjust totalThoughts up or down as you progress; add thoughts even after what seemed like the end
- Question or revise previous thoughts (isRevision, revisesThought)
- Express uncertainty and explore alternatives: not every thought needs to build linearly, you can branch \
(branchFromThought, branchId) or backtrack
- Generate a hypothesis, verify it against your thoughts, and repeat until satisfied

Parameters explained:
- thoughtNumber: can go beyond the initial total
- sessionId: from the reply; say it wherever several sessions may be open
- strategy: leads you through stages. Name the thought's stage, the present one to stay or one of the reply's \
nextStages to move; put its fields into data

You should:
1. Start with an initial estimate of needed thoughts, but be ready to adjust
2. Feel free to question or revise previous thoughts
3. Not hesitate to add more thoughts if needed, even at the "end"
4. Express uncertainty when present
5. Mark thoughts that revise previous thinking or branch into new paths
6. Ignore information that is irrelevant to the current step
7. Only set nextThoughtNeeded to false when truly done, with a satisfactory answer"""
"""The full description of the thinking tool: when to use it, its parameters, and advice on thinking."""

THINKING_BRIEFLY = """\
Think a problem through in steps, one thought a call; each is kept. Adjust totalThoughts, revise (revisesThought), \
branch (branchFromThought, branchId), go past the end. Mark what you only assume (evidence). You are told what stands \
on a revised thought, which equation is false, and before the end what is open.
- strategy leads through stages: name the thought's stage, the present one or one of nextStages; its fields go into data
- sessionId: say it where several sessions are open
Set nextThoughtNeeded to false only with a satisfactory answer."""
"""The short description of the thinking tool, for clients that must save tokens."""
SESSIONS = "sessions"
SESSIONS_TITLE = "Thinking Sessions"
SESSIONS_DESCRIPTION = (
    "Kept thinking: `list` sessions, `get` thoughts, `search` texts, `resume` a session (what is decided, open, "
    "assumed), `export`, `delete`, `pin`. `cursor`: the page's `next_cursor`."
)

LOOP_LIMITS: Mapping[str, int] = {"design": 20, "research": 15, "analyse": 1}
"""For each phase of an agent's work: the recommended maximum number of steps in its loop with the thinking tool."""


def loop_limit(phase: str) -> int:
    """Return the recommended maximum number of steps of an agent loop in a phase: design 20, research 15, analyse 1.

    Raises:
        UsageError: The phase is unknown. The error's `choices` lists the phases.
    """
    name = phase.strip().lower().replace("analyze", "analyse")
    name = "analyse" if name in ("analyse code", "analyse_code", "analyse-code") else name
    if name not in LOOP_LIMITS:
        raise not_a_choice("phase", phase, LOOP_LIMITS)
    return LOOP_LIMITS[name]


def thinking_input(strategies: Iterable[str]) -> Schema:
    """Return the JSON schema of the thinking tool's arguments, with the argument names in camel case.

    Args:
        strategies: The names of the strategies that the agent may choose.
    """
    schema = in_camel_case(tool_schema(ThinkingCall))
    strategy = {"type": "string", "description": f"First call only: {', '.join(strategies)}"}
    evidence = {"type": "string", "enum": list(EVIDENCE), "description": "What it rests on"}
    return {**schema, "properties": {**schema["properties"], "strategy": strategy, "evidence": evidence}}


def sessions_output() -> Schema:
    """Return one JSON schema for all replies of the tool `sessions`."""
    items = {"type": "array", "items": {"type": "object"}}
    properties: Schema = {
        **{name: {"type": "string"} for name in ("session_id", "text")},
        **dict.fromkeys(("sessions", "thoughts", "matches", "thought_history", "notices"), items),
        "next_cursor": {"type": ["string", "null"]},
    }
    return {"type": "object", "properties": properties}


# -- only the thinking tool uses camel case, since it replaces the tool of the MCP reference server

_CAMEL = {
    name: name[0] + name.title().replace("_", "")[1:]
    for form in (ThinkingCall, ThinkingReply, ShownThought, Notice)
    for name in form.__struct_fields__
}
_NAMING = ("field", "fields", "required")
"""Members whose values are names of other members. `in_camel_case` converts these values too."""


async def think_in_camel_case(sessions: Sessions, arguments: Mapping[str, Any], **how: Any) -> Schema:
    """Call `Sessions.think`, and convert its reply or its error to camel case."""
    try:
        return in_camel_case(await sessions.think(arguments, **how))
    except UsageError as error:
        naming = {name: error.details[name] for name in (*_NAMING, "instead") if name in error.details}
        error.details |= in_camel_case(naming)
        raise


def in_camel_case(document: Any, member: str = "") -> Any:
    """Convert member names to camel case in a schema or a reply of the thinking tool.

    Args:
        member: The name of the member that contains `document`, if `document` is only a part of the whole.
    """
    match document:
        case dict() if member != "requires":
            return {_CAMEL.get(name, name): in_camel_case(part, name) for name, part in document.items()}
        case list():
            return [in_camel_case(part, member) for part in document]
        case str() if member in _NAMING:
            return _CAMEL.get(document, document)
        case _:
            return document
