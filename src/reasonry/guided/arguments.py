"""Arguments as they come from outside, read into the types they must have.

Models write numbers and booleans as text, so `"2"`, `"2.0"` and `"true"` pass for 2 and true. Whatever else
is not of the type is refused by name. Arguments nobody asks for are ignored.
"""

from __future__ import annotations

import math
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
MAX_NAME_CHARS = 200
"""Of a session id, a branch id, a stage or a strategy's name."""

_MISSING: Any = object()
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}(\.0{0,20})?")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,20}(\.[0-9]{0,20})?")
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def read_call(arguments: Arguments, settings: SessionSettings) -> ThinkingCall:
    """Read the arguments of the thinking tool.

    Raises:
        UsageError: An argument is missing or not of its type; `field` names it.
        TooLargeError: An argument is too long.
    """
    long = {"thought": settings.max_thought_chars, "data": settings.max_thought_chars}
    return read_arguments(ThinkingCall, arguments, long)


def read_action(forms: Mapping[str, type[Struct]], arguments: Arguments) -> str:
    """Return the `action` that arguments name, one of those that have a form.

    Raises:
        UsageError: It is missing, or there is no such action; `choices` has those there are.
    """
    if "action" not in arguments:
        raise _missing("action")
    return _value("action", arguments["action"], {"type": "string", "enum": list(forms)}, MAX_NAME_CHARS)


def read_arguments(form: type[T], arguments: Arguments, max_chars: Mapping[str, int] | None = None) -> T:
    """Return arguments as the Struct whose schema they follow.

    Args:
        max_chars: How long a text or an object may be, by its name; for the others what their schema says, else
            `MAX_NAME_CHARS`.

    Raises:
        UsageError: An argument is missing or not of its type; `field` names it.
        TooLargeError: An argument is too long.
    """
    values = _members("", arguments, tool_schema(form), max_chars or {})
    _check_id("sessionId", values.get("sessionId"))
    return msgspec.convert(values, form)


def _members(
    path: str, arguments: Arguments, schema: Mapping[str, Any], max_chars: Mapping[str, int]
) -> dict[str, Any]:
    for name in schema["required"]:
        if name not in arguments:
            raise _missing(path + name)
    members = schema["properties"]
    return {
        name: _value(path + name, value, members[name], max_chars.get(name, MAX_NAME_CHARS))
        for name, value in arguments.items()
        if name in members
    }


def _value(name: str, value: Any, schema: Mapping[str, Any], max_chars: int) -> Any:
    match schema.get("type"):
        case None if "anyOf" in schema:
            # Text, or a list of it.
            forms = {form["type"]: form for form in schema["anyOf"]}
            return _value(
                name, value, forms["array" if isinstance(value, list | tuple) else "string"], max_chars
            )
        case None:
            return value
        case "string":
            return _choice(name, _text(name, value, schema.get("maxLength", max_chars)), schema.get("enum"))
        case "integer":
            return _whole(name, value, schema.get("minimum", -MAX_INT), schema.get("maximum", MAX_INT))
        case "number":
            return _number(name, value, schema.get("exclusiveMinimum", -math.inf))
        case "boolean":
            return _flag(name, value)
        case "array":
            return _list(name, value, schema, max_chars)
        case "object" if isinstance(value, dict):
            if "properties" in schema:
                return _members(f"{name}.", value, schema, {})
            return json_of(name, value, max_chars)
        case _:
            raise _wrong(name, "an object", value)


def _choice(name: str, text: str, choices: Sequence[str] | None) -> str:
    if choices is not None and text not in choices:
        raise UsageError(
            f"{name} must be one of: {', '.join(choices)}; not {show_value(text)}",
            field=name,
            choices=list(choices),
        )
    return text


def _list(name: str, value: Any, schema: Mapping[str, Any], max_chars: int) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise _wrong(name, "a list", value)
    maximum = schema.get("maxItems", MAX_INT)
    if len(value) > maximum:
        raise TooLargeError(
            f"{name} has {len(value):,} items; the limit is {maximum:,}", field=name, limit=maximum
        )
    items = schema["items"]
    return [_value(f"{name}[{place}]", item, items, max_chars) for place, item in enumerate(value)]


def text_of(
    arguments: Arguments, name: str, default: Any = _MISSING, *, maximum: int = MAX_NAME_CHARS
) -> Any:
    """Return a text of at most `most` characters that is valid Unicode."""
    return _text(name, arguments[name], maximum) if name in arguments else _default(name, default)


def id_of(arguments: Arguments, name: str, default: Any = _MISSING) -> Any:
    """Return the id of a session."""
    return _check_id(name, text_of(arguments, name, default))


def bool_of(arguments: Arguments, name: str, default: Any = _MISSING) -> Any:
    """Return true or false."""
    return _flag(name, arguments[name]) if name in arguments else _default(name, default)


def position_of(cursor: str | None) -> int:
    """Return the number that a page's `cursor` holds; 0 without one."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 20):
        raise bad_cursor(cursor)
    return int(cursor)


def bad_cursor(cursor: str) -> UsageError:
    """Return the error of a cursor that no page has given."""
    return UsageError(
        f"cursor {show_value(cursor)} is not a `nextCursor` of this list; leave it out to start anew",
        field="cursor",
    )


def json_of(name: str, value: Any, maximum: int) -> Any:
    """Return plain JSON data of at most `most` characters as JSON.

    Raises:
        UsageError: It is nested too deeply, or holds something JSON cannot carry unchanged.
        TooLargeError: It is too long.
    """
    plain: Any = None
    try:
        encoded = _encode(value)
        size = len(encoded) if len(encoded) <= maximum else len(encoded.decode())
        if size > maximum:
            raise TooLargeError(
                f"{name} has {size:,} characters as JSON; the limit is {maximum:,}", field=name, limit=maximum
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


def _default(name: str, default: Any) -> Any:
    if default is _MISSING:
        raise _missing(name)
    return default


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


def _whole(name: str, value: Any, minimum: int, maximum: int) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        number = int(value.partition(".")[0])
    elif isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0:
        number = int(value)
    else:
        raise _wrong(name, "a whole number", value)
    if not minimum <= number <= maximum:
        bound = f"at least {minimum}" if number < minimum else f"at most {maximum}"
        raise UsageError(f"{name} must be {bound}, not {show_value(number)}", field=name, minimum=minimum)
    return number


def _number(name: str, value: Any, above: float) -> float:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = float(value)
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) <= MAX_INT:
        raise _wrong(name, "a number", value)
    if value <= above:
        raise UsageError(f"{name} must be above {above:g}, not {show_value(value)}", field=name)
    return float(value)


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
    return UsageError(f"{name} must be {wanted}, not {show_value(value)}", field=name)


def show_value(value: Any) -> str:
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
