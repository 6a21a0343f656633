"""The entries for Reasonry in the files of the agents of this machine, and whether the server of each one works."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from ...errors import ReasonryError
from .agents import AGENTS, NAME, Agent, Machine
from .config_file import read_servers
from .launch import Launch, read_launch, starts_reasonry

_CLIENT = {"name": "reasonry doctor", "version": "1"}
# The version is one that agents of today know.
_GREETING = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}
_HELLO: Sequence[dict[str, Any]] = (
    {"id": 1, "method": "initialize", "params": _GREETING},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list", "params": {}},
)
"""What an agent says to a server to learn its tools."""
DEADLINE_S = 20.0
_LEAVING_S = 3.0
_MAX_LINE_BYTES = 8 << 20
_MAX_STDERR_BYTES = 4_000

_FEW_OF_POSIX = {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"}
_FEW_OF_WINDOWS = {
    "APPDATA",
    "LOCALAPPDATA",
    "PATHEXT",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
}
_MACOS_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"
"""The PATH of a program on macOS that no shell starts."""


class SetUpEntry(Struct, frozen=True):
    """An entry for Reasonry in an agent's file.

    Args:
        launch: None: it starts no server as far as can be read.
        note: Why it is not tried out; empty if it is.
    """

    agent: Agent
    file: Path
    name: str
    for_project: bool
    launch: Launch | None
    folder: Path | None = None
    note: str = ""


class BrokenFile(Struct, frozen=True):
    """A file of an agent that cannot be read."""

    agent: Agent
    file: Path
    message: str


def find_entries(machine: Machine) -> list[SetUpEntry | BrokenFile]:
    """Return every entry for Reasonry, the user's before the project's, and the files that cannot be read."""
    found = list[SetUpEntry | BrokenFile]()
    seen = set[tuple[Path, tuple[str, ...]]]()
    for agent in AGENTS:
        for for_project in (False, True):
            file = machine.config_file(agent, for_project=for_project)
            if file is not None and (file, agent.keys) not in seen:
                seen.add((file, agent.keys))
                found += _entries_of(agent, file, for_project=for_project)
    return found


def _entries_of(agent: Agent, file: Path, *, for_project: bool) -> Iterator[SetUpEntry | BrokenFile]:
    try:
        servers = read_servers(agent, file)
    except (ReasonryError, ValueError) as error:
        yield BrokenFile(agent, file, str(error))
        return
    for name, entry in servers.items():
        launch = read_launch(entry, agent.entry_shape(for_project=for_project))
        if name == NAME or (launch is not None and starts_reasonry(launch)):
            folder = entry.get("cwd") if isinstance(entry, dict) else None
            yield SetUpEntry(
                agent,
                file,
                str(name)[:100],
                for_project,
                launch,
                Path(folder).expanduser() if isinstance(folder, str) else None,
                _why_not_tried(entry, launch),
            )


def _why_not_tried(entry: Any, launch: Launch | None) -> str:
    if isinstance(entry, dict) and (entry.get("disabled") is True or entry.get("enabled") is False):
        return "it is switched off"
    words = () if launch is None else (launch.command, *launch.args, *launch.env.values())
    return "it has variables that only the agent fills in" if any("${" in word for word in words) else ""


class ServerCheck(Struct, frozen=True):
    """What became of starting a server.

    Args:
        ms: Until the list of its tools was there.
        problem: Why it does not work, and `remedy` what to do; empty where it does.
        stderr: The last lines it wrote for people, if it does not.
    """

    ms: int = 0
    server: str = ""
    protocol: str = ""
    tools: tuple[str, ...] = ()
    problem: str = ""
    remedy: str = ""
    stderr: tuple[str, ...] = ()


class _NoAnswer(Exception):
    """The server ended, or wrote something other than the protocol; the text says which."""


async def try_entries(
    machine: Machine, entries: list[SetUpEntry], deadline_s: float
) -> list[ServerCheck | None]:
    """Start the server of each entry as its agent would, a few side by side; None: its note says why not."""
    places = asyncio.Semaphore(4)

    async def try_out(entry: SetUpEntry) -> ServerCheck | None:
        if entry.note:
            return None
        if entry.launch is None:
            return ServerCheck(
                problem="the entry names no command", remedy="take it out, or set it up again with --force"
            )
        async with places:
            environ = agent_environ(entry.agent, machine)
            folder = entry.folder or agent_folder(entry.agent, machine)
            return await check_server(entry.launch, environ, folder, deadline_s=deadline_s)

    return list(await asyncio.gather(*map(try_out, entries)))


def agent_environ(agent: Agent, machine: Machine) -> dict[str, str]:
    """Return the environment that an agent's servers get, before their entries add to it."""
    if agent.environment == "all":
        return dict(machine.environ)
    few = _FEW_OF_POSIX | _FEW_OF_WINDOWS
    environ = {name: value for name, value in machine.environ.items() if name.upper() in few}
    if agent.environment == "desktop" and machine.system == "Darwin":
        environ["PATH"] = _MACOS_PATH
    return environ


