"""The thinking tool for Python programs: a callable object for any agent loop, and functions for its sessions.

    tool = reasonry.thinking_tool()
    reply = await tool(thought="…", thoughtNumber=1, totalThoughts=2, nextThoughtNeeded=True)
    await tool(
        thought="…", thoughtNumber=2, totalThoughts=2, nextThoughtNeeded=False, sessionId=reply["sessionId"]
    )

The agent passes the session's id to each later call. Tools with the same store share their sessions, and a process
opens each store only once. A session therefore continues even if the program makes a new tool for each call.
"""

import functools
import inspect
import operator
import os
from collections.abc import Mapping
from typing import Any, Protocol, cast

from ...app.installed import installed_strategies
from ...core.registry import Registry, add_strategies, strategy_names
from ...core.strategy import Strategy
from ...errors import NotFoundError, UsageError
from ...guided.session_settings import OnExpiry, SessionSettings
from ...guided.sessions import Sessions
from ...guided.tool_arguments import read_text
from ...records import SessionStore, Store
from ...stores import open_store
from ...text import show_value
from ..sequential_thinking import THINKING, THINKING_DESCRIPTION, think_in_camel_case, thinking_input

Document = dict[str, Any]
Where = str | SessionStore | None

_opened: dict[str | None, Store] = {}


class StageFields(dict[str, Any]):
    """An object with arbitrary members. Strict schemas forbid such objects, so the schema asks for JSON text."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Return a schema that accepts a string or an object."""
        return handler(str | dict[str, Any])

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> Document:
        """Return the schema of a string that contains a JSON object."""
        return {"type": "string", "description": "A JSON object"}


_KINDS: dict[Any, Any] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list[str],
    "object": StageFields,
}


class ThinkingTool(Protocol):
    """A tool for agent loops: an async function with a name, a docstring and typed keyword parameters.

    Attributes:
        name: `sequentialthinking`.
        description: The description for the model.
        input_schema: The JSON schema of the arguments.
        session_id: The only session that the tool uses. With None, each call names a session or starts a new session.
        history: How many of the latest thoughts a reply shows by default. None means all thoughts.
    """

    name: str
    description: str
    input_schema: Document
    session_id: str | None
    history: int | None

    async def __call__(self, **arguments: Any) -> Document:
        """Submit a thought and return the state of the session.

        An optional argument that is None counts as omitted.

        Raises:
            UsageError: The call breaks a rule. Nothing has changed.
            StoreError: The store cannot be used.
        """
        ...


def _tool_over(
    sessions: Sessions, strategies: Registry, session_id: str | None, history: int | None
) -> ThinkingTool:
    schema = thinking_input(strategy_names(strategies))
    required = schema["required"]

    async def think(**arguments: Any) -> Document:
        call = {name: value for name, value in arguments.items() if value is not None or name in required}
        return await think_in_camel_case(
            sessions, call, exact_id=session_id, history=history, deduplicates=False
        )

    think.__name__ = think.__qualname__ = THINKING
    think.__doc__ = THINKING_DESCRIPTION
    parameters = list[inspect.Parameter]()
    for name, part in schema["properties"].items():
        kinds = [_KINDS[form["type"]] for form in part.get("anyOf", [part])]
        default = {} if name in required else {"default": None}
        kind = functools.reduce(operator.or_, kinds if name in required else [*kinds, None])
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, **default))
    annotated = {parameter.name: parameter.annotation for parameter in parameters}
    think.__annotations__ = {**annotated, "return": Document}
    vars(think).update(
        __signature__=inspect.Signature(parameters, return_annotation=Document),
        name=THINKING,
        description=THINKING_DESCRIPTION,
        input_schema=schema,
        session_id=session_id,
        history=history,
    )
    return cast(ThinkingTool, think)


