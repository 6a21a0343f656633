"""Reads and edits configuration files of other programs. A file is written completely or not at all.

An edit that would change more than Reasonry's own entry is refused. The new text is first written to the backup's path,
then moved over the old file; after that, the old text is written to the backup's path. Therefore, the file is
complete even if the process is killed at any time, and the backup is the only other copy.
"""

import contextlib
import io
import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from functools import reduce
from itertools import takewhile
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...errors import ConflictError, UsageError, WorldError
from ...system.processes import read_regular_file

MAX_CONFIG_BYTES = 64 << 20
BACKUP_SUFFIX = ".reasonry.bak"
_MARK = "\ufeff"
_PREAMBLE = re.compile(r"(?:[ \t]*(?:#.*)?\n)*---[ \t]*\n")
_COMMENTS_AT_END = re.compile(r"(?:^[ \t]*(?:#.*)?\n)*\Z", re.MULTILINE)


class FileChange(Struct, frozen=True):
    """A planned change to a file.

    Args:
        path: The path of the file, with links resolved.
        before: The text before the change, or None if the file does not exist.
        after: The text after the change, or None to delete the file. A folder that is then empty is deleted too.
        note: The reason why the file is left unchanged although it lacks the wanted text.
    """

    path: Path
    before: str | None
    after: str | None
    note: str = ""

    @property
    def state(self) -> str:
        """The kind of change: `add`, `update`, `remove`, `unchanged` or `kept` (`note` says why)."""
        if self.before == self.after:
            return "kept" if self.note else "unchanged"
        return "add" if self.before is None else "remove" if self.after is None else "update"


def read_config(path: Path) -> str | None:
    """Return the unchanged text of a file, or None if there is no file.

    Raises:
        UsageError: The file is unreadable or not UTF-8 text.
    """
    if not path.exists() and not path.is_symlink():
        return None
    data = read_regular_file(path, MAX_CONFIG_BYTES, label="file", option="agent")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; nothing was changed", file=str(path)) from None


def make_change(change: FileChange) -> None:
    """Carry out a planned change. If an existing file gets a new text, the old text becomes its backup.

    Raises:
        ConflictError: Another program has changed the file since the change was planned.
        WorldError: The system does not permit the change.
    """
    try:
        _check(change.path, change.before)
        change.path.parent.mkdir(parents=True, exist_ok=True)
        if change.after is not None:
            return _replace(change.path, change.before, change.after)
        change.path.unlink()
        with contextlib.suppress(OSError):
            change.path.parent.rmdir()
    except OSError as error:
        message = f"{change.path} cannot be written: {error.strerror or error}"
        raise WorldError(message, code="config_unwritable", file=str(change.path)) from None


def backup_of(path: Path) -> Path:
    """Return the path of a file's backup."""
    return path.with_name(path.name + BACKUP_SUFFIX)


def _replace(path: Path, before: str | None, after: str) -> None:
    backup = backup_of(path)
    old = path.stat() if before is not None else None
    try:
        _write(backup, after, old)
        if old is not None:
            backup.chmod(stat.S_IMODE(old.st_mode))
        # Syncing may have taken long, and another setup may have changed the files meanwhile.
        _check(path, before)
        _check(backup, after)
        os.replace(backup, path)
    except BaseException:
        with contextlib.suppress(OSError):
            backup.unlink()
        raise
    if before is not None:
        _write(backup, before, old)


