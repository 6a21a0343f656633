"""Finds the entries for Reasonry in the agents' files, and checks whether the server of each entry works."""

import asyncio
import json
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ...errors import ReasonryError
from ...system.masking import SECRETS
from ...system.processes import ChildEnd, Output, bare_environment, run_child
from .agents import AGENTS, NAME, Agent, Launch, Machine, read_launch, starts_reasonry
from .config_file import find_entry, read_config, read_data

_CLIENT = {"name": "reasonry doctor", "version": "1"}
# A protocol version that current agents support.
_GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}
_HELLO = (
    {"id": 1, "method": "initialize", "params": _GREETING},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
)
"""The messages with which an agent asks a server for its tools."""
DEADLINE_S = 20.0
_MAX_REPLY_BYTES = 8 << 20
_MAX_STDERR_CHARS = 4_000
_MACOS_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
"""The PATH of a macOS program that no shell started."""


class SetUpEntry(Struct, frozen=True):
    """An entry for Reasonry in an agent's file.

    Args:
        launch: The command that starts the server, or None if the entry names no command.
        known: The result of the check if the server need not be started to know it. Otherwise, it is empty.
    """

    agent: Agent
    file: Path
    name: str = ""
    launch: Launch | None = None
    folder: Path | None = None
    known: Mapping[str, str] = {}


def find_entries(machine: Machine) -> list[SetUpEntry]:
    """Return all entries for Reasonry in the agents' files. An unreadable file yields one entry with an empty name."""
    return [entry for agent in AGENTS for entry in _entries_of(agent, machine.config_file(agent))]


def _entries_of(agent: Agent, file: Path) -> Iterator[SetUpEntry]:
    try:
        servers = find_entry(read_data(agent.format, read_config(file) or ""), agent.keys)
    except (ReasonryError, ValueError) as error:
        remedy = f"put the file right; {agent.title} cannot read it either"
        known = {"problem": f"it cannot be read: {error}", "remedy": remedy}
        yield SetUpEntry(agent, file, known=known)
        return
    for name, entry in servers.items() if isinstance(servers, dict) else ():
        launch = read_launch(entry, agent.shape)
        if name == NAME or (launch is not None and starts_reasonry(launch)):
            cwd = entry.get("cwd") if isinstance(entry, dict) else None
            folder = Path(cwd).expanduser() if isinstance(cwd, str) else None
            known = _why_not_tried(entry, launch)
            yield SetUpEntry(agent, file, str(name)[:100], launch, folder, known)


def _why_not_tried(entry: Any, launch: Launch | None) -> dict[str, str]:
    if isinstance(entry, dict) and (entry.get("disabled") is True or entry.get("enabled") is False):
        return {"note": "it is switched off"}
    if launch is None:
        return {"problem": "the entry names no command", "remedy": "take it out, and set it up again"}
    has_variables = any("${" in word for word in (launch.command, *launch.args, *launch.env.values()))
    return {"note": "it has variables that only the agent fills in"} if has_variables else {}


async def try_entries(machine: Machine, entries: list[SetUpEntry]) -> list[dict[str, Any]]:
    """Start the server of each entry as the agent would, and check the server. At most four servers run at once.

    Returns:
        The result of `check_server` for each entry. If a server was not started, the result is the entry's `known`.
    """
    places = asyncio.Semaphore(4)

    async def try_out(entry: SetUpEntry) -> dict[str, Any]:
        if entry.launch is None or entry.known:
            return {**entry.known}
        async with places:
            environ, folder = surroundings(entry.agent, machine)
            return await check_server(entry.launch, environ, entry.folder or folder)

    return list(await asyncio.gather(*map(try_out, entries)))


def surroundings(agent: Agent, machine: Machine) -> tuple[dict[str, str], Path]:
    """Return the environment variables and the current folder that an agent gives to every server it starts."""
    is_desktop = agent.environment == "desktop"
    folder = Path(machine.home.anchor) if is_desktop else machine.folder
    environ = machine.environ if agent.environment == "all" else bare_environment(machine.environ)
    path = {"PATH": _MACOS_PATH} if is_desktop and machine.system == "Darwin" else {}
    return {**environ, **path}, folder


async def check_server(
    launch: Launch, environ: Mapping[str, str], folder: Path, *, deadline_s: float = DEADLINE_S
) -> dict[str, Any]:
    """Start a server, perform the MCP handshake, list its tools, and end the server. Faults are returned, not raised.

    Returns:
        {`ms`, `server`, `protocol`, `tools`} if the server works; `ms` is how long it took to answer and end.
        Otherwise {`problem`, `remedy`} and, if the server started, `stderr`: the last lines of its standard error.
    """
    env = {**environ, **launch.env}
    command = shutil.which(launch.command, path=env.get("PATH", ""))
    remedy = "set it up again, which writes the full path of this installation"
    if command is None:
        problem = f"the command {launch.command} is not there, or not on the PATH that the agent has"
        return {"problem": problem, "remedy": remedy}
    hello = b"".join(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n" for message in _HELLO)
    reply, printed, begun = Output(_MAX_REPLY_BYTES), Output(_MAX_REPLY_BYTES), time.monotonic()
    try:
        end = await run_child([command, *launch.args], hello, deadline_s, reply, printed, env=env, cwd=folder)
        ms = round(1000 * (time.monotonic() - begun))
        greeting, listed = _read_results(reply, end, deadline_s)
    except ValueError as error:
        last = printed.text()[-_MAX_STDERR_CHARS:].strip().splitlines()[-6:]
        words = " ".join(f'"{word}"' if " " in word else word for word in (launch.command, *launch.args))
        by_hand = f"run it by hand in {folder} to see why: {words}"
        return {"problem": str(error), "remedy": by_hand, "stderr": [*map(SECRETS.mask, last)]}
    except OSError as error:
        return {"problem": f"{command} cannot be started: {error.strerror or error}", "remedy": remedy}
    info = greeting.get("serverInfo")
    server = f"{info.get('name')} {info.get('version')}" if isinstance(info, dict) else ""
    tools = [str(row.get("name"))[:80] for row in listed.get("tools") or () if isinstance(row, dict)]
    protocol = str(greeting.get("protocolVersion"))[:40]
    return {"ms": ms, "server": server[:100], "protocol": protocol, "tools": tools[:200]}


def _read_results(reply: Output, end: ChildEnd, deadline_s: float) -> Iterator[dict[str, Any]]:
    """Yield the server's result for each request in `_HELLO`.

    Raises:
        ValueError: The server ended, was too slow, refused a request or broke the protocol. The message says which.
    """
    if reply.truncated:
        raise ValueError("the server wrote a message that is too long")
    messages = map(_read_message, reply.text().splitlines())
    for request in (request for request in _HELLO if "id" in request):
        message = next((message for message in messages if message.get("id") == request["id"]), None)
        if message is None:
            ended = f"ended with exit code {end.code} before it answered {request['method']}"
            late = f"did not answer within {deadline_s:g} s"
            raise ValueError(f"the server {late if end.overran else ended}")
        if not isinstance(message.get("result"), dict):
            raise ValueError(f"the server refused {request['method']}: {str(message.get('error'))[:200]}")
        yield message["result"]


def _read_message(line: str) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        written = repr(line[:80].strip())
        raise ValueError(f"standard output has text outside the protocol: {written}") from None
    return message if isinstance(message, dict) else {}
