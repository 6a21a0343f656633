"""Read the arguments of tools leniently, and convert them to the types in the tool's schema.

Agents write arguments loosely. So a name may have any spelling; a number, a boolean or JSON may be text; and a list may
be a single text. An optional argument that is null or empty counts as omitted.

Rule 1: an argument without a clear meaning is refused, and the error names it. A single error reports all faults.
Rule 2: text is not changed. For example, any non-empty text is a valid name of a branch.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ..core.budget import MAX_INT
from ..errors import TooLargeError, UsageError
from ..reading.json_in_text import json_value
from ..reading.numbers import read_scaled
from ..reading.words import NONE_WORDS, TRUTHS
from ..text import closest_names, did_you_mean, find_name, lazy_pattern, show_value

Arguments = Mapping[str, Any]
MAX_NAME_CHARS = 200
"""The most characters in a session id, a branch id, a stage or a strategy's name."""

_COUNTED = lazy_pattern(r"\s*(?:thought|step|number|no\.?)?\s*", re.IGNORECASE)
"""The noun before a number, as in `thought 3`."""
_ANY_TEXT = frozenset({"branch_id", "merge_branch"})
"""Arguments that accept any non-empty text unchanged."""
_NUMBERS_FROM_1 = frozenset({"revises_thought", "branch_from_thought"})
"""Arguments that are thought numbers. Thought numbers begin with 1, so 0 counts as omitted."""
_IDS = frozenset({"session_id", "run_id", "cursor", "model", "verifier"})
"""Arguments whose text is stripped of spaces at both ends."""


def name_arguments(schema: Mapping[str, Any], arguments: Arguments) -> dict[str, Any]:
    """Rename arguments to the names in a tool's schema, and drop the arguments that count as omitted.

    An unknown argument keeps its name, or is dropped if it is empty.

    Raises:
        UsageError: An argument occurs in two spellings with different values.
    """
    members, required = schema["properties"], schema["required"]
    found: dict[str, Any] = {}
    spelled: dict[str, str] = {}
    for key, value in arguments.items():
        name = key if key in members else find_name(key, members) or key
        if value is None or (name not in required and _is_filler(name, value, members.get(name))):
            continue
        if name in found and not _is_same(found[name], value):
            raise UsageError(
                f"{_words(name)} is there twice, as {spelled[name]!r} and {key[:60]!r}, and they differ; give it once",
                field=name,
            )
        found[name], spelled[name] = value, key[:60]
    return found


def unknown_arguments(tool: str, names: Iterable[str], known: Collection[str]) -> list[str]:
    """Return a sentence for each unknown argument. The sentence suggests similar known names, if any."""
    return [
        f"{tool} has no argument {show_value(name)}.{did_you_mean(name, known)}"
        for name in names
        if name not in known
    ]


def _is_filler(name: str, value: Any, member: Mapping[str, Any] | None) -> bool:
    """Whether a value is a filler that agents put into unused arguments."""
    kind = (member or {}).get("type")
    match value:
        case str():
            return value == "" if name in _ANY_TEXT else value.strip().lower() in NONE_WORDS
        case False:
            return member is not None and kind != "boolean"
        case 0:
            return name in _NUMBERS_FROM_1
        case [] | ():
            return kind == "object" or "anyOf" in (member or {})
        case _:
            return False


def _is_same(first: Any, second: Any) -> bool:
    try:
        return first == second
    except RecursionError:
        return False