def agent_folder(agent: Agent, machine: Machine) -> Path:
    """Return the current folder of an agent's servers: the project's, or where programs start that have none."""
    return Path(machine.home.anchor) if agent.environment == "desktop" else machine.project


async def check_server(
    launch: Launch, environ: Mapping[str, str], folder: Path, *, deadline_s: float = DEADLINE_S
) -> ServerCheck:
    """Start a server, shake hands, ask for its tools and end it. Never raises."""
    env = {**environ, **launch.env}
    command = shutil.which(launch.command, path=env.get("PATH", ""))
    remedy = "set it up again, which writes the full path of this installation"
    if command is None:
        problem = f"the command {launch.command} is not there, or not on the PATH that the agent has"
        return ServerCheck(problem=problem, remedy=remedy)
    begun = time.monotonic()
    with tempfile.TemporaryFile() as stderr:
        try:
            async with (
                _run_server(command, launch.args, env, folder, stderr) as process,
                asyncio.timeout(deadline_s),
            ):
                greeting, listed = await _ask(process)
            ms, info, rows = (
                round(1000 * (time.monotonic() - begun)),
                greeting.get("serverInfo"),
                listed.get("tools"),
            )
            server = f"{info.get('name')} {info.get('version')}" if isinstance(info, dict) else ""
            tools = tuple(str(row.get("name"))[:80] for row in rows or () if isinstance(row, dict))
            return ServerCheck(ms, server[:100], str(greeting.get("protocolVersion"))[:40], tools[:200])
        except TimeoutError:
            problem = f"the server did not answer within {deadline_s:g} s"
        except (_NoAnswer, ConnectionError) as error:
            problem = str(error) or "the server closed its input"
        except OSError as error:
            return ServerCheck(
                problem=f"{command} cannot be started: {error.strerror or error}", remedy=remedy
            )
        stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _MAX_STDERR_BYTES))
        last = stderr.read().decode("utf-8", "replace").strip().splitlines()[-6:]
    words = " ".join(f'"{word}"' if " " in word else word for word in (launch.command, *launch.args))
    by_hand = f"run it by hand in {folder} to see why: {words}"
    return ServerCheck(problem=problem, remedy=by_hand, stderr=tuple(last))


@contextlib.asynccontextmanager
async def _run_server(
    command: str, args: Sequence[str], env: Mapping[str, str], folder: Path, stderr: IO[bytes]
) -> AsyncGenerator[Process]:
    """Start a server, and let it go as agents do: its input ends, and what stays is killed with all it started."""
    process = await asyncio.create_subprocess_exec(
        *(command, *args),
        stdin=PIPE,
        stdout=PIPE,
        stderr=stderr,
        env=env,
        cwd=folder,
        limit=_MAX_LINE_BYTES,
        start_new_session=True,
    )
    assert process.stdin is not None
    try:
        yield process
    finally:
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _LEAVING_S)
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        await process.wait()


async def _ask(process: Process) -> list[dict[str, Any]]:
    """Return the results of the requests of `_HELLO`, each asked when the one before is answered."""
    assert process.stdin is not None
    assert process.stdout is not None
    results = list[dict[str, Any]]()
    for message in _HELLO:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        while "id" in message and len(results) < message["id"]:
            try:
                line = await process.stdout.readline()
            except ValueError:
                raise _NoAnswer("the server wrote a line that is too long to be a message") from None
            if not line:
                code = await process.wait()
                raise _NoAnswer(
                    f"the server ended with exit code {code} before it answered {message['method']}"
                )
            try:
                reply = json.loads(line)
            except ValueError:
                shown = line[:80].decode("utf-8", "replace").strip()
                raise _NoAnswer(
                    f"the server wrote to standard output what is no protocol: {shown!r}"
                ) from None
            if isinstance(reply, dict) and reply.get("id") == message["id"]:
                if not isinstance(reply.get("result"), dict):
                    raise _NoAnswer(
                        f"the server refused {message['method']}: {str(reply.get('error'))[:200]}"
                    )
                results.append(reply["result"])
    return results
