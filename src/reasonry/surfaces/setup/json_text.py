"""JSON with comments and trailing commas, edited in place: all other text stays as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENTS = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


class _Member(NamedTuple):
    """A member of an object, by its places in the text."""

    name: str
    start: int
    value: int
    end: int


class _Object(NamedTuple):
    """An object, by the places of its braces; `wanted` is the index of the member that is looked for, if there is one.

    Of two members of the same name the last one counts, as it does for readers.
    """

    start: int
    close: int
    members: Sequence[_Member]
    wanted: int | None


def read(text: str) -> dict[str, Any]:
    """Return the data of a text; an empty object for a text with nothing but comments.

    Raises:
        ValueError: It is not JSON, or not an object.
    """
    plain = _without_trailing_commas(_without_comments(text))
    if not plain.strip():
        return {}
    data = _DECODER.decode(plain)
    if not isinstance(data, dict):
        raise ValueError("it holds no object")
    return data


def put(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with a value at the keys: in place of the present value, else at the beginning of its object.

    Raises:
        ValueError: A value on the way to it is no object.
    """
    plain = _without_trailing_commas(_without_comments(text))
    if not plain.strip():
        lead = "\n" if text and not text.endswith("\n") else ""
        return f"{text}{lead}{_write(_nest(keys, value), '  ', '')}\n"
    path = _path(plain, keys)
    first = path[0].members[:1]
    unit = (_indent(text, first[0].start) if first else None) or "  "
    found = path[-1]
    if found.wanted is None:
        return _insert(text, found, keys[len(path) - 1], _nest(keys[len(path) :], value), unit)
    member = found.members[found.wanted]
    return text[: member.value] + _write(value, unit, _indent(text, member.start)) + text[member.end :]


def drop(text: str, keys: Sequence[str]) -> str:
    """Return the text without the value at the keys, and without the objects around it that hold nothing else."""
    commas = _without_comments(text)
    path = _path(_without_trailing_commas(commas), keys)
    while len(path) > 1 and len(path[-1].members) == 1:
        path.pop()
    _, _, members, index = path[-1]
    if index is None:
        return text
    member = members[index]
    before, end = text[: member.start], member.end
    comma = _skip(commas, end)
    if commas[comma] == ",":
        end = comma + 1
    elif index > 0:
        previous = commas.index(",", members[index - 1].end)
        before = before[:previous] + before[previous + 1 :].rstrip(" \t")
    after = text[end:]
    if (line := re.match(r"[ \t]*\n", after)) and not before.rpartition("\n")[2].strip(" \t"):
        return before.rstrip(" \t") + after[line.end() :]
    return before + after


def _without_comments(text: str) -> str:
    """Return the text with spaces for comments, so that all else stays at its place."""
    return _COMMENTS.sub(
        lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0]), text
    )


def _without_trailing_commas(text: str) -> str:
    return _TRAILING.sub(lambda found: " " if found[0] == "," else found[0], text)


def _skip(plain: str, place: int) -> int:
    found = _SPACE.match(plain, place)
    return place if found is None else found.end()


def _path(plain: str, keys: Sequence[str]) -> list[_Object]:
    """Return the objects on the way to the keys, as far as there are any."""
    path = list[_Object]()
    start = _skip(plain, 0)
    for key in keys:
        found = _read_object(plain, start, key)
        path.append(found)
        if found.wanted is None:
            break
        start = found.members[found.wanted].value
    return path


def _read_object(plain: str, start: int, wanted: str) -> _Object:
    if plain[start] != "{":
        raise ValueError("a value on the way to the servers is no object")
    members = list[_Member]()
    place = _skip(plain, start + 1)
    while plain[place] != "}":
        name, end = _DECODER.raw_decode(plain, place)
        value = _skip(plain, _skip(plain, end) + 1)
        _, end = _DECODER.raw_decode(plain, value)
        members.append(_Member(name, place, value, end))
        place = _skip(plain, end)
        if plain[place] == ",":
            place = _skip(plain, place + 1)
    found = [index for index, member in enumerate(members) if member.name == wanted]
    return _Object(start, place, members, found[-1] if found else None)


def _nest(keys: Sequence[str], value: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return value


def _indent(text: str, place: int) -> str | None:
    """Return the indentation of the line of a place; None if other text stands before the place."""
    before = text[text.rfind("\n", 0, place) + 1 : place]
    return None if before.strip(" \t") else before


def _write(value: Any, unit: str, indent: str | None) -> str:
    """Return a value as text, on one line if there is no indentation."""
    if indent is None:
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", "\n" + indent)


def _insert(text: str, found: _Object, name: str, value: Any, unit: str) -> str:
    """Put a member before all others, so that no comma and no comment stands in its way."""
    line = text[text.rfind("\n", 0, found.start) + 1 : found.start]
    outer = line[: len(line) - len(line.lstrip(" \t"))]
    place = found.start + 1
    if found.members and "\n" not in text[place : found.members[0].start]:
        return f"{text[:place]}{json.dumps(name)}: {_write(value, unit, None)}, {text[place:]}"
    member = f"\n{outer}{unit}{json.dumps(name)}: {_write(value, unit, outer + unit)}"
    if found.members:
        return text[:place] + member + "," + text[place:]
    end = "" if "\n" in text[place : found.close] else "\n" + outer
    return text[:place] + member + end + text[place:]
