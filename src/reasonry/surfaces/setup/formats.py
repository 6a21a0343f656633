"""The formats of agents' files: an edit changes the entry that it is about and nothing else, or it is refused."""

from __future__ import annotations

import io
import re
import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from . import json_text

_MARK = "\ufeff"
_PREAMBLE = re.compile(r"(?:[ \t]*(?:#.*)?\n)*---[ \t]*\n")
_COMMENTS_AT_END = re.compile(r"(?:^[ \t]*(?:#.*)?\n)*\Z", re.MULTILINE)


def read_data(form: str, text: str) -> dict[str, Any]:
    """Return the data of a text in a format: `json`, `toml` or `yaml`.

    Raises:
        ValueError: It is not valid, or no mapping.
    """
    text = text.removeprefix(_MARK)
    try:
        if form == "json":
            return json_text.read(text)
        return tomllib.loads(text) if form == "toml" else _read_yaml(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def find_entry(data: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Return the value at the keys, or None."""
    found: Any = data
    for key in keys:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found


def edit_text(form: str, text: str, keys: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    """Return the text with an entry at the keys; for None, without the entry and the tables it leaves empty.

    Raises:
        ValueError: The text is not valid, or its style allows no safe edit.
    """
    mark, body = (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)
    has_crlf = 0 < body.count("\n") == body.count("\r\n")
    if has_crlf:
        body = body.replace("\r\n", "\n")
    wanted = read_data(form, body)
    there = find_entry(wanted, keys)
    if entry and there is not None and not (isinstance(there, Mapping) and there.keys() <= entry.keys()):
        return edit_text(form, edit_text(form, text, keys, None), keys, entry)
    _edit(wanted, keys, entry)
    if form == "json":
        after = json_text.drop(body, keys) if entry is None else json_text.put(body, keys, entry)
    else:
        after = _edit_toml(body, keys, entry) if form == "toml" else _edit_yaml(body, keys, entry)
    try:
        is_right = read_data(form, after) == wanted
    except ValueError:
        is_right = False
    if not is_right:
        raise ValueError("its style allows no safe edit")
    return mark + (after.replace("\n", "\r\n") if has_crlf else after)


def _edit(data: Any, keys: Sequence[str], entry: Mapping[str, Any] | None) -> None:
    """Put an entry into data or a library's document, or take it out."""
    key, *rest = keys
    if rest and data.get(key) is None:
        data[key] = {}
    if rest and not isinstance(data[key], MutableMapping):
        raise ValueError(f"the value of {key!r} is no mapping")
    if rest:
        _edit(data[key], rest, entry)
        if not data[key]:
            del data[key]
    elif entry is None:
        del data[key]
    elif isinstance(data.get(key), MutableMapping):
        data[key].update({name: value for name, value in entry.items() if data[key].get(name) != value})
    elif data and hasattr(data, "insert"):
        # Comments after the last entry of a YAML mapping belong to that entry.
        data.insert(0, key, entry)
    else:
        data[key] = entry


def _edit_toml(text: str, keys: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    import tomlkit
    from tomlkit.items import Table

    document = tomlkit.parse(text)
    is_new = find_entry(document, keys) is None
    _edit(document, keys, entry)
    if entry is None:
        return _with_comments(text, document.as_string())
    table = find_entry(document, keys)
    if is_new and isinstance(table, Table):
        table.add(tomlkit.nl())
    after = document.as_string()
    return after[:-1] if after.endswith("\n\n") and not text.endswith("\n\n") else after


def _read_yaml(text: str) -> dict[str, Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(text)
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    if data is not None and not isinstance(data, dict):
        raise ValueError("it holds no mapping")
    return data or {}


def _edit_yaml(text: str, keys: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    from ruamel.yaml import YAML

    found = _PREAMBLE.match(text)
    start = found.end() if found else 0
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 1 << 20
    if deeper := re.search(r"^( +)[^\s#-]", text, re.MULTILINE):
        yaml.map_indent = len(deeper[1])
    if listed := re.search(r"^( *)[^\s#-][^\n]*:\n\1( +)- ", text, re.MULTILINE):
        yaml.sequence_indent, yaml.sequence_dash_offset = len(listed[2]) + 2, len(listed[2])
    document = yaml.load(text[start:])
    if document is None:
        # With nothing but comments there is no mapping that could keep them.
        document, start = {}, len(text)
    _edit(document, keys, entry)
    written = io.StringIO()
    yaml.dump(document, written)
    lead = text[:start] + ("\n" if start and text[start - 1] != "\n" else "")
    after = lead + written.getvalue()
    return after if entry is not None else _with_comments(text, after)


def _with_comments(before: str, after: str) -> str:
    """Return a text that a part was taken out of with the comments at the end of that part: they are about the rest."""
    lines, rest = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = 0
    while start < min(len(lines), len(rest)) and lines[start] == rest[start]:
        start += 1
    end = start + len(lines) - len(rest)
    comments = _COMMENTS_AT_END.search("".join(lines[start:end]))
    if comments is None or not comments[0].strip() or lines[:start] + lines[end:] != rest:
        return after
    return "".join([*rest[:start], comments[0].lstrip("\n"), *rest[start:]])
