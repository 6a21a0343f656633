"""JSON with comments and trailing commas, edited in place: all that is not the entry itself stays as it is written."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

_STRING = r'"(?:[^"\\\n\r]|\\.)*"'
_COMMENTS = re.compile(rf"{_STRING}|//[^\n\r]*|/\*.*?\*/", re.DOTALL)
_TRAILING = re.compile(rf"{_STRING}|,(?=[ \t\n\r]*[}}\]])", re.DOTALL)
_SPACE = re.compile(r"[ \t\n\r]*")
_REST_OF_LINE = re.compile(r"(?:[ \t]*/\*[^\n\r]*?\*/)*(?:[ \t]*//[^\n\r]*)?")
# Numbers are kept as they are written: they are compared, never computed with, and may be of any length.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)


class Member(Struct, frozen=True):
    """A member of an object, by its places in the text."""

    name: str
    start: int
    name_end: int
    value: int
    end: int


class JsonObject(Struct, frozen=True):
    """An object, by the places of its braces and its members."""

    start: int
    close: int
    members: tuple[Member, ...]

    def last(self, name: str) -> int | None:
        """Return the index of the member of a name; the last one, if it stands there twice, as readers take it."""
        found = [index for index, member in enumerate(self.members) if member.name == name]
        return found[-1] if found else None


def read(text: str) -> dict[str, Any]:
    """Return the data of a text; of one that holds nothing, an empty object.

    Raises:
        ValueError: It is no JSON, or no object.
    """
    plain = _without_trailing_commas(_without_comments(text))
    if not plain.strip(" \t\r\n"):
        return {}
    try:
        data = _DECODER.decode(plain)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError("it holds no object")
    return data


def put(text: str, keys: Sequence[str], value: Mapping[str, Any]) -> str:
    """Return the text with a value at the keys: in place of the one there, else at the end of its object.

    Raises:
        ValueError: What stands on the way to it is no object.
    """
    commas = _without_comments(text)
    plain = _without_trailing_commas(commas)
    newline = line_end(text)
    if not plain.strip(" \t\r\n"):
        lead = newline if text.strip("\ufeff") and not text.endswith(("\n", "\r")) else ""
        return text + lead + _multiline(_nest(keys, value), "  ", "", newline) + newline
    start = _skip(plain, 0)
    unit = _unit(text, _object(plain, start))
    for depth, key in enumerate(keys):
        found = _object(plain, start)
        index = found.last(key)
        if index is None:
            inner = _nest(keys[depth + 1 :], value)
            return _insert(text, commas, found, json.dumps(key), inner, unit, is_root=depth == 0)
        start = found.members[index].value
        if depth == len(keys) - 1:
            member = found.members[index]
            indent = _indent(text, member.start)
            written = _inline(value) if indent is None else _multiline(value, unit, indent, newline)
            return text[: member.value] + written + text[member.end :]
    raise ValueError("no key was named")


def drop(text: str, keys: Sequence[str], created: int) -> str:
    """Return the text without the value at the keys.

    Args:
        created: So many of the objects around it go as well, from the inside, where nothing else is in them.
    """
    commas = _without_comments(text)
    plain = _without_trailing_commas(commas)
    start = _skip(plain, 0)
    chain = list[tuple[JsonObject, int]]()
    for key in keys:
        found = _object(plain, start)
        index = found.last(key)
        if index is None:
            return text
        chain.append((found, index))
        start = found.members[index].value
    while len(chain) > 1 and created > 0 and len(chain[-1][0].members) == 1:
        chain.pop()
        created -= 1
    return _delete(text, commas, *chain[-1])


def line_end(text: str) -> str:
    """Return how lines end in a text."""
    return "\r\n" if "\r\n" in text else "\n"


def _without_comments(text: str) -> str:
    """Return the text with spaces for comments and a byte order mark, so that all else stays at its place."""
    plain = _COMMENTS.sub(
        lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\n\r]", " ", found[0]), text
    )
    return " " + plain[1:] if plain.startswith("\ufeff") else plain


def _without_trailing_commas(text: str) -> str:
    def blank(found: re.Match[str]) -> str:
        if found[0] != ",":
            return found[0]
        before = found.start() - 1
        while before >= 0 and text[before] in " \t\n\r":
            before -= 1
        return "," if before < 0 or text[before] in "{[,:" else " "

    return _TRAILING.sub(blank, text)


def _skip(plain: str, place: int) -> int:
    found = _SPACE.match(plain, place)
    return place if found is None else found.end()


def _object(plain: str, start: int) -> JsonObject:
    if plain[start] != "{":
        raise ValueError("what should be an object is something else")
    members = list[Member]()
    place = _skip(plain, start + 1)
    while plain[place] != "}":
        name, name_end = _DECODER.raw_decode(plain, place)
        value = _skip(plain, _skip(plain, name_end) + 1)
        _, end = _DECODER.raw_decode(plain, value)
        members.append(Member(name, place, name_end, value, end))
        place = _skip(plain, end)
        if plain[place] == ",":
            place = _skip(plain, place + 1)
    return JsonObject(start, place, tuple(members))


def _nest(keys: Sequence[str], value: Mapping[str, Any]) -> Mapping[str, Any]:
    for key in reversed(keys):
        value = {key: value}
    return value


def _indent(text: str, place: int) -> str | None:
    """Return what stands before a place on its line, or None if that is more than an indentation."""
    start = max(text.rfind("\n", 0, place), text.rfind("\r", 0, place)) + 1
    before = text[start:place].lstrip("\ufeff")
    return before if not before.strip(" \t") else None


def _line_indent(text: str, place: int) -> str:
    start = max(text.rfind("\n", 0, place), text.rfind("\r", 0, place)) + 1
    line = text[start:place].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str, root: JsonObject) -> str:
    indents = (_indent(text, member.start) for member in root.members)
    return next((indent for indent in indents if indent), "  ")


def _multiline(value: Mapping[str, Any], unit: str, indent: str, newline: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)


def _inline(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _insert(
    text: str,
    commas: str,
    found: JsonObject,
    name: str,
    value: Mapping[str, Any],
    unit: str,
    *,
    is_root: bool,
) -> str:
    newline = line_end(text)
    if not found.members:
        return _fill(text, found, name, value, unit, newline, is_root=is_root)
    last = found.members[-1]
    comma = _skip(commas, last.end)
    has_comma = commas[comma] == ","
    indent = _indent(text, last.start)
    if indent is None:
        is_tight = text[last.name_end : last.value] == ":"
        separators = (",", ":") if is_tight else (", ", ": ")
        member = name + separators[1] + json.dumps(value, ensure_ascii=False, separators=separators)
        if has_comma:
            return text[: comma + 1] + " " + member + "," + text[comma + 1 :]
        return text[: last.end] + separators[0] + member + text[last.end :]
    member = newline + indent + name + ": " + _multiline(value, unit, indent, newline)
    if has_comma:
        place = _after_comments(text, comma + 1)
        return text[:place] + member + "," + text[place:]
    place = _after_comments(text, last.end)
    return text[: last.end] + "," + text[last.end : place] + member + text[place:]


def _after_comments(text: str, place: int) -> int:
    """Return the place after the comments that follow on the same line, which belong to what stands there."""
    found = _REST_OF_LINE.match(text, place)
    return place if found is None else found.end()


def _fill(
    text: str,
    found: JsonObject,
    name: str,
    value: Mapping[str, Any],
    unit: str,
    newline: str,
    *,
    is_root: bool,
) -> str:
    gap = text[found.start + 1 : found.close]
    comments = gap.rstrip(" \t\r\n")
    if not is_root and not comments and not re.search(r"[\n\r]", text.strip()):
        return text[: found.start + 1] + name + ": " + _inline(value) + text[found.close :]
    outer = _line_indent(text, found.start)
    inner = outer + unit
    member = newline + inner + name + ": " + _multiline(value, unit, inner, newline)
    rest = gap[len(comments) :]
    if not re.search(r"[\n\r]", rest) or not comments:
        rest = newline + outer
    return text[: found.start + 1] + comments + member + rest + text[found.close :]


def _delete(text: str, commas: str, found: JsonObject, index: int) -> str:
    member = found.members[index]
    lead = member.start
    while text[lead - 1] in " \t\n\r":
        lead -= 1
    comma = _skip(commas, member.end)
    end = comma + 1 if commas[comma] == "," else member.end
    if commas[lead - 1] != text[lead - 1] and not re.match(r"[ \t]*[\n\r]", text[end:]):
        # A comment to the end of its line must not come to hide what follows.
        lead = max(text.rfind("\n", 0, member.start), text.rfind("\r", 0, member.start)) + 1
    if end == member.end and index > 0:
        before = found.members[index - 1].end
        previous = commas.index(",", before)
        return text[:previous] + text[previous + 1 : lead] + text[end:]
    if len(found.members) == 1 and not (text[found.start + 1 : lead] + text[end : found.close]).strip():
        return text[: found.start + 1] + text[found.close :]
    return text[:lead] + text[end:]
