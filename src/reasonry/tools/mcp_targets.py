"""Where tool servers are: read from what `--mcp` takes."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from ..errors import UsageError
from ..masking import SECRETS


class McpTarget(Struct, frozen=True, kw_only=True):
    """Where a server is: a command to start, or a URL."""

    name: str
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}


def read_targets(spec: str) -> tuple[McpTarget, ...]:
    """Read what `--mcp` takes: a command line, a URL, or a JSON file with `mcpServers`.

    Raises:
        UsageError: It is none of these; the message says what is wrong with it.
    """
    spec = spec.strip()
    if not spec:
        raise UsageError("--mcp takes a command, a URL or a configuration file", option="mcp")
    if spec.startswith(("http://", "https://")):
        SECRETS.keep_password(spec)
        return (McpTarget(name=spec.split("/")[2].rpartition("@")[2], url=spec),)
    if spec.endswith(".json") and " " not in spec:
        return _read_config(Path(spec).expanduser())
    try:
        command = split_command(spec)
    except ValueError as error:
        raise UsageError(f"--mcp {spec[:200]!r} is no command line: {error}", option="mcp") from None
    return (McpTarget(name=Path(command[0]).stem, command=tuple(command)),)


def split_command(line: str, *, windows: bool = os.name == "nt") -> list[str]:
    """Return the words of a command line; on Windows a backslash is part of a path.

    Raises:
        ValueError: A quote is not closed.
    """
    words = shlex.split(line, posix=not windows)
    return [word[1:-1] if windows and word[:1] == word[-1:] in ('"', "'") else word for word in words]


def _read_config(path: Path) -> tuple[McpTarget, ...]:
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"{path} cannot be read: {error}", option="mcp", file=str(path)) from None
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise UsageError(f"{path} has no `mcpServers`", option="mcp", file=str(path))
    return tuple(_target(path, str(name), entry) for name, entry in cast(dict[str, Any], servers).items())


class _Entry(Struct, frozen=True):
    """A server as a configuration file describes it."""

    command: str | None = None
    args: tuple[str | int | float, ...] = ()
    env: dict[str, str | int | float | bool] = {}
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str | int | float] = {}


def _target(path: Path, name: str, entry: Any) -> McpTarget:
    def refusal(why: str) -> UsageError:
        return UsageError(f"{path}: server {name!r} {why}", option="mcp", file=str(path))

    known = (
        {key: value for key, value in entry.items() if value is not None} if isinstance(entry, dict) else {}
    )
    try:
        read = msgspec.convert(known, _Entry)
    except msgspec.ValidationError as error:
        raise refusal(f"is not described rightly: {error}") from None
    if read.url:
        headers = {key: str(value) for key, value in read.headers.items()}
        SECRETS.keep_headers(headers)
        SECRETS.keep_password(read.url)
        return McpTarget(name=name, url=read.url, headers=headers)
    if not read.command:
        raise refusal("has neither `command` nor `url`")
    command = (read.command, *map(str, read.args))
    env = {key: str(value) for key, value in read.env.items()}
    SECRETS.keep_environment(env)
    return McpTarget(name=name, command=command, env=env, cwd=read.cwd)
