"""Arguments as they come from outside, read into the types they must have.

Models write numbers and booleans as text, so `"2"`, `"2.0"` and `"true"` pass for 2 and true. Whatever else
is not of the type is refused by name. Arguments nobody asks for are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ..errors import TooLargeError, UsageError
from .settings import SessionSettings
from .thinking_tool import ThinkingCall, tool_schema

Arguments = Mapping[str, Any]
T = TypeVar("T", bound=Struct)

MAX_INT = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""
PAGE = 50
MAX_PAGE = 500
MAX_NAME_CHARS = 200
"""Of a session id, a branch id, a stage or a strategy's name."""

_MISSING: Any = object()
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}(\.0{0,20})?")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def read_call(arguments: Arguments, settings: SessionSettings) -> ThinkingCall:
    """Read the arguments of the thinking tool.

    Raises:
        UsageError: One is missing or not of its type; `field` names it.
        TooLargeError: One is too long.
    """
    long = {"thought": settings.max_thought_chars, "data": settings.max_thought_chars}
    call = read_arguments(ThinkingCall, arguments, long)
    if call.session_id is not None:
        _check_id("sessionId", call.session_id)
    return call


def read_arguments(form: type[T], arguments: Arguments, max_chars: Mapping[str, int]) -> T:
    """Return arguments as the Struct whose schema they follow.

    Args:
        max_chars: How long a text or an object may be, by its name; `MAX_NAME_CHARS` for the others.

    Raises:
        UsageError: One is missing or not of its type; `field` names it.
        TooLargeError: One is too long.
    """
    schema = tool_schema(form)
    for name in schema["required"]:
        if name not in arguments:
            raise _missing(name)
    members = schema["properties"]
    values = {
        name: _value(name, value, members[name], max_chars.get(name, MAX_NAME_CHARS))
        for name, value in arguments.items()
        if name in members
    }
    return msgspec.convert(values, form)


def _value(name: str, value: Any, schema: Mapping[str, Any], max_chars: int) -> Any:
    match schema["type"]:
        case "string":
            return _text(name, value, max_chars)
        case "integer":
            return _whole(name, value, schema.get("minimum", -MAX_INT), MAX_INT)
        case "boolean":
            return _flag(name, value)
        case "object" if isinstance(value, dict):
            return json_of(name, value, max_chars)
        case _:
            raise _wrong(name, "an object", value)


def text_of(given: Arguments, name: str, usual: Any = _MISSING, *, most: int = MAX_NAME_CHARS) -> Any:
    """Return a text of at most `most` characters that is valid Unicode."""
    return _text(name, given[name], most) if name in given else _usual(name, usual)


def id_of(given: Arguments, name: str, usual: Any = _MISSING) -> Any:
    """Return the id of a session."""
    return _check_id(name, text_of(given, name, usual))


def int_of(given: Arguments, name: str, usual: Any = _MISSING, *, least: int = 1, most: int = MAX_INT) -> Any:
    """Return a whole number from `least` to `most`."""
    return _whole(name, given[name], least, most) if name in given else _usual(name, usual)


def bool_of(given: Arguments, name: str, usual: Any = _MISSING) -> Any:
    """Return true or false."""
    return _flag(name, given[name]) if name in given else _usual(name, usual)


def choice_of(given: Arguments, name: str, choices: Sequence[str], usual: Any = _MISSING) -> Any:
    """Return one of the words allowed."""
    value = text_of(given, name, usual)
    if name in given and value not in choices:
        raise UsageError(
            f"{name} must be one of: {', '.join(choices)}; not {shown(value)}",
            field=name,
            choices=list(choices),
        )
    return value


def limit_of(given: Arguments) -> int:
    """Return how many items a page may have."""
    return int_of(given, "limit", PAGE, most=MAX_PAGE)


def position_of(given: Arguments) -> int:
    """Return the number that a page's `cursor` holds; 0 without one."""
    cursor = text_of(given, "cursor", None)
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 20):
        raise bad_cursor(cursor)
    return int(cursor)


def bad_cursor(cursor: str) -> UsageError:
    """Return the error of a cursor that no page has given."""
    return UsageError(
        f"cursor {shown(cursor)} is not a `nextCursor` of this list; leave it out to start anew",
        field="cursor",
    )


def json_of(name: str, value: Any, most: int) -> Any:
    """Return plain JSON data of at most `most` characters as JSON.

    Raises:
        UsageError: It is nested too deeply, or holds something JSON cannot carry unchanged.
        TooLargeError: It is too long.
    """
    plain: Any = None
    try:
        encoded = _encode(value)
        size = len(encoded) if len(encoded) <= most else len(encoded.decode())
        if size > most:
            raise TooLargeError(
                f"{name} has {size:,} characters as JSON; the limit is {most:,}", field=name, limit=most
            )
        plain = _decode(encoded)
        same = plain == value
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply", field=name) from None
    except UnicodeEncodeError as error:
        raise _lone_surrogate(name, error.start) from None
    except (TypeError, ValueError, msgspec.MsgspecError):
        same = False
    if not same:
        raise UsageError(
            f"{name} must be plain JSON data: objects, lists, text, finite numbers, true, false, null",
            field=name,
        )
    return plain


def _usual(name: str, usual: Any) -> Any:
    if usual is _MISSING:
        raise _missing(name)
    return usual


def _missing(name: str) -> UsageError:
    return UsageError(f"{name} is missing", field=name)


def _text(name: str, value: Any, max_chars: int) -> str:
    if not isinstance(value, str):
        raise _wrong(name, "text", value)
    if len(value) > max_chars:
        raise TooLargeError(
            f"{name} has {len(value):,} characters; the limit is {max_chars:,}", field=name, limit=max_chars
        )
    if not value.isascii():
        _check_unicode(name, value)
    return value


def _check_id(name: str, value: Any) -> Any:
    if value == "":
        raise UsageError(f"{name} is empty; leave it out, or give the id of a session", field=name)
    return value


def _whole(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        number = int(value.partition(".")[0])
    elif isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0:
        number = int(value)
    else:
        raise _wrong(name, "a whole number", value)
    if not least <= number <= most:
        bound = f"at least {least}" if number < least else f"at most {most}"
        raise UsageError(f"{name} must be {bound}, not {shown(number)}", field=name, minimum=least)
    return number


def _flag(name: str, value: Any) -> bool:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def _check_unicode(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _lone_surrogate(name, error.start) from None


def _lone_surrogate(name: str, place: int) -> UsageError:
    return UsageError(
        f"{name} holds a lone surrogate (half a character) at position {place}; send valid Unicode",
        field=name,
    )


def _wrong(name: str, wanted: str, value: Any) -> UsageError:
    return UsageError(f"{name} must be {wanted}, not {shown(value)}", field=name)


def shown(value: Any) -> str:
    """Return a value as an error may show it: short, valid and of bounded cost."""
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case int() if value.bit_length() > 64:
            return "a number that is too large"
        case str():
            text = value if len(value) <= 40 else value[:40] + "…"
            return repr(text.encode("utf-8", "backslashreplace").decode())
        case int() | float():
            return repr(value)
        case dict():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"