def thinking_tool(
    session_id: str | None = None,
    *,
    store: Where = None,
    ttl_s: float | None = None,
    on_expiry: OnExpiry | None = None,
    max_thoughts: int | None = None,
    max_thought_chars: int | None = None,
    history: int | None = None,
    strategies: Registry | None = None,
) -> ThinkingTool:
    """Return the thinking tool.

    Args:
        session_id: The only session that the tool uses. If it does not exist, it is created with exactly this id.
        store: A store, or a string as for `--store`. Default: `REASONRY_STORE` or, without it, the user's data folder.
        ttl_s: Seconds without use until a session of this tool expires. Defaults to `REASONRY_SESSION_TTL_S` or,
            without it, 1,800. Environment variables also set the defaults of the next three arguments.
        on_expiry: The action on an expired session: `archive` or `delete`.
        max_thoughts: The maximum number of thoughts in a session.
        max_thought_chars: The maximum number of characters in a thought.
        history: How many of the latest thoughts a reply shows by default. None means all thoughts.
        strategies: Maps names to additional strategies, such as the result of `stages.from_mapping`.

    Raises:
        UsageError: An argument has an illegal value. The error names the argument.
    """
    if session_id is not None and not read_text("session_id", session_id):
        raise UsageError("session_id is empty; leave it out, or give the id of a session", field="session_id")
    if history is not None and not (type(history) is int and history >= 0):
        raise UsageError(
            f"history must be a whole number of thoughts, not {show_value(history)}", option="history"
        )
    settings = SessionSettings.from_environ(
        os.environ,
        ttl_s=ttl_s,
        on_expiry=on_expiry,
        max_thoughts=max_thoughts,
        max_thought_chars=max_thought_chars,
    )
    own: Any = {} if strategies is None else strategies
    if not isinstance(own, Mapping) or any(not isinstance(strategy, Strategy) for strategy in own.values()):
        why = "strategies must be strategies by name; reasonry.stages.from_mapping makes them of a mapping"
        raise UsageError(why, option="strategies")
    known = add_strategies(installed_strategies(), {strategy.name: strategy for strategy in own.values()})
    sessions = sessions_of(store, settings, known if own else None)
    return _tool_over(sessions, known, session_id, history)


async def get_session(session_id: str, *, store: Where = None) -> Document | None:
    """Return a session with all its thoughts, or None if the id is unknown."""
    try:
        return await sessions_of(store).export({"session_id": session_id})
    except NotFoundError:
        return None


async def list_sessions(*, status: str = "active", store: Where = None) -> list[Document]:
    """Return all sessions that have this status, the most recently used session first.

    Args:
        status: `active`, `archived` or `all`.
    """
    sessions, found, cursor = sessions_of(store), list[Document](), None
    while True:
        page = await sessions.list({"status": status, "limit": 500, "cursor": cursor})
        found += page["sessions"]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def clear_session(session_id: str, *, store: Where = None) -> bool:
    """Delete a session. Return whether the session existed."""
    try:
        await sessions_of(store).delete({"session_id": session_id})
    except NotFoundError:
        return False
    return True


async def clear_all_sessions(*, store: Where = None, confirm: bool = False) -> int:
    """Delete all sessions of the store except the sessions of runs. Return how many sessions were deleted.

    Args:
        confirm: Must be true for a durable store, which may contain the work of others.

    Raises:
        UsageError: The store is durable and `confirm` is false. Nothing has changed.
    """
    return await sessions_of(store).clear(confirm=confirm)


def sessions_of(
    where: Where, settings: SessionSettings | None = None, strategies: Registry | None = None
) -> Sessions:
    """Return the sessions of a store. A store that is named by a string is opened only once per process.

    Args:
        settings: The settings of sessions. Defaults to the settings in the environment.
        strategies: The strategies that sessions may use. Defaults to the installed strategies.
    """
    from ...app.app import App

    if where is None or isinstance(where, str):
        spec = where or os.environ.get("REASONRY_STORE") or None
        if spec not in _opened:
            _opened[spec] = open_store(spec)
        where = _opened[spec]
    return App(cast(Store, where), strategies=strategies).sessions(settings)
