"""Arguments as they come from outside, read into the types they must have.

Models write numbers and booleans as text, so `"2"`, `"2.0"` and `"true"` pass for 2 and true. Whatever else
is not of the type is refused by name. Arguments nobody asks for are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ..core.thought import Call
from ..errors import TooLargeError, UsageError
from .session_settings import SessionSettings

Arguments = Mapping[str, Any]

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


class Request(Struct, frozen=True):
    """One call of the thinking tool, read."""

    call: Call
    session_id: str | None = None
    clear: bool = False
    strategy: str | None = None
    history: int | None = None
    """Most thoughts wanted in the reply."""


def read_request(given: Arguments, settings: SessionSettings) -> Request:
    """Read the arguments of the thinking tool.

    Raises:
        UsageError: One is missing or not of its type; `field` names it.
        TooLargeError: One is too long.
    """
    call = Call(
        thought=text_of(given, "thought", most=settings.max_thought_chars),
        number=int_of(given, "thoughtNumber"),
        total=int_of(given, "totalThoughts"),
        next_needed=bool_of(given, "nextThoughtNeeded"),
        is_revision=bool_of(given, "isRevision", False),
        revises=int_of(given, "revisesThought", None),
        branch_from=int_of(given, "branchFromThought", None),
        branch=text_of(given, "branchId", None),
        needs_more=bool_of(given, "needsMoreThoughts", False),
        stage=text_of(given, "stage", None),
        data=_data_of(given, settings.max_thought_chars),
        merge=text_of(given, "mergeBranch", None),
    )
    return Request(
        call,
        id_of(given, "sessionId", None),
        bool_of(given, "clearSession", False),
        text_of(given, "strategy", None),
        int_of(given, "history", None, least=0),
    )


def text_of(given: Arguments, name: str, usual: Any = _MISSING, *, most: int = MAX_NAME_CHARS) -> Any:
    """Return a text of at most `most` characters that is valid Unicode."""
    value = given.get(name, _MISSING)
    if value is _MISSING:
        return _usual(name, usual)
    if not isinstance(value, str):
        raise _wrong(name, "text", value)
    if len(value) > most:
        raise TooLargeError(
            f"{name} has {len(value):,} characters; the limit is {most:,}", field=name, limit=most
        )
    if not value.isascii():
        _check_unicode(name, value)
    return value


def id_of(given: Arguments, name: str, usual: Any = _MISSING) -> Any:
    """Return the id of a session."""
    value = text_of(given, name, usual)
    if value == "":
        raise UsageError(f"{name} is empty; leave it out, or give the id of a session", field=name)
    return value


def int_of(given: Arguments, name: str, usual: Any = _MISSING, *, least: int = 1, most: int = MAX_INT) -> Any:
    """Return a whole number from `least` to `most`."""
    value = given.get(name, _MISSING)
    if value is _MISSING:
        return _usual(name, usual)
    number = _whole(value)
    if number is None:
        raise _wrong(name, "a whole number", value)
    if not least <= number <= most:
        bound = f"at least {least}" if number < least else f"at most {most}"
        raise UsageError(f"{name} must be {bound}, not {shown(number)}", field=name, minimum=least)
    return number


def bool_of(given: Arguments, name: str, usual: Any = _MISSING) -> Any:
    """Return true or false."""
    value = given.get(name, _MISSING)
    if value is _MISSING:
        return _usual(name, usual)
    if value is True or value is False:
        return value
    if isinstance(value, str):
        written = value.lower()
        if written in ("true", "false"):
            return written == "true"
    raise _wrong(name, "true or false", value)


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


def _data_of(given: Arguments, most: int) -> dict[str, Any] | None:
    value = given.get("data", _MISSING)
    if value is _MISSING:
        return None
    if not isinstance(value, dict):
        raise _wrong("data", "an object", value)
    return json_of("data", value, most)


def _usual(name: str, usual: Any) -> Any:
    if usual is _MISSING:
        raise UsageError(f"{name} is missing", field=name)
    return usual


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value.partition(".")[0])
    return None


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
