"""Thoughts in the API's spelling: members in snake case, as everywhere but in the thinking tool.

The thinking tool speaks camel case, as the reference server does; what a user has named keeps its name.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Generator
from functools import cache
from typing import Any

import msgspec
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from ...errors import ConflictError, IllegalTransitionError, NotFoundError, TooLargeError, UsageError
from ...guided.thinking_tool import ThinkingCall

_AS_THEY_ARE = frozenset({"data", "requires"})
"""Members whose own members have the names of a stage's fields."""
_ARGUMENT = re.compile(
    rf"\b(?:{'|'.join(field.encode_name for field in fields(ThinkingCall) if not field.encode_name.islower())})\b"
)
_RESPELLED = (UsageError, NotFoundError, ConflictError, IllegalTransitionError, TooLargeError)
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])")


_FLAG = re.compile(r"(?<![^\s(])--(max-)?([a-z]+(?:-[a-z]+)*)")


def spell_message(message: str) -> str:
    """Return the message of an error with what commands name as requests name it.

    `--verifier` is `verifier`, `--max-calls` `budget.calls`.
    """
    return _FLAG.sub(lambda flag: ("budget." if flag[1] else "") + flag[2].replace("-", "_"), message)


@cache
def snake_name(name: str) -> str:
    """Return a name of a member: `session_id` for `sessionId`."""
    return _INNER_CAPITAL.sub(lambda capital: "_" + capital[1].lower(), name)


def camel_name(name: str) -> str:
    """Return a name of a member as the tools of agents have it: `sessionId` for `session_id`."""
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def to_snake(document: Any) -> Any:
    """Return a document of a session with its members in snake case."""
    match document:
        case dict():
            return {
                snake_name(name): value if name in _AS_THEY_ARE else to_snake(value)
                for name, value in document.items()
            }
        case list():
            return [to_snake(entry) for entry in document]
        case _:
            return document


def snake_form(name: str, form: type[Struct], without: Collection[str] = ()) -> type[Struct]:
    """Return the form of a body that has the fields of another in snake case, and takes no others.

    Args:
        without: Fields that come from elsewhere, such as the request's path.
    """
    members: list[Any] = [_member(field) for field in fields(form) if field.name not in without]
    return msgspec.defstruct(name, members, frozen=True, kw_only=True, forbid_unknown_fields=True)


def _member(field: FieldInfo) -> tuple[Any, ...]:
    return (field.name, field.type) if field.default is NODEFAULT else (field.name, field.type, field.default)


def camel_arguments(call: Struct) -> dict[str, Any]:
    """Return what a body says, as arguments of the tools; what it leaves out is left out."""
    return {
        wire: value
        for name, wire, default in _wire_names(type(call))
        if (value := getattr(call, name)) is not default
    }


@cache
def _wire_names(form: type[Struct]) -> list[tuple[str, str, Any]]:
    return [(field.name, camel_name(field.encode_name), field.default) for field in fields(form)]


def snake_schema(schema: Any) -> Any:
    """Return the schema of a session's document with its members in snake case."""
    match schema:
        case {"properties": dict(members), **rest}:
            required = [snake_name(name) for name in rest.get("required", ())]
            properties = {snake_name(name): snake_schema(member) for name, member in members.items()}
            return {**rest, "properties": properties, "required": required}
        case {"items": items, **rest}:
            return {**rest, "items": snake_schema(items)}
        case _:
            return schema


@contextlib.contextmanager
def speak_snake() -> Generator[None]:
    """Have errors name arguments as the API does."""
    try:
        yield
    except UsageError as error:
        if type(error) in _RESPELLED:
            message = _ARGUMENT.sub(lambda name: snake_name(name[0]), error.message)
            details = {snake_name(name): value for name, value in error.details.items()}
            if "field" in details:
                details["field"] = snake_name(str(details["field"]))
            raise type(error)(message, code=error.code, retryable=error.retryable, **details) from None
        raise
