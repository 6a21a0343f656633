"""Where tool servers are: read from what `--mcp` takes."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

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
    url: str = ""
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


class _Entry(Struct, frozen=True):
    """A server as a configuration file describes it."""

    command: str | None = None
    args: tuple[str | int | float, ...] | None = None
    env: dict[str, str | int | float | bool | None] | None = None
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str | int | float] | None = None


class _Config(Struct, frozen=True):
    mcpServers: dict[str, msgspec.Raw] = {}


def _read_config(path: Path) -> tuple[McpTarget, ...]:
    def refusal(reason: str) -> UsageError:
        return UsageError(f"{path}{reason}", option="mcp", file=str(path))

    def target(name: str, entry: msgspec.Raw) -> McpTarget:
        try:
            read = msgspec.json.decode(entry, type=_Entry)
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise refusal(f": server {name!r} is not described rightly: {error}") from None
        if not read.url and not read.command:
            raise refusal(f": server {name!r} has neither `command` nor `url`")
        headers = {key: str(value) for key, value in (read.headers or {}).items()}
        env = {key: str(value) for key, value in (read.env or {}).items() if value is not None}
        SECRETS.keep_headers(headers)
        SECRETS.keep_environment(env)
        if read.url:
            SECRETS.keep_password(read.url)
            return McpTarget(name=name, url=read.url, headers=headers)
        command = (read.command or "", *map(str, read.args or ()))
        return McpTarget(name=name, command=command, env=env, cwd=read.cwd)

    try:
        servers = msgspec.json.decode(path.read_bytes(), type=_Config).mcpServers
    except (OSError, ValueError, RecursionError) as error:
        raise refusal(f" cannot be read: {error}") from None
    if not servers:
        raise refusal(" has no `mcpServers`")
    return tuple(target(name, entry) for name, entry in servers.items())