def _write(path: Path, text: str, like: os.stat_result | None) -> None:
    """Write a file that only its owner can read and write. An existing file is replaced."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    if like is not None and hasattr(os, "chown"):
        # If root writes the file, its owner stays the same.
        with contextlib.suppress(OSError):
            os.chown(path, like.st_uid, like.st_gid)


def _check(path: Path, text: str | None) -> None:
    if read_config(path) != text:
        raise ConflictError(f"{path} was changed by another program meanwhile; try again", file=str(path))


# -- formats


def read_data(form: str, text: str) -> dict[str, Any]:
    """Parse a text as `json`, `toml` or `yaml`. An empty text is an empty mapping.

    Raises:
        ValueError: The text is not valid or not a mapping.
    """
    try:
        data = {"json": _read_json, "toml": tomllib.loads, "yaml": _read_yaml}[form](text.removeprefix(_MARK))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError("it holds no mapping")
    return data


def find_entry(data: Mapping[str, Any], keys: Sequence[str]) -> Any:
    """Return the value at the key path `keys`, or None if there is no such value."""
    found: Any = data
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def edit_text(form: str, text: str, keys: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    """Return the text with `entry` at the path `keys`. If `entry` is None, remove the old entry.

    Raises:
        ValueError: The text is not valid, or its style permits no safe edit.
    """
    mark, body = (_MARK, text[1:]) if text.startswith(_MARK) else ("", text)
    line_end = "\r\n" if 0 < body.count("\n") == body.count("\r\n") else "\n"
    body = body.replace(line_end, "\n")
    wanted = read_data(form, text)
    there = find_entry(wanted, keys)
    if entry and there is not None and not (isinstance(there, Mapping) and there.keys() <= entry.keys()):
        return edit_text(form, edit_text(form, text, keys, None), keys, entry)
    _edit(wanted, keys, entry)
    while entry is None and find_entry(wanted, keys[:-1]) is None:
        keys = keys[:-1]
    edit = {"json": _edit_json, "toml": _edit_toml, "yaml": _edit_yaml}[form]
    after = _with_comments(body, edit(body, keys, entry))
    with contextlib.suppress(ValueError):
        if read_data(form, after) == wanted:
            return mark + after.replace("\n", line_end)
    raise ValueError("its style allows no safe edit")


def _edit(data: Any, keys: Sequence[str], entry: Mapping[str, Any] | None) -> None:
    """Put `entry` into `data` at the path `keys`. If `entry` is None, remove the old entry."""
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
        # A new YAML entry is inserted first, since comments after a mapping's last entry belong to that entry.
        data.insert(0, key, entry)
    else:
        data[key] = entry


def _edit_toml(text: str, keys: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    _edit(document, keys, entry)
    return document.as_string()


def _read_yaml(text: str) -> Any:
    from ruamel.yaml import YAML, YAMLError

    try:
        data = YAML(typ="safe", pure=True).load(text)
        return {} if data is None else data
    except YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None


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
        # A text with only comments has no mapping that could hold the comments.
        document, start = {}, len(text)
    _edit(document, keys, entry)
    written = io.StringIO()
    yaml.dump(document, written)
    lead = text[:start] + ("\n" if start and text[start - 1] != "\n" else "")
    return lead + written.getvalue()


def _with_comments(before: str, after: str) -> str:
    """Restore the comments that followed a removed entry, because the comments describe the next entry."""
    lines, rest = before.splitlines(keepends=True), after.splitlines(keepends=True)
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(lines, rest, strict=False)))
    end = start + len(lines) - len(rest)
    comments = _COMMENTS_AT_END.search("".join(lines[start:end]))
    if comments is None or not comments[0].strip() or lines[:start] + lines[end:] != rest:
        return after
    return "".join([*rest[:start], comments[0].lstrip("\n"), *rest[start:]])


# -- JSON with comments and trailing commas: an edit leaves all other text unchanged

_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENTS = re.compile(rf"{_STRING}|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING = re.compile(rf"{_STRING}|,(?=\s*[}}\]])", re.DOTALL)
_NAME = re.compile(rf"[\s,]*(?P<name>{_STRING})\s*:\s*", re.DOTALL)
_UNIT = re.compile(r'^[ \t]+(?=")', re.MULTILINE)
_DECODER = json.JSONDecoder()


def _read_json(text: str) -> Any:
    plain = _blank(_TRAILING, _blank(_COMMENTS, text))
    return _DECODER.decode(plain) if plain.strip() else {}


def _edit_json(text: str, keys: Sequence[str], entry: Mapping[str, Any] | None) -> str:
    """Put `entry` into a JSON text at the path `keys`. If `entry` is None, remove the old entry."""
    commas = _blank(_COMMENTS, text)
    plain = _blank(_TRAILING, commas)
    if not plain.strip():
        return _edit_json(f"{text}\n{{}}\n".lstrip(), keys, entry)
    unit = found[0] if (found := _UNIT.search(plain)) else "  "
    missing, start, place, end = keys, 0, plain.index("{"), 0
    while missing and (member := _read_members(plain, place).get(missing[0])):
        (start, place, end), missing = member, missing[1:]
    if entry is None:
        return _drop(text, commas, start, end)
    line = text[:place].rpartition("\n")[2]
    indent = line[: len(line) - len(line.lstrip())]
    value = reduce(lambda inside, key: {key: inside}, reversed(missing), entry)
    written = json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", f"\n{indent}")
    if not missing:
        return text[:place] + written + text[end:]
    written, before, after = written[1:-1], text[: place + 1], text[place + 1 :]
    if not plain[place + 1 :].lstrip().startswith("}"):
        gap = after[: len(after) - len(after.lstrip())]
        return f"{before}{gap}{written.strip()},{after}"
    return before + (written.rstrip() if "\n" in after.partition("}")[0] else written) + after


def _read_members(plain: str, place: int) -> dict[str, tuple[int, int, int]]:
    """Map each member name to the positions of the member's start, value and end."""
    members, place = dict[str, tuple[int, int, int]](), place + 1
    while found := _NAME.match(plain, place):
        _, place = _DECODER.raw_decode(plain, found.end())
        members[json.loads(found["name"])] = found.start("name"), found.end(), place
    return members


def _drop(text: str, commas: str, start: int, end: int) -> str:
    """Remove a member and its comma. If the line is then empty, remove the line too."""
    before, after = text[:start], text[end:]
    if commas[end:].lstrip().startswith(","):
        after = text[commas.index(",", end) + 1 :].lstrip(" \t")
    elif commas[:start].rstrip().endswith(","):
        comma = commas.rindex(",", 0, start)
        before = before[:comma] + before[comma + 1 :].rstrip(" \t")
    line, line_end, rest = after.partition("\n")
    if line_end and not (before.rpartition("\n")[2] + line).strip(" \t"):
        return before.rstrip(" \t") + rest
    return before + after


def _blank(pattern: re.Pattern[str], text: str) -> str:
    """Replace the matched comments or commas with spaces, so that all other characters keep their positions."""
    return pattern.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(".", " ", found[0]), text)
