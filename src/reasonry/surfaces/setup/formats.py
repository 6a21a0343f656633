"""The formats of agents' files: an edit changes the entry it is about and nothing else, or it is not made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct


class TextFormat(Struct, frozen=True):
    """How a format is read and edited; the functions raise ValueError."""

    name: str
    read: Callable[[str], dict[str, Any]]
    put: Callable[[str, Sequence[str], Mapping[str, Any]], str]
    drop: Callable[[str, Sequence[str], int], str]


def open_format(name: str) -> TextFormat:
    """Return the format of a name: `json`, `toml` or `yaml`."""
    if name == "json":
        from . import json_text as text
    elif name == "toml":
        from . import toml_text as text
    else:
        from . import yaml_text as text
    return TextFormat(name, text.read, text.put, text.drop)


def find_entry(data: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Return what stands at the keys, or None."""
    found: Any = data
    for key in keys:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found


def put_entry(form: TextFormat, text: str, keys: Sequence[str], entry: Mapping[str, Any]) -> str:
    """Return the text with an entry at the keys.

    Raises:
        ValueError: The text cannot be read, or it is written in a way in which the entry cannot be added safely.
    """
    wanted = form.read(text)
    inner = wanted
    for key in keys[:-1]:
        if inner.get(key) is None and (key not in inner or form.name == "yaml"):
            inner[key] = {}
        inner = inner[key]
        if not isinstance(inner, dict):
            raise ValueError(f"what stands under {key!r} is no object")
    inner[keys[-1]] = entry
    return _check_edit(form, form.put(text, keys, entry), wanted, keys)


def drop_entry(form: TextFormat, text: str, keys: Sequence[str], created: int) -> str:
    """Return the text without the entry at the keys.

    Args:
        created: So many of the objects around it go as well, from the inside, where nothing else is in them.

    Raises:
        ValueError: As `put_entry`.
    """
    wanted = form.read(text)
    inner: Any = wanted
    for key in keys[:-1]:
        inner = inner[key]
    del inner[keys[-1]]
    return _check_edit(form, form.drop(text, keys, created), wanted, keys)


def _check_edit(form: TextFormat, text: str, wanted: dict[str, Any], keys: Sequence[str]) -> str:
    try:
        found = form.read(text)
    except ValueError:
        found = None
    if found is None or _without_empty(found, keys) != _without_empty(wanted, keys):
        raise ValueError("it is written in a way that cannot be edited safely")
    return text


def _without_empty(data: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """Return the data without what is empty on the way to an entry: that may come and go with it."""
    if len(keys) < 2 or keys[0] not in data:
        return dict(data)
    rest = {key: value for key, value in data.items() if key != keys[0]}
    inner = data[keys[0]]
    if isinstance(inner, Mapping):
        inner = _without_empty(inner, keys[1:])
    return {**rest, keys[0]: inner} if inner else rest
