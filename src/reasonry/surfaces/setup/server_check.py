"""Starting a server as an agent would, and asking it what it offers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from .agent_table import Agent
from .launch import Launch
from .places import Machine

PROTOCOL = "2025-11-25"
"""The version that is offered; agents of today know it."""
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
"""What a program on macOS has that no shell starts."""


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
    """The server ended, or said what is no protocol; the text says which."""


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
    """Return the current folder of an agent's servers: that of the project, or where programs start that have none."""
    return Path(machine.home.anchor) if agent.environment == "desktop" else machine.project


async def check_server(
    launch: Launch, environ: Mapping[str, str], folder: Path, *, deadline_s: float = DEADLINE_S
) -> ServerCheck:
    """Start a server, shake hands, ask for its tools and end it. Never raises."""
    env = {**environ, **launch.env}
    command = shutil.which(launch.command, path=env.get("PATH", ""))
    if command is None:
        return ServerCheck(
            problem=f"the command {launch.command} is not there, or not on the PATH that the agent has",
            remedy="set it up again, which writes the full path of this installation",
        )
    begun = time.monotonic()
    try:
        process = await asyncio.create_subprocess_exec(
            command,
            *launch.args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=env,
            cwd=folder,
            limit=_MAX_LINE_BYTES,
            start_new_session=True,
        )
    except OSError as error:
        return ServerCheck(
            problem=f"{command} cannot be started: {error.strerror or error}",
            remedy="set it up again, which writes the full path of this installation",
        )
    written = bytearray()
    grace_s = _LEAVING_S
    reading = asyncio.ensure_future(_read_stderr(process, written))
    try:
        async with asyncio.timeout(deadline_s):
            found = await _ask(process)
        return _describe_offer(found, round(1000 * (time.monotonic() - begun)))
    except TimeoutError:
        grace_s = 0.0
        problem = f"the server did not answer within {deadline_s:g} s"
        return ServerCheck(
            problem=problem,
            remedy=_by_hand(launch, folder),
            stderr=await _last_lines(process, reading, written),
        )
    except (_NoAnswer, ConnectionError) as error:
        stderr = await _last_lines(process, reading, written)
        problem = str(error) or "the server closed its input"
        return ServerCheck(problem=problem, remedy=_by_hand(launch, folder), stderr=stderr)
    finally:
        await _end(process, grace_s)
        reading.cancel()


def _by_hand(launch: Launch, folder: Path) -> str:
    words = " ".join(f'"{word}"' if " " in word else word for word in (launch.command, *launch.args))
    return f"run it by hand in {folder} to see why: {words}"


async def _ask(process: asyncio.subprocess.Process) -> tuple[dict[str, Any], dict[str, Any]]:
    hello = {
        "protocolVersion": PROTOCOL,
        "capabilities": {},
        "clientInfo": {"name": "reasonry doctor", "version": "1"},
    }
    greeting = await _request(process, 1, "initialize", hello)
    _send(process, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    return greeting, await _request(process, 2, "tools/list", {})


async def _request(
    process: asyncio.subprocess.Process, id: int, method: str, params: Mapping[str, Any]
) -> dict[str, Any]:
    assert process.stdout is not None
    _send(process, {"jsonrpc": "2.0", "id": id, "method": method, "params": params})
    while True:
        try:
            line = await process.stdout.readline()
        except ValueError:
            raise _NoAnswer("the server wrote a line that is too long to be a message") from None
        if not line:
            code = await process.wait()
            raise _NoAnswer(f"the server ended with exit code {code} before it answered {method}")
        try:
            message = json.loads(line)
        except ValueError:
            shown = line[:80].decode("utf-8", "replace").strip()
            raise _NoAnswer(f"the server wrote to standard output what is no protocol: {shown!r}") from None
        if isinstance(message, dict) and message.get("id") == id:
            result = message.get("result")
            if not isinstance(result, dict):
                raise _NoAnswer(f"the server refused {method}: {str(message.get('error'))[:200]}")
            return result


def _send(process: asyncio.subprocess.Process, message: Mapping[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")


def _describe_offer(found: tuple[dict[str, Any], dict[str, Any]], ms: int) -> ServerCheck:
    greeting, listed = found
    info: Any = greeting.get("serverInfo")
    server = f"{info.get('name')} {info.get('version')}" if isinstance(info, dict) else ""
    rows: Any = listed.get("tools")
    tools = tuple(str(row.get("name"))[:80] for row in rows or () if isinstance(row, dict))
    return ServerCheck(ms, server[:100], str(greeting.get("protocolVersion"))[:40], tools[:200])


async def _read_stderr(process: asyncio.subprocess.Process, written: bytearray) -> None:
    assert process.stderr is not None
    while chunk := await process.stderr.read(4096):
        written += chunk
        del written[:-_MAX_STDERR_BYTES]


async def _last_lines(
    process: asyncio.subprocess.Process, reading: asyncio.Future[None], written: bytearray
) -> tuple[str, ...]:
    """Return the last lines for people; of a server that has ended, all that is still on its way."""
    if process.returncode is not None:
        await asyncio.wait({reading}, timeout=0.5)
    return tuple(written.decode("utf-8", "replace").strip().splitlines()[-6:])


async def _end(process: asyncio.subprocess.Process, grace_s: float) -> None:
    """Let a server go as agents do: its input ends; what stays is killed, with all it has started."""
    assert process.stdin is not None
    try:
        if process.returncode is None:
            with contextlib.suppress(OSError):
                process.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_s):
                    await process.wait()
    finally:
        if hasattr(os, "killpg"):
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        elif process.returncode is None:
            with contextlib.suppress(OSError):
                process.kill()
        await process.wait()