def read_arguments(
    schema: Mapping[str, Any], named: Mapping[str, Any], max_chars: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """Convert `named` (from `name_arguments`) to the types in a schema. Unknown arguments are ignored.

    Args:
        max_chars: Maps arguments to the most characters of their texts or objects. A limit in the schema comes first.

    Raises:
        UsageError: An argument is missing or has the wrong type; `field` names it.
        TooLargeError: An argument is too long.
    """
    members, limits = schema["properties"], max_chars or {}
    values: dict[str, Any] = {}
    fields = [name for name in schema["required"] if name not in named]
    faults = [_say_missing(fields, [name for name in named if name not in members])] if fields else []
    details: dict[str, Any] = {}
    for name in filter(members.__contains__, named):
        try:
            value, limit = _as_text(name, named[name]), limits.get(name, MAX_INT)
            values[name] = read_argument(_words(name), value, members[name], limit)
        except UsageError as error:
            error.details["field"] = name
            if isinstance(error, TooLargeError):
                raise
            details = details or error.details
            fields.append(name)
            faults.append(error.message)
    if faults:
        error = UsageError("; ".join(faults))
        error.details = {**details, "field": fields[0], "fields": fields}
        raise error
    return values


def _say_missing(missing: Sequence[str], unknown: Sequence[str]) -> str:
    *others, last = map(_words, missing)
    listed = f"{', '.join(others)} and {last}" if others else last
    message = f"{listed} {'is' if len(missing) == 1 else 'are'} missing"
    for name in unknown:
        # A single unknown argument stands for the first missing argument, whatever its name.
        if near := closest_names(name, missing) or (missing[:1] if len(unknown) == 1 else []):
            message += f"; there is no {show_value(name)}: did you mean {' or '.join(map(_words, near))}?"
    return message


def read_argument(name: str, value: Any, schema: Mapping[str, Any], max_chars: int = MAX_INT) -> Any:
    """Convert an argument to the type in its schema. The errors are as in `read_arguments`.

    Args:
        name: The name of the argument in error messages.
    """
    kind = schema.get("type")
    if isinstance(value, str) and (kind in ("array", "object") or "anyOf" in schema):
        value = json_value(value) or value
    match kind:
        case None if "anyOf" in schema:
            # A text, or a list of texts.
            forms = {form["type"]: form for form in schema["anyOf"]}
            form = forms["array" if isinstance(value, list | tuple) else "string"]
            return read_argument(name, value, form, max_chars)
        case None:
            return value
        case "string":
            text = read_text(name, value, schema.get("maxLength", max_chars))
            return _choice(name, text, schema["enum"]) if "enum" in schema else text
        case "integer" | "number":
            return _number(name, value, schema)
        case "boolean":
            meant = truth(value)
            if meant is None:
                raise _wrong(name, "true or false", value)
            return meant
        case "array":
            return _list(name, value, schema, max_chars)
        case _ if isinstance(value, dict):
            return plain_json(name, value, max_chars)
        case _:
            raise _wrong(name, "an object", value)


def _words(name: str) -> str:
    """Return the name of an argument as words with spaces."""
    return name.replace("_", " ")


def _as_text(name: str, value: Any) -> Any:
    """Convert a number to text if the argument is free text. Remove spaces at both ends of an id."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_INT
    if is_number and (name == "thought" or name in _ANY_TEXT):
        return str(value)
    return value.strip() if name in _IDS and isinstance(value, str) else value


def _choice(name: str, text: str, choices: Sequence[str]) -> str:
    found = find_name(text, choices)
    if found is None:
        raise not_a_choice(name, text, choices)
    return found


def not_a_choice(name: str, text: str, choices: Iterable[object]) -> UsageError:
    """Return the error for an argument whose value is not one of the choices."""
    names = [*map(str, choices)]
    message = f"{name} must be one of: {', '.join(names)}; not {show_value(text)}.{did_you_mean(text, names)}"
    return UsageError(message, field=name, choices=names)


def _list(name: str, value: Any, schema: Mapping[str, Any], max_chars: int) -> list[Any]:
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list | tuple):
        raise _wrong(name, "a list", value)
    maximum = schema.get("maxItems", MAX_INT)
    if len(value) > maximum:
        message = f"{name} has {len(value):,} items; the limit is {maximum:,}"
        raise UsageError(message, field=name, limit=maximum)
    items = schema["items"]
    return [read_argument(f"{name}[{place}]", item, items, max_chars) for place, item in enumerate(value)]


def _number(name: str, value: Any, schema: Mapping[str, Any]) -> int | float:
    """Read a number, also from text such as `#3`, `thought 3`, `3/5` or `3 of 5`."""
    is_whole = schema["type"] == "integer"
    number: Any = value
    if isinstance(value, str):
        written = read_scaled(_COUNTED.sub("", value, count=1))
        is_one = written and not written.rest.strip() and (is_whole or written.scale is None)
        number = written.number if written and is_one else None
    is_number = isinstance(number, int | float) and not isinstance(number, bool) and abs(number) < math.inf
    if not is_number or (is_whole and number % 1 != 0):
        raise _wrong(name, "a whole number" if is_whole else "a number", value)
    number = int(number) if number % 1 == 0 else number
    minimum, maximum = schema.get("minimum", -math.inf), schema.get("maximum", MAX_INT if is_whole else 1e300)
    above = schema.get("exclusiveMinimum", -math.inf)
    if minimum <= number <= maximum and number > above:
        return number if is_whole else float(number)
    bound = f"at most {maximum}" if number > maximum else f"at least {minimum}"
    bound = f"above {above:g}" if number <= above else bound
    raise UsageError(f"{name} must be {bound}, not {show_value(number)}", field=name)


def position_of(cursor: str | None) -> int:
    """Return the position that a page's `cursor` encodes, or 0 if there is no cursor."""
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 16):
        message = (
            f"cursor {show_value(cursor)} is not a `next_cursor` of this list; leave it out to start over"
        )
        raise UsageError(message, field="cursor")
    return int(cursor)


def plain_json(name: str, value: Any, maximum: int) -> Any:
    """Check that a value is plain JSON data of limited length, and return a plain copy of it.

    Raises:
        UsageError: The data is nested too deeply, or has a value that JSON cannot hold unchanged.
        TooLargeError: The data is too long.
    """
    try:
        encoded = msgspec.json.encode(value)
        plain = msgspec.json.decode(encoded)
        is_same = plain == value
    except (TypeError, ValueError, RecursionError):
        encoded, plain, is_same = b"", None, False
    if not is_same:
        raise UsageError(
            f"{name} must be plain JSON data, not nested too deeply: objects, lists, valid Unicode text, finite "
            "numbers, true, false, null",
            field=name,
        )
    size = len(encoded.decode())
    if size > maximum:
        raise TooLargeError(
            f"{name} has {size:,} characters as JSON; the limit is {maximum:,}", field=name, limit=maximum
        )
    return plain


def read_text(name: str, value: Any, max_chars: int = MAX_NAME_CHARS) -> str:
    """Check that a value is valid Unicode text of limited length, and return the text unchanged."""
    if not isinstance(value, str):
        raise _wrong(name, "text", value)
    if len(value) > max_chars:
        raise TooLargeError(
            f"{name} has {len(value):,} characters; the limit is {max_chars:,}", field=name, limit=max_chars
        )
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{name} holds a lone surrogate (half a character) at position {error.start}; send valid Unicode",
            field=name,
        ) from None
    return value


def truth(value: Any) -> bool | None:
    """Read a word or a number as a boolean. Return None if the value means neither true nor false."""
    return TRUTHS.get(str(value).strip().lower()) if isinstance(value, str | int) else None


def _wrong(name: str, wanted: str, value: Any) -> UsageError:
    return UsageError(f"{name} must be {wanted}, not {show_value(value)}", field=name)
